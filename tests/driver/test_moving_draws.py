"""Draws that differ in which vertices they name: left to native code, and drawn as by the processor
with everything prepared anew.
"""

from typing import Any

import numpy as np
import pytest
from tests.driver import shaders
from tests.driver.drawing import RGBA, Drawing, stencil_face
from tests.driver.test_draw_rows import executed_by_python
from tests.mesa.conftest import RunningServer

from vc4lab.driver.queue.events import JobDrawn
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import Compare, Primitive, Stage, StencilOp
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.objects import VertexElement, VertexElements
from vc4lab.mesa.protocol.state_commands import SetIndexBuffer, SetStencilRef, SetVertexBuffers, VertexBuffer
from vc4lab.mesa.protocol.work_commands import Transfer3d
from vc4lab.records.control import parse_list
from vc4lab.records.states import GlShaderState

COLUMNS, HEIGHT = 32, 8
WIDTH = 4 * COLUMNS


def strips() -> np.ndarray[Any, Any]:
    """Four vertices for each column, of four pixels."""
    rows = []
    for number in range(COLUMNS):
        left = 2 * number / COLUMNS - 1
        rows += [(x, y, 0, 1) for x in (left, left + 2 / COLUMNS) for y in (-1, 1)]
    return np.array(rows, np.float32)


@pytest.fixture
def target(drawing: Drawing) -> int:
    handle = drawing.texture(WIDTH, HEIGHT, RGBA)
    drawing.target(handle)
    drawing.viewport(WIDTH, HEIGHT)
    drawing.defaults()
    drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
    drawing.vertices(strips(), 4)
    return handle


def drawn(drawing: Drawing, target: int) -> list[int]:
    """The columns that have a colour."""
    picture = drawing.get(target)
    assert (picture[:, 1::4] == picture[:1, 1::4]).all()
    return np.flatnonzero(picture[0, 1::4, 0]).tolist()


def begin(drawing: Drawing) -> None:
    drawing.clear(4)
    drawing.constants(Stage.FRAGMENT, (1, 0, 0, 1))


def test_arrays_from_other_vertices_on(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frame(*columns: tuple[int, int]) -> list[int]:
        begin(drawing)
        for first, count in columns:
            drawing.draw(Primitive.TRIANGLE_STRIP, 4 * count, 4 * first)
        return drawn(drawing, target)

    assert frame((0, 1)) == [0]
    executed = executed_by_python(gpu, monkeypatch)
    assert frame((3, 1), (30, 2), (7, 4)) == [3, 7, 8, 9, 10, 30, 31]
    assert frame(*[(number, 1) for number in range(0, COLUMNS, 2)]) == [*range(0, COLUMNS, 2)]
    assert not executed
    # The last one names vertices that there are not.
    assert frame((1, 1), (31, 2)) == [1]
    assert len(executed) == 1
    assert gpu.codes() == ["GL-005"]


@pytest.mark.parametrize("kind", ["u1", "u2", "u4"])
def test_indices_at_other_places(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Mesa adds a draw's first index to the offset of the index buffer, and sends both."""
    numbers = np.arange(4 * COLUMNS).astype(kind)
    buffer = drawing.buffer(numbers.tobytes(), 32)
    size = numbers.itemsize

    def frame(*columns: tuple[int, int], bias: int = 0) -> list[int]:
        begin(drawing)
        for first, count in columns:
            drawing.client.submit(SetIndexBuffer(buffer, size, 4 * size * first))
            drawing.draw(Primitive.TRIANGLE_STRIP, 4 * count, 4 * first, indexed=1, index_bias=4 * bias)
        return drawn(drawing, target)

    assert frame((0, 1)) == [0]
    executed = executed_by_python(gpu, monkeypatch)
    assert frame((5, 1), (9, 3), (31, 1)) == [5, 9, 10, 11, 31]
    assert frame((5, 1), (8, 2), bias=-3) == [2, 5, 6]
    # Other indices at the same place.
    drawing.memory[buffer][:] = numbers[::-1].tobytes()
    drawing.client.send(messages.TransferPut2(buffer, 0, 0, 0, 0, numbers.nbytes, 1, 1, numbers.nbytes, 0))
    assert frame((0, 1), (1, 1)) == [30, 31]
    assert not executed
    assert frame((2, 1), (31, 2)) == [29]  # beyond the end of the indices
    assert frame((2, 1), (3, 1), bias=4) == []  # beyond that of the vertices
    assert len(executed) == 3
    assert gpu.codes() == ["GL-005"] * 3


def test_indices_of_32_bits_far_from_0(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = 1 << 17
    rows = np.zeros((far, 4), np.float32)
    drawing.vertices(np.concatenate([rows, strips()]), 4)
    buffer = drawing.buffer((far + np.arange(4 * COLUMNS, dtype=np.uint32)).tobytes(), 32)

    def frame(*columns: int) -> list[int]:
        begin(drawing)
        for first in columns:
            drawing.client.submit(SetIndexBuffer(buffer, 4, 16 * first))
            drawing.draw(Primitive.TRIANGLE_STRIP, 4, 4 * first, indexed=1)
        return drawn(drawing, target)

    assert frame(0) == [0]
    executed = executed_by_python(gpu, monkeypatch)
    assert frame(17, 4, 30) == [4, 17, 30]
    assert not executed
    assert gpu.codes() == []


def test_constants_by_index(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look-ups of constants are addresses that native code puts in."""
    vertex = """VERT
DCL IN[0]
DCL OUT[0], POSITION
DCL OUT[1], GENERIC[0]
DCL CONST[0..3]
DCL TEMP[0], LOCAL
DCL ADDR[0]
IMM[0] INT32 {3, 0, 0, 0}
  0: MOV OUT[0], IN[0]
  1: F2I TEMP[0].x, CONST[0].xxxx
  2: UARL ADDR[0].x, TEMP[0].xxxx
  3: MOV OUT[1], CONST[ADDR[0].x+1]
  4: END
"""
    drawing.shaders(vertex, shaders.VARYING_COLOUR)
    table = [[0] * 4, [0.2] * 4, [0.4] * 4, [0.6] * 4]

    def frame(index: int) -> int:
        drawing.clear(4)
        table[0][0] = index
        drawing.constants(Stage.VERTEX, table)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, 8)
        return int(drawing.get(target)[0, 9, 0])

    assert frame(0) == 51
    executed = executed_by_python(gpu, monkeypatch)
    assert [frame(index) for index in (1, 2, 0)] == [102, 153, 51]
    assert not executed
    assert gpu.codes() == []


def jobs_of(gpu: RunningServer) -> list[JobDrawn]:
    screen = gpu.screen
    assert isinstance(screen, VideoCoreScreen)
    found: list[JobDrawn] = []
    screen.listeners.job.subscribe(found.append)
    return found


def test_uploads_beside_what_is_read(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Streams of vertices do not end a frame; to change what draws read still does."""
    rows = strips()
    buffer = drawing.buffer(bytes(rows.nbytes))
    jobs = jobs_of(gpu)

    def put(column: int, place: int) -> None:
        at = 64 * column  # of the shared memory, which the server reads later
        drawing.memory[buffer][at : at + 64] = rows[4 * column :][:4].tobytes()
        box = 64 * place, 0, 0, 64, 1, 1
        drawing.client.submit(Transfer3d(buffer, 0, 0, 0, 0, *box, offset=at, direction=1))

    drawing.client.submit(SetVertexBuffers((VertexBuffer(16, 0, buffer),)))
    begin(drawing)
    for place, column in enumerate((3, 9, 27)):
        put(column, place)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, 4 * place)
    assert drawn(drawing, target) == [3, 9, 27]
    assert len(jobs) == 1
    begin(drawing)
    for column in (4, 6):
        put(column, 1)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, 4)
    assert drawn(drawing, target) == [4, 6]
    assert len(jobs) == 3
    assert gpu.codes() == []


def test_depth_alone_is_cleared_by_the_tile_buffer_where_the_stencil_is_one_value(
    drawing: Drawing, gpu: RunningServer
) -> None:
    colour = drawing.texture(64, 64, RGBA)
    depth = drawing.texture(64, 64, Format.S8_UINT_Z24_UNORM, bind=1)
    drawing.target(colour, depth)
    drawing.viewport(64, 64)
    drawing.defaults()
    drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, (1, 0, 0, 1))
    square = np.array([[-1, -1, 0, 1], [1, -1, 0, 1], [-1, 1, 0, 1], [1, 1, 0, 1]])
    left = square * [0.5, 1, 1, 1] - [0.5, 0, 0, 0]
    jobs = jobs_of(gpu)

    def equal_to(value: int, write: StencilOp) -> None:
        drawing.depth(stencil_face(Compare.EQUAL, write))
        drawing.client.submit(SetStencilRef(value, value))

    def covered() -> int:
        return int((drawing.get(colour)[..., 0] > 0).sum())

    for stencil in (7, 3):
        drawing.clear(7, (0, 0, 0, 0), 1.0, stencil)
        drawing.get(colour)
        drawing.clear(5, (0, 0, 0, 0), 1.0)  # the stencil keeps its value
        equal_to(stencil, StencilOp.KEEP)
        drawing.vertices(square, 4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4)
        assert covered() == 64 * 64
    # A part of it becomes another value: from then on it is loaded.
    equal_to(3, StencilOp.INCR)
    drawing.vertices(left, 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    drawing.get(colour)
    drawing.clear(5, (0, 0, 0, 0), 1.0)
    equal_to(4, StencilOp.KEEP)
    drawing.vertices(square, 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    assert covered() == 32 * 64
    assert jobs
    assert gpu.codes() == []


def shader_states(gpu: RunningServer) -> list[int]:
    """How many shader states the binning list of each job has, as jobs come."""
    screen = gpu.screen
    assert isinstance(screen, VideoCoreScreen)
    found: list[int] = []

    def job(event: JobDrawn) -> None:
        start, end = event.lists[:2]
        records = parse_list(screen.memory.guest.read, start, end)
        found.append(sum(one.id == GlShaderState.id for one in records))

    screen.listeners.job.subscribe(job)
    return found


@pytest.mark.parametrize(("kind", "shifts"), [("", True), ("u1", False), ("u2", True), ("u4", True)])
def test_arrays_that_begin_whole_vertices_later(
    drawing: Drawing,
    target: int,
    gpu: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    shifts: bool,
) -> None:
    """The shader state of the draw before holds, with other first vertices or indices."""
    buffer = drawing.buffer(bytes(8) + strips().tobytes() + strips().tobytes())
    if kind:
        indices = drawing.buffer(np.arange(4 * COLUMNS).astype(kind).tobytes(), 32)
        drawing.client.submit(SetIndexBuffer(indices, int(kind[1]), 0))

    def frame(*columns: int, bytes_more: int = 8, **fields: Any) -> list[int]:
        begin(drawing)
        for column in columns:
            place = VertexBuffer(16, 64 * column + bytes_more, buffer)
            drawing.client.submit(SetVertexBuffers((place,)))
            drawing.draw(Primitive.TRIANGLE_STRIP, 4, indexed=int(bool(kind)), **fields)
        return drawn(drawing, target)

    assert frame(0) == [0]
    executed = executed_by_python(gpu, monkeypatch)
    states = shader_states(gpu)
    assert frame(3, 5, 3, 30) == [3, 5, 30]
    assert states.pop() == (1 if shifts else 4)
    assert frame(9, 7, 8) == [7, 8, 9]  # vertex 0 is the first one that a record names
    assert states.pop() == (2 if shifts else 3)
    if kind:
        assert frame(4, 2, 4, index_bias=8) == [4, 6]
        assert states.pop() == (2 if shifts else 3)
    assert not executed
    # Half a vertex on: x and y are the z and w of the vertex before.
    begin(drawing)
    for more in (8, 16):
        drawing.client.submit(SetVertexBuffers((VertexBuffer(16, 64 * 6 + more, buffer),)))
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, indexed=int(bool(kind)))
    assert drawn(drawing, target) == [6]
    assert states.pop() == 2
    assert gpu.codes() == []


def test_arrays_of_which_one_begins_later(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shader state holds only if all arrays begin as many vertices later."""
    greens = np.repeat(np.arange(COLUMNS, dtype=np.float32) / 255, 4)
    colours = np.stack([np.ones_like(greens), greens], 1)
    drawing.bind(
        VertexElements(
            (VertexElement(0, 0, 0, Format.R32G32B32A32_FLOAT), VertexElement(0, 0, 1, Format.R32G32_FLOAT))
        )
    )
    buffers = drawing.buffer(strips().tobytes()), drawing.buffer(colours.tobytes())
    drawing.shaders(shaders.VARYING, shaders.VARYING_COLOUR)

    def frame(*columns: tuple[int, int]) -> dict[int, int]:
        begin(drawing)
        for column, colour in columns:
            first = VertexBuffer(16, 64 * column, buffers[0])
            second = VertexBuffer(8, 32 * colour, buffers[1])
            drawing.client.submit(SetVertexBuffers((first, second)))
            drawing.draw(Primitive.TRIANGLE_STRIP, 4)
        picture = drawing.get(target)
        return {one: int(picture[0, 4 * one + 1, 1]) for one in drawn(drawing, target)}

    assert frame((1, 1)) == {1: 1}
    executed = executed_by_python(gpu, monkeypatch)
    states = shader_states(gpu)
    assert frame((2, 5), (4, 7), (9, 12)) == {2: 5, 4: 7, 9: 12}
    assert states.pop() == 1
    assert frame((2, 5), (4, 6), (4, 8), (5, 8)) == {2: 5, 4: 8, 5: 8}
    assert states.pop() == 4
    assert not executed
    assert gpu.codes() == []


@pytest.mark.parametrize("kind", ["", "u2"])
def test_instances_of_other_vertices(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Each instance has a shader record, and an attribute that steps by instances."""
    steps = np.array([(2 * number / COLUMNS, 0, 0, 0) for number in range(COLUMNS)], np.float32)
    buffers = drawing.buffer(strips().tobytes()), drawing.buffer(steps.tobytes())
    vector = Format.R32G32B32A32_FLOAT
    drawing.bind(VertexElements((VertexElement(0, 0, 0, vector), VertexElement(0, 2, 1, vector))))
    drawing.shaders(
        """VERT
DCL IN[0]
DCL IN[1]
DCL OUT[0], POSITION
  0: ADD OUT[0], IN[0], IN[1]
  1: END
""",
        shaders.UNIFORM_COLOUR,
    )
    if kind:
        indices = drawing.buffer(np.arange(4 * COLUMNS).astype(kind).tobytes(), 32)
        drawing.client.submit(SetIndexBuffer(indices, int(kind[1]), 0))

    def frame(column: int, step: int, first: int = 0, count: int = 4) -> list[int]:
        begin(drawing)
        places = VertexBuffer(16, 64 * column, buffers[0]), VertexBuffer(16, 16 * step, buffers[1])
        drawing.client.submit(SetVertexBuffers(places))
        more = {"indexed": 1, "index_bias": first} if kind else {"start": first}
        drawing.draw(Primitive.TRIANGLE_STRIP, count, instance_count=4, **more)
        return drawn(drawing, target)

    assert frame(0, 0) == [0, 1]
    executed = executed_by_python(gpu, monkeypatch)
    assert frame(3, 2) == [5, 6]
    assert frame(7, 0, 8) == [9, 10]
    assert frame(20, 3, 4, 8) == [24, 25, 26]
    assert not executed
    assert frame(0, COLUMNS - 1) == []  # the second step is not in the buffer
    assert len(executed) == 1
    assert gpu.codes() == ["GL-005"]


@pytest.mark.parametrize("kind", ["u1", "u2", "u4"])
def test_restarts_at_other_indices(
    drawing: Drawing, target: int, gpu: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Which parts there are follows from the indices at hand, in each frame and at each place."""
    end = 200
    far = 1 << 17 if kind == "u4" else 0
    drawing.vertices(np.concatenate([np.zeros((far, 4), np.float32), strips()]), 4)
    buffer = drawing.buffer(bytes(4096), 32)
    size = int(kind[1])

    def put(numbers: list[int]) -> None:
        data = np.array([one if one == end else one + far for one in numbers], kind).tobytes()
        drawing.memory[buffer][: len(data)] = data
        drawing.client.send(messages.TransferPut2(buffer, 0, 0, 0, 0, len(data), 1, 1, len(data), 0))

    def column(number: int) -> list[int]:
        return [*range(4 * number, 4 * number + 4)]

    def frame(*parts: tuple[int, int], bias: int = 0) -> list[int]:
        begin(drawing)
        for first, count in parts:
            drawing.client.submit(SetIndexBuffer(buffer, size, size * first))
            drawing.draw(
                Primitive.TRIANGLE_STRIP, count, first, indexed=1, index_bias=bias,
                primitive_restart=1, restart_index=end,
            )  # fmt: skip
        return drawn(drawing, target)

    put([*column(3), end, *column(9), end, end, 1, 2, end, *column(20), end])
    assert frame((0, 9)) == [3, 9]
    executed = executed_by_python(gpu, monkeypatch)
    assert frame((0, 9)) == [3, 9]
    assert frame((0, 19)) == [3, 9, 20]
    assert frame((5, 4), (14, 5)) == [9, 20]
    assert frame((0, 9), bias=8) == [5, 11]
    put([*column(1), *column(2), end, end, *column(5), end])
    assert frame((0, 15)) == [1, 2, 5]
    assert not executed
    put([end] * 16)
    assert frame((0, 16)) == []
    assert gpu.codes() == []


def test_many_restarts(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """More records than a frame's list has room for at first."""
    numbers = np.tile(np.array([0, 1, 2, 0xFFFF]), 30_000)
    numbers[-4:-1] = 8, 9, 10
    buffer = drawing.buffer(numbers.astype(np.uint16).tobytes(), 32)
    drawing.client.submit(SetIndexBuffer(buffer, 2, 0))
    for _ in range(2):
        begin(drawing)
        drawing.draw(
            Primitive.TRIANGLES, len(numbers), 0, indexed=1, primitive_restart=1,
            restart_index=0xFFFF,
        )  # fmt: skip
        picture = drawing.get(target)
        assert {int(one) // 4 for one in np.flatnonzero(picture[..., 0].any(axis=0))} == {0, 2}
    assert gpu.codes() == []
