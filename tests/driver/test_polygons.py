"""What cuts pixels out of primitives, and what polygons are drawn as, beside numpy."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import DEPTH, RGBA, Drawing
from tests.driver.shaders import POSITION_ONLY, UNIFORM_COLOUR, VARYING, VARYING_COLOUR
from tests.driver.test_draws import CORNERS, RED, SIZE, SURE, clip, fill, inside, rectangle
from tests.mesa.conftest import RunningServer

from vc4lab.diagnostics.entry import Severity
from vc4lab.mesa.protocol import state_commands
from vc4lab.mesa.protocol.codes import Compare, Face, PolygonMode, Primitive, Stage

ALL = rectangle(0, 0, SIZE, SIZE)
LINE = {"fill_front": PolygonMode.LINE, "fill_back": PolygonMode.LINE}
POINT = {"fill_front": PolygonMode.POINT, "fill_back": PolygonMode.POINT}
CLIP_VERTEX = """VERT
DCL IN[0]
DCL OUT[0], CLIPVERTEX
DCL OUT[1], POSITION
DCL CONST[0]
  0: MOV OUT[1], IN[0]
  1: MUL OUT[0], IN[0], CONST[0]
  2: END
"""


@pytest.fixture
def target(drawing: Drawing) -> int:
    """A cleared texture that is drawn to."""
    handle = drawing.texture(SIZE, SIZE, RGBA)
    drawing.target(handle)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.clear(4)
    return handle


def planes(drawing: Drawing, *known: tuple[float, ...]) -> None:
    """Clip planes from the first on."""
    values = np.zeros(32)
    values[: 4 * len(known)] = np.ravel(known)
    drawing.client.submit(state_commands.SetClipState(tuple(values.tolist())))


def seen(drawing: Drawing, target: int) -> np.ndarray[Any, Any]:
    """Which pixels are red."""
    return drawing.get(target)[..., 0] > 0


def test_clip_planes(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """The enabled ones only; the fifth is in a second group of distances."""
    y, x = (np.mgrid[0:SIZE, 0:SIZE] + 0.5) / (SIZE / 2) - 1
    known = (1, 0, 0, 0.51), (0, 0, 0, -1), (0, -1, 0, 0.26), (0, 0, 0, -1), (1, 1, 0, 0.63)
    planes(drawing, *known)
    for enabled in (0b1, 0b100, 0b101, 0b10101, 0b10000):
        drawing.clear(4)
        drawing.rasterizer(clip_plane_enable=enabled)
        fill(drawing, ALL, RED)
        expected = np.ones((SIZE, SIZE), bool)
        for number, (a, b, _, d) in enumerate(known):
            if enabled >> number & 1:
                expected &= a * x + b * y + d >= 0
        assert (seen(drawing, target) == expected).all(), bin(enabled)
    drawing.rasterizer(clip_plane_enable=0b10)
    drawing.clear(4)
    fill(drawing, ALL, RED)
    assert not seen(drawing, target).any()
    assert gpu.codes() == []


def test_clip_planes_cut_through_perspective(drawing: Drawing, target: int) -> None:
    """Distances are linear in clip coordinates, not on the screen; varyings stay what they are."""
    w = np.array([1.0, 3.0, 1.0, 3.0])
    corners = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]]) * w[:, None]
    values = np.tile([1.0, 0.5, 0.0, 1.0], (4, 1))
    rows = np.concatenate([corners, np.full((4, 1), 0.5), w[:, None], values], axis=1)
    planes(drawing, (0, 0, 0, 0), (0, 0, 0, 1.0), (-1, 0, 1.2, 0))
    drawing.rasterizer(clip_plane_enable=0b100)
    drawing.shaders(VARYING, VARYING_COLOUR)
    drawing.vertices(rows, 4, 4)
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    x = (np.arange(SIZE) + 0.5) / (SIZE / 2) - 1
    # 1/w is linear on the screen: 1 at the left, 1/3 at the right.
    by_w = 1 - (x + 1) / 3
    expected = np.tile(0.6 - x / by_w >= 0, (SIZE, 1))
    found = drawing.get(target)
    assert ((found[..., 0] > 0) == expected).all()
    assert abs(found[expected][:, :2].astype(int) - [255, 128]).max() <= 1


def test_the_clip_vertex(drawing: Drawing, target: int) -> None:
    planes(drawing, (1, 0, 0, 0))
    drawing.rasterizer(clip_plane_enable=1)
    drawing.shaders(CLIP_VERTEX, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    drawing.constants(Stage.VERTEX, (-1, 1, 1, 1))
    drawing.vertices(clip(ALL), 4)
    drawing.draw(Primitive.TRIANGLES, 6)
    found = seen(drawing, target)
    assert found[:, : SIZE // 2].all()
    assert not found[:, SIZE // 2 :].any()


def test_the_polygon_stipple(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Triangles only; bit 31 of the first row is the first pixel in memory."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 1 << 32, 32, np.uint32)
    drawing.client.submit(state_commands.SetPolygonStipple(tuple(rows.tolist())))
    drawing.rasterizer(poly_stipple_enable=True)
    fill(drawing, CORNERS, RED)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    bits = (rows[y & 31] >> (31 - (x & 31)).astype(np.uint32) & 1).astype(bool)
    found = seen(drawing, target)
    assert (found == (inside(CORNERS) & bits))[SURE].all()
    drawing.clear(4)
    drawing.vertices(clip(np.array([[0, 20.5], [SIZE, 20.5]])), 4)
    drawing.draw(Primitive.LINES, 2)
    assert seen(drawing, target)[20, 1:-1].all()
    assert gpu.codes() == []


def near(points: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distance of each pixel from the nearest of some segments, (n, 2, 2)."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    found = np.full((SIZE, SIZE), np.inf)
    for (ax, ay), (bx, by) in ends:
        along = np.array([bx - ax, by - ay])
        t = ((x - ax) * along[0] + (y - ay) * along[1]) / max(along @ along, 1e-9)
        t = np.clip(t, 0, 1)
        found = np.minimum(found, np.hypot(x - ax - t * along[0], y - ay - t * along[1]))
    return found


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("mode", "triangles"),
    [
        (Primitive.TRIANGLES, [(0, 1, 2), (3, 4, 5)]),
        (Primitive.TRIANGLE_STRIP, [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5)]),
        (Primitive.TRIANGLE_FAN, [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]),
    ],
)
def test_polygons_as_lines_and_points(
    drawing: Drawing, target: int, gpu: RunningServer, mode: Primitive, triangles: Any,
    indexed: bool,
) -> None:  # fmt: skip
    points = np.array([[8.3, 10.2], [40.4, 8.7], [20.6, 50.1], [60.2, 60.4], [50.5, 88.5], [88.4, 80.1]])
    drawing.shaders(POSITION_ONLY, UNIFORM_COLOUR)
    drawing.constants(Stage.FRAGMENT, RED)
    order = np.array([4, 2, 0, 5, 1, 3])
    drawing.vertices(clip(points[np.argsort(order)] if indexed else points), 4)
    for settings, shapes in (
        (LINE, [(points[t[a]], points[t[(a + 1) % 3]]) for t in triangles for a in range(3)]),
        (POINT, [(points[a], points[a]) for t in triangles for a in t]),
    ):
        drawing.clear(4)
        drawing.rasterizer(**settings)
        if indexed:
            drawing.draw_indexed(mode, order.astype(np.uint16))
        else:
            drawing.draw(mode, len(points))
        found, distance = seen(drawing, target), near(points, np.array(shapes))
        assert not found[distance > 1.1].any()
        if settings is LINE:
            assert found[distance < 0.3].mean() > 0.985
        else:
            assert found.sum() == len({tuple(one[0]) for one in shapes})
    assert gpu.codes() == []


def test_what_the_chip_goes_without(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Warnings, and the lines are drawn."""
    drawing.rasterizer(line_stipple_enable=True, line_smooth=True, point_smooth=True)
    fill(drawing, CORNERS, RED)
    assert gpu.codes() == []
    drawing.clear(4)
    drawing.vertices(clip(np.array([[0, 20.5], [SIZE, 20.5]])), 4)
    drawing.draw(Primitive.LINES, 2)
    assert seen(drawing, target)[20, 1:-1].all()
    assert gpu.codes() == ["GL-018", "GL-018"]
    assert all(one.severity is Severity.WARNING for one in gpu.reporter.items)


def test_polygon_modes_of_one_face(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """A face that is culled has no mode; lines do not know theirs."""
    drawing.rasterizer(fill_back=PolygonMode.LINE, cull_face=Face.BACK)
    fill(drawing, ALL, RED)
    fill(drawing, ALL[::-1].copy(), RED)
    assert seen(drawing, target).all()
    assert gpu.codes() == []
    drawing.clear(4)
    drawing.rasterizer(**LINE, cull_face=Face.BACK)
    fill(drawing, ALL, RED)
    assert not seen(drawing, target).any()
    assert gpu.codes() == ["GL-007"]


def test_planes_and_patterns_that_change(drawing: Drawing, target: int) -> None:
    """The same shaders and objects: what a draw was given does not stay for the next one."""
    x = (np.arange(SIZE) + 0.5) / (SIZE / 2) - 1
    drawing.rasterizer(clip_plane_enable=1)
    for edge in (0.51, -0.26):
        drawing.clear(4)
        planes(drawing, (1, 0, 0, edge))
        fill(drawing, ALL, RED)
        assert (seen(drawing, target) == np.tile(x + edge >= 0, (SIZE, 1))).all()
    drawing.rasterizer(poly_stipple_enable=True)
    for pattern, first in ((0xAAAAAAAA, 0), (0x55555555, 1)):
        drawing.clear(4)
        drawing.client.submit(state_commands.SetPolygonStipple((pattern,) * 32))
        fill(drawing, ALL, RED)
        found = seen(drawing, target)
        assert found[:, first::2].all()
        assert not found[:, 1 - first :: 2].any()


@pytest.mark.parametrize("is_lower", [False, True])
def test_the_origin_of_point_sprites(drawing: Drawing, target: int, is_lower: bool) -> None:
    """s goes to the right; t goes down in memory, or up."""
    drawing.rasterizer(
        point_size=32.0, sprite_coord_enable=1, sprite_coord_mode=int(is_lower),
        point_quad_rasterization=True,
    )  # fmt: skip
    rows = np.concatenate([clip(np.array([[48.0, 48.0]])), [[0.0, 0.0, 0.0, 1.0]]], axis=1)
    drawing.shaders(VARYING, VARYING_COLOUR)
    drawing.vertices(rows, 4, 4)
    drawing.draw(Primitive.POINTS, 1)
    found = drawing.get(target)[32:64, 32:64].astype(int)
    place = (np.arange(32) + 0.5) / 32 * 255
    expected = np.stack(np.meshgrid(place, place[::-1] if is_lower else place), axis=2)
    assert abs(found[..., :2] - expected).max() <= 2
    assert not drawing.get(target)[:31].any()


@pytest.mark.parametrize("front_ccw", [False, True])
def test_two_sided_colours(drawing: Drawing, target: int, front_ccw: bool) -> None:
    """Facing as culling sees it: what is kept when back faces are culled has the front's colour."""
    vertex = """VERT
DCL IN[0]
DCL OUT[0], POSITION
DCL OUT[1], COLOR
DCL OUT[2], BCOLOR
IMM[0] FLT32 {0x3f800000, 0x00000000, 0x00000000, 0x3f800000}
  0: MOV OUT[0], IN[0]
  1: MOV OUT[1], IMM[0].xyyw
  2: MOV OUT[2], IMM[0].yxyw
  3: END
"""
    drawing.shaders(vertex, VARYING_COLOUR.replace("GENERIC[0], PERSPECTIVE", "COLOR, COLOR"))
    for points in (CORNERS, CORNERS[::-1].copy()):
        drawing.vertices(clip(points), 4)
        drawing.clear(4)
        drawing.rasterizer(light_twoside=True, front_ccw=front_ccw, cull_face=Face.BACK)
        drawing.draw(Primitive.TRIANGLES, 3)
        is_front = drawing.get(target).any()
        drawing.clear(4)
        drawing.rasterizer(light_twoside=True, front_ccw=front_ccw)
        drawing.draw(Primitive.TRIANGLES, 3)
        middle = drawing.get(target)[40, 40].tolist()
        assert middle == ([255, 0, 0, 255] if is_front else [0, 255, 0, 255])


def test_the_vertex_that_flat_colours_come_from(drawing: Drawing, target: int) -> None:
    """The last one of a triangle, in lists, strips and fans."""
    places = [(10, 10), (80, 12), (12, 80), (85, 85)]
    values = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1]], float)
    drawing.shaders(VARYING, VARYING_COLOUR.replace("PERSPECTIVE", "CONSTANT"))
    for mode, order in (
        (Primitive.TRIANGLES, (0, 1, 2, 1, 2, 3)),
        (Primitive.TRIANGLE_STRIP, (0, 1, 2, 3)),
        (Primitive.TRIANGLE_FAN, (1, 0, 2, 3)),
    ):
        points = np.array([places[one] for one in order], float)
        drawing.clear(4)
        drawing.vertices(np.concatenate([clip(points), values[list(order)]], axis=1), 4, 4)
        drawing.draw(mode, len(order))
        found = drawing.get(target)
        assert found[30, 30].tolist() == [0, 0, 255, 255], mode
        assert found[65, 65].tolist() == [255, 255, 0, 255], mode


FLAT_VALUES = np.array(
    [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]], float
)
FLAT_PLACES = np.array([[8, 10], [12, 60], [40, 8], [44, 62], [78, 14], [84, 66]], float) + 0.1
FIRST_VERTEX = {
    Primitive.TRIANGLES: [(0, 1, 2), (3, 4, 5)],
    Primitive.TRIANGLE_STRIP: [(0, 1, 2), (1, 3, 2), (2, 3, 4), (3, 5, 4)],
    Primitive.TRIANGLE_FAN: [(1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0)],
    Primitive.LINES: [(0, 1), (2, 3), (4, 5)],
    Primitive.LINE_STRIP: [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    Primitive.LINE_LOOP: [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)],
    Primitive.POINTS: [(0,), (1,), (2,), (3,), (4,), (5,)],
}
"""Primitives of six vertices, beginning with the one that OpenGL's first-vertex rule takes."""


@pytest.mark.parametrize("indexing", ["none", "bytes", "words", "far apart", "restart"])
@pytest.mark.parametrize("mode", FIRST_VERTEX)
def test_flat_colours_of_the_first_vertex(
    drawing: Drawing, target: int, gpu: RunningServer, mode: Primitive, indexing: str
) -> None:
    """As single primitives in order, each of the colour of its first vertex, facing as before."""
    places = FLAT_PLACES
    if mode == Primitive.TRIANGLE_FAN:
        places = np.array([[48, 48], [90, 50], [70, 90], [20, 88], [6, 40], [40, 6]]) + 0.1
    rows = np.concatenate([clip(places), FLAT_VALUES], axis=1)
    flat = VARYING_COLOUR.replace("PERSPECTIVE", "CONSTANT")
    cull = Face.BACK if mode in (Primitive.TRIANGLE_STRIP, Primitive.TRIANGLE_FAN) else Face.NONE
    front = mode == Primitive.TRIANGLE_STRIP
    known = {"point_size": 9.0, "line_width": 3.0, "cull_face": cull, "front_ccw": front}
    drawing.shaders(VARYING, flat)
    drawing.rasterizer(**known)
    for triangle in FIRST_VERTEX[mode]:
        one = rows[list(triangle)].copy()
        one[:, 4:] = FLAT_VALUES[triangle[0]]
        if len(triangle) == 2:
            one = one[::-1].copy()
        drawing.vertices(one, 4, 4)
        single = {1: Primitive.POINTS, 2: Primitive.LINES, 3: Primitive.TRIANGLES}[len(triangle)]
        drawing.draw(single, len(triangle))
    expected = drawing.get(target)
    assert len(np.unique(expected.reshape(-1, 4), axis=0)) > 2
    drawing.clear(4)
    drawing.rasterizer(**known, flatshade_first=True)
    order = np.array([3, 1, 5, 0, 4, 2])
    if indexing == "none":
        drawing.vertices(rows, 4, 4)
        drawing.draw(mode, 6)
    elif indexing == "restart":
        drawing.vertices(rows[np.argsort(order)], 4, 4)
        numbers = np.array([1, 0xFFFF, *order], np.uint16)
        if mode == Primitive.POINTS:
            numbers = numbers[1:]
        drawing.draw_indexed(mode, numbers, primitive_restart=1, restart_index=0xFFFF, max_index=5)
    else:
        step = 70000 if indexing == "far apart" else 1
        spread = np.zeros((5 * step + 1, 8), np.float32)
        spread[::step] = rows[np.argsort(order)]
        drawing.vertices(spread, 4, 4)
        kind = {"bytes": np.uint8, "words": np.uint16}.get(indexing, np.uint32)
        drawing.draw_indexed(mode, (order * step).astype(kind))
    assert (drawing.get(target) == expected).all()
    assert gpu.codes() == []


def test_smooth_draws_keep_their_vertices(drawing: Drawing, target: int) -> None:
    """The first-vertex rule is of flat colours only: COLOR inputs are flat if flatshade says so."""
    text = VARYING_COLOUR.replace("GENERIC[0], PERSPECTIVE", "COLOR, COLOR")
    drawing.shaders(VARYING.replace("GENERIC[0]", "COLOR"), text)
    drawing.vertices(np.concatenate([clip(CORNERS), FLAT_VALUES[:3]], axis=1), 4, 4)
    for flat, first, colours in (
        (True, True, {(255, 0, 0)}), (True, False, {(0, 0, 255)}), (False, True, None),
    ):  # fmt: skip
        drawing.clear(4)
        drawing.rasterizer(flatshade=flat, flatshade_first=first)
        drawing.draw(Primitive.TRIANGLES, 3)
        found = drawing.get(target)[inside(CORNERS) & SURE, :3]
        seen_colours = {tuple(one) for one in found.tolist()}
        assert seen_colours == colours if colours else len(seen_colours) > 100


def test_flat_outlines_have_a_warning(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Lines of a flat polygon: colours of their own ends, and a message."""
    drawing.shaders(VARYING, VARYING_COLOUR.replace("PERSPECTIVE", "CONSTANT"))
    drawing.vertices(np.concatenate([clip(CORNERS), FLAT_VALUES[:3]], axis=1), 4, 4)
    drawing.rasterizer(**LINE)
    drawing.draw(Primitive.TRIANGLES, 3)
    assert drawing.get(target).any()
    assert gpu.codes() == ["GL-018"]


def test_polygon_offset(drawing: Drawing) -> None:
    """Two triangles of one plane: with an offset towards the eye the second one passes LESS."""
    colour, depth = drawing.texture(SIZE, SIZE), drawing.texture(SIZE, SIZE, DEPTH, bind=1)
    drawing.target(colour, depth)
    drawing.viewport(SIZE, SIZE)
    drawing.defaults()
    drawing.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    for units, is_seen in ((0.0, False), (-4.0, True), (4.0, False)):
        drawing.clear(5, depth=1.0)
        drawing.rasterizer()
        fill(drawing, CORNERS, (0, 1, 0, 1))
        drawing.rasterizer(offset_tri=True, offset_units=units)
        fill(drawing, CORNERS, RED)
        assert bool(drawing.get(colour)[40, 40, 0]) == is_seen, units
