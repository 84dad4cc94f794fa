"""4x multisample frames against a model that looks at every sample by its definition."""

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import ZS_DUMP, Scene, vertex, words

from vc4lab.simd import targets
from vc4lab.v3d.pse.setup import PATTERNS
from vc4lab.v3d.state.frame_mode import Surface, TileLayout
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

FOUR = TileLayout(multisample=True)
END = """
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
FLAT = words("nop ; nop ; sbwait\n mov tlbc, unif ; nop" + END)
Z_FLAT = words("nop ; nop ; sbwait\n mov tlbz, rb15\n nop ; nop\n mov tlbc, unif" + END)
COLOURED = words(GOURAUD + "nop ; nop ; sbwait\n mov tlbz, rb15\n mov tlbc, r3" + END)


def multisample_scene(width: int = 70, height: int = 45, **options) -> Scene:
    return Scene(width, height, layout=FOUR, tile=(32, 32), **options)


def covered(points, width, height, pattern="rotated"):
    """Samples of a triangle (12.4 corners) by the definition, top-left rule."""
    (x0, y0), (x1, y1), (x2, y2) = points
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if area < 0:
        points = [points[0], points[2], points[1]]
    inside = np.full((height, width, 4), area != 0)
    places = np.array(PATTERNS[pattern]) * 2
    px = np.arange(width)[None, :, None] * 16 + places[None, None, :, 0]
    py = np.arange(height)[:, None, None] * 16 + places[None, None, :, 1]
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        dx, dy = bx - ax, by - ay
        edge = dx * (py - ay) - dy * (px - ax)
        inside &= (edge > 0) | ((edge == 0) & (dy < 0 or (dy == 0 and dx > 0)))
    return inside


def random_triangles(count: int, size: float, seed: int = 3):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        centre = rng.uniform(-10, 80, 2)
        yield [tuple(int(v * 16) for v in centre + rng.uniform(-size, size, 2)) for _ in range(3)]


def pixels(points, *rest):
    return [vertex(x / 16, y / 16, *rest) for x, y in points]


@pytest.mark.parametrize("pattern", ["rotated", "mirrored", "grid"])
@pytest.mark.parametrize("size", [1.5, 12, 90])
def test_random_triangles_cover_exactly_the_defined_samples(size, pattern):
    unknowns = DEFAULT_UNKNOWNS.with_(sample_positions=pattern)
    scene = multisample_scene()
    expected = np.zeros((45, 70, 4), np.uint32)
    for number, points in enumerate(random_triangles(30, size), 1):
        scene.add(FragmentKey(program=FLAT), pixels(points), uniforms=(number,))
        expected[covered(points, 70, 45, pattern)] = number
    scene.render(unknowns=unknowns)
    assert (expected != 0).any()
    assert (scene.samples() == expected).all()


def test_shared_edges_through_samples_belong_to_one_triangle():
    scene = multisample_scene(32, 32, clear_colour=0)
    add = words("nop ; nop ; sbwait\n mov r1, 0\n" + "nop ; nop ; loadc\n add r0, r4, unif\n"
                "mov tlbm, r0\n nop ; nop ; loadc\n add r0, r4, unif\n mov tlbm, r0\n"
                "nop ; nop ; loadc\n add r0, r4, unif\n mov tlbm, r0\n nop ; nop ; loadc\n"
                "add r0, r4, unif\n mov tlbm, r0" + END)  # fmt: skip
    middle = (10 * 16 + 6, 9 * 16 + 2)  # sample 0 of pixel (10, 9)
    ring = [(6, 2), (30 * 16 + 6, 2), (30 * 16 + 6, 29 * 16 + 2), (6, 29 * 16 + 2)]
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        scene.add(FragmentKey(program=add), pixels([a, b, middle]), uniforms=(1, 1, 1, 1))
    scene.render()
    samples = scene.samples()
    assert samples.max() == 1
    assert (samples[1:29, 1:30] == 1).all()
    assert (scene.render("interpreter") == scene.render("exact")).all()
    assert (scene.samples() == samples).all()


def test_without_oversampling_all_samples_share_the_centre():
    scene = multisample_scene()
    points = next(random_triangles(1, 60))
    scene.add(FragmentKey(program=FLAT, oversample=False), pixels(points), uniforms=(9,))
    scene.render()
    samples = scene.samples()
    assert (samples == 9).any()
    assert (samples == samples[:, :, :1]).all()


@pytest.mark.parametrize("size", [0.3, 1.0, 3.7, 20.0])
def test_points_cover_samples(size):
    scene = multisample_scene(40, 40)
    scene.add(FragmentKey(program=FLAT, primitive="points"), [vertex(17.3125, 15.0625)],
              uniforms=(5,), point_size=size)  # fmt: skip
    scene.render()
    half = int(size * 128)
    left, top = round(17.3125 * 256) - half, round(15.0625 * 256) - half
    places = np.array(PATTERNS["rotated"]) * 32
    px = np.arange(40)[None, :, None] * 256 + places[None, None, :, 0]
    py = np.arange(40)[:, None, None] * 256 + places[None, None, :, 1]
    inside = (px >= left) & (px < left + 2 * half) & (py >= top) & (py < top + 2 * half)
    assert ((scene.samples() == 5) == inside).all()


def test_lines_cover_more_and_less_than_whole_pixels():
    scene = multisample_scene(40, 40)
    ends = [vertex(3, 5), vertex(35, 30)]
    scene.add(FragmentKey(program=FLAT, primitive="lines"), ends, uniforms=(5,), line_width=2.0)
    scene.render()
    count = (scene.samples() == 5).sum(axis=2)
    assert set(np.unique(count)) == {0, 1, 2, 3, 4}
    assert abs(count.sum() / 4 - 32 * 2) < 4


@pytest.mark.parametrize("choice", ["plane", "centre"])
def test_depth_of_each_sample(choice):
    scene = multisample_scene(32, 32)
    points = [(0, 0), (64 * 16, 0), (0, 64 * 16)]
    depths = (0.1, 0.9, 0.3)
    corners = [vertex(x / 16, y / 16, z) for (x, y), z in zip(points, depths, strict=True)]
    scene.add(FragmentKey(program=Z_FLAT, z_update=True), corners, uniforms=(1,))
    scene.render(unknowns=DEFAULT_UNKNOWNS.with_(ms_depth=choice))
    z = (scene.samples(ZS_DUMP) >> 8).astype(float)
    places = np.array(PATTERNS["rotated"]) / 8 if choice == "plane" else np.full((4, 2), 0.5)
    x = np.arange(32)[None, :, None] + places[None, None, :, 0]
    y = np.arange(32)[:, None, None] + places[None, None, :, 1]
    expected = (0.1 + 0.8 * x / 64 + 0.2 * y / 64) * 2**24
    inside = covered(points, 32, 32)
    assert inside.all()
    assert np.abs(z - expected).max() < 8


def test_depth_test_is_per_sample():
    """Two planes that cut each other inside pixels: the nearer one shows in each sample."""
    scene = multisample_scene(32, 32)
    sides = [[vertex(-40, -7, 0.0), vertex(40, 3, 1.0), vertex(0, 90, 0.4)],
             [vertex(-40, -7, 1.0), vertex(40, 3, 0.0), vertex(0, 90, 0.5)]]  # fmt: skip
    for number, corners in enumerate(sides, 1):
        key = FragmentKey(program=Z_FLAT, z_update=True, depth_function=1)
        scene.add(key, corners, uniforms=(number,))
    scene.render()
    first, z = scene.samples().copy(), scene.samples(ZS_DUMP).copy()
    scene.draws.reverse()
    scene.render()
    assert (scene.samples(ZS_DUMP) == z).all()
    mixed = (first.min(axis=2) == 1) & (first.max(axis=2) == 2)
    assert mixed.sum() > 10
    for engine in ("exact", "interpreter"):
        scene.render(engine)
        assert (scene.samples(ZS_DUMP) == z).all()


STENCIL = words("""
    nop ; nop ; sbwait
    mov tlb_stencil, unif
    mov tlbz, rb15
    nop ; nop
    nop ; nop
    mov r0, ms_flags
    mov tlbc, r0
""" + END)  # fmt: skip


def test_stencil_and_flags_are_per_sample():
    scene = multisample_scene(40, 40, clear_zs=0xFFFFFF40)
    count = np.zeros((40, 40, 4), int)
    expected = np.zeros((40, 40, 4), np.uint32)
    for points in random_triangles(12, 30, 5):
        # Equal to 0x40 passes and increments; what fails increments, too.
        word = 3 << 30 | 3 << 28 | 1 << 25 | 3 << 22 | 3 << 19 | 2 << 16 | 0x40 << 8 | 0xFF
        scene.add(FragmentKey(program=STENCIL), pixels(points), uniforms=(word,))
        inside = covered(points, 40, 40)
        passed = inside & (count == 0)
        flags = (passed << np.arange(4)).sum(axis=2)
        expected = np.where(passed, flags[:, :, None], expected)
        count += inside
    scene.render()
    fast = scene.samples().copy()
    assert (fast == expected).all()
    stencil = (scene.samples(ZS_DUMP) & 255).astype(int)
    assert (stencil == 0x40 + count).all()
    for engine in ("exact", "interpreter"):
        scene.render(engine)
        assert (scene.samples() == fast).all()
        assert ((scene.samples(ZS_DUMP) & 255) == stencil).all()


def test_discard_of_single_samples():
    keep = "mov r0, ms_flags\n nop\n and r0, r0, 5\n mov ms_flags, r0\n"
    draw = "nop ; nop ; sbwait\n mov tlbz, rb15\n nop\n nop\n mov tlbc, unif"
    program = words(keep + draw + END)
    scene = multisample_scene()
    points = next(random_triangles(1, 60))
    scene.add(FragmentKey(program=program), pixels(points), uniforms=(7,))
    expected = covered(points, 70, 45) & np.array([True, False, True, False])
    for engine in ("fast", "exact", "interpreter"):
        scene.render(engine)
        assert ((scene.samples() == 7) == expected).all()


def random_scene() -> Scene:
    rng = np.random.default_rng(11)
    scene = multisample_scene(100, 50)
    corners = [
        vertex(*rng.uniform(-30, 110, 2), rng.uniform(0, 1), rng.uniform(0.1, 3),
               *rng.uniform(-0.5, 1.5, 3))
        for _ in range(12)
    ]  # fmt: skip
    key = FragmentKey(program=COLOURED, n_varyings=3, depth_function=1, z_update=True)
    scene.add(key, corners)
    return scene


def test_engines_instruction_sets_and_threads_agree():
    scene = random_scene()
    image = scene.render().copy()
    colours, depth = scene.samples().copy(), scene.samples(ZS_DUMP).copy()
    assert (colours != 0).sum() > 4000
    variants = [{"engine": engine} for engine in ("exact", "interpreter")]
    variants += [{"threads": threads} for threads in (2, 8)]
    variants += [{"target": target} for target in targets()]
    for options in variants:
        assert (scene.render(**options) == image).all()
        assert (scene.samples() == colours).all()
        assert (scene.samples(ZS_DUMP) == depth).all()


@pytest.mark.parametrize("rounding", ["nearest", "truncate"])
def test_resolve_averages_and_decimates(rounding):
    unknowns = DEFAULT_UNKNOWNS.with_(resolve_rounding=rounding)
    scene = random_scene()
    at = 0x100000
    first = scene.render(unknowns=unknowns).copy()
    colours = scene.samples().copy()
    assert (first == colours[:, :, 0]).all()
    channels = colours.view(np.uint8).reshape(50, 100, 4, 4).astype(int)
    half = 2 if rounding == "nearest" else 0
    four = ((channels.sum(axis=2) + half) >> 2).astype(np.uint8).view(np.uint32)[:, :, 0]
    assert (scene.render(store=Surface(at, 100, 50, decimate=1), unknowns=unknowns) == four).all()
    quads = channels.reshape(25, 2, 50, 2, 4, 4).sum(axis=(1, 3, 4))
    sixteen = ((quads + half * 4) >> 4).astype(np.uint8).view(np.uint32)[:, :, 0]
    scene.memory.fill(at, 1 << 20, 0)
    scene.render(store=Surface(at, 50, 25, decimate=2), unknowns=unknowns)
    stored = scene.memory.array(at, 52 * 25, "<u4").reshape(25, 52)[:, :50]
    assert (stored == sixteen).all()


def test_switches_of_oversampling_and_16x_stores():
    points = next(random_triangles(1, 60))
    scene = multisample_scene()
    scene.add(FragmentKey(program=FLAT, oversample=False), pixels(points), uniforms=(9,))
    scene.render(unknowns=DEFAULT_UNKNOWNS.with_(ms_no_oversample="samples"))
    assert ((scene.samples() == 9) == covered(points, 70, 45)).all()
    unknowns = DEFAULT_UNKNOWNS.with_(decimate_16="pixel")
    pictures = [
        scene.render(store=Surface(0x100000, 70, 45, decimate=k), unknowns=unknowns).copy() for k in (1, 2)
    ]
    assert (pictures[0] == pictures[1]).all()


def test_without_oversampling_the_frame_can_be_that_of_one_sample():
    """Planes that cut each other: only the depth of samples tells such a frame from a plain one."""
    sides = [[vertex(-40, -7, 0.0), vertex(40, 3, 1.0), vertex(0, 90, 0.4)],
             [vertex(-40, -7, 1.0), vertex(40, 3, 0.0), vertex(0, 90, 0.5)]]  # fmt: skip
    plain, scene = Scene(32, 32), multisample_scene(32, 32)
    for number, corners in enumerate(sides, 1):
        key = FragmentKey(Z_FLAT, z_update=True, depth_function=1, oversample=False)
        for where in (plain, scene):
            where.add(key, corners, uniforms=(number,))
    expected = plain.render()
    for engine in ("fast", "exact", "interpreter"):
        scene.render(engine, unknowns=DEFAULT_UNKNOWNS.with_(ms_no_oversample="single"))
        assert (scene.samples() == expected[:, :, None]).all()
        assert (scene.samples(ZS_DUMP) == plain.depth()[:, :, None]).all()
    scene.render()  # coverage of the centre, but a depth for each sample
    differing = (scene.samples() != expected[:, :, None]).any(axis=2)
    assert 10 < differing.sum() < 60
