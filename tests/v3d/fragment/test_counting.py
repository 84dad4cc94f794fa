"""Pipelines that count: quads by depth and stencil, empty primitives, texture quads."""

from dataclasses import replace

import numpy as np
import pytest
from tests.v3d.fragment.scene import Scene, vertex, words
from tests.v3d.pse.test_coverage import KEY as FLAT_KEY
from tests.v3d.pse.test_coverage import WHITE

from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import COUNTERS, WORK_COUNTERS, FragmentKey
from vc4lab.v3d.tmu.texture_state import describe_texture

DEPTH = """
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, unif ; nop
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""

STENCIL = """
    mov tlb_stencil, unif ; nop
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop
    mov tlbc, unif ; nop
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
NEVER, ALWAYS = 0, 7
KEEP = 1

LOOKUPS = """
    mov t0s, unif ; nop
    mov t1s, unif ; nop
    nop ; nop ; ldtmu0
    nop ; nop ; ldtmu1
    nop ; nop ; sbwait
    mov tlbc, r4 ; nop
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""

FULL = [vertex(0, 0), vertex(128, 0), vertex(0, 128)]


def key(text: str, **fields: object) -> FragmentKey:
    return FragmentKey(program=words(text), counting=True, **fields)  # type: ignore[arg-type]


def counted(scene: Scene, engine: str = "fast") -> dict[str, int]:
    scene.render(engine)
    for_time = WORK_COUNTERS[1:]
    return {n: count for n, count in scene.counters.items() if count and n not in for_time}


def test_without_counting_only_the_cheap_ones_count() -> None:
    scene = Scene(16, 16)
    scene.add(FLAT_KEY, FULL, uniforms=WHITE)
    assert counted(scene) == {"quads_valid": 64}
    work = [scene.counters[name] for name in WORK_COUNTERS[:3]]
    assert work == [64, 2, 2 * 64 * 64 * 4], "a load and a store of a tile"


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
def test_colour_writes_and_primitives(engine: str) -> None:
    scene = Scene(16, 16)
    outside = [vertex(100, 100), vertex(120, 100), vertex(100, 120)]
    thin = [vertex(4.1, 4.1), vertex(4.2, 4.1), vertex(4.1, 4.2)]
    turned = [FULL[0], FULL[2], FULL[1]]
    corners = [*FULL, *outside, *thin, *turned]
    scene.add(replace(FLAT_KEY, counting=True), corners, uniforms=WHITE, facing=1)
    assert counted(scene, engine) == {
        "primitives_valid": 3,
        "primitives_empty": 2,
        "primitives_reversed": 1,
        "quads_valid": 64,
        "quads_covered": 64,
    }


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
def test_depth_tests(engine: str) -> None:
    """A far square behind a near one of 8x8 pixels: 16 of 64 quads fail."""
    scene = Scene(16, 16)
    near = [vertex(0, 0, 0.25), vertex(8, 0, 0.25), vertex(0, 8, 0.25), vertex(8, 8, 0.25)]
    test = key(DEPTH, depth_function=1, z_update=True)
    scene.add(test, near, [(0, 1, 2), (1, 3, 2)], uniforms=WHITE)
    scene.add(test, FULL, uniforms=WHITE)
    found = counted(scene, engine)
    diagonal = found["quads_valid"] - 64 - 16
    assert diagonal == 4, "quads on the square's diagonal are drawn twice"
    assert found["quads_depth_passed"] == 20 + 48
    assert found["quads_depth_failed"] == 16
    assert found["quads_covered"] == 20 + 48
    assert found["quads_uncovered"] == 16
    assert "quads_stencil_failed" not in found


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
@pytest.mark.parametrize(("function", "depth"), [(NEVER, 7), (ALWAYS, 7), (ALWAYS, 0)])
def test_stencil_tests(engine: str, function: int, depth: int) -> None:
    scene = Scene(16, 16)
    word = 3 << 30 | 3 << 28 | KEEP << 25 | KEEP << 22 | KEEP << 19 | function << 16 | 0xFF
    scene.add(key(STENCIL, depth_function=depth), FULL, uniforms=(word, 0xFFFFFFFF))
    found = counted(scene, engine)
    passes = function == ALWAYS and depth == 7
    assert found.get("quads_stencil_failed", 0) == (64 if function == NEVER else 0)
    assert found.get("quads_depth_failed", 0) == (0 if passes else 64)
    assert found.get("quads_depth_passed", 0) == (64 if passes else 0)
    assert found.get("quads_covered", 0) == (64 if passes else 0)
    assert found.get("quads_uncovered", 0) == (0 if passes else 64)


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
def test_texture_quads_are_those_with_pixels(engine: str) -> None:
    scene = Scene(16, 16)
    small = [vertex(0, 0), vertex(2, 0), vertex(0, 2)]
    scene.add(key(LOOKUPS), small, uniforms=(0x8000, 0x8004))
    found = counted(scene, engine)
    assert found["quads_valid"] == 1
    assert found["texture_quads"] == 2


@pytest.mark.parametrize("engine", ["fast", "exact", "interpreter"])
@pytest.mark.parametrize("coordinates", ["ts", "bts", "rts"])
def test_a_lookup_counts_once_whatever_its_coordinates(engine: str, coordinates: str) -> None:
    writes = "".join(f"mov t0{name}, 0 ; nop\n" for name in coordinates)
    text = writes + LOOKUPS[LOOKUPS.index("nop ; nop ; ldtmu0") :].replace("ldtmu1", "nop")
    parameters = (0x40000, 4 << 20 | 4 << 8, 0)[: len(coordinates)]
    kind, descriptor = describe_texture(*parameters)
    scene = Scene(16, 16)
    whole = key(text, textures=(kind,))
    scene.add(whole, FULL, uniforms=parameters, textures=[descriptor])
    found = counted(scene, engine)
    assert found["quads_valid"] == 64
    assert found["texture_quads"] == 64


def test_near_and_far_switch_quads_off() -> None:
    scene = Scene(16, 16)
    scene.add(replace(FLAT_KEY, counting=True), FULL, uniforms=WHITE, z_max=0.25)
    found = counted(scene)
    assert found["quads_valid"] == 64
    assert "quads_covered" not in found


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
def test_counting_does_not_change_the_picture(engine: str) -> None:
    rng = np.random.default_rng(4)
    corners = [vertex(x, y, z) for x, y, z in zip(*rng.random((3, 30)) * [[70], [70], [1]], strict=True)]
    pictures = []
    for counting in (False, True):
        scene = Scene(layout=TileLayout(multisample=True), tile=(32, 32))
        test = replace(key(DEPTH, depth_function=1, z_update=True), counting=counting)
        scene.add(test, corners, uniforms=WHITE)
        pictures.append((scene.render(engine), scene.counters["quads_valid"]))
    assert (pictures[0][0] == pictures[1][0]).all()
    assert pictures[0][1] == pictures[1][1]
    assert set(scene.counters) == set(COUNTERS)
