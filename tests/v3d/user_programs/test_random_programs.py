"""Random programs that make sense: loops, arithmetic, streams, waits; reference = native."""

import random
from typing import Any

import numpy as np
import pytest
from tests.support.compute import DATA, END, ENGINES, UNIFORMS, Board, run

from vc4lab.qpu.isa.encoding import NOP, Alu
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.qpu_unknowns import QPU_UNKNOWNS
from vc4lab.qpu.jit.region import Region
from vc4lab.qpu.text.assembler import assemble
from vc4lab.simd import native, targets
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.code import NativeRegion
from vc4lab.v3d.user_programs.native.compiled import compile_user_program
from vc4lab.v3d.user_programs.native.qpu import NativeQpu
from vc4lab.v3d.user_programs.qpu import ProgramRequest, QpuStart, RunState
from vc4lab.v3d.user_programs.textures import TextureFindings, TextureSlots
from vc4lab.v3d.user_programs.user_program_unknowns import USER_PROGRAM_UNKNOWNS

READS = (*range(32), 32, 38, 39, 41, 42)
WRITES = (*range(30), 32, 33, 34, 35, 37, 39, 52, 53, 54, 55)
"""Registers 30 and 31 of both files belong to the frame of the program."""


def arithmetic(r: random.Random) -> int:
    """One random ALU instruction without side effects except reading a uniform."""
    fields: dict[str, Any] = {
        "op_add": r.choice((*range(9), *range(12, 25), 30, 31)),
        "op_mul": r.randrange(8),
        "cond_add": r.choice((1, 1, 1, r.randrange(8))),
        "cond_mul": r.choice((1, 1, 1, r.randrange(8))),
        "sf": r.random() < 0.3,
        "ws": r.random() < 0.3,
        "waddr_add": r.choice(WRITES),
        "waddr_mul": r.choice(WRITES),
        "raddr_a": r.choice(READS),
        "raddr_b": r.choice(READS),
        "add_a": r.randrange(8),
        "add_b": r.randrange(8),
        "mul_a": r.randrange(8),
        "mul_b": r.randrange(8),
    }
    if r.random() < 0.3:
        fields |= {"signal": Signal.SMALL_IMMEDIATE, "raddr_b": r.randrange(64)}
    if r.random() < 0.3:
        fields |= {"unpack": r.randrange(8), "pm": r.randrange(2), "pack": r.randrange(16)}
    return Alu(NOP.value).replace(**fields).encode()


def words(text: str) -> list[int]:
    return list(assemble(text).words)


def block(r: random.Random, qpu: int) -> list[int]:
    """A few instructions of one kind; VPM rows 16*qpu .. 16*qpu + 15 are this QPU's own."""
    kind, row = r.randrange(5), 16 * qpu
    code: list[int] = []
    if kind == 0:
        code += words(f"ldi vw_setup, 0x1a00 | {row + r.randrange(8)}")
        code += words(f"mov vpm, r{r.randrange(4)}\nmov.ns vpm, ra{r.randrange(30)}")
    elif kind == 1:
        code += words(f"ldi vr_setup, 0x201a00 | {row + r.randrange(8)}\nnop\nnop\nnop")
        code += words(f"mov ra{r.randrange(30)}, vpm\nmov r{r.randrange(4)}, vpm")
    elif kind == 2:
        register = r.randrange(4)
        code += words(f"ldi r{register}, 0xfffc\nand r{register}, r{register}, ra3")
        code += words(f"add t{qpu & 1}s, ra30, r{register}\nnop; nop; ldtmu{qpu & 1}")
        code += words(f"mov r{r.randrange(4)}, r4")
    elif kind == 3:
        setup = 2 << 30 | 2 << 23 | r.randrange(1, 17) << 16 | 1 << 14 | row << 7
        code += words(f"ldi vw_setup, {setup}\nmov vw_addr, rb30\nmov -, vw_wait")
    else:
        setup = 1 << 31 | 2 << 24 | 2 << 16 | 1 << 12 | (row + 8) << 4
        code += words(f"ldi vr_setup, {setup}\nmov vr_addr, ra30\nmov -, vr_wait")
    return code


def program(r: random.Random, qpu: int, partners: bool) -> list[int]:
    """A loop of random blocks. With partners, even and odd QPUs hand each other the turn."""
    code = words("mov ra30, unif\nmov rb30, unif\nmov ra31, unif\nldi ra0, 0x3f800000")
    code += words("itof ra1, elem_num\nldi ra2, 0x42280000\nldi rb2, 0xff7fffff\nmov ra3, 9")
    top = len(code)
    for _ in range(r.randrange(2, 7)):
        code += [arithmetic(r) for _ in range(r.randrange(0, 12))]
        code += [*block(r, qpu)]
        if partners and r.random() < 0.3:
            code += words("mov -, mutex\nnop\nmov mutex, 0")
    if partners:
        give, take = (2, 3) if qpu % 2 else (3, 2)
        code += words(f"srel -, {give}\nsacq -, {take}")
    code += words("mov r0, ra31\nsub.setf r0, r0, 1\nmov ra31, r0")
    code += words(f"brr.anynz {8 * (top - len(code) - 4)}\nnop\nnop\nnop")
    code += words(f"ldi vw_setup, 0x1a00 | {16 * qpu}")
    code += words("\n".join(f"mov vpm, ra{n}" for n in range(12)) + "\nmov vpm, r1\nmov vpm, r2")
    return code + words(END)


def check(seed: int, unknowns: Unknowns = DEFAULT_UNKNOWNS) -> None:
    """Run one random set of programs on both engines."""
    r = random.Random(seed)
    count = r.choice((1, 1, 2, 4))
    partners = count > 1
    programs = [program(r, qpu, partners) for qpu in range(count)]
    stream = [r.getrandbits(32) for _ in range(400)]
    data = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 15, np.uint32)
    outcomes = []
    for engine in ENGINES:
        board = Board(engine, budget=100_000, unknowns=unknowns)
        board.memory.array(DATA, len(data), "u4")[:] = data
        for qpu, code in enumerate(programs):
            own = DATA + 0x20000 + 0x1000 * qpu
            board.start(code, [DATA, own, 1 + seed % 3, *stream])
        outcomes.append(board.finish())
    assert outcomes[0].differences(outcomes[1]) == [], seed
    assert outcomes[1].completed == count, outcomes[1].messages


@pytest.mark.parametrize("seed", range(24))
def test_golden_and_native_agree(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [1, -1])
def test_they_agree_with_every_other_choice(seed: int, number: int) -> None:
    """All unknowns of the QPU and of user programs at once, each at its second or last choice."""
    rows = [*QPU_UNKNOWNS, *USER_PROGRAM_UNKNOWNS]
    chosen = {row.name: list(row.choices)[number] for row in rows}
    check(seed, Unknowns(chosen))


@pytest.mark.parametrize("seed", [1, 5])
def test_code_that_is_not_optimised_agrees(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As modules above a size are compiled."""
    levels: list[int] = []
    honest = native.effort

    def noted(ir: str) -> int:
        levels.append(honest(ir))
        return levels[-1]

    monkeypatch.setattr(native, "UNOPTIMISED_ABOVE", 0)
    monkeypatch.setattr(native, "effort", noted)
    monkeypatch.setattr(native.cache, "read", lambda slot: None)
    monkeypatch.setattr(native.cache, "write", lambda slot, image: None)
    check(seed)
    assert levels
    assert not any(levels)


@pytest.mark.parametrize("level", [target.level for target in targets()])
@pytest.mark.parametrize("seed", [3, 7])
def test_every_instruction_set_agrees(level: str, seed: int) -> None:
    code = program(random.Random(seed), 0, False)
    (target,) = (target for target in targets() if target.level == level)
    data = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 15, np.uint32)
    outcomes = []
    for compiled in (False, True):
        board = Board("interpreter")
        unit = board.programs.unit
        if compiled:
            findings = TextureFindings(board.reporter, unit.unknowns)
            TextureSlots(unit.shared, findings, unit.unknowns)
        board.memory.array(DATA, len(data), "u4")[:] = data
        at = board.load(code)
        stream = [DATA, DATA + 0x20000, 2, *range(1000, 1400)]
        board.memory.write(UNIFORMS, np.array(stream, np.uint32).tobytes())
        request, source = ProgramRequest(at, UNIFORMS), unit.code.read(at)
        if compiled:
            region = Region.of(source.program, unit.unknowns)
            function = compile_user_program(region, unit.unknowns, False, target=target)
            native = NativeRegion(region, function)
            qpu: Any = NativeQpu(QpuStart(0, request, source, unit.shared, unit.unknowns), native)
        else:
            qpu = unit.start(0, request)
        unit.run([qpu], 64)
        assert qpu.run_state is RunState.ENDED
        outcomes.append(board.finish())
    assert outcomes[0].differences(outcomes[1]) == []


def test_byte_minima_in_one_lane_compile() -> None:
    """LLVM 22 did not end on these three for AVX-512."""
    code = [0x100242E58C75C359, 0x18AA4165D85C4415, 0x100359E002815AF2]
    outcomes = [run(engine, [*code, *words(END)]) for engine in ENGINES]
    assert outcomes[0].differences(outcomes[1]) == []
