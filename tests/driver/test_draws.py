"""Draws of a hand-made client, compared with pictures computed by numpy."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import Drawing
from tests.driver.shaders import FLAT_COLOUR, POSITION_ONLY, UNIFORM_COLOUR, VARYING, VARYING_COLOUR
from tests.mesa.conftest import RunningServer

from vc4lab.mesa.protocol import objects, state_commands
from vc4lab.mesa.protocol.codes import BlendFactor, Face, Primitive, Stage
from vc4lab.mesa.protocol.formats import Format

SIZE = 96
RED, GREEN, BLUE, WHITE = (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1), (1, 1, 1, 1)
CORNERS = np.array([[8.3, 10.2], [85.4, 20.7], [30.6, 88.1]])
"""A triangle in pixels."""
NEAR_EDGE = 0.13
"""Pixels: vertices are at sixteenths of a pixel, cut off, so that edges move by up to two."""

Array = np.ndarray[Any, Any]


def clip(points: Array, size: int = SIZE, z: float = 0.0) -> Array:
    """Pixels as clip coordinates (n, 4)."""
    xy = points / (size / 2) - 1
    rest = np.tile([z, 1.0], (len(xy), 1))
    return np.concatenate([xy, rest], axis=1)


def weights(corners: Array, size: int = SIZE) -> Array:
    """Barycentric coordinates of each pixel's centre, (rows, columns, 3)."""
    y, x = np.mgrid[0:size, 0:size] + 0.5
    a, b, c = corners
    area = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
    u = ((b[0] - x) * (c[1] - y) - (c[0] - x) * (b[1] - y)) / area
    v = ((c[0] - x) * (a[1] - y) - (a[0] - x) * (c[1] - y)) / area
    return np.stack([u, v, 1 - u - v], axis=2)


def inside(corners: Array, size: int = SIZE) -> Array:
    """Which pixels a triangle covers."""
    return (weights(corners, size) >= 0).all(axis=2)


def sure(*triangles: Array, size: int = SIZE) -> Array:
    """The pixels that are not so near to an edge that the rounding of vertices decides."""
    y, x = np.mgrid[0:size, 0:size] + 0.5
    found = np.ones((size, size), bool)
    for corners in triangles:
        for number in range(3):
            (ax, ay), (bx, by) = corners[number], corners[number - 1]
            length = np.hypot(bx - ax, by - ay)
            found &= abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / length > NEAR_EDGE
    assert found.mean() > 0.95
    return found


SURE = sure(CORNERS)


def rectangle(left: float, top: float, right: float, bottom: float) -> Array:
    """Two triangles, in pixels."""
    a, b, c, d = (left, top), (right, top), (right, bottom), (left, bottom)
    return np.array([a, b, c, a, c, d], np.float64)


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A cleared texture that is drawn to."""
    handle = drawing.texture(SIZE, SIZE)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.clear(4)
    return handle


def fill(drawing: Drawing, points: Array, colour: Any, z: float = 0.0, **changes: Any) -> None:
    """Triangles of one colour."""
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, colour)
    drawing.vertices(clip(points, z=z), 4)
    drawing.draw(Primitive.TRIANGLES, len(points), **changes)


def test_a_triangle(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    fill(drawing, CORNERS, (0.2, 0.4, 0.6, 1))
    found = drawing.get(target)
    expected = np.where(inside(CORNERS)[..., None], [51, 102, 153, 255], 0)
    assert (found == expected)[SURE].all()
    assert gpu.codes() == []


def test_windows_are_upside_down(drawing: Drawing) -> None:
    handle = drawing.texture(SIZE, SIZE, Format.B8G8R8X8_UNORM, bind=0x8A)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE, flipped=True)
    drawing.defaults()
    drawing.clear(4)
    fill(drawing, CORNERS, (0.2, 0.4, 0.6, 1))
    expected = np.where(inside(CORNERS)[::-1, :, None], [153, 102, 51, 255], [0, 0, 0, 255])
    assert (drawing.get(handle) == expected)[SURE[::-1], :3].all()


@pytest.mark.parametrize("perspective", [False, True])
def test_varyings(drawing: Drawing, target: int, perspective: bool) -> None:
    colours = np.array([RED, GREEN, BLUE], np.float64)
    w = np.array([[1.0], [4.0], [2.0]]) if perspective else np.ones((3, 1))
    drawing.shaders(VARYING, VARYING_COLOUR)
    drawing.vertices(np.concatenate([clip(CORNERS) * w, colours], axis=1), 4, 4)
    drawing.draw(Primitive.TRIANGLES, 3)
    shares = weights(CORNERS) / w[:, 0]
    expected = (shares / shares.sum(axis=2, keepdims=True)) @ colours * 255
    covered = inside(CORNERS) & SURE
    found = drawing.get(target)
    assert abs(found[covered] - expected[covered]).max() < 2
    assert not found[~inside(CORNERS) & SURE].any()


@pytest.mark.parametrize("centre", ["HALF_INTEGER", "INTEGER"])
def test_the_centres_of_pixels(drawing: Drawing, target: int, centre: str) -> None:
    place = (
        f"FRAG\nPROPERTY FS_COORD_PIXEL_CENTER {centre}\nDCL IN[0], POSITION, LINEAR\n"
        "DCL OUT[0], COLOR\nDCL TEMP[0]\nIMM[0] FLT32 {0x3f800000, 0x3c23d70a, 0, 0}\n"
        "MOV OUT[0], IMM[0].xxxx\nFRC TEMP[0].x, IN[0]\nMOV OUT[0].x, TEMP[0]\n"
        "MUL OUT[0].y, IN[0], IMM[0].yyyy\nEND\n"
    )
    drawing.shaders(POSITION_ONLY, place)
    corners = rectangle(0, 0, SIZE, SIZE)
    drawing.vertices(clip(corners), 4)
    drawing.draw(Primitive.TRIANGLES, len(corners))
    found = drawing.get(target).astype(float)
    half = 0.5 if centre == "HALF_INTEGER" else 0.0
    assert (np.abs(found[..., 0] - 255 * half) <= 1).all()
    rows = (np.arange(SIZE) + half) * 2.55
    assert (np.abs(found[..., 1] - rows[:, None]) <= 1).all()


def test_flat_varyings_are_those_of_the_last_vertex(drawing: Drawing, target: int) -> None:
    colours = np.array([RED, GREEN, BLUE], np.float64)
    drawing.shaders(VARYING, FLAT_COLOUR)
    drawing.vertices(np.concatenate([clip(CORNERS), colours], axis=1), 4, 4)
    drawing.draw(Primitive.TRIANGLES, 3)
    expected = np.where(inside(CORNERS)[..., None], [0, 0, 255, 255], 0)
    assert (drawing.get(target) == expected)[SURE].all()


STRIP = np.array([[10.1, 10.1], [10.1, 80.1], [50.1, 10.1], [50.1, 80.1], [80.1, 30.1]])
FAN = np.array([[40.1, 40.1], [80.1, 40.1], [60.1, 80.1], [20.1, 80.1], [5.1, 40.1]])
LISTS = {
    Primitive.TRIANGLE_STRIP: (STRIP, [0, 1, 2, 2, 1, 3, 2, 3, 4]),
    Primitive.TRIANGLE_FAN: (FAN, [0, 1, 2, 0, 2, 3, 0, 3, 4]),
    Primitive.LINE_STRIP: (STRIP, [0, 1, 1, 2, 2, 3, 3, 4]),
    Primitive.LINE_LOOP: (STRIP, [0, 1, 1, 2, 2, 3, 3, 4, 4, 0]),
}


@pytest.mark.parametrize("mode", LISTS)
def test_strips_fans_and_loops_are_lists(drawing: Drawing, target: int, mode: Primitive) -> None:
    points, order = LISTS[mode]
    is_line = mode in (Primitive.LINE_STRIP, Primitive.LINE_LOOP)
    drawing.rasterizer(line_width=3.0)
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(clip(points), 4)
    drawing.draw(mode, len(points))
    found = drawing.get(target)
    drawing.clear(4)
    drawing.vertices(clip(points[order]), 4)
    drawing.draw(Primitive.LINES if is_line else Primitive.TRIANGLES, len(order))
    assert (drawing.get(target) == found).all()
    assert 100 < found[..., 0].astype(bool).sum() < SIZE * SIZE


def test_points_have_a_size(drawing: Drawing, target: int) -> None:
    drawing.rasterizer(point_size=6.0)
    points = np.array([[20.0, 30.0], [60.0, 70.0]])
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, GREEN)
    drawing.vertices(clip(points), 4)
    drawing.draw(Primitive.POINTS, 2)
    expected = np.zeros((SIZE, SIZE), bool)
    expected[27:33, 17:23] = expected[67:73, 57:63] = True
    assert (drawing.get(target)[..., 1].astype(bool) == expected).all()


SIZED = POSITION_ONLY.replace("  0:", "DCL OUT[1], PSIZE\nIMM[0] FLT32 {0x00000000}\n  0:").replace(
    "  1: END", "  1: MOV OUT[1].x, IMM[0].xxxx\n  2: END"
)


def test_points_of_size_0_are_as_small_as_points_can_be(drawing: Drawing, target: int) -> None:
    drawing.rasterizer(point_size_per_vertex=True)
    drawing.shaders(SIZED, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, GREEN)
    drawing.vertices(clip(np.array([[20.5, 30.5], [60.5, 70.5]])), 4)
    drawing.draw(Primitive.POINTS, 2)
    assert np.argwhere(drawing.get(target)[..., 1]).tolist() == [[30, 20], [70, 60]]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_indices(drawing: Drawing, target: int, kind: type[np.generic]) -> None:
    points, order = LISTS[Primitive.TRIANGLE_FAN]
    behind = np.concatenate([np.zeros((4, 2)), points])  # index_bias skips these
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(clip(behind), 4)
    drawing.draw_indexed(Primitive.TRIANGLES, np.array(order, kind), index_bias=4)
    parts = [points[order[first : first + 3]] for first in range(0, len(order), 3)]
    expected = np.logical_or.reduce([inside(part) for part in parts])
    assert (drawing.get(target)[..., 0].astype(bool) == expected)[sure(*parts)].all()


def test_restart_begins_a_new_strip(drawing: Drawing, target: int) -> None:
    points = np.concatenate([STRIP[:3] / 3, STRIP[:3] / 3 + 50])
    order = np.array([0, 1, 2, 0xFFFF, 3, 4, 5], np.uint16)
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(clip(points), 4)
    drawing.draw_indexed(Primitive.TRIANGLE_STRIP, order, primitive_restart=1, restart_index=0xFFFF)
    expected = inside(points[:3]) | inside(points[3:])
    is_sure = sure(points[:3], points[3:])
    assert (drawing.get(target)[..., 0].astype(bool) == expected)[is_sure].all()


def columns(count: int) -> Array:
    """A strip over the whole target with so many vertices, from left to right."""
    x = np.arange(count) // 2 / (count // 2 - 1) * SIZE
    y = np.where(np.arange(count) % 2, SIZE, 0)
    return np.stack([x, y], axis=1)


@pytest.mark.parametrize("count", [65534, 65536, 70000, 131074])
def test_long_strips_have_no_seams(drawing: Drawing, target: int, count: int) -> None:
    """Each pixel is drawn once: blending adds."""
    ones = dict.fromkeys(("rgb_src_factor", "rgb_dst_factor"), BlendFactor.ONE)
    drawing.blend(blend_enable=True, **ones)
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, (0.2, 0.2, 0.2, 0.2))
    drawing.vertices(clip(columns(count)), 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, count)
    assert (drawing.get(target) == 51).all()


@pytest.mark.parametrize("mode", [Primitive.TRIANGLES, Primitive.POINTS])
def test_more_vertices_than_an_index_has(drawing: Drawing, target: int, mode: Primitive) -> None:
    """A point or a small triangle on each pixel, 12 times over; with 32-bit indices, backwards."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    middle = np.stack([x, y], axis=2).reshape(-1, 1, 2) + 0.5
    shape = np.array([[-0.3, -0.3], [0.4, -0.3], [-0.3, 0.4]])
    corners = shape if mode == Primitive.TRIANGLES else np.zeros((1, 2))
    points = np.tile((middle + corners).reshape(-1, 2), (12 // len(corners), 1))
    assert len(points) > 1 << 16
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, GREEN)
    drawing.vertices(clip(points), 4)
    drawing.draw(mode, len(points))
    assert (drawing.get(target) == [0, 255, 0, 255]).all()
    drawing.clear(4)
    order = np.arange(len(points), dtype=np.uint32)[::-1].copy()
    drawing.draw_indexed(mode, order)
    assert (drawing.get(target) == [0, 255, 0, 255]).all()


def test_a_long_fan_and_a_long_loop(drawing: Drawing, target: int) -> None:
    turns = np.linspace(0, 2 * np.pi, 70000)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1) * 30 + 48
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(clip(np.concatenate([[[48, 48]], circle])), 4)
    drawing.draw(Primitive.TRIANGLE_FAN, len(circle) + 1)
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    radius = np.hypot(x - 48, y - 48)
    found = drawing.get(target)[..., 0].astype(bool)
    assert found[radius < 29.9].all()
    assert not found[radius > 30.1].any()
    drawing.clear(4)
    drawing.vertices(clip(circle), 4)
    drawing.draw(Primitive.LINE_LOOP, len(circle))
    found = drawing.get(target)[..., 0].astype(bool)
    assert not found[abs(radius - 30) > 1.5].any()
    assert found.sum() > 150


def test_instances_have_their_own_attributes(drawing: Drawing, target: int) -> None:
    shader = """VERT
DCL IN[0]
DCL IN[1]
DCL OUT[0], POSITION
  0: ADD OUT[0], IN[0], IN[1]
  1: END
"""
    drawing.shaders(shader, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    corner = rectangle(0, 0, 10.1, 10.1)
    places = np.array([[20, 10], [50, 30], [70, 60]])
    step = np.concatenate([places / (SIZE / 2), np.zeros((3, 2))], axis=1)
    buffers = [
        drawing.buffer(np.ascontiguousarray(one, np.float32).tobytes()) for one in (clip(corner), step)
    ]
    vec4 = Format.R32G32B32A32_FLOAT
    elements = objects.VertexElement(0, 0, 0, vec4), objects.VertexElement(0, 1, 1, vec4)
    drawing.bind(objects.VertexElements(elements))
    bound = tuple(state_commands.VertexBuffer(16, 0, one) for one in buffers)
    drawing.client.submit(state_commands.SetVertexBuffers(bound))
    drawing.draw(Primitive.TRIANGLES, 6, instance_count=3)
    expected = np.zeros((SIZE, SIZE), bool)
    for x, y in places:
        expected[y : y + 10, x : x + 10] = True
    assert (drawing.get(target)[..., 0].astype(bool) == expected).all()


@pytest.mark.parametrize("indexed", [False, True])
def test_doubles_become_singles(drawing: Drawing, target: int, indexed: bool) -> None:
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    # after one vertex that no draw reads, and 4 bytes
    rows = np.concatenate([np.zeros((1, 3)), clip(CORNERS)[:, :3].astype(np.float64)])
    buffer = drawing.buffer(bytes(4) + rows.tobytes())
    element = objects.VertexElement(4, 0, 0, Format.R64G64B64_FLOAT)
    drawing.bind(objects.VertexElements((element,)))
    drawing.client.submit(state_commands.SetVertexBuffers((state_commands.VertexBuffer(24, 0, buffer),)))
    if indexed:
        drawing.draw_indexed(Primitive.TRIANGLES, np.array([3, 1, 2], np.uint16))
    else:
        drawing.draw(Primitive.TRIANGLES, 3, 1)
    assert (drawing.get(target)[..., 0].astype(bool) == inside(CORNERS))[SURE].all()


def test_a_last_vertex_that_is_no_whole_word_long(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Three bytes of colour; of the last vertex the buffer has these three only."""
    drawing.shaders(VARYING, VARYING_COLOUR)
    positions = drawing.buffer(clip(CORNERS).astype(np.float32).tobytes())
    colours = drawing.buffer(bytes((255, 0, 0, 9)) * 2 + bytes((255, 0, 0)))
    elements = (
        objects.VertexElement(0, 0, 0, Format.R32G32B32A32_FLOAT),
        objects.VertexElement(0, 0, 1, Format.R8G8B8_UNORM),
    )
    drawing.bind(objects.VertexElements(elements))
    buffers = ((16, positions), (4, colours))
    bound = tuple(state_commands.VertexBuffer(stride, 0, one) for stride, one in buffers)
    drawing.client.submit(state_commands.SetVertexBuffers(bound))
    drawing.draw(Primitive.TRIANGLES, 3)
    found = drawing.get(target)
    assert (found[..., 0].astype(bool) == inside(CORNERS))[SURE].all()
    assert not gpu.codes()


def test_strides_that_need_the_extended_record(drawing: Drawing, target: int) -> None:
    rows = np.zeros((3, 100), np.float32)
    rows[:, :4] = clip(CORNERS)
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(rows, 4)
    drawing.draw(Primitive.TRIANGLES, 3)
    assert (drawing.get(target)[..., 0].astype(bool) == inside(CORNERS))[SURE].all()


def test_scissor_and_culling(drawing: Drawing, target: int) -> None:
    drawing.rasterizer(scissor=True)
    drawing.client.submit(state_commands.SetScissorState(0, (state_commands.Scissor(20, 30, 50, 60),)))
    fill(drawing, rectangle(0, 0, SIZE, SIZE), RED)
    expected = np.zeros((SIZE, SIZE), bool)
    expected[30:60, 20:50] = True
    assert (drawing.get(target)[..., 0].astype(bool) == expected).all()
    drawing.clear(4)
    turned = CORNERS[[0, 2, 1]]
    for face, is_seen in ((Face.NONE, True), (Face.FRONT, False), (Face.BACK, True)):
        drawing.clear(4)
        drawing.rasterizer(cull_face=face, front_ccw=True)
        fill(drawing, turned, RED)
        assert drawing.get(target)[..., 0].any() == is_seen, face


def test_an_empty_scissor_draws_nothing(drawing: Drawing, target: int) -> None:
    drawing.rasterizer(scissor=True)
    drawing.client.submit(state_commands.SetScissorState(0, (state_commands.Scissor(20, 30, 20, 60),)))
    fill(drawing, rectangle(0, 0, SIZE, SIZE), RED)
    assert not drawing.get(target).any()


def test_vertices_outside_of_their_buffer(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.vertices(clip(CORNERS), 4)
    drawing.draw(Primitive.TRIANGLES, 3000)
    drawing.draw_indexed(Primitive.TRIANGLES, np.array([0, 1, 9000], np.uint16))
    drawing.draw(Primitive.TRIANGLES, 3)
    assert (drawing.get(target)[..., 0].astype(bool) == inside(CORNERS))[SURE].all()
    assert gpu.codes() == ["GL-005", "GL-005"]
    assert "draw 1: left out" in str(gpu.reporter.items[0])


def test_a_shader_that_cannot_be_compiled(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR.replace("MOV", "WARP"))
    drawing.vertices(clip(CORNERS), 4)
    drawing.draw(Primitive.TRIANGLES, 3)
    assert not drawing.get(target).any()
    assert gpu.codes() == ["GL-016"]
    assert "frame 1, draw 1: left out: fragment shader: line" in str(gpu.reporter.items[0])


def test_a_draw_without_state(drawing: Drawing, gpu: RunningServer) -> None:
    drawing.draw(Primitive.TRIANGLES, 3)
    drawing.client.wait()
    assert gpu.codes() == ["GL-015"]


ENDLESS = UNIFORM_COLOUR.replace("  0: MOV", "  0: BGNLOOP :0\n  1: ENDLOOP :0\n  2: MOV").replace(
    "  1: END\n", "  3: END\n"
)


def test_a_shader_without_an_end(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """The frame is abandoned, as a board's kernel resets the GPU; the next one is drawn."""
    for shader in (ENDLESS, UNIFORM_COLOUR):
        drawing.shaders(POSITION_ONLY, shader)
        drawing.constants(Stage.FRAGMENT, RED)
        drawing.vertices(clip(STRIP[:3]), 4)
        drawing.draw(Primitive.TRIANGLES, 3)
        assert drawing.get(target)[..., 0].any() == (shader is UNIFORM_COLOUR)
        assert "GL-014" in gpu.codes()
