"""Copies of registers, where an operand lies where its reader cannot have it."""

from __future__ import annotations

from vc4lab.driver.compiler.machine.code import Op, Reg, Wants
from vc4lab.qpu.isa.operations import AddOp, MulOp


def copy_of(reg: Reg, readers: list[Op], wants: str, block: int) -> Op:
    """Readers of a register read a copy of it instead; the move that makes it, in a block.

    wants: "a", "file", "accumulator", "not a", "not b", or nothing.
    """
    copy = Reg()
    copy.block = block
    if wants == "a":
        copy.wants = Wants.FILE_A
    elif wants == "accumulator":
        copy.wants = Wants.ACCUMULATOR
    elif wants == "file":
        copy.wants = Wants.FILE
    elif wants:
        copy.avoid = 0 if wants == "not a" else 32
    move = Op("mov", AddOp.OR, MulOp.V8MIN, [reg])
    move.target = copy
    copy.op = move
    move.number = min(one.number for one in readers)
    move.priority = max(one.priority for one in readers) + 0.5
    for one in readers:
        one.args = [copy if arg is reg else arg for arg in one.args]
        count = sum(1 for arg in one.args if arg is copy)
        copy.uses += count
        reg.uses -= count
        copy.readers.append(one)
        reg.readers = [other for other in reg.readers if other is not one]
        one.waiting += 1
        move.next.append((one, 1))
    reg.uses += 1
    reg.readers.append(move)
    return move
