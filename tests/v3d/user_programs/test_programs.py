"""Whole programs on both engines: uniforms, texture unit, floats, branches, hostile words."""

import random
import struct
from typing import Any

import numpy as np
import pytest
from benchmarks import compute as benchmark
from tests.support.compute import CODE, DATA, END, ENGINES, Board, run

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.qpu.isa.encoding import NOP, Alu, Instruction
from vc4lab.records.texture import MagFilter, MinFilter, TextureConfig, TextureType
from vc4lab.v3d.user_programs.scheduler import UserPrograms

ROWS = "ldi vw_setup, 0x1a00\n"


def both(program: Any, uniforms: Any = (), **options: Any) -> Any:
    reference, native = (run(engine, program, uniforms, **options) for engine in ENGINES)
    assert reference.differences(native) == []
    return native


def test_uniforms_and_their_limit() -> None:
    outcome = both(ROWS + "mov vpm, unif\n" * 4 + END, [5, 6, 7, 8], length=3)
    assert outcome.vpm[:4, 9].tolist() == [5, 6, 7, 0]
    assert outcome.codes == {"QPU-053": 1}
    for length in (0, 1024, 4095):
        outcome = both(ROWS + "mov vpm, unif\n" * 4 + END, [5, 6, 7, 8], length=length)
        assert outcome.vpm[3, 0] == 8
        assert not outcome.codes


def test_uniforms_elsewhere_have_no_limit() -> None:
    program = ROWS + "mov unif_addr, unif\nnop\nnop\n" + "mov vpm, unif\n" * 3 + END
    outcome = both(program, [DATA + 4], length=1, data=np.arange(10, dtype=np.uint32))
    assert outcome.vpm[:3, 0].tolist() == [1, 2, 3]


def test_uniform_loop() -> None:
    program = "ldi r0, 0\nmov r3, unif\nmore: add r0, r0, unif\nsub.setf r3, r3, 1\n"
    program += "brr.anynz more\nnop\nnop\nnop\n" + ROWS + "mov vpm, r0" + END
    assert both(program, [100, *range(100)]).vpm[0, 0] == 4950


def test_direct_lookups_come_in_order() -> None:
    data = np.random.default_rng(1).integers(0, 1 << 32, 4096, np.uint32)
    program = "shl r0, elem_num, 2\nmov r1, unif\nmov r2, unif\nadd t0s, r1, r0\n"
    program += "nop; mul24 r3, r0, r2\nadd t0s, r1, r3\nadd t1s, r1, r2\nadd t0s, r1, 3\n"
    program += ROWS + "nop; nop; ldtmu0\nmov vpm, r4; nop; ldtmu1\nmov vpm, r4; nop; ldtmu0\n"
    program += "mov vpm, r4; nop; ldtmu0\nmov vpm, r4" + END
    outcome = both(program, [DATA, 52], data=data)
    lanes = np.arange(16)
    assert np.array_equal(outcome.vpm[0], data[lanes])
    assert set(outcome.vpm[1]) == {data[13]}
    assert np.array_equal(outcome.vpm[2], data[lanes * 52])
    assert set(outcome.vpm[3]) == {data[0]}


@pytest.mark.parametrize("mag", [MagFilter.NEAREST, MagFilter.LINEAR])
@pytest.mark.parametrize("kind", [TextureType.RGBA32R, TextureType.RGBA8888, TextureType.RGBA64])
def test_texture_sampling(kind: TextureType, mag: MagFilter) -> None:
    config = TextureConfig(
        base=DATA, type=kind, width=16, height=16, mag_filter=mag, min_filter=MinFilter.NEAREST
    )
    p0, p1, _, _ = config.parameters()
    data = np.random.default_rng(2).integers(0, 1 << 32, 1024, np.uint32)
    program = "itof r0, elem_num\nmov r1, unif\nfmul r2, r0, r1\nnop\nmov t0t, r1\nmov t0s, r2\n"
    program += "mov t0b, 0\nmov t0t, r2\nmov t0s, r2\n" + ROWS
    loads = 4 if kind is TextureType.RGBA64 else 2
    program += "nop; nop; ldtmu0\nmov vpm, r4\n" * loads + END
    program = program.replace("fmul r2, r0, r1", "nop; fmul r2, r0, r1")
    step = struct.unpack("<I", struct.pack("<f", 0.07))[0]
    outcome = both(program, [step, p0, p1, p0, p1, 0], data=data)
    assert outcome.completed == 1
    assert len(set(outcome.vpm[0].tolist())) > 3


def test_what_is_wrong_with_textures_is_said_once() -> None:
    """A raster texture whose width is no power of two, sampled three times, and a good one."""
    odd, good = (
        TextureConfig(base=DATA, type=TextureType.RGBA32R, width=width, height=8, min_filter=1)
        for width in (12, 16)
    )
    stream = [word for config in (odd, odd, good, odd) for word in config.parameters()[:2]]
    program = "mov t0t, 0\nmov t0s, 0\n" * 4 + "nop; nop; ldtmu0\n" * 4 + END
    outcome = both(program, stream)
    assert outcome.codes == {"TMU-004": 1, "TMU-006": 1}


def test_texture_parameters_follow_the_uniform_pointer() -> None:
    """To a place that lane 0 computes; all QPU state is as if it had been there from the start."""
    config = TextureConfig(base=DATA, width=16, height=16, mag_filter=1, min_filter=1)
    p0, p1, _, _ = config.parameters()
    data = np.random.default_rng(2).integers(0, 1 << 32, 1024, np.uint32)
    data[512:514] = p0, p1
    place = DATA + 4 * 512
    sample = "itof r0, elem_num\nldi r1, 0x3d800000\nnop; fmul r0, r0, r1\nmov t0t, 0\nmov t0s, r0\n"
    out = ROWS + "nop; nop; ldtmu0\nmov vpm, r4" + END
    move = "mov r2, unif\nadd r2, r2, elem_num\nnop\nmov unif_addr, r2\n"
    moved = both(move + sample + out, [place, 0, 0], data=data)
    assert moved.vpm[0].tolist() == both(sample + out, [p0, p1], data=data).vpm[0].tolist()
    assert len(set(moved.vpm[0].tolist())) == 16


FLOATS = [
    *(0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000),
    *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7E800000),
    *(0x5F000000, 0xDF000000, 0x1F000000, 0x4F000000, 0x00800001, 0x3F7FFFFF, 0x40490FDB),
]


def test_float_operations_are_exact_everywhere() -> None:
    """Infinities, NaNs, denormals, overflow and underflow in every pair of operands."""
    pairs = [(a, b) for a in FLOATS for b in FLOATS]
    data = np.zeros((2, -(-len(pairs) // 16) * 16), np.uint32)
    data[:, : len(pairs)] = np.array(pairs, np.uint32).T
    vectors = data.shape[1] // 16
    operations = ["fadd r2, r0, r1", "fsub r2, r0, r1", "nop; fmul r2, r0, r1", "fmin r2, r0, r1"]
    operations += ["fmax r2, r0, r1", "fadd.setf r2, r0, r1", "nop; fmul.setf r2, r0, r1"]
    operations += ["fmaxabs r2, r0, r1", "ftoi r2, r0", "itof r2, r0"]
    program = "mov r3, unif\nshl ra0, elem_num, 2\nmov ra1, unif\nmov ra2, unif\nmov ra3, unif\n"
    program += "mov r3, r3; nop\nagain: add t0s, ra1, ra0\nadd t1s, ra2, ra0\n"
    program = program.replace("add t0s, ra1, ra0", "mov r0, ra0\nadd t0s, ra1, r0")
    program = program.replace("add t1s, ra2, ra0", "add t1s, ra2, r0")
    program += "nop; nop; ldtmu0\nmov r0, r4; nop; ldtmu1\nmov r1, r4\n" + ROWS
    for operation in operations:
        program += operation + "\nmov vpm, r2\nmov.cs vpm, 1\n"
    rows = 2 * len(operations)
    program += f"ldi vw_setup, {2 << 30 | rows << 23 | 16 << 16 | 1 << 14}\nmov vw_addr, ra3\n"
    program += f"mov -, vw_wait\nldi r0, {rows * 64}\nadd ra3, ra3, r0\nldi r0, 64\n"
    program += "add ra0, ra0, r0\nsub.setf r3, r3, 1\nbrr.anynz again\nnop\nnop\nnop" + END
    uniforms = [vectors, DATA, DATA + 4 * data.shape[1], DATA + 0x8000]
    outcome = both(program, uniforms, data=data.ravel(), words=1 << 17)
    assert outcome.completed == 1
    assert outcome.memory[0x2000:].any()


def test_subroutines_return_through_a_register() -> None:
    call = "brr ra0, double\nnop\nnop\nnop\n"
    program = ROWS + "mov r0, 3\n" + call + call + "nop\n" * 260 + call + "mov vpm, r0" + END
    program += "double: add r0, r0, r0\nbra -, ra0\nnop\nnop\nnop\n"
    outcome = both(program)
    assert outcome.vpm[0, 0] == 24
    assert not outcome.codes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["mov tlbz, 0", "mov r0, vary", "nop; nop; loadc", "nop;nop;bkpt"])
def test_graphics_are_refused(engine: str, text: str) -> None:
    board = Board(engine)
    board.start("nop\n" + text + END)
    outcome = board.finish()
    assert outcome.codes == {"QPU-040": 1}
    assert outcome.completed == 0
    assert f"0x{CODE + 8:08x}" in outcome.messages


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("mov r0, 1\nmov r1, 2", 16, "ran past the last instruction at 0x00010008 into zeroed"),
        ("brr +80\nnop\nnop\nnop" + END, 112, "a branch led into zeroed memory"),
        ("nop; nop; thrend\nnop", 16, "ran past the last instruction at 0x00010008"),
    ],
)
def test_zeroed_memory_is_one_message(engine: str, text: str, place: int, message: str) -> None:
    board = Board(engine)
    board.start(text)
    outcome = board.finish()
    assert outcome.codes == {"QPU-047": 1}
    assert f"0x{CODE + place:08x}" in outcome.messages
    assert message in outcome.messages


def test_matrix_product() -> None:
    results = []
    for engine in ENGINES:
        memory = GuestMemory(64 << 20)
        a, b = benchmark.prepare(memory, 3)
        programs = UserPrograms(memory, Reporter(), GpuOptions(engine))
        benchmark.start(programs, 3)
        results.append(benchmark.products(memory))
    assert np.array_equal(*results)
    assert np.allclose(results[0], np.einsum("qkr,qkc->qrc", a, b), atol=1e-5)


GRAPHICS_WRITES = {41, 43, 44, 45, 46, 47}
GRAPHICS_SIGNALS = {0, 7, 8, 9, 12}


def is_graphics(word: int) -> bool:
    """Whether the instruction would be refused in a user program."""
    instruction = Instruction.decode(word)
    return (
        int(instruction.signal) in GRAPHICS_SIGNALS
        or any(address in GRAPHICS_WRITES for _, address in instruction.write_addresses())
        or any(address == 35 for _, address in instruction.read_addresses())
    )


def mutated(r: random.Random) -> list[int]:
    """Random instructions that mostly do something, and an end."""
    words: list[int] = []
    count, graphics = r.randrange(3, 40), r.random() < 0.2
    while len(words) < count:
        kind, low = r.random(), r.getrandbits(32)
        if kind < 0.25:
            word = r.getrandbits(64)
        elif kind < 0.35:  # a load immediate to anywhere
            word = 0xE << 60 | 1 << 49 | 1 << 46 | r.getrandbits(12) << 32 | low
        elif kind < 0.4:  # a semaphore
            word = 0xE8 << 56 | low & 31
        elif kind < 0.45:  # a short branch
            target = r.randrange(-12, 12) * 8 & 0xFFFFFFFF
            word = 0xF << 60 | low << 52 & 0xF << 52 | 1 << 51 | 39 << 38 | 39 << 32 | target
        else:
            word = r.getrandbits(60) | r.choice((1, 1, 1, 10, 11, 13)) << 60
        if graphics or not is_graphics(word):
            words.append(word)
    words += [Alu(NOP.value).replace(signal=3).encode(), NOP.value, NOP.value]
    return words


@pytest.mark.parametrize("seed", range(40))
def test_hostile_words(seed: int) -> None:
    """No crash, no hang, and both engines do the same."""
    r = random.Random(seed)
    data = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 16, np.uint32)
    program, uniforms = mutated(r), [r.getrandbits(32) for _ in range(64)]
    reference, native = (run(e, program, uniforms, data=data, budget=30_000) for e in ENGINES)
    assert reference.codes == native.codes
    if "QPU-041" not in reference.codes:  # the budgets end at slightly different places
        assert reference.differences(native) == []
