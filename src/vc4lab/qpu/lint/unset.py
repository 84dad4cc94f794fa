"""Registers and flags that a program reads before it has written them.

A QPU's registers, accumulators and flags have what the program before left in them; fragment
programs find W in ra15 and Z in rb15. Followed is one way through a program: conditional branches
are not taken, others are. On it everything that stands before an instruction, but for what is
branched over, has been executed; what is written on no part of it was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vc4lab.qpu.isa.accesses import Accesses, Kind
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, INSTRUCTION_BYTES, Alu, Branch, Instruction
from vc4lab.qpu.isa.operations import ONE_OPERAND_ADD_OPS, AddOp, BranchCondition, Condition, MulOp, Mux
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.lint.parts import Part

GIVEN: Final = frozenset({"ra15", "rb15"})
FLAGS: Final = "the flags"
_ZERO_ADDS: Final = frozenset({AddOp.XOR, AddOp.SUB, AddOp.V8SUBS, AddOp.FSUB})
"""They give 0 of one register twice, whatever it holds (of floats, if it is no infinity or NaN)."""
_R4_FILLED: Final = Kind.R4_LOAD | Kind.SFU_WRITE


def read_before_written(part: Part) -> Iterator[tuple[int, str]]:
    """Yield (instruction, name) for each register that is read too early, once."""
    known = set(GIVEN)
    seen: set[int] = set()
    index, target, left = part.start, -1, -1
    while part.start <= index < part.stop and index not in seen:
        seen.add(index)
        instruction, touched = part.all[index], part.touched[index]
        for name in sorted(_needed(instruction, touched) - known):
            known.add(name)
            yield index, name
        known |= _written(touched)
        if isinstance(instruction, Branch) and instruction.condition == BranchCondition.ALWAYS:
            if instruction.register or not instruction.relative:
                return
            target, left = instruction.target(index * INSTRUCTION_BYTES), BRANCH_DELAY_SLOTS
        elif left > 0:
            left -= 1
        if left == 0:
            index, left = target // INSTRUCTION_BYTES, -1
        elif index + 1 in part.successors(index):
            index += 1
        else:
            return


def _needed(instruction: Instruction, touched: Accesses) -> frozenset[str]:
    """Registers and flags that an instruction's result depends on."""
    flags = {FLAGS} if touched.kinds & Kind.FLAGS_READ else set()
    if not isinstance(instruction, Alu):
        names = touched.at(Kind.REGISTER_READ)
    else:
        muxes = _muxes(instruction)
        names = frozenset(
            name for name in touched.at(Kind.REGISTER_READ | Kind.ACCUMULATOR_READ) if _mux_of(name) in muxes
        )
        if Mux.R4 in muxes:
            flags.add("r4")
    return frozenset(name for name in names if name[1:2].isdigit() or name[2:].isdigit()) | flags


def _muxes(alu: Alu) -> set[Mux]:
    """The sources of operations whose results go anywhere and depend on them."""
    found: set[Mux] = set()
    (add, mul) = (address != Write.NOP for _, address in alu.write_addresses())
    if alu.op_add and alu.cond_add != Condition.NEVER and (add or alu.sf):
        if alu.op_add in ONE_OPERAND_ADD_OPS:
            found.add(alu.add_a)
        elif alu.add_a != alu.add_b or alu.op_add not in _ZERO_ADDS:
            found |= {alu.add_a, alu.add_b}
    if alu.op_mul and alu.cond_mul != Condition.NEVER and (mul or alu.sf):
        if alu.mul_a != alu.mul_b or alu.op_mul != MulOp.V8SUBS:
            found |= {alu.mul_a, alu.mul_b}
    return found


def _mux_of(name: str) -> Mux:
    if name.startswith("ra"):
        return Mux.A
    return Mux.B if name.startswith("rb") else Mux(int(name[1:])) if name[1:].isdigit() else Mux.R4


def _written(touched: Accesses) -> frozenset[str]:
    names = touched.at(Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE)
    if touched.kinds & Kind.FLAGS_WRITE:
        names |= {FLAGS}
    if touched.kinds & _R4_FILLED:
        names |= {"r4"}
    if touched.kinds & Kind.VARYING_READ:
        names |= {"r5"}
    return names
