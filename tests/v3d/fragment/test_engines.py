"""The engines agree bit for bit, on every instruction set and with any number of threads."""

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd import targets
from vc4lab.v3d.fragment.pipeline import fragment_pipeline
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.tmu.texture_state import describe_texture, same_textures

END = """
    nop ; nop ; sbwait
    mov tlbz, rb15
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
COLOURED = words(GOURAUD + END)
TEXTURED = words(
    """
    mov r0, vary
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop
    fmul r1, r1, ra15
    fadd t0t, r1, r5
    nop
    mov t0s, r0
    nop ; nop ; ldtmu0
    mov r3, r4
"""
    + END
)
FOUR_TEXELS = words(
    """
    mov r0, vary
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop
    fmul r1, r1, ra15
    fadd r1, r1, r5
    fadd r2, r0, 0.125
    mov t0t, r1
    mov t0s, r0
    mov t0t, r1
    mov t0s, r2
    nop ; nop ; ldtmu0
    mov r3, r4 ; nop ; ldtmu0
    xor r3, r3, r4
    mov t0t, r2
    mov t0s, r0
    mov t0t, r0
    mov t0s, r0
    nop ; nop ; ldtmu0
    xor r3, r3, r4 ; nop ; ldtmu0
    xor r3, r3, r4
    """
    + END
)
TEXTURE_AT = 0x40000


def textured_scene(kind: int, minify: int = 1, size: int = 16) -> Scene:
    """A textured perspective quad; `kind`: 0 = RGBA8888, 16 = raster; `minify`: MINFILT."""
    scene = Scene(150, 100)
    rng = np.random.default_rng(1)
    scene.memory.write(TEXTURE_AT - 0x1000, rng.integers(0, 256, 0x2000, dtype=np.uint8).tobytes())
    p0 = TEXTURE_AT | (kind & 15) << 4
    p1 = (kind >> 4) << 31 | size << 20 | size << 8 | (minify == 1) << 7 | minify << 4
    texture, descriptor = describe_texture(p0, p1)
    key = FragmentKey(program=TEXTURED, n_varyings=2, textures=(texture,), depth_function=7)
    corners = [
        vertex(-10, 5, 0.5, 1, 0, 0), vertex(140, -9, 0.5, 0.5, 3, 0),
        vertex(10, 95, 0.5, 0.7, 0, 3), vertex(149, 80, 0.5, 0.2, 3, 3),
    ]  # fmt: skip
    scene.add(key, corners, [(0, 1, 2), (2, 1, 3)], (p0, p1), textures=[descriptor])
    return scene


def repeated_scene(minify: int, texture_of: tuple[int, ...] = (0, 0, 2, 0)) -> Scene:
    """Four requests, three of them of one texture, with coordinates in common."""
    scene = textured_scene(0)
    parameters = [(TEXTURE_AT, 32 << 20 | 16 << 8 | (minify == 1) << 7 | minify << 4)] * 4
    parameters[2] = (TEXTURE_AT + 0x1000, 16 << 20 | 32 << 8 | (minify == 1) << 7 | minify << 4)
    kinds, descriptors = zip(*(describe_texture(*words) for words in parameters), strict=True)
    assert same_textures(descriptors) == (0, 0, 2, 0)
    key = FragmentKey(program=FOUR_TEXELS, n_varyings=2, textures=kinds, texture_of=texture_of)
    corners = [vertex(-3, 2, 0.5, 1, 0, 0), vertex(149, 0, 0.5, 0.5, 2, 0), vertex(9, 99, 0.5, 1, 0, 2)]
    uniforms = tuple(word for pair in parameters for word in pair)
    scene.add(key, corners, [(0, 1, 2)], uniforms, textures=descriptors)
    return scene


def random_scene() -> Scene:
    rng = np.random.default_rng(7)
    scene = Scene(130, 80)
    vertices = [
        vertex(*rng.uniform(-60, 180, 2), rng.uniform(0, 1), rng.uniform(0.1, 3), *rng.uniform(-0.5, 1.5, 3))
        for _ in range(30)
    ]
    key = FragmentKey(program=COLOURED, n_varyings=3, depth_function=1, z_update=True)
    scene.add(key, vertices)
    return scene


SCENES = {
    "coloured": random_scene,
    "nearest": lambda: textured_scene(0),
    "bilinear": lambda: textured_scene(0, 0),
    "raster": lambda: textured_scene(16),
    "nearest again": lambda: repeated_scene(1),
    "bilinear again": lambda: repeated_scene(0),
}


@pytest.mark.parametrize("name", SCENES)
def test_interpreter_exact_and_fast_draw_the_same(name):
    scene = SCENES[name]()
    fast, depth = scene.render("fast"), scene.depth()
    assert (fast != 0).sum() > 4000
    assert scene.result.exact_tiles == 0
    for engine in ("exact", "interpreter"):
        assert (scene.render(engine) == fast).all()
        assert (scene.depth() == depth).all()


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
def test_minus_zero_beside_a_sum(engine):
    """Sums are +0 where native ones may be -0; a constant -0 in other lanes of the word stays."""
    text = "mov r1, unif\nfadd r0, r1, unif\nand.setf -, elem_num, 1\n"
    text += "ldi.zs r0, 0x80000000\nmov r3, r0\n"
    for terms, total in (((1.0, 0.5), 0x3FC00000), ((-1.0, 1.0), 0), ((-0.0, -0.0), 0)):
        scene = Scene(16, 16)
        uniforms = tuple(int(np.float32(term).view(np.uint32)) for term in terms)
        corners = [vertex(0, 0), vertex(40, 0), vertex(0, 40)]
        scene.add(FragmentKey(program=words(text + END)), corners, uniforms=uniforms)
        expected = [0x80000000, total] * 8
        assert (scene.render(engine) == expected).all()


@pytest.mark.parametrize("name", ["coloured", "bilinear", "nearest again"])
def test_all_instruction_sets_draw_the_same(name):
    scene = SCENES[name]()
    pictures = [(scene.render("fast", target=target), scene.depth()) for target in targets()]
    for image, depth in pictures[1:]:
        assert (image == pictures[0][0]).all()
        assert (depth == pictures[0][1]).all()


@pytest.mark.parametrize("minify", [0, 1])
def test_requests_of_one_texture_share_its_descriptor(minify):
    """To know that parameters are equal changes no pixel, but shortens the program."""
    shared, alone = repeated_scene(minify), repeated_scene(minify, ())
    assert (shared.render() == alone.render()).all()
    assert same_textures([]) == ()


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_do_not_change_the_picture(threads):
    scene = random_scene()
    image, depth, counters = scene.render(), scene.depth(), scene.counters
    assert (scene.render(threads=threads) == image).all()
    assert (scene.depth() == depth).all()
    assert scene.counters == counters


@pytest.mark.parametrize("odd", [0x7FC00000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF])
def test_strange_floats_are_rendered_exactly(odd):
    """NaN, infinite and huge varyings make the fast engine give up; the exact one draws."""
    scene = Scene(100, 80)
    corners = [vertex(0, 0, 0.5, 1, 0.2, 0.4, 0.9), vertex(99, 0, 0.5, 1, 0.3, 0.1, 0.5)]
    corners.append(vertex(0, 79, 0.5, 1, 0.8, 0.9, 0.1))
    corners[1][4] = odd
    scene.add(FragmentKey(program=COLOURED, n_varyings=3), corners)
    image = scene.render("fast")
    assert scene.result.exact_tiles > 0
    assert (image == scene.render("exact")).all()
    assert (image == scene.render("interpreter")).all()


def test_draws_of_one_pipeline_give_up_once():
    """Each tile is drawn again once, however many draws in it have odd varyings."""
    tiles = []
    for times in (1, 4):
        scene = Scene(100, 80)
        corners = [vertex(0, 0, 0.5, 1, 0.2, 0.4, 0.9), vertex(99, 0, 0.5, 1, 0.3, 0.1, 0.5)]
        corners.append(vertex(0, 79, 0.5, 1, 0.8, 0.9, 0.1))
        corners[1][4] = 0x7FC00000
        for _ in range(times):
            scene.add(FragmentKey(program=COLOURED, n_varyings=3), corners)
        image = scene.render("fast")
        tiles.append(scene.result.exact_tiles)
        assert (scene.render("interpreter") == image).all()
    assert tiles[0] == tiles[1] > 0


@pytest.mark.parametrize("primitive", ["lines", "triangles"])
def test_a_nan_met_by_another_is_the_same_on_all_instruction_sets(primitive):
    """Which of two NaNs an x86 operation keeps depends on the order that a compiler chose."""
    scene = Scene(100, 80)
    corners = [vertex(2, 3, 0.5, 1, 0.2, 0.4, 0.9), vertex(95, 20, 0.5, 1, 0.3, 0.1, 0.5)]
    corners.append(vertex(10, 79, 0.5, 1, 0.8, 0.9, 0.1))
    positive_nan, minus_infinity = 0x7FC00000, 0xFF800000
    corners[1][2] = positive_nan  # 1/Wc
    corners[1][3] = corners[0][4] = minus_infinity
    corners[2][5] = positive_nan
    key = FragmentKey(program=COLOURED, n_varyings=3, primitive=primitive)
    order = [(0, 1), (1, 2), (2, 0)] if primitive == "lines" else [(0, 1, 2)]
    scene.add(key, corners, order, line_width=5.0)
    reference = scene.render("interpreter")
    assert reference.any()
    for target in targets():
        assert (scene.render("fast", target=target) == reference).all()
        assert (scene.render("exact", target=target) == reference).all()


def test_zero_one_over_w_is_drawn_without_suspicion():
    scene = Scene(100, 80)
    flat = [(0.0, 0.0), (99.0, 0.0), (0.0, 79.0)]
    scene.add(FragmentKey(program=COLOURED, n_varyings=3), [vertex(*p, 0.5, 0, 1, 1, 1) for p in flat])
    assert scene.render().any()
    assert scene.result.exact_tiles == 0


def test_reciprocals_of_zero_are_drawn_without_suspicion():
    """1/0 is infinite, and 0 times that is 0 on the chip: as in a step of Newton's, and in 0/0."""
    text = """
        mov r0, unif
        mov recip, r0
        nop ; nop
        nop ; nop
        fmul r1, r0, r4
        fsub r1, 2.0, r1
        fmul r1, r4, r1
        fmul r2, r0, r1
        fadd r3, r2, unif
    """
    for x, expected in ((0.0, 1.5), (-0.0, 1.5), (4.0, 2.5), (-0.25, 2.5)):
        uniforms = tuple(int(np.float32(number).view(np.uint32)) for number in (x, 1.5))
        scene = Scene(40, 40)
        corners = [vertex(0, 0), vertex(99, 0), vertex(0, 99)]
        scene.add(FragmentKey(program=words(text + END)), corners, uniforms=uniforms)
        reference = scene.render("interpreter")
        assert reference.view(np.float32) == pytest.approx(expected, rel=1e-6)
        for target in targets():
            assert (scene.render("fast", target=target) == reference).all()
            assert scene.result.exact_tiles == 0
            assert (scene.render("exact", target=target) == reference).all()


def test_uniforms_in_a_loop():
    """A branchy program: the uniform pointer is only known at run time."""
    program = words("""
        mov r0, 0
        mov r1, unif
    loop:
        add r0, r0, unif
        sub.setf r1, r1, 1
        brr.any_zc -, loop
        nop
        nop
        nop
        nop ; nop ; sbwait
        mov tlbc, r0 ; nop ; thrend
        nop ; nop
        nop ; nop ; sbdone
    """)
    scene = Scene(20, 20)
    corners = [vertex(0, 0), vertex(100, 0), vertex(0, 100)]
    scene.add(FragmentKey(program=program), corners, uniforms=(3, 100, 20, 3))
    for engine in ("fast", "exact", "interpreter"):
        assert set(np.unique(scene.render(engine))) == {123}


def test_a_program_without_end_leaves_its_draw_out():
    endless = words("""
        nop
    loop:
        brr -, loop
        nop
        nop
        nop
        nop ; nop ; thrend
        nop
        nop
    """)
    scene = Scene(100, 80)
    corners = [vertex(0, 0, 0.5, 1, 1, 1, 1), vertex(100, 0, 0.5, 1, 1, 1, 1)]
    corners.append(vertex(0, 80, 0.5, 1, 1, 1, 1))
    scene.add(FragmentKey(program=endless, n_varyings=3), corners * 40)
    scene.add(FragmentKey(program=COLOURED, n_varyings=3), corners)
    assert (scene.render() == 0xFFFFFF).any()
    assert scene.result.endless == [0]


def test_what_is_not_simulated_is_said():
    vpm = words("mov r0, vpm" + END)
    with pytest.raises(Unsupported, match="QPU-040"):
        fragment_pipeline(FragmentKey(program=vpm))
    for changes in ({"primitive": "points", "index_bits": 32}, {"n_varyings": 33}):
        with pytest.raises(Unsupported, match="FRG-00"):
            fragment_pipeline(FragmentKey(program=COLOURED, **changes))
