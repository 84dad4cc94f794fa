"""The numbers of instances and vertices, as system values and as steps of attributes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import Drawing
from tests.driver.shaders import UNIFORM_COLOUR, VARYING_COLOUR
from tests.mesa.conftest import RunningServer

from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
from vc4lab.driver.compiler.interface import FragmentKey, VertexKey
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages, objects, state_commands
from vc4lab.mesa.protocol.codes import Primitive, Stage
from vc4lab.mesa.protocol.formats import Format
from vc4lab.options import GpuOptions
from vc4lab.qpu.machine.code import TooComplex

COLUMNS, WIDTH, HEIGHT = 32, 128, 16
VEC4 = Format.R32G32B32A32_FLOAT
NUMBERED = """VERT
DCL IN[0]
DCL SV[0], {name}
DCL OUT[0], POSITION
DCL OUT[1], GENERIC[0]
DCL TEMP[0..1], LOCAL
IMM[0] FLT32 {{    0.0625,     0.0039,     1.0000,     0.0000}}
IMM[1] INT32 {{{mask}, {shift}, 0, 0}}
  0: AND TEMP[0].x, SV[0].xxxx, IMM[1].xxxx
  1: I2F TEMP[0].x, TEMP[0].xxxx
  2: MOV TEMP[1], IN[0]
  3: MAD TEMP[1].x, TEMP[0].xxxx, IMM[0].xxxx, IN[0].xxxx
  4: USHR TEMP[0].y, SV[0].xxxx, IMM[1].yyyy
  5: I2F TEMP[0].y, TEMP[0].yyyy
  6: MOV OUT[0], TEMP[1]
  7: MUL OUT[1].xy, TEMP[0], IMM[0].yyyy
  8: MOV OUT[1].zw, IMM[0].wwzz
  9: END
"""
"""Steps of a sixteenth to the right by the low bits of a number, a colour by all of it."""
INSTANCE = NUMBERED.format(name="INSTANCEID", mask=31, shift=5)


@pytest.fixture(params=["jit", "interpreter"])
def gpu(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningServer]:
    """A server of version 2 on a V3D, with each engine."""
    server = RunningServer(
        tmp_path / "socket",
        lambda reporter: VideoCoreScreen(reporter, mesa_compiler(), GpuOptions(request.param)),
    )
    yield server
    server.close()


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A cleared texture of 32 columns, four pixels each."""
    handle = drawing.texture(WIDTH, HEIGHT)
    drawing.target(handle)
    drawing.viewport(WIDTH, HEIGHT)
    drawing.defaults()
    drawing.clear(4)
    return handle


def column(left: float = -1.0) -> np.ndarray[Any, Any]:
    """The strip of the first column."""
    return np.array([(x, y, 0, 1) for x in (left, left + 1 / 16) for y in (-1, 1)], np.float32)


def colours(drawing: Drawing, target: int) -> list[tuple[int, int]]:
    """Red and green of each column."""
    picture = drawing.get(target)
    assert (picture[:, 1::4] == picture[:1, 1::4]).all()
    return [tuple(one) for one in picture[0, 1::4, :2].tolist()]


def test_instances_are_numbered(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    drawing.shaders(INSTANCE, VARYING_COLOUR)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=COLUMNS - 2)
    expected = [(number, 0) for number in range(COLUMNS - 2)] + [(0, 0)] * 2
    assert colours(drawing, target) == expected
    assert gpu.codes() == []


def test_the_first_instance_is_0_whatever_is_added_to_attributes(drawing: Drawing, target: int) -> None:
    """ARB_base_instance: gl_InstanceID counts from 0."""
    drawing.shaders(INSTANCE, VARYING_COLOUR)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=3, start_instance=7)
    assert colours(drawing, target)[:4] == [(0, 0), (1, 0), (2, 0), (0, 0)]


def test_later_instances_are_on_top(drawing: Drawing, target: int) -> None:
    """The last ones of many are on top."""
    drawing.shaders(INSTANCE, VARYING_COLOUR)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=COLUMNS * 4 + 5)
    found = colours(drawing, target)
    assert found == [(number, 4 if number < 5 else 3) for number in range(COLUMNS)]


def test_indexed_instances(drawing: Drawing, target: int) -> None:
    drawing.shaders(INSTANCE, VARYING_COLOUR)
    rows = np.concatenate([np.full((5, 4), 9, np.float32), column()])
    drawing.vertices(rows, 4)
    indices = np.arange(2, 6, dtype=np.uint16)
    drawing.draw_indexed(Primitive.TRIANGLE_STRIP, indices, index_bias=3, instance_count=4)
    assert colours(drawing, target)[:5] == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 0)]


def test_attributes_advance_by_their_divisors(drawing: Drawing, target: int) -> None:
    """Element first + number / divisor, which is not (first + number) / divisor."""
    shader = (
        INSTANCE.replace("DCL SV[0]", "DCL IN[1]\nDCL SV[0]")
        .replace("MUL OUT[1].xy, TEMP[0], IMM[0].yyyy", "MOV OUT[1].xy, IN[1]")
        .replace(
            "MOV OUT[1].zw, IMM[0].wwzz", "MUL OUT[1].y, TEMP[0].xxxx, IMM[0].yyyy\n"
            "MOV OUT[1].zw, IMM[0].wwzz"
        )
    )  # fmt: skip
    drawing.shaders(shader, VARYING_COLOUR)
    steps = np.zeros((8, 4), np.float32)
    steps[:, 0] = np.arange(8) * 10 / 255
    buffers = [drawing.buffer(one.tobytes()) for one in (column(), steps)]
    elements = objects.VertexElement(0, 0, 0, VEC4), objects.VertexElement(0, 3, 1, VEC4)
    drawing.bind(objects.VertexElements(elements))
    bound = tuple(state_commands.VertexBuffer(16, 0, one) for one in buffers)
    drawing.client.submit(state_commands.SetVertexBuffers(bound))
    drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=7, start_instance=2)
    found = colours(drawing, target)[:7]
    assert found == [(10 * (2 + number // 3), number) for number in range(7)]


@pytest.mark.parametrize(
    ("start", "bias", "indexed"),
    [(0, 0, False), (36, 0, False), (4, 0, True), (4, 92, True), (70000, 0, False)],
)
def test_vertices_are_numbered(
    drawing: Drawing, target: int, gpu: RunningServer, start: int, bias: int, indexed: bool
) -> None:
    """gl_VertexID: the index with the draw's base added; of arrays the first vertex counts."""
    shader = NUMBERED.format(name="VERTEXID", mask=0, shift=2)
    drawing.shaders(shader, VARYING_COLOUR.replace("PERSPECTIVE", "CONSTANT"))
    rows = np.zeros((start + bias + 4, 4), np.float32)
    rows[start + bias :] = column()
    drawing.vertices(rows, 4)
    last = start + bias + 3
    if indexed:
        indices = np.arange(start, start + 4, dtype=np.uint16)
        drawing.draw_indexed(Primitive.TRIANGLE_STRIP, indices, index_bias=bias)
    else:
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, start)
    assert colours(drawing, target)[:2] == [(0, min(last // 4, 255)), (0, 0)]
    assert gpu.codes() == []


def test_numbers_of_vertices_beside_vertices_elsewhere(drawing: Drawing, target: int) -> None:
    """The same draw again with its buffer at another offset: the numbers stay."""
    drawing.shaders(NUMBERED.format(name="VERTEXID", mask=0, shift=0), VARYING_COLOUR)
    rows = np.concatenate([column(), column(-0.5)])
    buffer = drawing.buffer(rows.tobytes())
    drawing.bind(objects.VertexElements((objects.VertexElement(0, 0, 0, VEC4),)))
    for offset in (0, 64):
        bound = state_commands.VertexBuffer(16, offset, buffer)
        drawing.client.submit(state_commands.SetVertexBuffers((bound,)))
        drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    found = drawing.get(target)
    assert (found[:, 0:4] == found[:, 32:36]).all()
    assert found[0, :4, 3].all()


def test_flat_integers_come_as_they_are(drawing: Drawing, target: int) -> None:
    """Small ones are denormals as floats, which an addition would make 0."""
    vertex = """VERT
DCL IN[0]
DCL SV[0], INSTANCEID
DCL OUT[0], POSITION
DCL OUT[1], GENERIC[0]
DCL TEMP[0..1], LOCAL
IMM[0] FLT32 {    0.0625,     0.0000,     0.0000,     0.0000}
  0: MOV TEMP[1], IN[0]
  1: I2F TEMP[0].x, SV[0].xxxx
  2: MAD TEMP[1].x, TEMP[0].xxxx, IMM[0].xxxx, IN[0].xxxx
  3: MOV OUT[0], TEMP[1]
  4: MOV OUT[1], SV[0].xxxx
  5: END
"""
    fragment = """FRAG
PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1
DCL IN[0], GENERIC[0], CONSTANT
DCL OUT[0], COLOR
DCL TEMP[0], LOCAL
IMM[0] FLT32 {    0.0039,     0.0000,     0.0000,     1.0000}
  0: I2F TEMP[0], IN[0]
  1: MUL OUT[0], TEMP[0], IMM[0].xyyy
  2: END
"""
    drawing.shaders(vertex, fragment)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=COLUMNS)
    assert colours(drawing, target) == [(number, 0) for number in range(COLUMNS)]


def test_the_place_in_a_point_where_there_are_no_points(
    drawing: Drawing, target: int, gpu: RunningServer
) -> None:
    shader = "FRAG\nDCL SV[0], PCOORD\nDCL OUT[0], COLOR\n  0: MOV OUT[0], SV[0]\n  1: END\n"
    drawing.shaders("VERT\nDCL IN[0]\nDCL OUT[0], POSITION\nMOV OUT[0], IN[0]\nEND\n", shader)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    assert drawing.get(target)[0, 0].tolist() == [0, 0, 0, 255]
    assert gpu.codes() == []


def test_tgsi_009_other_system_values_are_refused(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    with pytest.raises(TooComplex, match="TGSI-009"):
        compile_vertex(parse(INSTANCE.replace("INSTANCEID", "BASEINSTANCE")), VertexKey((int(VEC4),)))
    text = "FRAG\nDCL SV[0], HELPER_INVOCATION\nDCL OUT[0], COLOR\n  0: MOV OUT[0], SV[0]\n  1: END\n"
    with pytest.raises(TooComplex, match="TGSI-009"):
        compile_fragment(parse(text), FragmentKey())
    drawing.shaders(INSTANCE.replace("INSTANCEID", "DRAWID"), VARYING_COLOUR)
    drawing.vertices(column(), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    assert not drawing.get(target).any()
    assert gpu.codes() == ["GL-016"]


def test_more_arrays_than_a_shader_record_has(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Eight elements and the vertices' numbers are nine."""
    lines = ["VERT", *(f"DCL IN[{one}]" for one in range(8)), "DCL SV[0], VERTEXID"]
    lines += ["DCL OUT[0], POSITION", "DCL TEMP[0]", "I2F TEMP[0], SV[0].xxxx"]
    lines += [f"ADD TEMP[0], TEMP[0], IN[{one}]" for one in range(8)]
    drawing.shaders("\n".join([*lines, "MOV OUT[0], TEMP[0]", "END", ""]), UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, (1, 1, 1, 1))
    drawing.vertices(np.tile(column(), 8), *(4,) * 8)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    assert not drawing.get(target).any()
    assert gpu.codes() == ["GL-016"]


def test_a_client_with_instances_goes_on(drawing: Drawing, target: int) -> None:
    """Another number of them is another draw."""
    drawing.shaders(INSTANCE, VARYING_COLOUR)
    drawing.vertices(column(), 4)
    for count in (3, 5, 3):
        drawing.clear(4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=count)
        drawing.client.send(messages.ResourceBusyWait(target, 1))
        drawing.client.words(3)
        found = colours(drawing, target)
        assert found[1:6] == [(one if one < count else 0, 0) for one in range(1, 6)]
