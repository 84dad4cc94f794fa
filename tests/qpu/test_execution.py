"""Timing and side rules of the QPU on every engine: delays, conditions, rotations, branches."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.qpu_runner import Outcome, Runner, run_program

from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, QPU_UNKNOWNS
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment, Unsupported
from vc4lab.qpu.run.interpreter import Interpreter, Step

sys.path.insert(0, str(Path(__file__).parent))
from qpu_programs import END, alu, branch, ldi

LANES = np.arange(16, dtype=np.uint32)
ENGINES = ["interpreter", "exact", "jit"]


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest) -> Any:
    def go(words: list[int], registers: Any = None, **options: Any) -> Outcome:
        end = [] if options.pop("no_end", False) else END
        return run_program(words + end, registers, engine=request.param, **options)

    return go


def move(source: int, target: int, **fields: Any) -> int:
    """mov accumulator/regfile A (source >= 64: ra<source-64>) to a write address."""
    if source >= 64:
        fields |= {"raddr_a": source - 64, "add_a": 6, "add_b": 6}
    else:
        fields |= {"add_a": source, "add_b": source}
    return alu(op_add=21, **{"cond_add": 1, "waddr_add": target, **fields})


def test_a_register_file_read_sees_the_old_value_once(run: Any) -> None:
    words = [ldi(7, waddr_add=1), move(64 + 1, 32), move(64 + 1, 33)]
    got = run(words, {("a", 1): 5}).registers
    assert got["r", 0][0] == 5
    assert got["r", 1][0] == 7
    got = run(words, {("a", 1): 5}, settings={**DEFAULTS, "register_after_write": "new"}).registers
    assert got["r", 0][0] == 7


def test_sfu_results_arrive_after_two_instructions(run: Any) -> None:
    words = [ldi(0x40000000, waddr_add=52), move(4, 32), move(4, 33), move(4, 34)]
    got = run(words, {("r", 4): 9}).registers
    assert [int(got["r", n][0]) for n in range(3)] == [9, 9, 0x3EFFFC00]


def test_r5_replicates_per_quad_or_from_lane_0(run: Any) -> None:
    assert run([move(0, 37)], {("r", 0): LANES}).registers["r", 5].tolist() == [
        lane & ~3 for lane in range(16)
    ]
    got = run([move(0, 37, ws=1)], {("r", 0): LANES + 3}).registers["r", 5]
    assert got.tolist() == [3] * 16


@pytest.mark.parametrize("amount", [1, 5, 15])
def test_rotation_is_full_for_accumulators_and_in_quads_otherwise(run: Any, amount: int) -> None:
    fields = {"op_mul": 4, "cond_mul": 1, "signal": 13, "waddr_mul": 33}
    full = alu(raddr_b=48 + amount, mul_a=0, mul_b=0, **fields)
    quad = alu(raddr_b=48 + amount, raddr_a=0, mul_a=6, mul_b=6, **{**fields, "waddr_mul": 34})
    by_r5 = alu(raddr_b=48, mul_a=0, mul_b=0, **{**fields, "waddr_mul": 35})
    start = {("r", 0): LANES, ("a", 0): LANES, ("r", 5): amount + 16}
    got = run([full, quad, by_r5], start).registers
    assert got["r", 1].tolist() == [(lane - amount) % 16 for lane in range(16)]
    assert got["r", 2].tolist() == [lane & ~3 | (lane - amount) & 3 for lane in range(16)]
    assert got["r", 3].tolist() == got["r", 1].tolist()


def test_uniform_reads_happen_without_a_mux_and_once_for_both_ports(run: Any) -> None:
    words = [
        alu(raddr_a=32),
        alu(op_add=12, cond_add=1, raddr_a=32, raddr_b=32, add_a=6, add_b=7, waddr_add=32),
        alu(op_add=21, cond_add=1, raddr_b=32, add_a=7, add_b=7, waddr_add=33),
    ]
    got = run(words, uniforms=[1, 10, 100]).registers
    assert got["r", 0][0] == 20
    assert got["r", 1][0] == 100


def test_flags_of_both_alus_are_from_before(run: Any) -> None:
    words = [
        alu(op_add=13, sf=1, cond_add=1, raddr_a=0, raddr_b=7, signal=13, add_a=6, add_b=7),
        alu(op_add=21, op_mul=4, sf=1, cond_add=2, cond_mul=3, add_a=1, add_b=1, mul_a=2, mul_b=2,
            waddr_add=32, waddr_mul=33),
    ]  # fmt: skip
    got = run(words, {("a", 0): LANES, ("r", 1): 0x80000001, ("r", 2): 2})
    equal = LANES == 7
    assert got.registers["r", 0].tolist() == np.where(equal, 0x80000001, 0).tolist()
    assert got.registers["r", 1].tolist() == np.where(equal, 0x80000001, 2).tolist()
    assert got.flags["n"].tolist() == (equal | (LANES < 7)).tolist()


def counting_loop(trips: int) -> list[int]:
    """r0 counts up to `trips`; r1 counts executed delay slots."""
    return [
        ldi(0, waddr_add=32, waddr_mul=33, cond_mul=1),
        alu(op_add=12, cond_add=1, signal=13, raddr_b=1, add_a=0, add_b=7, waddr_add=32),  # loop
        ldi(trips, waddr_add=34),
        alu(op_add=13, sf=1, cond_add=1, add_a=0, add_b=2),
        branch(-3, condition=3),  # any Z clear
        *[alu(op_add=12, cond_add=1, signal=13, raddr_b=1, add_a=1, add_b=7, waddr_add=33)] * 3,
    ]


def test_a_loop_with_delay_slots(run: Any) -> None:
    got = run(counting_loop(10)).registers
    assert got["r", 0][0] == 10
    assert got["r", 1][0] == 30


def test_an_endless_loop_meets_its_limit(run: Any) -> None:
    got = run([branch(0), alu(), alu(), alu()], budget=100)
    assert got.why == "limit"


def test_an_endless_loop_that_is_entered_in_its_middle_meets_its_limit(run: Any) -> None:
    idle = [alu(), alu(), alu()]
    got = run([branch(5), *idle, alu(), alu(), branch(-2), *idle], budget=100)
    assert got.why == "limit"


def test_the_limit_counts_instructions_not_rounds(run: Any) -> None:
    assert run(counting_loop(60), budget=100).why == "limit"
    assert run(counting_loop(10), budget=100).why == "end"


def test_running_off_the_end(run: Any) -> None:
    assert run([alu()], no_end=True).why == "left"
    assert run([branch(1000), alu(), alu(), alu()]).why == "left"


def test_a_branch_in_the_last_delay_slot_waits_for_its_own_slots(run: Any) -> None:
    def add(register: int, small: int) -> int:
        return alu(op_add=12, cond_add=1, signal=13, raddr_b=small, add_a=register, add_b=7,
                   waddr_add=32 + register)  # fmt: skip

    words = [
        branch(6),  # 0 -> 6
        alu(), alu(),
        branch(9),  # 3 -> 12
        add(0, 1), add(0, 1),  # 4, 5: skipped
        add(1, 1), add(1, 1), add(1, 1),  # 6..8: the second branch's slots
        add(2, 1), add(2, 1), add(2, 1),  # 9..11: skipped
        add(3, 1),  # 12
    ]  # fmt: skip
    got = run(words).registers
    assert [int(got["r", n][0]) for n in range(4)] == [0, 3, 0, 1]


def test_call_and_return_through_a_link_register(run: Any) -> None:
    words = [
        branch(7, waddr_add=3),  # call, link in ra3
        alu(), alu(), alu(),
        ldi(11, waddr_add=32),  # returned here
        branch(6, condition=15),  # -> end
        alu(),
        ldi(22, waddr_add=33),  # subroutine (and delay slot of the branch above)
        branch(0, register=1, relative=0, raddr_a=3, immediate=0),
        alu(), alu(),
    ]  # fmt: skip
    got = run(words)
    assert got.why == "end"
    assert got.registers["r", 0][0] == 11
    assert got.registers["r", 1][0] == 22
    assert got.registers["a", 3][0] == 32


def test_link_is_only_written_when_taken(run: Any) -> None:
    words = [branch(4, condition=0, waddr_add=3), alu(), alu(), alu()]
    assert run(words, {("a", 3): 77}).registers["a", 3][0] == 77


def test_hazards_cross_block_borders(run: Any) -> None:
    """A register written, and an SFU started, in the last delay slot of a branch."""
    words = [
        branch(5), alu(), ldi(0x40000000, waddr_add=52), ldi(7, waddr_add=1), alu(),
        move(64 + 1, 32), move(64 + 1, 33), move(4, 34), move(4, 35),
    ]  # fmt: skip
    got = run(words, {("a", 1): 5, ("r", 4): 9}).registers
    assert [int(got["r", n][0]) for n in range(4)] == [5, 7, 0x3EFFFC00, 0x3EFFFC00]


def test_a_fast_run_that_overflows_is_repeated_exactly() -> None:
    words = [alu(op_mul=1, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=33), *END]
    got = run_program(words, {("r", 0): 0x7F000000}, engine="jit")
    assert got.exact
    assert got.registers["r", 1][0] == 0x7F800000


@pytest.mark.parametrize("op", [1, 2, 3])
def test_a_compiler_that_knows_a_zero_must_not_drop_the_operation(run: Any, op: int) -> None:
    """x - 0 flushes a denormal x, also if the zero came from x ^ x."""
    words = [
        alu(op_add=22, cond_add=1, raddr_a=1, add_a=6, add_b=6, waddr_add=32),
        alu(op_add=op, cond_add=1, raddr_a=0, add_a=6, add_b=0, waddr_add=33),
        alu(op_add=24, cond_add=1, signal=13, raddr_b=0, add_a=7, add_b=7, waddr_add=34),  # 32
        alu(op_add=8, cond_add=1, add_a=2, waddr_add=34),
        alu(op_mul=1, cond_mul=1, raddr_a=0, mul_a=6, mul_b=2, waddr_mul=35),
    ]
    got = run(words, {("a", 0): 0x00000100, ("a", 1): LANES}).registers
    assert got["r", 1][0] == 0
    assert got["r", 2][0] == 0x42000000
    assert got["r", 3][0] == 0


def test_nothing_is_available_unless_an_environment_offers_it() -> None:
    program = Program((alu(raddr_a=32), *END))
    with pytest.raises(Unsupported, match="QPU-040"):
        Interpreter(program, Environment()).run()


def test_trace_shows_writes() -> None:
    steps: list[Step] = []
    run_program([ldi(5, waddr_add=32), ldi(6, waddr_add=2), *END], trace=steps.append)
    assert [step.address for step in steps] == [0, 8, 16, 24, 32]
    assert [w.name for step in steps for w in step.writes] == ["r0", "ra2"]
    assert int(steps[0].writes[0].value[3]) == 5
    assert "r0" in steps[0].text


def test_stepping() -> None:
    machine = Interpreter(Program((ldi(5, waddr_add=32), *END)), Environment(), {("r", 1): 3})
    assert machine.step()
    assert machine.read(("r", 0))[0] == 5
    machine.write(("r", 0), 6)
    assert machine.run() == "end"
    assert machine.read(("r", 0))[0] == 6
    assert machine.read(("r", 1))[0] == 3


@pytest.mark.parametrize("byte", range(4))
def test_reserved_mul_packs_are_those_of_the_low_bits(run: Any, byte: int) -> None:
    words = [
        alu(op_mul=4, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=33, pm=1, pack=12 + byte),
        alu(op_mul=4, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=34, pm=1, pack=4 + byte),
    ]
    start = {("r", 0): 0x3F800000, ("r", 1): 0x11223344, ("r", 2): 0x11223344}
    got = run(words, start).registers
    assert got["r", 1][0] == got["r", 2][0] == 0x11223344 | 0xFF << 8 * byte


def _parity() -> int:
    """Z clear in odd lanes, set in even ones (r0: lane numbers)."""
    one = {"signal": 13, "raddr_b": 1}
    return alu(op_add=20, op_mul=0, cond_add=1, sf=1, add_a=0, add_b=7, waddr_add=39, **one)


FLAG_PATTERNS = (0x0000, 0x0100, 0x7FFF, 0xFFFF)
"""Lanes in which a flag is set: none, one, all but one, all."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("condition", range(12))
def test_branch_conditions_look_at_all_lanes(condition: int, engine: str) -> None:
    """0 - r1 sets Z where r1 is 0, N and C where it is 1; a branch that is taken leaves r2."""
    words = [
        alu(op_add=13, cond_add=1, sf=1, add_a=0, add_b=1),
        branch(5, condition=condition),
        *(alu(), alu(), alu()),
        ldi(1, waddr_add=34),
    ]
    runner = Runner(words + END, engine)
    for pattern in FLAG_PATTERNS:
        one = pattern >> LANES & 1
        flag = one == 1 if condition >> 2 else one == 0
        wanted = ~flag if condition & 1 else flag
        taken = wanted.any() if condition & 2 else wanted.all()
        got = runner.run({("r", 1): one, ("r", 2): 7}).registers["r", 2]
        assert got.tolist() == [7 if taken else 1] * 16, f"{pattern:016b}"


@pytest.mark.parametrize(
    ("choice", "halves"),
    [
        ("away", [0x3C01, 0x3C01, 0x3C01, 0x3C02, 0x3C02, 0xBC01]),
        ("nearest", [0x3C00, 0x3C00, 0x3C01, 0x3C02, 0x3C01, 0xBC00]),
        ("truncate", [0x3C00, 0x3C00, 0x3C00, 0x3C01, 0x3C01, 0xBC00]),
    ],
)
def test_rounding_of_halves(run: Any, choice: str, halves: list[int]) -> None:
    """Below the middle of two halves, in it (of an even and of an odd one), above it."""
    floats = [0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x3F802FFF, 0xBF801000]
    values = np.array(floats + [0] * 10, np.uint32)
    pack = [alu(op_add=3, cond_add=1, add_a=0, add_b=0, waddr_add=1, pack=1)]
    got = run(pack, {("r", 0): values}, settings={**DEFAULTS, "half_rounding": choice})
    assert [hex(word & 0xFFFF) for word in got.registers["a", 1][:6]] == list(map(hex, halves))


# Instructions that distinguish the default of an unknown from another choice.
DIFFERENCES: dict[tuple[str, str], tuple[list[int], Any]] = {
    ("half_rounding", "truncate"): (
        [alu(op_add=3, cond_add=1, add_a=0, add_b=0, waddr_add=1, pack=1)],
        {("r", 0): 0x3F800001},
    ),
    ("colour_rounding", "truncate"): (
        [alu(op_mul=4, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=33, pm=1, pack=3)],
        {("r", 0): 0x3F000000},
    ),
    ("mul_pack_bit_3", "no_pack"): (
        [alu(op_mul=4, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=33, pm=1, pack=12)],
        {("r", 0): 0x3F800000, ("r", 1): 0x11223344},
    ),
    ("recip_one", "model"): ([ldi(0x3F800000, waddr_add=52), alu(), alu()], {}),
    ("ftoi_out_of_range", "saturate"): (
        [alu(op_add=7, cond_add=1, add_a=0, waddr_add=33)],
        {("r", 0): 0x7F7FFFFF},
    ),
    ("ftoi_out_of_range", "zero"): (
        [alu(op_add=7, cond_add=1, add_a=0, waddr_add=33)],
        {("r", 0): 0x4F7FFFFE},
    ),
    ("infinity_order", "a-first"): (
        [alu(op_add=1, cond_add=1, add_a=0, add_b=1, waddr_add=34)],
        {("r", 0): 0x7F800000, ("r", 1): 0xFF800000},
    ),
    ("unmapped_read", "zero"): (
        [alu(op_add=21, cond_add=1, raddr_a=33, add_a=6, add_b=6, waddr_add=32)],
        {},
    ),
    ("thread_switch_registers", "zero"): ([alu(signal=2), alu(), alu()], {("r", 0): 4}),
    ("mul_nop_result", "nothing"): (
        [
            alu(op_mul=4, cond_mul=1, mul_a=0, mul_b=0, waddr_mul=33),
            alu(cond_mul=1, waddr_mul=34),
        ],
        {("r", 0): LANES},
    ),
    ("same_destination", "add"): (
        [alu(op_add=21, op_mul=4, cond_add=1, cond_mul=1, add_a=0, add_b=0, mul_a=1, mul_b=1,
             waddr_add=34, waddr_mul=34)],
        {("r", 0): 1, ("r", 1): 2},
    ),
    ("mul24_carry", "over-24-bits"): (
        [alu(op_mul=2, cond_mul=1, sf=1, mul_a=0, mul_b=0)],
        {("r", 0): 0x2000},
    ),
    ("fmul_carry", "positive"): (
        [alu(op_mul=1, cond_mul=1, sf=1, mul_a=0, mul_b=0)],
        {("r", 0): 0x40000000},
    ),
    ("sf_with_never", "mul"): (
        [alu(op_add=21, op_mul=4, cond_mul=1, sf=1, mul_a=0, mul_b=0)],
        {("r", 0): 0x80000000},
    ),
    ("load_immediate_condition", "mul-if-never"): (
        [ldi(0x80000000, cond_add=0, cond_mul=1, sf=1)],
        {},
    ),
    ("peripheral_unpack", "raw"): (
        [alu(op_add=21, cond_add=1, raddr_a=32, unpack=4, add_a=6, add_b=6, waddr_add=32)],
        {},
    ),
    ("half_rounding", "nearest"): (
        [alu(op_add=3, cond_add=1, add_a=0, add_b=0, waddr_add=1, pack=1)],
        {("r", 0): 0x3F800001},
    ),
    ("register_after_write", "new"): (
        [ldi(7, waddr_add=1), move(64 + 1, 32)],
        {("a", 1): 5},
    ),
    ("branch_register_lane", "0"): (
        [branch(0, register=1, relative=0, raddr_a=3, immediate=0), alu(), alu(), alu(),
         ldi(1, waddr_add=32), ldi(2, waddr_add=33)],
        {("a", 3): np.where(LANES == 0, 40, 32)},
    ),
    ("underflow_sign", "kept"): (
        [alu(op_mul=1, cond_mul=1, mul_a=0, mul_b=1, waddr_mul=34)],
        {("r", 0): 0x80800000, ("r", 1): 0x3F000000},
    ),
    ("uniform_read_twice", "two"): (
        [alu(op_add=12, cond_add=1, raddr_a=32, raddr_b=32, add_a=6, add_b=7, waddr_add=32)],
        {},
    ),
    ("r5_write_condition", "any"): (
        [_parity(), move(0, 37, cond_add=3)],
        {("r", 0): LANES, ("r", 5): 99},
    ),
    ("r5_write_condition", "each"): (
        [_parity(), move(0, 37, cond_add=3)],
        {("r", 0): LANES, ("r", 5): 99},
    ),
    ("float_pack_32", "finite"): (
        [alu(op_add=3, cond_add=1, add_a=0, add_b=0, waddr_add=1, pack=8)],
        {("r", 0): 0xFF800000},
    ),
    ("rotation_order", "last"): (
        [alu(op_add=13, sf=1, cond_add=1, raddr_a=0, raddr_b=7, signal=13, add_a=6, add_b=7),
         alu(op_mul=4, cond_mul=2, signal=13, raddr_b=49, mul_a=1, mul_b=1, waddr_mul=34)],
        {("a", 0): LANES, ("r", 1): LANES + 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "choice"), DIFFERENCES)
def test_unknowns_can_be_switched(name: str, choice: str, engine: str) -> None:
    words, registers = DIFFERENCES[name, choice]
    given = {"uniforms": [0x12345678, 0x01010101]}
    settings = {**DEFAULTS, name: choice}
    default = run_program(words + END, registers, engine=engine, **given)
    switched = run_program(words + END, registers, engine=engine, settings=settings, **given)
    assert default.differences(switched)
    reference = run_program(words + END, registers, settings=settings, **given)
    assert not reference.differences(switched)


def test_every_unknown_is_described() -> None:
    for row in QPU_UNKNOWNS:
        assert row.default in row.choices
        assert row.question.endswith("?")
        assert row.reference
