"""The coverage pipe against its definition: every sample of every triangle, one by one."""

import itertools

import numpy as np
import pytest
from tests.v3d.fragment.scene import ZS_DUMP, Scene, vertex, words

from vc4lab.v3d.pse.setup import PATH_PATTERNS
from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

SIZE = 24
READ_TEXT = """
    nop ; nop ; sbwait
    nop ; nop ; loadcv
    mov tlbc, r4 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
READ = words(READ_TEXT)
STAR = [(12, 1), (19, 22), (1, 9), (23, 9), (5, 22)]
"""Corners of a pentagram in the order of its strokes, pixels."""

Triangle = list[tuple[float, float]]


def fan(corners: list[tuple[float, float]]) -> list[Triangle]:
    """The triangles a path is made of."""
    return [[corners[0], *pair] for pair in itertools.pairwise(corners[1:])]


def owned(triangle: Triangle, points: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, int]:
    """(height, width, point): which samples belong to the triangle; and its winding."""
    fixed = [(round(x * 16), round(y * 16)) for x, y in triangle]
    (x0, y0), (x1, y1), (x2, y2) = fixed
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if area < 0:
        fixed = [fixed[0], fixed[2], fixed[1]]
    x = np.arange(SIZE)[None, :, None] * 16 + np.array([p[0] for p in points])
    y = np.arange(SIZE)[:, None, None] * 16 + np.array([p[1] for p in points])
    inside = np.full((SIZE, SIZE, len(points)), area != 0)
    for (ax, ay), (bx, by) in zip(fixed, fixed[1:] + fixed[:1], strict=True):
        edge = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        inside &= (edge > 0) | ((edge == 0) & (by < ay or (by == ay and bx > ax)))
    return inside, 1 if area > 0 else -1


def expected(triangles: list[Triangle], rule: str, points: tuple[tuple[int, int], ...]):
    """Whether each sample is covered, after all triangles."""
    state = np.zeros((SIZE, SIZE, len(points)), np.int64)
    for triangle in triangles:
        inside, winding = owned(triangle, points)
        if rule == "nonzero":
            state += inside * winding
        elif rule == "odd":
            state ^= inside
        elif rule == "or":
            state |= inside
        else:
            state *= ~inside
    return state % 4 != 0 if rule == "nonzero" else state != 0


def scene_of(triangles: list[Triangle], rule: str, unknowns=DEFAULT_UNKNOWNS, **options) -> Scene:
    """The triangles accumulated, without a read."""
    scene = Scene(SIZE, SIZE, clear_zs=0)
    key = FragmentKey((), coverage=rule, unknowns=unknowns, **options)
    corners = [vertex(x, y) for triangle in triangles for x, y in triangle]
    scene.add(key, corners)
    return scene


def read(scene: Scene, engine: str = "fast", **options) -> np.ndarray:
    """What a program that covers the frame reads."""
    corners = [vertex(x, y) for x, y in ((0, 0), (SIZE, 0), (0, SIZE), (SIZE, SIZE))]
    scene.add(FragmentKey(READ, **options), corners, [(0, 1, 2), (2, 1, 3)])
    return scene.render(engine)


def bits(covered: np.ndarray) -> np.ndarray:
    return (covered * (1 << np.arange(16))).sum(axis=2)


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
@pytest.mark.parametrize("rule", ["nonzero", "odd", "or"])
def test_a_star(rule: str, engine: str) -> None:
    triangles = fan(STAR)
    covered = expected(triangles, rule, PATH_PATTERNS["grid"])
    levels = read(scene_of(triangles, rule), engine)
    assert np.array_equal(levels, (covered.sum(axis=2) * 255 + 8) // 16 * 0x01010101)
    masks = read(scene_of(triangles, rule), engine, coverage_mask=True)
    assert np.array_equal(masks, bits(covered))
    assert 0 < covered.mean() < 1


def test_rules_differ_where_they_should() -> None:
    """The middle of the star is wound twice."""
    results = {r: read(scene_of(fan(STAR), r))[12, 12] & 255 for r in ("nonzero", "odd", "or")}
    assert results == {"nonzero": 255, "odd": 0, "or": 255}


def test_random_paths_with_random_samples() -> None:
    rng = np.random.default_rng(5)
    for pattern in ("grid", "rooks"):
        corners = [tuple(p) for p in rng.uniform(-6, 30, (9, 2))]
        triangles = fan(corners)
        unknowns = DEFAULT_UNKNOWNS.with_(coverage_samples=pattern, coverage_level="shifted")
        found = read(scene_of(triangles, "nonzero", unknowns), coverage_mask=True)
        covered = expected(triangles, "nonzero", PATH_PATTERNS[pattern])
        assert np.array_equal(found, bits(covered))
        levels = read(scene_of(triangles, "nonzero", unknowns), unknowns=unknowns)
        level = np.minimum(covered.sum(axis=2) * 16, 255)
        assert np.array_equal(levels, level * 0x01010101)


@pytest.mark.parametrize(("choice", "left"), [("wrap", 0), ("saturate", 0xFFFF)])
def test_four_windings(choice: str, left: int) -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(coverage_winding=choice)
    square = [(4, 4), (20, 4), (20, 20), (4, 20)]
    for turns in (1, -1):
        triangles = fan(square[::turns]) * 4
        found = read(scene_of(triangles, "nonzero", unknowns), coverage_mask=True)
        assert found[12, 12] == left
        back = fan(square[::turns]) + fan(square[::-turns])
        assert read(scene_of(back, "nonzero", unknowns), coverage_mask=True)[12, 12] == 0


def test_zero_takes_away() -> None:
    scene = scene_of(fan(STAR), "or")
    hole = [(8, 8), (16, 8), (12, 16)]
    scene.add(FragmentKey((), coverage="zero"), [vertex(x, y) for x, y in hole])
    grid = PATH_PATTERNS["grid"]
    covered = expected(fan(STAR), "or", grid) & ~owned(hole, grid)[0]
    assert np.array_equal(read(scene, coverage_mask=True), bits(covered))


@pytest.mark.parametrize("points", [1, 4])
def test_fewer_points_stand_for_samples_side_by_side(points: int) -> None:
    found = read(scene_of(fan(STAR), "or", coverage_points=points), coverage_mask=True)
    each = 16 // points
    groups = np.unique(found)
    whole = {sum(((1 << each) - 1) << each * k for k in range(points) if n >> k & 1)
             for n in range(1 << points)}  # fmt: skip
    assert set(groups.tolist()) <= whole
    assert len(groups) > 1


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
@pytest.mark.parametrize("leave", [False, True])
def test_reading_clears_unless_told_otherwise(leave: bool, engine: str) -> None:
    scene = scene_of(fan(STAR), "or")
    assert read(scene, engine, coverage_leave=leave).any()
    assert scene.depth().any() == leave


def test_facing_chooses_and_turns() -> None:
    """Only enabled faces accumulate; which is forward decides the direction."""
    triangle = [(2, 2), (20, 3), (3, 20)]  # counter-clockwise in rows that grow upward
    for facing, drawn in ((1, True), (2, False), (3, True), (1 | 4, False), (2 | 4, True)):
        scene = Scene(SIZE, SIZE, clear_zs=0)
        key = FragmentKey((), coverage="nonzero")
        scene.add(key, [vertex(x, y) for x, y in triangle], facing=facing)
        scene.render()
        word = int(scene.depth()[6, 6])
        assert word == ((0xFFFFFFFF if facing & 4 else 0x55555555) if drawn else 0)


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
@pytest.mark.parametrize("choice", ["first", "copies", "quarters"])
def test_multisample_frames_keep_coverage_where_the_choice_says(choice: str, engine: str) -> None:
    """The same path and the same samples as without multisampling; the four words differ."""
    unknowns = DEFAULT_UNKNOWNS.with_(coverage_multisample=choice)
    stale = 0x12345600
    scene = Scene(SIZE, SIZE, clear_zs=stale, layout=TileLayout(multisample=True), tile=(32, 32))
    whole = [vertex(x, y) for x, y in ((0, 0), (2 * SIZE, 0), (0, 2 * SIZE))]
    scene.add(FragmentKey((), coverage="zero"), whole)
    scene.add(FragmentKey((), coverage="odd"), [vertex(*p) for t in fan(STAR) for p in t])
    scene.render(engine, unknowns=unknowns)
    covered = expected(fan(STAR), "odd", PATH_PATTERNS["grid"])
    word = (covered * (1 << 2 * np.arange(16))).sum(axis=2).astype(np.uint32)
    dumped = scene.samples(ZS_DUMP)
    for number in range(4):
        if choice == "quarters":
            expected_word = word >> np.uint32(8 * number) & np.uint32(0xFF)
        else:
            expected_word = word if not number or choice == "copies" else np.full_like(word, stale)
        assert np.array_equal(dumped[:, :, number], expected_word)
    scene.add(FragmentKey(READ, coverage_mask=True), whole)
    scene.render(engine, unknowns=unknowns)
    assert np.array_equal(scene.samples(), np.repeat(bits(covered)[:, :, None], 4, axis=2))
    left = scene.samples(ZS_DUMP)  # reading clears what holds the coverage
    assert not left[:, :, 0].any()
    assert (left[:, :, 3] == (stale if choice == "first" else 0)).all()


def test_reading_clears_pixels_of_any_sample() -> None:
    """A sliver over some samples of a pixel reads its coverage once and for all."""
    four = TileLayout(multisample=True)
    scene = Scene(SIZE, SIZE, clear_zs=0, layout=four, tile=(32, 32))
    whole = [(0.0, 0.0), (2.0 * SIZE, 0.0), (0.0, 2.0 * SIZE)]
    scene.add(FragmentKey((), coverage="or"), [vertex(*p) for p in whole])
    half = [vertex(3.5, 2), vertex(SIZE, 2), vertex(3.5, 2 + SIZE)]
    scene.add(FragmentKey(READ, coverage_mask=True), half)
    for engine in ("fast", "exact", "interpreter"):
        scene.render(engine)
        read_, kept = scene.samples(), scene.samples(ZS_DUMP)[:, :, 0]
        touched = (read_ == 0xFFFF).any(axis=2)
        assert touched[4, 3]
        assert not (read_[4, 3] == 0xFFFF).all()
        assert np.array_equal(kept == 0, touched)
