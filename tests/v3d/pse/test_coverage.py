"""Coverage against a brute-force reference: which pixels a triangle owns."""

import numpy as np
import pytest
from tests.v3d.fragment.scene import FLAT, Scene, coverage, vertex, words

from vc4lab.v3d.state.tile_context import FragmentKey

KEY = FragmentKey(program=words(FLAT))
WHITE = (0xFFFFFFFF,)


def at(point: tuple[int, int], **values: float) -> list[int]:
    """A vertex at a 12.4 position."""
    return vertex(point[0] / 16, point[1] / 16, **values)


def drawn(points, width=64, height=64, **params) -> np.ndarray:
    scene = Scene(width, height)
    scene.add(KEY, [at(p) for p in points], uniforms=WHITE, **params)
    return scene.render() != 0


@pytest.mark.parametrize("spread", [30, 200, 1500, 30000])
def test_random_triangles_cover_exactly_the_defined_pixels(spread):
    rng = np.random.default_rng(spread)
    for _ in range(25):
        points = [tuple(int(c) for c in rng.integers(-spread, 1600 + spread, 2)) for _ in range(3)]
        points = [tuple(max(-32768, min(32767, c)) for c in p) for p in points]
        assert (drawn(points, 100, 90) == coverage(points, 100, 90)).all(), points


def test_edges_through_pixel_centres_follow_the_top_left_rule():
    square = [(8, 8), (8 + 160, 8), (8 + 160, 8 + 160), (8, 8 + 160)]
    image = drawn([*square[:3], square[0], square[2], square[3]])
    expected = np.zeros((64, 64), bool)
    expected[0:10, 0:10] = True
    assert (image == expected).all()


def test_bottom_left_rule_gives_the_lowest_row_to_the_other_side():
    scene = Scene()
    key = FragmentKey(program=words(FLAT), unknowns=KEY.unknowns.with_(fill_rule="bottom-left"))
    scene.add(key, [at((8, 8)), at((168, 8)), at((8, 168))], uniforms=WHITE)
    rows = (scene.render() != 0).any(axis=1)
    assert not rows[0]
    assert rows[1]


def test_a_mesh_touches_every_pixel_exactly_once():
    rng = np.random.default_rng(5)
    size, cells = 2048, 7
    grid = np.empty((cells + 1, cells + 1, 2), int)
    steps = np.linspace(-40, size + 40, cells + 1)
    for row in range(cells + 1):
        for column in range(cells + 1):
            inner = 0 < row < cells and 0 < column < cells
            jitter = rng.integers(-90, 90, 2) if inner else (0, 0)
            grid[row, column] = steps[column] + jitter[0], steps[row] + jitter[1]
    count = np.zeros((128, 128), int)
    for row in range(cells):
        for column in range(cells):
            a, b = tuple(grid[row, column]), tuple(grid[row, column + 1])
            c, d = tuple(grid[row + 1, column]), tuple(grid[row + 1, column + 1])
            for triangle in ((a, b, c), (b, d, c)):
                count += drawn([tuple(int(v) for v in p) for p in triangle], 128, 128)
    assert (count == 1).all()


def test_clip_window_and_viewport_offset():
    points = [(-512, -512), (512, -512), (-512, 512)]
    image = drawn(
        points, 100, 90, viewport_x=512, viewport_y=512,
        clip_left=5, clip_bottom=7, clip_right=21, clip_top=30,
    )  # fmt: skip
    expected = coverage([(x + 512, y + 512) for x, y in points], 100, 90)
    window = np.zeros_like(expected)
    window[7:30, 5:21] = True
    assert (image == (expected & window)).all()


def test_empty_clip_window_draws_nothing():
    assert not drawn([(0, 0), (900, 0), (0, 900)], clip_right=0).any()


@pytest.mark.parametrize(
    ("facing", "counterclockwise", "clockwise"),
    [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1), (5, 0, 1), (6, 1, 0), (7, 1, 1)],
)
def test_facing_bits_of_record_96(facing, counterclockwise, clockwise):
    points = [(0, 0), (900, 0), (0, 900)]  # A > 0: counter-clockwise
    assert drawn(points, facing=facing).any() == counterclockwise
    assert drawn([points[0], points[2], points[1]], facing=facing).any() == clockwise


def test_degenerate_triangles_cover_nothing():
    assert not drawn([(0, 0), (800, 800), (400, 400)]).any()
    assert not drawn([(100, 100)] * 3).any()


def test_counters_count_quads_and_reversed_primitives():
    scene = Scene()
    corners = [vertex(0, 0), vertex(4, 0), vertex(0, 4)]
    scene.add(KEY, corners, [(0, 1, 2), (0, 2, 1)], WHITE, facing=1)
    scene.render()
    assert scene.counters["quads_valid"] == 3
    assert scene.counters["primitives_reversed"] == 1
