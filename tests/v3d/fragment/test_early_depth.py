"""Blocks that the depth test rejects before the program runs: the buffers are the same ones."""

from dataclasses import replace

import numpy as np
import pytest
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.qpu.program.program import Program
from vc4lab.v3d.fragment.early_depth import MIN_INSTRUCTIONS, depth_decides, rejects_early
from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import WORK_COUNTERS, FragmentKey

END = """
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
WORK_OF_PIXELS = """
    mov r0, vary ; nop
    fadd r0, r0, r5 ; nop
    fmul r0, r0, ra15
    fadd r1, r0, r0 ; nop
    fmul r2, r1, r1
    fadd r3, r2, r0 ; nop
    ftoi r1, r3 ; nop
    xor r1, r1, unif ; nop
"""
TESTED = WORK_OF_PIXELS + "nop ; nop ; sbwait\n mov tlbz, rb15 ; nop\n mov tlbc, r1 ; nop" + END
DISCARDED = (
    WORK_OF_PIXELS
    + """
    mov.setf -, r3 ; nop
    nop ; nop ; sbwait
    mov.nc tlbz, rb15 ; nop
    mov.nc tlbc, r1 ; nop
    """
    + END
)
"""Lanes with a negative sum leave neither depth nor colour."""
BLENDED = (
    WORK_OF_PIXELS
    + """
    nop ; nop ; sbwait
    mov tlbz, rb15 ; nop ; loadc
    xor r1, r1, r4 ; nop
    mov tlbc, r1 ; nop
    """
    + END
)
MOVED = (
    "mov ra3, rb15 ; nop\n mov r2, rb15 ; nop\n"
    + WORK_OF_PIXELS.replace("r2", "rb4").replace("rb4, r1, r1", "rb4, r1, r1\n nop ; nop")
    + "nop ; nop ; sbwait\n mov tlbz, ra3 ; nop\n mov tlbc, r1 ; nop"
    + END
)
PROGRAMS = {"tested": TESTED, "discarded": DISCARDED, "blended": BLENDED, "moved": MOVED}


def key(text: str, **fields: object) -> FragmentKey:
    program = words(text)
    program = words("mov -, elem_num ; nop") + program  # quads that know their place are not packed
    padding = words("nop ; nop") * max(MIN_INSTRUCTIONS - len(program), 0)
    fields.setdefault("depth_function", 1)
    return FragmentKey(program=padding + program, n_varyings=1, **fields)  # type: ignore[arg-type]


def decides(text: str) -> bool:
    return depth_decides(Program(words(text)))


def random_draws(seed: int, multisample: bool, counting: bool = False) -> Scene:
    """Overlapping triangles in draws of all kinds, over each other and through each other."""
    rng = np.random.default_rng(seed)
    scene = Scene(70, 50)
    if multisample:
        scene = Scene(50, 40, layout=TileLayout(multisample=True), tile=(32, 32))
    scene.clear_zs = int(rng.integers(0x400000, 0x1000000)) << 8 | 0x5A
    names = list(PROGRAMS)
    for number in range(6):
        drawn = key(
            PROGRAMS[names[int(rng.integers(len(names)))]],
            depth_function=int(rng.integers(8)) if number else 7,
            z_update=bool(number == 0 or rng.integers(4)),
            depth_offset=bool(rng.integers(2)),
            oversample=bool(rng.integers(4)),
            counting=counting,
        )
        levels = rng.integers(1, 5, 10) / 8  # equal depths are met as well
        depths = [[level] * 3 if rng.integers(2) else rng.uniform(0, 1, 3) for level in levels]
        corners = [
            vertex(
                *rng.uniform(-30, 90, 2),
                float(depth),
                float(rng.uniform(0.5, 2)),
                float(rng.uniform(-1e6, 1e6)),
            )
            for three in depths
            for depth in three
        ]
        scene.add(
            drawn, corners, None, (int(rng.integers(1 << 32)),),
            depth_factor=float(rng.uniform(-1, 1)), depth_units=float(rng.uniform(-99, 99)),
        )  # fmt: skip
    return scene


def drawn_by(scene: Scene, engine: str) -> list[np.ndarray]:
    scene.memory.write(0x100000, bytes(64 * 64 * 4))
    found = [scene.render(engine), scene.depth()]
    if scene.layout.multisample:
        found += [scene.samples(), scene.samples(0x1800000)]
    return [array.copy() for array in found]


@pytest.mark.parametrize("multisample", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_all_engines_leave_the_same_buffers(seed: int, multisample: bool) -> None:
    """The reference interpreter and the pipelines that count run every block."""
    scene = random_draws(seed, multisample)
    fast = drawn_by(scene, "fast")
    work = [scene.counters[name] for name in WORK_COUNTERS]
    assert any(rejects_early(drawn, drawn.whole_program) for drawn, _, _ in scene.draws)
    for engine in ("exact", "interpreter"):
        for found, expected in zip(drawn_by(scene, engine), fast, strict=True):
            assert (found == expected).all()
        assert [scene.counters[name] for name in WORK_COUNTERS] == work, "the guest's time"
    counting = random_draws(seed, multisample, counting=True)
    assert not any(rejects_early(drawn, drawn.whole_program) for drawn, _, _ in counting.draws)
    for found, expected in zip(drawn_by(counting, "fast"), fast, strict=True):
        assert (found == expected).all()
    assert [counting.counters[name] for name in WORK_COUNTERS] == work


@pytest.mark.parametrize("function", range(8))
def test_every_depth_function(function: int) -> None:
    """A whole block before, at and after the depth that is there: bits 0, 1 and 2 of a function."""
    full = [(0, 0), (64, 0), (0, 64)]
    for bit, z in enumerate((0.25, 0.5, 0.75)):
        scene = Scene(16, 16)
        first = key(TESTED, depth_function=7, z_update=True)
        scene.add(first, [vertex(*place, 0.5, 1.0, 1.0) for place in full], uniforms=(1,))
        before = scene.render("fast")
        there = key(TESTED, depth_function=function)
        scene.add(there, [vertex(*place, z, 1.0, 1.0) for place in full], uniforms=(2,))
        after = scene.render("fast")
        assert (after != before).all() == bool(function >> bit & 1)
        assert (scene.render("interpreter") == after).all()


@pytest.mark.parametrize("z", [0.25, 0.75])
def test_a_hidden_program_does_not_run(z: float) -> None:
    """Infinity is only met where the program runs: then the exact engine has to draw the tile."""
    scene = Scene(16, 16)
    full = [(0, 0), (64, 0), (0, 64)]
    near = replace(key(TESTED, depth_function=7, z_update=True))
    scene.add(near, [vertex(*place, 0.5, 1.0, 1.0) for place in full], uniforms=(1,))
    sum_of = TESTED.replace("fadd r3, r2, r0 ; nop", "fadd r3, r2, unif ; nop")
    odd = [vertex(*place, z, 1.0, 1.0) for place in full]
    scene.add(key(sum_of), odd, uniforms=(0x7FC00000, 1))
    scene.render("fast")
    assert scene.result is not None
    assert bool(scene.result.exact_tiles) == (z < 0.5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_only_their_depth_decides(name: str) -> None:
    assert decides(PROGRAMS[name])


Z, COLOUR = "mov tlbz, rb15 ; nop\n", "mov tlbc, r0 ; nop\n"


@pytest.mark.parametrize(
    "text",
    [
        Z + COLOUR,
        "nop ; mov tlbz, rb15\n" + COLOUR,
        "mov r1, rb15 ; nop\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov.setf -, r0 ; nop\n mov.zs tlbz, rb15 ; nop\n mov.zs tlbc, r0 ; nop\n",
        "mov.setf -, r0 ; nop\n mov tlbz, rb15 ; nop\n mov.zs tlbc, r0 ; nop\n",
        "mov ra1, rb15 ; nop\n mov r0, ra1 ; nop\n mov tlbz, ra1 ; nop\n" + COLOUR,
        "mov r1, rb15 ; nop\n mov.setf -, r0 ; nop\n mov.zs r1, rb15 ; nop\n mov tlbz, r1 ; nop\n",
        Z,
    ],
)
def test_certain(text: str) -> None:
    assert decides(text + END)


@pytest.mark.parametrize(
    "text",
    [
        "",
        COLOUR,  # no test
        COLOUR + Z,
        "mov tlbz, rb15 ; mov tlbc, r0\n",
        Z + Z + COLOUR,
        "add r1, rb15, r0 ; nop\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov tlbz, ra15 ; nop\n" + COLOUR,
        "mov rb15, r0 ; nop\n" + Z + COLOUR,
        "mov rb15, r0 ; nop\n nop ; nop\n" + Z + COLOUR,
        "mov ra1, rb15 ; nop\n mov tlbz, ra1 ; nop\n" + COLOUR,  # it reads what was there before
        "mov r1, rb15 ; nop\n mov r1, r0 ; nop\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov.setf -, r0 ; nop\n mov.zs r1, rb15 ; nop\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov.setf -, r0 ; nop\n mov.zs tlbz, rb15 ; nop\n" + COLOUR,
        "mov.setf -, r0 ; nop\n mov.zs tlbz, rb15 ; nop\n mov.zc tlbc, r0 ; nop\n",
        "mov.setf -, r0 ; nop\n mov.zs.setf tlbz, rb15 ; nop\n mov.zs tlbc, r0 ; nop\n",
        # not the depth as it came
        "or r1, rb15, r0 ; nop\n mov tlbz, r1 ; nop\n" + COLOUR,
        "nop ; v8min r1, rb15, r0\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov ra1.16a, rb15 ; nop\n nop ; nop\n mov tlbz, ra1 ; nop\n" + COLOUR,
        "nop ; mov ra1.16a, rb15\n nop ; nop\n mov tlbz, ra1 ; nop\n" + COLOUR,
        "nop ; mov r1.8a, rb15\n mov tlbz, r1 ; nop\n" + COLOUR,
        "mov ra1, rb15 ; nop\n nop ; nop\n mov tlbz, ra1.16a ; nop\n" + COLOUR,
        "mov r1, rb15 ; nop\n nop ; nop\n nop ; mov r2, r1 >> 1\n mov tlbz, r2 ; nop\n" + COLOUR,
        "mov r5quad, rb15 ; nop\n nop ; nop\n mov tlbz, r5 ; nop\n" + COLOUR,  # one for four lanes
        Z + "nop ; mov tlbc, r0 >> 1\n",
        "mov tlb_stencil, unif ; nop\n" + Z + COLOUR,
        "mov ms_mask, r0 ; nop\n" + Z + COLOUR,
        "mov rev_flag, r0 ; nop\n" + Z + COLOUR,
        "mov irq, r0 ; nop\n" + Z + COLOUR,
        "mov tlbam, r0 ; nop\n" + Z + COLOUR,
        "mov r0, r0 ; nop ; loadcv\n" + Z + COLOUR,
        "mov r0, r0 ; nop ; loadam\n" + Z + COLOUR,
    ],
)
def test_uncertain(text: str) -> None:
    assert not decides(text + END)


def test_a_program_without_end_is_run() -> None:
    assert not decides(Z + COLOUR)
    assert not decides("brr -, 0\n nop ; nop\n nop ; nop\n nop ; nop\n" + Z + COLOUR + END)


def test_short_programs_are_worth_a_look() -> None:
    """Blended colours, as drivers shade them; what only writes a constant is not."""
    for text, expected in ((BLENDED, True), (MOVED, True), (Z + COLOUR + END, False)):
        drawn = FragmentKey(program=words(text), n_varyings=1, depth_function=1)
        assert rejects_early(drawn, drawn.whole_program) == expected


def test_draws_that_see_every_block() -> None:
    plain = key(TESTED)
    assert rejects_early(plain, plain.whole_program)
    assert not rejects_early(replace(plain, program=plain.program[-9:]), Program(plain.program[-9:]))
    for others in (
        {"engine": "interpreter"}, {"counting": True}, {"coverage": "odd"}, {"vg_mask": True},
        {"depth_function": 7}, {"textures": (None,)},
    ):  # fmt: skip
        assert not rejects_early(replace(plain, **others), plain.whole_program)  # type: ignore[arg-type]
