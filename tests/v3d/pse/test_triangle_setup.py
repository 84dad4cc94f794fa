"""Triangles set up in groups: who shares a group with whom does not matter, whatever it holds."""

import struct

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.simd import targets
from vc4lab.v3d.pse.batch import GROUP_SIZE, GROUPS, LIST_THRESHOLD
from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

END = """
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
PROGRAM = words(GOURAUD + END)
NAN, SIGNALLING, INFINITE = 0x7FC00000, 0x7F800001, 0x7F800000
CLOCKWISE_ONLY, COUNTER_CLOCKWISE_ONLY = 1 | 4, 1


def one_of(count: int, chosen: int) -> tuple[int, ...]:
    """A program that reads `count` varyings and draws one of them in grey."""
    lines = []
    for number in range(count):
        target = "ra1" if number == chosen else "ra2"
        lines += ["fmul r0, vary, ra15 ; nop", f"fadd {target}, r0, r5 ; nop"]
    return words("\n".join([*lines, "nop ; nop", "nop ; mov r3.8888, ra1"]) + END)


def around(x: float, y: float, *varyings: float, size: float = 6) -> list[list[int]]:
    """Three vertices of a triangle of one colour, all wound the same way."""
    corners = [(x - size, y - size), (x + size, y - size / 2), (x, y + size)]
    return [vertex(*corner, 0.5, 1.0, *varyings) for corner in corners]


@pytest.mark.parametrize("garbage", [NAN, SIGNALLING, INFINITE])
@pytest.mark.parametrize("count", [1, 5, 8, 11, 70])
def test_garbage_that_is_not_drawn(garbage, count):
    """Triangles that face away, have no area or lie outside may hold anything."""
    rng = np.random.default_rng(count)
    vertices, drawn = [], []
    for number in range(count):
        good = around(*rng.uniform(5, 55, 2), *rng.uniform(0, 1, 3))
        drawn.append((len(vertices), len(vertices) + 1, len(vertices) + 2))
        vertices += good
        for kind in ("away", "empty", "outside")[: 1 + number % 3]:
            bad = [[word[0], *[garbage] * 5] for word in good]
            if kind == "away":
                bad = [bad[0], bad[2], bad[1]]
            elif kind == "empty":
                bad[1] = bad[0]
            else:
                bad = [[(500 * 16 << 16) | (500 * 16 + k * k * 99), *[garbage] * 5] for k in range(3)]
            vertices += bad
    key = FragmentKey(program=PROGRAM, n_varyings=3)
    mixed, alone = Scene(64, 64), Scene(64, 64)
    facing = CLOCKWISE_ONLY
    alone.add(key, vertices, drawn, facing=facing)
    if len(np.unique(alone.render())) == 1:  # our triangles wind the other way
        facing = COUNTER_CLOCKWISE_ONLY
        alone = Scene(64, 64)
        alone.add(key, vertices, drawn, facing=facing)
    mixed.add(key, vertices, facing=facing)
    expected = alone.render()
    assert len(np.unique(expected)) > count // 2
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(mixed.render(engine, target=target), expected)
            assert mixed.result.exact_tiles == 0
    assert np.array_equal(mixed.render("interpreter"), expected)


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4])
def test_a_nan_that_is_drawn_is_noticed(place):
    """Depth, 1/Wc, a varying: the fast engine gives the tile up, and all engines agree."""
    vertices = [v for k in range(10) for v in around(10 + 4 * k, 30, 0.1 * k, 0.5, 0.9 - 0.05 * k)]
    vertices[3 * 7 + 1][1 + place] = NAN
    scene = Scene(64, 64)
    scene.add(FragmentKey(program=PROGRAM, n_varyings=3), vertices, facing=3)
    expected = scene.render("interpreter")
    for target in targets():
        assert np.array_equal(scene.render("fast", target=target), expected)
        assert scene.result.exact_tiles == 1


@pytest.mark.parametrize("chosen", [0, 7, 8, 12, 25])
@pytest.mark.parametrize("flat", [0, 0x1555555, 0x3FFFFFF])
def test_many_varyings(chosen, flat):
    """Each is where it belongs, smooth or flat, against a calculation with numpy."""
    count, size = 26, 24
    rng = np.random.default_rng(chosen + flat)
    corners = np.array([(-20.0, -10.0), (70.0, 3.0), (10.0, 80.0)])
    w, values = rng.uniform(0.4, 1.0, 3), rng.uniform(0.1, 0.9, (3, count))
    vertices = []
    for _ in range(3):  # small ones come before and after: the group is mixed
        vertices += around(100, 100, *rng.uniform(0, 1, count))
    vertices += [vertex(*corner, 0.5, w[k], *values[k]) for k, corner in enumerate(corners)]
    scene = Scene(size, size)
    key = FragmentKey(program=one_of(count, chosen), n_varyings=count, flat_flags=flat)
    scene.add(key, vertices, facing=3)
    y, x = np.mgrid[0:size, 0:size] + 0.5
    matrix = np.vstack([corners.T, np.ones(3)])
    share = np.linalg.solve(matrix, np.stack([x.ravel(), y.ravel(), np.ones(x.size)]))
    value = (share.T @ (values[:, chosen] * w)) / (share.T @ w)
    if flat >> chosen & 1:
        value[:] = values[2, chosen]
    expected = np.clip(value.reshape(size, size) * 255, 0, 255)
    inside = (share.min(axis=0) > 1e-3).reshape(size, size)
    assert inside.sum() > 200
    first = scene.render("interpreter")
    byte = (first & 255).astype(float)
    assert np.abs(byte - expected)[inside].max() < 1
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(scene.render(engine, target=target), first)


def direct_of(key: FragmentKey, vertices: list[list[int]], lists: bytes) -> np.ndarray:
    """The picture of a list without substitutes."""
    scene = Scene(64, 64)
    scene.add_list(key, vertices, b"\x30" + lists + b"\x80")
    return scene.render()


@pytest.mark.parametrize("after", [0, 6, 20])
def test_a_clipped_first_triangle(after):
    """Its substitutes stay its own, also when those after it make up its group."""
    rng = np.random.default_rng(after)
    vertices = [around(20, 20, *rng.uniform(0, 1, 3), size=15)[k] for k in range(3)]
    for _ in range(after):
        vertices += around(*rng.uniform(5, 60, 2), *rng.uniform(0, 1, 3))
    key = FragmentKey(program=PROGRAM, n_varyings=3, flat_flags=2)
    clipped = Scene(64, 64)
    position, weights = (50, 12), (0.25, 0.5, 0.25)
    original = [struct.unpack("<3f", struct.pack("<3I", *v[3:])) for v in vertices[:3]]
    mixed = np.float32(weights) @ np.float32(original)
    replaced = [list(v) for v in vertices]
    replaced[1] = vertex(*position, 0.25, 0.5, *mixed)
    record = struct.pack("<IIIfff8x", replaced[1][0], *replaced[1][1:3], *weights)
    clipped.memory.write(0x50000, record)
    lists = b"\x81" + struct.pack("<3H", 0, 1, 2)
    for number in range(3, len(vertices), 3):
        lists += b"\x81" + struct.pack("<3H", number, number + 1, number + 2)
    clipped.add_list(key, vertices, b"\x31" + struct.pack("<I", 0x50000 | 2) + lists + b"\x80")
    expected = direct_of(key, replaced, lists)
    assert len(np.unique(expected)) > 50
    assert not np.array_equal(direct_of(key, vertices, lists), expected)
    for target in targets():
        assert np.array_equal(clipped.render("fast", target=target), expected)


@pytest.mark.parametrize("choice", ["pixels", "quads"])
@pytest.mark.parametrize("packed", [False, True])
def test_z_planes_cut_some(choice, packed):
    """Triangles inside, outside and across: what is left is what lies between the planes."""
    filler = "fadd r0, r0, r1\nfmul r0, r0, 0.5\n" * 20 if packed else ""
    program = words(GOURAUD + filler + END)
    unknowns = DEFAULT_UNKNOWNS.with_(z_clip_pixels=choice)
    key = FragmentKey(program=program, n_varyings=3, unknowns=unknowns)
    vertices = []
    for number, depths in enumerate([(0.5, 0.5, 0.5), (0, 1, 0), (0.1, 0.2, 0.1), (0, 0.6, 1)]):
        x = 16 * number
        for (dx, dy), z in zip([(0, 0), (15, 0), (0, 60)], depths, strict=True):
            vertices.append(vertex(x + dx, dy, z, 1.0, 1.0, 1.0, 1.0))
    scene = Scene(64, 64)
    scene.add(key, vertices, facing=3, z_min=0.25, z_max=0.75)
    y, x = np.mgrid[0:64, 0:64] + 0.5
    left = x % 16
    inside = left / 15 + y / 60 < 1
    second, third = (left / 15), (1 - left / 15 - y / 60)
    depth = np.select(
        [x < 16, x < 32, x < 48], [0.5 + 0 * x, second, 0.1 + 0.1 * second], 0.6 * second + y / 60
    )
    assert third.shape == depth.shape
    kept = (depth >= 0.25) & (depth <= 0.75)
    sure = np.minimum(abs(depth - 0.25), abs(depth - 0.75)) > 1e-4
    if choice == "quads":
        kept = kept.reshape(32, 2, 32, 2).any(axis=(1, 3)).repeat(2, 0).repeat(2, 1)
        sure = sure.reshape(32, 2, 32, 2).all(axis=(1, 3)).repeat(2, 0).repeat(2, 1)
    first = scene.render("interpreter", unknowns=unknowns)
    sure &= abs(left / 15 + y / 60 - 1) > 1e-3
    if choice == "quads":  # whether the quad's other pixels count where the edge cuts it
        sure &= inside.reshape(32, 2, 32, 2).all(axis=(1, 3)).repeat(2, 0).repeat(2, 1)
    assert sure.sum() > 1000
    assert np.array_equal((first != first[63, 63])[sure], (inside & kept)[sure])
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(scene.render(engine, target=target, unknowns=unknowns), first)


@pytest.mark.parametrize("window", [(5, 3, 41, 38), (1, 0, 64, 64), (0, 7, 9, 63)])
def test_windows_that_begin_at_odd_pixels(window):
    rng = np.random.default_rng(1)
    vertices = []
    for _ in range(20):
        vertices += around(*rng.uniform(0, 60, 2), *rng.uniform(0.2, 1, 3), size=12)
    key = FragmentKey(program=PROGRAM, n_varyings=3)
    whole, cut = Scene(64, 64), Scene(64, 64)
    whole.add(key, vertices, facing=3)
    names = ("clip_left", "clip_bottom", "clip_right", "clip_top")
    cut.add(key, vertices, facing=3, **dict(zip(names, window, strict=True)))
    expected = whole.render()
    left, top, right, bottom = window
    inside = np.zeros((64, 64), bool)
    inside[top:bottom, left:right] = True
    background = Scene(64, 64).render()
    expected = np.where(inside, expected, background)
    for target in targets():
        assert np.array_equal(cut.render(target=target), expected)


@pytest.mark.parametrize("turned", [(), (2,), (1, 4), (0, 3, 6), (0, 1, 2, 5, 6)])
def test_lists_that_end_anywhere(turned):
    """Some of each eight face away: groups and calls end with the list, before or after it."""
    vertices = []
    for number in range(64):
        three = around(8 * (number % 8) + 4, 8 * (number // 8) + 4, 0.9, 0.6, 0.7, size=3)
        vertices += three[::-1] if number % 8 in turned else three
    key = FragmentKey(program=PROGRAM, n_varyings=3)
    facing = next(
        bits
        for bits in (CLOCKWISE_ONLY, COUNTER_CLOCKWISE_ONLY)
        if len(np.unique(picture_of(key, vertices[21:24], bits))) > 1
    )
    background = Scene(64, 64).render()
    for count in range(1, 65):
        changed = picture_of(key, vertices[: 3 * count], facing) != background
        cells = changed.reshape(8, 8, 8, 8).any(axis=(1, 3)).ravel()
        wanted = [number < count and number % 8 not in turned for number in range(64)]
        assert cells.tolist() == wanted


def picture_of(key: FragmentKey, vertices: list[list[int]], facing: int) -> np.ndarray:
    """The picture of triangles of which only some face the right way."""
    scene = Scene(64, 64)
    scene.add(key, vertices, facing=facing)
    return scene.render()


@pytest.mark.parametrize("kind", ["packed", "multisample"])
def test_planes_whose_place_is_used_again(kind):
    """Groups without a pixel come between two triangles that stand in the same place."""
    filler = "fadd r0, r0, r1\nfmul r0, r0, 0.5\n" * 20 if kind == "packed" else ""
    end = END.replace("mov tlbc, r3 ; nop ; thrend", "nop ; nop\n mov tlbc, r3 ; nop ; thrend")
    key = FragmentKey(
        program=words(GOURAUD + filler + end), n_varyings=3, depth_function=1, z_update=True,
        multisample=kind == "multisample",
    )  # fmt: skip
    first = [vertex(x, y, 0.5, 1.0, 0.9, 0.2, 0.1) for x, y in ((1, 1), (30, 2), (3, 29))]
    between = [vertex(x / 16, y / 16, 0.5, 1.0, 1, 1, 1) for x, y in ((7, 2), (8, 5), (7, 14))]
    last = [vertex(x, y, x / 31, 1.0, 0.1, 0.9, 0.3) for x, y in ((1, 1), (31, 3), (4, 27))]
    vertices = [*first, *between * (GROUPS * GROUP_SIZE - 1), *last]
    options = {"layout": TileLayout(multisample=True), "tile": (32, 32)} if not filler else {}
    together, apart = Scene(32, 32, **options), Scene(32, 32, **options)
    together.add(key, vertices, facing=3)
    for number in (0, len(vertices) - 3):
        apart.add(key, vertices, [(number, number + 1, number + 2)], facing=3)
    expected = apart.render()
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(together.render(engine, target=target), expected)
    assert together.counters["quads_valid"] == apart.counters["quads_valid"]


def test_more_blocks_than_a_list_holds():
    """Large triangles, one over the other: lists are handed over in between, groups begin anew."""
    count = GROUPS * GROUP_SIZE + 3
    assert count * 100 > 2 * LIST_THRESHOLD
    rng = np.random.default_rng(9)
    vertices = []
    for number in range(count):
        size = 70 if number % 3 else 9
        vertices += around(*rng.uniform(10, 50, 2), *rng.uniform(0, 1, 3), size=size)
    key = FragmentKey(program=PROGRAM, n_varyings=3)
    together, apart = Scene(64, 64), Scene(64, 64)
    together.add(key, vertices, facing=3)
    for number in range(0, len(vertices), 3):
        apart.add(key, vertices, [(number, number + 1, number + 2)], facing=3)
    expected = apart.render("interpreter")
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(together.render(engine, target=target), expected)
    assert together.counters["quads_valid"] == apart.counters["quads_valid"]
