"""Depth and stencil tests and colour masks of the tile buffer, against a model in plain Python."""

from itertools import product

import numpy as np
import pytest
from tests.v3d.fragment.scene import MASK_AT, Scene, vertex, words

from vc4lab.v3d.state.tile_context import FragmentKey

Z_THEN_COLOUR = words("""
    nop ; nop ; sbwait
    mov tlbz, unif
    nop ; nop
    mov tlbc, unif ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
""")
STENCIL = words("""
    nop ; nop ; sbwait
    mov tlb_stencil, unif
    mov tlb_stencil, unif
    mov tlbz, unif
    nop ; nop
    mov tlbc, unif ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
""")
CORNERS = [(0, 0), (64, 0), (0, 64)]


def full(depth: float = 0.5):
    return [vertex(0, 0, depth), vertex(200, 0, depth), vertex(0, 200, depth)]


COMPARE = [
    lambda a, b: False,
    lambda a, b: a < b,
    lambda a, b: a == b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a != b,
    lambda a, b: a >= b,
    lambda a, b: True,
]


@pytest.mark.parametrize("function", range(8))
@pytest.mark.parametrize("update", [False, True])
def test_depth_functions(function, update):
    key = FragmentKey(program=Z_THEN_COLOUR, depth_function=function, z_update=update)
    for new in (0x1000, 0x1001, 0x1002):
        scene = Scene(16, 16, clear_zs=0x1001 << 8 | 0x5A)
        scene.add(key, full(), uniforms=(0xAB000000 | new, 0xFF))  # bits above 24 do not count
        passed = COMPARE[function](new, 0x1001)
        assert (scene.render() != 0).all() == passed
        expected = new if passed and update else 0x1001
        assert set(np.unique(scene.depth())) == {expected << 8 | 0x5A}


def test_fragments_outside_the_z_planes_are_dropped():
    scene = Scene()
    corners = [vertex(0, 0, 0.0), vertex(64, 0, 1.0), vertex(0, 64, 0.0)]
    scene.add(FragmentKey(program=Z_THEN_COLOUR), corners, uniforms=(0, 1), z_min=0.25, z_max=0.5)
    columns = np.nonzero(scene.render()[0])[0]
    assert columns.min() == 16  # (16 + 0.5) / 64 is the first centre above 0.25
    assert columns.max() == 31


def test_depth_on_the_far_plane_is_drawn():
    scene = Scene(64, 64)
    corners = [vertex(0, 0, 1.0, 0.7), vertex(200, 3, 1.0, 0.3), vertex(5, 190, 1.0, 0.9)]
    scene.add(FragmentKey(program=Z_THEN_COLOUR), corners, uniforms=(0, 1))
    scene.add(FragmentKey(program=Z_THEN_COLOUR), full(), uniforms=(0, 1), z_max=0.4)
    assert scene.render()[20:40, 20:40].all()


def test_depth_offset_moves_z():
    program = words("""
        nop ; nop ; sbwait
        mov tlbz, rb15
        nop ; nop ; thrend
        nop ; nop
        nop ; nop ; sbdone
    """)
    plain = FragmentKey(program=program, depth_function=7, z_update=True)
    offset = FragmentKey(program=program, depth_function=7, z_update=True, depth_offset=True)
    sloped = [vertex(0, 0, 0.25), vertex(64, 0, 0.5), vertex(0, 64, 0.25)]
    results = []
    for key, params in ((plain, {}), (offset, {"depth_factor": 2.0, "depth_units": 100.0})):
        scene = Scene()
        scene.add(key, sloped, **params)
        scene.render()
        results.append((scene.depth() >> 8).astype(int))
    slope = 0.25 / 64 * 2**24
    assert np.abs((results[1] - results[0])[:30, :30] - (2 * slope + 100)).max() <= 2


OPERATIONS = [
    lambda old, ref: 0,
    lambda old, ref: old,
    lambda old, ref: ref,
    lambda old, ref: min(old + 1, 255),
    lambda old, ref: max(old - 1, 0),
    lambda old, ref: old ^ 255,
    lambda old, ref: (old + 1) & 255,
    lambda old, ref: (old - 1) & 255,
]
BOTH, FRONT, BACK = 3, 1, 2
ZERO, KEEP, REPLACE, INCREMENT = 0, 1, 2, 3


def setup(side=BOTH, mask_code=3, z_fail=KEEP, z_pass=KEEP, fail=KEEP, function=7, ref=0, mask=255):
    word = side << 30 | mask_code << 28 | z_fail << 25 | z_pass << 22 | fail << 19
    return word | function << 16 | ref << 8 | mask


def stencil(first, second, old=0x40, new_z=5, old_z=5, depth_function=7, **params):
    """(drawn, depth, stencil) of one pixel after a full-screen triangle."""
    key = FragmentKey(program=STENCIL, depth_function=depth_function, z_update=True)
    scene = Scene(4, 4, clear_zs=old_z << 8 | old)
    scene.add(key, full(), uniforms=(first, second, new_z, 1), **params)
    image = scene.render()
    word = int(scene.depth()[0, 0])
    again = scene.render("interpreter")
    assert (again == image).all()
    assert int(scene.depth()[0, 0]) == word
    return bool(image[0, 0]), word >> 8, word & 255


@pytest.mark.parametrize(("code", "old"), list(product(range(8), (0, 0x41, 255))))
def test_stencil_operations_on_pass(code, old):
    word = setup(z_pass=code, ref=0x99)
    assert stencil(word, word, old) == (True, 5, OPERATIONS[code](old, 0x99))


@pytest.mark.parametrize(("function", "ref"), list(product(range(8), (0x3F, 0x40, 0x41))))
def test_stencil_functions_compare_reference_with_stored(function, ref):
    word = setup(function=function, ref=ref, z_pass=INCREMENT, fail=ZERO)
    passed = COMPARE[function](ref, 0x40)
    assert stencil(word, word) == (passed, 5, 0x41 if passed else 0)


def test_stencil_fail_keeps_depth_and_z_fail_has_its_own_operation():
    word = setup(z_fail=REPLACE, z_pass=ZERO, ref=0x77)
    assert stencil(word, word, new_z=9, depth_function=1) == (False, 5, 0x77)
    assert stencil(word, word, new_z=3, depth_function=1) == (True, 3, 0)


def test_stencil_masks():
    test_masked = setup(function=2, ref=0xF0, mask=0x40, z_pass=REPLACE)
    assert stencil(test_masked, test_masked) == (True, 5, 0xF0)
    code = setup(mask_code=1, z_pass=REPLACE, ref=0xFF)
    assert stencil(code, code) == (True, 5, 0x43)
    full_masks = 0x0F << 8 | 0xF0  # front F0, back 0F
    assert stencil(setup(z_pass=REPLACE, ref=0xFF), full_masks, old=0) == (True, 5, 0xF0)


def test_stencil_sides_follow_facing():
    front_only = setup(side=FRONT, function=0)  # never
    assert stencil(front_only, front_only)[0] is False
    # facing 4: clockwise is forward, so the triangle is a back face
    assert stencil(front_only, front_only, facing=7)[0] is True
    back_only = setup(side=BACK, function=0)
    assert stencil(back_only, back_only, facing=7)[0] is False


def test_masks_alone_do_not_enable_the_test():
    assert stencil(0, 0) == (True, 5, 0x40)


def test_colour_write_obeys_conditions_and_flags():
    program = words("""
        mov r0, x_coord
        and.setf r0, r0, 1
        nop ; nop ; sbwait
        mov.zs tlbc, unif ; nop ; thrend
        nop ; nop
        nop ; nop ; sbdone
    """)
    scene = Scene(16, 16)
    scene.add(FragmentKey(program=program), full(), uniforms=(7,))
    for engine in ("fast", "interpreter"):
        image = scene.render(engine)
        assert (image[:, 0::2] == 7).all()
        assert (image[:, 1::2] == 0).all()


def test_discard_by_multisample_flags():
    program = words("""
        mov r0, y_coord
        and.setf r0, r0, 1
        mov.zs ms_flags, 0
        nop ; nop ; sbwait
        mov tlbz, unif
        mov tlbc, unif ; nop ; thrend
        nop ; nop
        nop ; nop ; sbdone
    """)
    scene = Scene(16, 16)
    scene.add(FragmentKey(program=program, z_update=True), full(), uniforms=(9, 7))
    for engine in ("fast", "exact", "interpreter"):
        image = scene.render(engine)
        assert (image[0::2] == 0).all()
        assert (image[1::2] == 7).all()
        assert (scene.depth()[1::2] >> 8 == 9).all()


def test_blending_reads_the_colour_back():
    program = words("""
        nop ; nop ; sbwait
        nop ; nop ; loadc
        v8adds r0, r4, unif ; nop
        mov tlbc, r0 ; nop ; thrend
        nop ; nop
        nop ; nop ; sbdone
    """)
    scene = Scene(16, 16, clear_colour=0x10203040)
    for _ in range(3):
        scene.add(FragmentKey(program=program), full(), uniforms=(0x01010150,))
    for engine in ("fast", "interpreter"):
        assert set(np.unique(scene.render(engine))) == {0x132333FF}


MASKED = words("""
    nop ; nop ; sbwait
    nop ; nop ; loadam
    add r0, r4, unif
    mov tlbam, r0
    mov tlbc, r4 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
""")


def test_vg_mask_is_a_byte_that_programs_read_and_write():
    scene = Scene(16, 16, clear_mask=0x70)
    key = FragmentKey(program=MASKED, vg_mask=True)
    for _ in range(3):
        scene.add(key, [vertex(0, 0), vertex(64, 0), vertex(0, 64)], uniforms=(0x4150,))
    scene.add(key, [vertex(8, 0), vertex(64, 0), vertex(8, 64)], uniforms=(1,))
    for engine in ("fast", "exact", "interpreter"):
        image = scene.render(engine)
        assert (image[:, :8] == (0x70 + 0xA0) & 255).all()
        assert (image[:, 8:] == (0x70 + 0xF0) & 255).all()
        mask = scene.memory.array(MASK_AT, 16 * 16).reshape(16, 16)
        assert (mask[:, :8] == 0x60).all()
        assert (mask[:, 8:] == 0x61).all()


def test_without_a_mask_plane_it_reads_zero():
    scene = Scene(16, 16, clear_mask=0x70)
    scene.add(FragmentKey(program=MASKED), full(), uniforms=(1,))
    for engine in ("fast", "interpreter"):
        assert not scene.render(engine).any()
        assert (scene.memory.array(MASK_AT, 256) == 0x70).all()
