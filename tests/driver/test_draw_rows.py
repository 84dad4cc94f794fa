"""Draws of the queue that native code adds to frames: the processor's lists and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver import shaders
from tests.driver.drawing import BGRA, RGBA, Drawing
from tests.driver.small_scene import WINDOW, server_and_drawing
from tests.mesa.conftest import RunningServer

from vc4lab.driver.commands.commands import Clear, Draw, QueueCommand
from vc4lab.driver.draws.vertices import ShaderRecords
from vc4lab.driver.queue.draw_rows import DrawRows
from vc4lab.driver.queue.processor import _HANDLERS
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import Compare, Primitive, Stage
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.state_commands import (
    Scissor,
    SetIndexBuffer,
    SetScissorState,
    SetVertexBuffers,
    VertexBuffer,
)
from vc4lab.records.control import parse_list
from vc4lab.records.shader import ATTRIBUTE_SIZE, GL_FIXED_SIZE
from vc4lab.records.states import GlShaderState

SIZE = 64
FRAMES = 6
SQUARE = [[-1, -1, 0, 1], [1, -1, 0, 1], [1, 1, 0, 1], [-1, 1, 0, 1]]
SMALL = [[-0.5, -0.5, 0, 1], [0.5, -0.5, 0, 1], [0.5, 0.5, 0, 1], [-0.5, 0.5, 0, 1]]


class Scene:
    """Frames with all that makes the walk stop, and with much that does not."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.window = drawing.texture(SIZE, SIZE, BGRA, bind=WINDOW | 8)
        self.other = drawing.texture(SIZE, SIZE, RGBA)
        drawing.viewport(SIZE, SIZE)
        drawing.defaults()
        # Buffers stay: a draw with other ones is another draw.
        rows = [[*one, 0.5 + one[0] / 2, 0.5 + one[1] / 2, 0, 1] for one in (*SQUARE, *SMALL)]
        drawing.vertices(np.array(rows), 4, 4)
        self.indices = [drawing.buffer(np.array([4, 5, last], np.uint16).tobytes(), 32) for last in (6, 7)]

    def frame(self, number: int) -> list[np.ndarray]:
        drawing = self.drawing
        drawing.target(self.window)
        drawing.clear(4, (0.0, 0.0, 0.2 * number, 1.0))
        drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
        for start, green in ((4, 1), (4, 0.5), (4, 0.25)):
            drawing.constants(Stage.FRAGMENT, (0.1 * number, green, 0, 1))
            drawing.draw(Primitive.TRIANGLE_FAN, 4, start)
        drawing.rasterizer(scissor=1)
        drawing.client.submit(SetScissorState(0, (Scissor(0, 0, 0, 0),)))
        drawing.draw(Primitive.TRIANGLE_FAN, 4)  # nothing of it
        drawing.rasterizer()
        drawing.client.submit(SetIndexBuffer(self.indices[number % 2], 2, 0))
        drawing.draw(Primitive.TRIANGLES, 3, indexed=1, min_index=4, max_index=7)
        drawing.draw(Primitive.POINTS, number, max_index=9)
        # What is in the window is sampled where another one is drawn to.
        drawing.target(self.other)
        drawing.shaders(shaders.VARYING, shaders.TEXTURED.format(target="2D"))
        drawing.sampled(self.window)
        for _ in range(2):
            drawing.draw(Primitive.TRIANGLE_FAN, 4, 4)
        return [drawing.get(self.other), drawing.get(self.window)]


def readable(screen: VideoCoreScreen, start: int, end: int) -> bytes:
    """A list without addresses of what lasts a frame, and the arrays of its shader records."""
    memory = screen.memory
    places = range(memory.arena.start, memory.arena.end)
    made = b""
    for one in parse_list(memory.guest.read, start, end):
        payload = one.payload
        assert payload is not None
        address = int(getattr(payload, "address", 0))
        if address in places:
            if isinstance(payload, GlShaderState):
                count = (int(payload.attributes) - 1) % 8 + 1
                size = GL_FIXED_SIZE + count * ATTRIBUTE_SIZE
                record = np.frombuffer(memory.guest.read(address, size), np.uint32).copy()
                assert {int(record[word]) in places for word in ShaderRecords.UNIFORMS} == {True}
                record[[*ShaderRecords.UNIFORMS]] = 0
                made += record.tobytes()
            payload = payload.replace(address=0)
        made += bytes([one.id]) + payload.to_bytes()
    return made


def drawn(folder: Path, *, by_processor: bool) -> tuple[list[bytes], list[Any], list[int], Any]:
    """Binning lists of all jobs, pictures, draws of each job; what was known in the end."""
    folder.mkdir()
    server, drawing = server_and_drawing(folder)
    lists: list[bytes] = []
    draws: list[int] = []
    try:
        screen = server.screen
        assert isinstance(screen, VideoCoreScreen)

        def job(event: Any) -> None:
            lists.append(readable(screen, *event.lists[:2]))
            draws.extend(event.draws)

        screen.listeners.job.subscribe(job)
        scene = Scene(drawing)
        drawing.client.wait()  # uploads lie beside the queue for listeners only
        if by_processor:
            screen.listeners.command.subscribe(lambda _event: None)
        pictures = [one for number in range(FRAMES) for one in scene.frame(number % 3)]
        counts = screen.processor.counts
        assert (counts.draws, counts.left_out) == (8 * FRAMES, 0)
        assert not server.reporter.counts
        known = list(screen.processor.rows.known)
    finally:
        server.close()
    return lists, pictures, draws, known


def test_the_same_lists_and_pictures(tmp_path: Path) -> None:
    lists, pictures, draws, known = drawn(tmp_path / "walk", by_processor=False)
    others, wanted, numbers, none = drawn(tmp_path / "processor", by_processor=True)
    assert lists == others
    assert draws == numbers
    for mine, other in zip(pictures, wanted, strict=True):
        assert (mine == other).all()
    assert known
    assert not none
    # Three kinds of frame, twice each: what comes again is the same.
    for mine, other in zip(pictures[:6], pictures[6:], strict=True):
        assert (mine == other).all()


def square(drawing: Drawing) -> int:
    """All is set to draw a square of one colour to a texture, which is returned."""
    target = drawing.texture(SIZE, SIZE, RGBA)
    drawing.target(target)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
    drawing.vertices(np.array(SQUARE), 4)
    return target


def executed_by_python(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: type[QueueCommand] = Draw
) -> list[Any]:
    """Commands of a kind, draws or clears, that Python executes from now on."""
    executed: list[Any] = []
    handle = _HANDLERS[kind]

    def counted(processor: Any, command: Any) -> None:
        executed.append(command)
        handle(processor, command)

    monkeypatch.setitem(_HANDLERS, kind, counted)
    return executed


def test_repeated_draws_are_left_to_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, drawing = server_and_drawing(tmp_path)
    try:
        target = square(drawing)
        indices = drawing.buffer(np.array([0, 1, 2, 0, 2, 3], np.uint16).tobytes(), 32)

        def frame(colour: tuple[float, ...]) -> list[int]:
            drawing.clear(4)
            drawing.constants(Stage.FRAGMENT, colour)
            drawing.client.submit(SetIndexBuffer(indices, 2, 0))
            drawing.draw(Primitive.TRIANGLES, 6, indexed=1, max_index=3)
            found: list[int] = drawing.get(target)[SIZE // 2, SIZE - 1].tolist()
            return found

        for _ in range(2):
            assert frame((1, 0, 0, 1)) == [255, 0, 0, 255]
        executed = executed_by_python(server, monkeypatch)
        assert frame((0, 1, 0, 1)) == [0, 255, 0, 255]
        assert not executed
        # Indices that changed are looked at again.
        drawing.memory[indices][:] = np.array([0, 1, 3, 0, 1, 3], np.uint16).tobytes()
        drawing.client.send(messages.TransferPut2(indices, 0, 0, 0, 0, 12, 1, 1, 12, 0))
        assert frame((0, 0, 1, 1)) == [0, 0, 0, 0]
        assert not executed
    finally:
        server.close()


def test_frames_that_begin_with_a_known_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin as that did, with its values, as long as there is what it is for."""
    server, drawing = server_and_drawing(tmp_path)
    middle = SIZE // 2
    try:
        drawn = square(drawing)
        depth = drawing.texture(SIZE, SIZE, Format.X8Z24_UNORM, bind=1)
        drawing.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
        drawing.vertices(np.array(SMALL), 4)
        drawing.constants(Stage.FRAGMENT, (1, 0, 0, 1))

        def frame(target: int, blue: float, z: float) -> list[list[int]]:
            drawing.clear(5, (0, 0, blue, 1), z)
            drawing.draw(Primitive.TRIANGLE_FAN, 4)
            pixels = drawing.get(target)
            return [pixels[0, 0].tolist(), pixels[middle, middle].tolist()]

        drawing.target(drawn, depth)
        red, background = [255, 0, 0, 255], {0.2: [0, 0, 51, 255], 1.0: [0, 0, 255, 255]}
        executed = executed_by_python(server, monkeypatch, Clear)
        for turn in range(3):
            for blue in background:
                # The square lies at a depth of 0.5: it is hidden where 0.25 was cleared to.
                assert frame(drawn, blue, 1.0) == [background[blue], red]
                assert frame(drawn, blue, 0.25) == [background[blue]] * 2
            assert len(executed) == 4, turn
        # In the middle of a queue it is a clear as others are.
        drawing.clear(5, (0, 0, 0.2, 1), 1.0)
        drawing.draw(Primitive.TRIANGLE_FAN, 4)
        assert frame(drawn, 1.0, 1.0) == [background[1.0], red]
        assert len(executed) == 5
        # Another texture at the same handle, with more than one tile.
        other = drawing.texture(3 * SIZE, 2 * SIZE, RGBA)
        drawing.target(other)
        drawing.depth()
        drawing.viewport(3 * SIZE, 2 * SIZE)
        for number in (drawn, depth):
            drawing.client.send(messages.ResourceUnref(number))
        drawing.client.wait()
        del executed[:]
        for _ in range(2):
            assert frame(other, 1.0, 1.0) == [background[1.0]] * 2
            assert drawing.get(other)[SIZE, SIZE + middle].tolist() == red
        assert len(executed) == 1
        assert not server.reporter.counts
    finally:
        server.close()


def test_streamed_vertices_are_left_to_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws whose vertices are elsewhere in their buffer each time, with indices and without."""
    server, drawing = server_and_drawing(tmp_path)
    try:
        target = square(drawing)
        left = np.array(SQUARE) * [0.5, 1, 1, 1] - [0.5, 0, 0, 0]
        right = left + np.array([1, 0, 0, 0])
        both = np.concatenate([left, right] * 4).astype(np.float32)
        buffer = drawing.buffer(both.tobytes())
        indices = drawing.buffer(np.array([0, 1, 2, 0, 2, 3], np.uint16).tobytes(), 32)

        def frame(place: int) -> list[list[int]]:
            drawing.clear(4)
            drawing.client.submit(SetIndexBuffer(indices, 2, 0))
            drawing.client.submit(SetVertexBuffers((VertexBuffer(16, 64 * place, buffer),)))
            drawing.constants(Stage.FRAGMENT, (1, 0, 0, 1))
            drawing.draw(Primitive.TRIANGLES, 6, indexed=1, max_index=3)
            drawing.constants(Stage.FRAGMENT, (0, 1, 0, 1))
            drawing.draw(Primitive.TRIANGLE_FAN, 3)
            found = drawing.get(target)
            return [found[SIZE - 1, x].tolist() for x in (SIZE // 4, 3 * SIZE // 4)]

        pictures = [frame(place) for place in range(4)]
        assert pictures[0] == pictures[2] != pictures[1] == pictures[3]
        executed = executed_by_python(server, monkeypatch)
        for place in (4, 5, 6, 7, 3, 2):
            assert frame(place) == pictures[place % 2]
        assert not executed
        assert not server.reporter.counts
        # Vertices that are not in the buffer are Python's to refuse.
        assert frame(8) == [[0, 0, 0, 0]] * 2
        assert server.codes() == ["GL-005", "GL-005"]
        assert len(executed) == 2
        assert all(draw.vertices for draw in executed)
    finally:
        server.close()


def test_tables_that_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are emptied; nothing is drawn wrongly."""
    monkeypatch.setattr(DrawRows, "MOST", 3)
    lists, pictures, _, _ = drawn(tmp_path / "few", by_processor=False)
    others, wanted, _, _ = drawn(tmp_path / "processor", by_processor=True)
    assert lists == others
    assert all((mine == one).all() for mine, one in zip(pictures, wanted, strict=True))
