"""Measures a program in numbers: to compare it with another."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.encoding import Alu, Instruction

USED = Kind.REGISTER_READ | Kind.REGISTER_WRITE | Kind.ACCUMULATOR_READ | Kind.ACCUMULATOR_WRITE


def figures_of(words: Sequence[int]) -> dict[str, int]:
    """Instructions, operations, registers and what is read, by their names."""
    alus = [one for one in map(Instruction.decode, words) if isinstance(one, Alu)]
    touched = [accesses(word) for word in words]
    names = {name for one in touched for name in one.at(USED)}
    kinds = [kind for one in touched for kind in one.units]
    add = sum(bool(one.op_add) for one in alus)
    mul = sum(bool(one.op_mul) for one in alus)
    both = sum(bool(one.op_add and one.op_mul) for one in alus)
    return {
        "instructions": len(words),
        "operations of the add ALU": add,
        "operations of the mul ALU": mul,
        "instructions with both": both,
        "instructions with neither": len(alus) - add - mul + both,
        "registers of file A": sum(name.startswith("ra") for name in names),
        "registers of file B": sum(name.startswith("rb") for name in names),
        "accumulators": sum(name[1:].isdigit() for name in names),
        "uniforms read": kinds.count(Kind.UNIFORM_READ),
        "varyings read": kinds.count(Kind.VARYING_READ),
        "texture results": kinds.count(Kind.TMU_LOAD),
        "special functions": kinds.count(Kind.SFU_WRITE),
        "thread switches": kinds.count(Kind.THREAD_SWITCH),
    }
