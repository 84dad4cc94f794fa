"""Draws whose state comes again: what is new in each of them, what makes them be lowered anew."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, RGBA, Drawing
from tests.driver.shaders import POSITION_ONLY, UNIFORM_COLOUR
from tests.mesa.conftest import RunningServer

from vc4lab.driver.commands.stored_blocks import ROOM
from vc4lab.driver.screen import MOST_GONE, VideoCoreScreen
from vc4lab.mesa.protocol import messages, state_commands, work_commands
from vc4lab.mesa.protocol.codes import Primitive, Stage

SIZE = 64
LEFT = [[-1, -1, 0, 1], [0, -1, 0, 1], [0, 1, 0, 1], [-1, 1, 0, 1]]
RIGHT = [[0, -1, 0, 1], [1, -1, 0, 1], [1, 1, 0, 1], [0, 1, 0, 1]]
RED, GREEN, BLUE = (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A texture that is drawn to; both halves are vertices."""
    handle = drawing.texture(SIZE, SIZE, RGBA)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.vertices(np.array([*LEFT, *RIGHT]), 4)
    return handle


def colours(drawing: Drawing, target: int) -> list[tuple[int, ...]]:
    """Of the left and of the right half; each has one."""
    found = drawing.get(target)
    halves = found[:, : SIZE // 2], found[:, SIZE // 2 :]
    for half in halves:
        assert (half == half[0, 0]).all()
    return [tuple(int(one) for one in half[0, 0, :3]) for half in halves]


def quad(drawing: Drawing, start: int, colour: tuple[int, ...]) -> None:
    drawing.constants(Stage.FRAGMENT, colour)
    drawing.draw(Primitive.TRIANGLE_FAN, 4, start)


def screen_of(gpu: RunningServer) -> VideoCoreScreen:
    found = gpu.server.shared.screen
    assert isinstance(found, VideoCoreScreen)
    return found


def test_other_uniforms_in_each_frame(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    for first, second in ((RED, GREEN), (GREEN, BLUE), (BLUE, RED), (RED, RED)):
        quad(drawing, 0, first)
        quad(drawing, 4, second)
        wanted = [tuple(255 * one for one in colour[:3]) for colour in (first, second)]
        assert colours(drawing, target) == wanted
    assert not gpu.reporter.counts


def test_state_keeps_its_place(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    states = screen_of(gpu).memory.states
    used = []
    for _ in range(4):
        quad(drawing, 0, RED)
        drawing.get(target)
        used.append(states.next)
    assert used[0] == used[-1]


def test_indices_that_change(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """The same draw with other indices: other vertices, and of another range."""
    drawing.constants(Stage.FRAGMENT, GREEN)
    drawing.draw_indexed(Primitive.TRIANGLE_FAN, np.array([0, 1, 2, 3], np.uint16))
    assert colours(drawing, target) == [(0, 255, 0), (0, 0, 0)]
    buffer = max(drawing.memory)
    drawing.memory[buffer][:] = np.array([4, 5, 6, 7], np.uint16).tobytes()
    drawing.client.send(messages.TransferPut2(buffer, 0, 0, 0, 0, 8, 1, 1, 8, 0))
    drawing.clear(4)
    drawing.draw(Primitive.TRIANGLE_FAN, 4, indexed=1, min_index=0, max_index=7)
    assert colours(drawing, target) == [(0, 0, 0), (0, 255, 0)]
    assert not gpu.reporter.counts


def test_indices_that_first_draw_nothing(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """The same draw, once with indices that only begin new strips, then with others."""
    drawing.constants(Stage.FRAGMENT, GREEN)
    restart = {"primitive_restart": 1, "restart_index": 0xFFFF, "max_index": 7}
    drawing.draw_indexed(Primitive.TRIANGLE_FAN, np.full(4, 0xFFFF, np.uint16), **restart)
    assert colours(drawing, target) == [(0, 0, 0), (0, 0, 0)]
    buffer = max(drawing.memory)
    drawing.memory[buffer][:] = np.array([4, 5, 6, 7], np.uint16).tobytes()
    drawing.client.send(messages.TransferPut2(buffer, 0, 0, 0, 0, 8, 1, 1, 8, 0))
    drawing.draw(Primitive.TRIANGLE_FAN, 4, indexed=1, **restart)
    assert colours(drawing, target) == [(0, 0, 0), (0, 255, 0)]
    assert not gpu.reporter.counts


def test_states_that_fill_their_memory(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Blocks of state begin anew, and nothing is known of the old ones."""
    screen = screen_of(gpu)
    screen.memory.states.end = screen.memory.states.next + 3 * ROOM
    comment = "\n" * (ROOM // 2)
    for number in range(13):
        drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR + comment[number:])
        quad(drawing, 4 * (number % 2), RED if number % 3 else BLUE)
        drawing.get(target)
    assert screen.memory.states.turn > 1
    quad(drawing, 0, GREEN)
    quad(drawing, 4, RED)
    assert colours(drawing, target) == [(0, 255, 0), (255, 0, 0)]
    assert not gpu.reporter.counts


def test_buffers_that_are_gone_are_free(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Streams of vertices: state that is kept keeps no more of them than `MOST_GONE` bytes."""
    heap = screen_of(gpu).memory.heap
    size = 8 << 20
    quad(drawing, 0, RED)
    drawing.get(target)
    before = heap.used
    for _ in range(3 * MOST_GONE // size):
        rows = np.zeros((size // 16, 4))
        rows[:4] = LEFT
        drawing.vertices(rows, 4)
        handle = max(drawing.memory)
        quad(drawing, 0, RED)
        drawing.client.submit(work_commands.EndTransfers())
        drawing.get(target)
        del drawing.memory[handle]
        drawing.client.send(messages.ResourceUnref(handle))
    drawing.client.wait()
    assert heap.used - before <= MOST_GONE + 2 * size + (1 << 20)
    assert colours(drawing, target)[0] == (255, 0, 0)


def test_another_target_of_the_same_size(drawing: Drawing, target: int) -> None:
    other = drawing.texture(SIZE, SIZE, BGRA)
    for handle in (target, other, target, other):
        drawing.target(handle)
        drawing.clear(4)
        quad(drawing, 4, BLUE)
        found = drawing.get(handle)[0, -1]
        assert found.tolist() == ([0, 0, 255, 255] if handle == target else [255, 0, 0, 255])


def test_vertices_that_lie_elsewhere(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams of vertices: the same draws at other places of a buffer are not lowered again."""
    lowering = screen_of(gpu).processor.draws.lowering
    prepared: list[int] = []
    prepare = lowering.prepare

    def counted(*what: Any, **more: Any) -> Any:
        prepared.append(1)
        return prepare(*what, **more)

    monkeypatch.setattr(lowering, "prepare", counted)
    buffer = drawing.buffer(np.array([*LEFT, *RIGHT] * 8, np.float32).tobytes())

    def frame(first: int, colour: tuple[int, ...], stride: int = 16) -> None:
        bound = state_commands.VertexBuffer(stride, 16 * first, buffer)
        drawing.client.submit(state_commands.SetVertexBuffers((bound,)))
        drawing.clear(4)
        quad(drawing, 0, colour)

    for number in range(0, 16, 2):
        frame(4 * number, RED)
        assert colours(drawing, target) == [(255, 0, 0), (0, 0, 0)]
        if number < 14:
            frame(4 * number + 4, GREEN)
            assert colours(drawing, target) == [(0, 0, 0), (0, 255, 0)]
    assert len(prepared) == 1
    for _ in range(3):
        frame(4, BLUE)
        assert colours(drawing, target) == [(0, 0, 0), (0, 0, 255)]
    assert len(prepared) == 1
    # Another stride is another draw: four times the same vertex, so that nothing is seen of it.
    frame(0, RED, stride=0)
    assert colours(drawing, target) == [(0, 0, 0), (0, 0, 0)]
    assert len(prepared) == 2
    assert not gpu.reporter.counts
    frame(61, RED)
    drawing.client.wait()
    assert gpu.codes() == ["GL-005"]
    frame(0, RED)
    assert colours(drawing, target) == [(255, 0, 0), (0, 0, 0)]
