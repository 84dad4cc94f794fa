"""Draws that native code puts into the queue: the same commands, blocks and pictures."""

from pathlib import Path

import numpy as np
from tests.driver import shaders
from tests.driver.small_scene import COLOUR, SmallScene, server_and_drawing, square

from vc4lab.driver.capture.model import Capture
from vc4lab.driver.capture.recorder import Recorder
from vc4lab.driver.commands.commands import Draw, command_at
from vc4lab.driver.queue.events import QueueBegun
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol.codes import Primitive, Stage
from vc4lab.mesa.protocol.state_commands import SetVertexBuffers, VertexBuffer

FRAMES = 4


def captured(folder: Path, *, in_objects: bool) -> tuple[Capture, list[np.ndarray]]:
    """Equal frames and one that differs, with all commands as objects or as runs."""
    folder.mkdir()
    server, drawing = server_and_drawing(folder)
    try:
        assert isinstance(server.screen, VideoCoreScreen)
        if in_objects:
            server.server.listeners.command.subscribe(lambda _event: None)
        recorder = Recorder(server.screen, 1, FRAMES + 1, "small")
        scene = SmallScene(drawing)
        pixels = [scene.frame() for _ in range(FRAMES)]
        pixels.append(scene.frame(right=0.2))
    finally:
        server.close()
    return recorder.capture, pixels


def test_the_same_queue(tmp_path: Path) -> None:
    run, pixels = captured(tmp_path / "run", in_objects=False)
    other, wanted = captured(tmp_path / "objects", in_objects=True)
    assert [one.commands for one in run.frames] == [one.commands for one in other.frames]
    assert len(run.frames) == FRAMES + 1
    assert all(len(one.draws) == 3 for one in run.frames)
    states = [
        [one.state_of(draw).lines() for frame in one.frames for draw in frame.draws] for one in (run, other)
    ]
    assert states[0] == states[1]
    assert run.data == other.data
    for mine, one in zip(pixels, wanted, strict=True):
        assert (mine == one).all()
    assert (pixels[0] != pixels[-1]).any()


def streamed(folder: Path, *, in_objects: bool) -> tuple[Capture, list[np.ndarray], int]:
    """Frames whose vertices are at other places of a buffer; how many draws of the queue have
    offsets of their own.
    """
    folder.mkdir()
    server, drawing = server_and_drawing(folder)
    own: list[int] = []
    try:
        screen = server.screen
        assert isinstance(screen, VideoCoreScreen)
        if in_objects:
            server.server.listeners.command.subscribe(lambda _event: None)

        def begun(event: QueueBegun) -> None:
            data, place = screen.memory.guest.view(event.address, event.size), 0
            while place < event.size:
                command, place = command_at(data, place)
                own.append(isinstance(command, Draw) and command.vertices != 0)

        screen.listeners.queue.subscribe(begun)
        recorder = Recorder(screen, 1, FRAMES, "streamed")
        scene = SmallScene(drawing)
        drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
        drawing.constants(Stage.FRAGMENT, COLOUR)
        squares = [square(0.1 * number - 1, -1, 0.1 * number, 1)[:, :4] for number in range(8)]
        drawing.vertices(np.concatenate(squares), 4)
        buffer = drawing.buffer(np.concatenate(squares).tobytes())
        pixels = []
        for number in range(FRAMES):
            drawing.clear(4)
            for one in (number, number + 4):
                bound = VertexBuffer(16, 64 * one, buffer)
                drawing.client.submit(SetVertexBuffers((bound,)))
                drawing.draw(Primitive.TRIANGLE_STRIP, 4)
            pixels.append(drawing.get(scene.window))
    finally:
        server.close()
    return recorder.capture, pixels, sum(own)


def test_streamed_vertices_in_the_queue_and_in_captures(tmp_path: Path) -> None:
    """A state whose vertices are elsewhere is the same state; captures have it as it is."""
    run, pixels, moved = streamed(tmp_path / "run", in_objects=False)
    other, wanted, never = streamed(tmp_path / "objects", in_objects=True)
    assert moved >= 2 * FRAMES - 2
    assert never == 0
    assert [one.commands for one in run.frames] == [one.commands for one in other.frames]
    for frame, number in zip(run.frames, range(FRAMES), strict=True):
        states = [run.state_of(draw) for draw in frame.draws]
        assert [one.vertex_buffers[0].state.offset for one in states] == [  # type: ignore[union-attr]
            64 * number, 64 * (number + 4)
        ]  # fmt: skip
    for mine, one in zip(pixels, wanted, strict=True):
        assert (mine == one).all()
    assert all((pixels[0] != one).any() for one in pixels[1:])
