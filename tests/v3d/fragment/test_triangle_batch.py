"""Triangles that are set up together draw what they draw one by one, in the same order."""

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.simd import targets
from vc4lab.v3d.fragment.packed_quads import MIN_INSTRUCTIONS
from vc4lab.v3d.state.tile_context import FragmentKey

PROGRAM = words(
    GOURAUD
    + """
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
)
SUMS = (
    GOURAUD
    + """
    fadd r0, r0, r1
    fmul r0, r0, 0.5
    fadd r1, r1, r2
    fmul r1, r1, 0.5
"""
    * 8
)
PLAIN = words(
    SUMS
    + """
    nop ; mov r3.8d, r1
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
)
BLENDING = words(
    SUMS
    + """
    nop ; mov r3.8d, r1
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    nop ; nop ; loadc
    mov r0, r4
    xor r0, r0, r3
    mov tlbc, r0 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
)
"""Long enough for their quads to be packed; what one draws depends on what was drawn before."""

DRAWN_FROM_BOTH_SIDES, CLOCKWISE_ONLY = 3, 1 | 4
LESS = 1


def triangles(count: int, seed: int) -> list[list[int]]:
    """Vertices of random triangles; some have no area, some lie outside, corners are everywhere."""
    rng = np.random.default_rng(seed)
    vertices = []
    for number in range(count):
        places = rng.uniform(-30, 90, (3, 2))
        if number % 5 == 3:
            places[1] = places[0]
        if number % 7 == 5:
            places -= 200
        for x, y in places:
            vertices.append(vertex(x, y, rng.uniform(0.1, 0.9), 1.0, *rng.uniform(0, 1, 3)))
    return vertices


@pytest.mark.parametrize("count", [1, 7, 8, 9, 30])
@pytest.mark.parametrize("facing", [DRAWN_FROM_BOTH_SIDES, CLOCKWISE_ONLY])
@pytest.mark.parametrize("depth_function", [LESS, 7])
def test_one_list_and_one_list_each(count, facing, depth_function):
    key = FragmentKey(program=PROGRAM, n_varyings=3, depth_function=depth_function, z_update=True)
    vertices = triangles(count, 100 * count + facing)
    together, apart = Scene(70, 50), Scene(70, 50)
    together.add(key, vertices, facing=facing)
    for number in range(0, len(vertices), 3):
        apart.add(key, vertices, [(number, number + 1, number + 2)], facing=facing)
    expected = apart.render()
    assert count < 8 or len(np.unique(expected)) > 50
    for target in targets():
        assert np.array_equal(together.render(target=target), expected)
    assert together.counters["primitives_reversed"] == apart.counters["primitives_reversed"]
    assert together.counters["quads_valid"] == apart.counters["quads_valid"]
    assert count < 7 or together.counters["quads_valid"] > 0


def test_what_is_counted_of_a_batch():
    key = FragmentKey(program=PROGRAM, n_varyings=3, counting=True)
    vertices = triangles(30, 7)
    together, apart = Scene(70, 50), Scene(70, 50)
    together.add(key, vertices, facing=CLOCKWISE_ONLY)
    for number in range(0, len(vertices), 3):
        apart.add(key, vertices, [(number, number + 1, number + 2)], facing=CLOCKWISE_ONLY)
    together.render()
    apart.render()
    assert together.counters == apart.counters
    assert together.counters["primitives_empty"] > 0
    assert together.counters["primitives_valid"] > together.counters["primitives_empty"]


@pytest.mark.parametrize(("size", "count"), [(2, 80), (12, 20), (60, 3)])
@pytest.mark.parametrize("depth_function", [LESS, 7])
@pytest.mark.parametrize("program", [PLAIN, BLENDING], ids=["plain", "blending"])
def test_packed_quads(size, count, depth_function, program):
    """Triangles over each other: the same picture as by blocks, and as the interpreter's."""
    key = FragmentKey(program=program, n_varyings=3, depth_function=depth_function, z_update=True)
    assert len(program) >= MIN_INSTRUCTIONS
    rng = np.random.default_rng(size)
    vertices = []
    centre = rng.uniform(10, 40, 2)
    for number in range(count):
        if number % 5 == 4:  # before, triangles share quads with the one before
            centre = rng.uniform(10, 40, 2)
        for x, y in centre + rng.uniform(-size, size, (3, 2)):
            vertices.append(vertex(x, y, rng.uniform(0.1, 0.9), 1.0, *rng.uniform(0, 1, 3)))
    drawn = Scene(70, 50)
    drawn.add(key, vertices, facing=DRAWN_FROM_BOTH_SIDES)
    expected = drawn.render("interpreter")
    counted = drawn.counters["quads_valid"]
    assert len(np.unique(expected)) > 50
    for target in targets():
        for engine in ("fast", "exact"):
            assert np.array_equal(drawn.render(engine, target=target), expected)
            assert drawn.counters["quads_valid"] == counted
            assert drawn.result.exact_tiles == 0


@pytest.mark.parametrize("count", [8, 13, 16])
def test_packed_triangles_that_face_away(count):
    """They are counted once, also where the list ends with a full batch."""
    key = FragmentKey(program=PLAIN, n_varyings=3)
    drawn = Scene(70, 50)
    drawn.add(key, triangles(count, count), facing=CLOCKWISE_ONLY)
    expected, counts = drawn.render("interpreter"), dict(drawn.counters)
    assert counts["primitives_reversed"] > 0
    for target in targets():
        assert np.array_equal(drawn.render("fast", target=target), expected)
        assert drawn.counters == counts


def test_packed_program_without_an_end_is_reported():
    endless = words(SUMS + "mov tlbc, r3 ; nop")
    for program in (endless, endless[-8:]):  # packed, and too short for it
        drawn = Scene(70, 50)
        drawn.add(FragmentKey(program=program, n_varyings=3), triangles(3, 5), facing=3)
        drawn.render("fast")
        assert list(drawn.result.left) == [0]
