"""The fields of an instruction while it is written, and the exchange of its two ALUs."""

from __future__ import annotations

import copy
from enum import IntFlag
from typing import Final, Self

from vc4lab.qpu.dialects.vc4asm.instruction.constants import ROTATIONS
from vc4lab.qpu.dialects.vc4asm.values import Packing
from vc4lab.qpu.isa.accesses import Kind
from vc4lab.qpu.isa.operations import (
    FLOAT_INPUT_ADD_OPS,
    ONE_OPERAND_ADD_OPS,
    AddOp,
    BranchCondition,
    Condition,
    LoadMode,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import READ_NAMES, REGFILE_SIZE, WRITE_NAMES
from vc4lab.qpu.text.syntax import Mistake

UNUSED: Final = 39
RELEASE_BIT: Final = 0x10
"""The bit of a semaphore's number that is set to acquire it."""


class Role(IntFlag):
    """Names what is being written: the operation, its destination, its sources."""

    OPERATION = 1
    TARGET = 2
    FIRST = 4
    SECOND = 8
    SOURCES = 12


ADD, MUL = 0, 1
SHARED_READS: Final = frozenset(
    n for n in range(REGFILE_SIZE, 64) if READ_NAMES["a"][n] == READ_NAMES["b"][n]
)
SHARED_WRITES: Final = frozenset(
    n for n in range(REGFILE_SIZE, 64) if WRITE_NAMES["a"][n] == WRITE_NAMES["b"][n]
)
TO_MUL: Final = {AddOp.V8ADDS: MulOp.V8ADDS, AddOp.V8SUBS: MulOp.V8SUBS, AddOp.NOP: MulOp.NOP}
_MOVES_TO_MUL: Final = {
    AddOp.XOR: MulOp.V8SUBS, AddOp.SUB: MulOp.V8SUBS,
    AddOp.OR: MulOp.V8MIN, AddOp.AND: MulOp.V8MIN, AddOp.MIN: MulOp.V8MIN, AddOp.MAX: MulOp.V8MIN,
}  # fmt: skip
"""Operations of two equal operands, which only move or clear."""
TO_ADD: Final = {mul: add for add, mul in TO_MUL.items()}
_FLOAT_RESULTS: Final = frozenset({*FLOAT_INPUT_ADD_OPS, AddOp.ITOF} - {AddOp.FTOI})
PERIPHERALS: Final = (
    Kind.TMU_WRITE | Kind.SFU_WRITE | Kind.TMU_LOAD | Kind.TLB_LOAD | Kind.MUTEX | Kind.SEMAPHORE
    | Kind.TLB_Z_WRITE | Kind.TLB_STENCIL | Kind.TLB_MASK_WRITE | Kind.VPM_READ | Kind.VPM_WRITE
)  # fmt: skip
COLOUR: Final = Kind.TLB_COLOUR_WRITE | Kind.TLB_COLOUR_LOAD


class Fields:
    """Fields of an instruction, and what may still be moved."""

    def __init__(self) -> None:
        self.signal = int(Signal.NONE)
        self.op = [0, 0]
        self.waddr = [UNUSED, UNUSED]
        self.cond = [int(Condition.ALWAYS), int(Condition.ALWAYS)]
        self.mux = [[0, 0], [0, 0]]
        self.raddr_a = self.raddr_b = UNUSED  # raddr_b: also the code of a small immediate
        self.ws = self.sf = self.pm = False
        self.pack = Packing(0)
        self.unpack = Packing(0)
        self.load_mode = int(LoadMode.WORD)
        self.immediate = 0
        self.condition = int(BranchCondition.ALWAYS)
        self.relative = self.by_register = False
        self.fixed_alus = self.fixed_files = self.fixed_pm = self.has_nop = False
        self.joins_next = False
        self.is_data = False
        # of the operation being written
        self.alu: int = ADD
        self.both = False
        self.role = Role.OPERATION
        self.rotated = Role(0)
        self.unpack_alus: set[int] = set()
        self.unpack_roles = Role(0)
        self.column = 0
        self.notes: list[tuple[str, int]] = []

    def copy(self) -> Self:
        """An independent copy."""
        new = copy.copy(self)
        new.op, new.waddr, new.cond = self.op[:], self.waddr[:], self.cond[:]
        new.mux = [self.mux[0][:], self.mux[1][:]]
        new.unpack_alus, new.notes = set(self.unpack_alus), list(self.notes)
        return new

    def fail(self, text: str) -> Mistake:
        return Mistake(text, self.column)

    # What is used -------------------------------------------------------------------------------

    @property
    def is_alu(self) -> bool:
        return self.signal < Signal.LOAD_IMMEDIATE

    def used(self, alu: int) -> bool:
        return self.waddr[alu] != UNUSED or self.op[alu] != 0

    def reads_b(self) -> bool:
        return any(mux == Mux.B for pair in self.mux for mux in pair)

    def reads_a(self) -> bool:
        return any(mux == Mux.A for pair in self.mux for mux in pair)

    def float_input(self, alu: int) -> bool:
        return self.op[alu] in FLOAT_INPUT_ADD_OPS if alu == ADD else self.op[alu] == MulOp.FMUL

    def float_result(self, alu: int) -> bool:
        return self.op[alu] in _FLOAT_RESULTS if alu == ADD else self.op[alu] == MulOp.FMUL

    def is_unary(self) -> bool:
        return self.op[ADD] in ONE_OPERAND_ADD_OPS

    def writes_file_a(self, alu: int) -> bool:
        """Whether an ALU's result goes to ra0 to ra31."""
        return (alu == MUL) == self.ws and self.waddr[alu] < REGFILE_SIZE

    def set_mux(self, mux: int) -> None:
        if self.role & Role.FIRST:
            self.mux[self.alu][0] = mux
        if self.role & Role.SECOND:
            self.mux[self.alu][1] = mux

    def current_mux(self) -> int:
        return self.mux[self.alu][1 if self.role & Role.SOURCES == Role.SECOND else 0]

    def swap_alus(self) -> bool:
        """Let the two ALUs change their operations, if that gives the same results."""
        if self.fixed_alus or not self.is_alu or self.sf or (self.pack.code and self.pm):
            return False
        if self.signal == Signal.SMALL_IMMEDIATE and self.raddr_b >= ROTATIONS:
            return False
        add, mul = self.op
        same_add, same_mul = (self.mux[ADD][0] == self.mux[ADD][1], self.mux[MUL][0] == self.mux[MUL][1])
        if mul in TO_ADD:
            new_add = int(TO_ADD[MulOp(mul)])
        elif mul in (MulOp.V8MIN, MulOp.V8MAX) and same_mul:
            new_add = int(AddOp.OR)
        else:
            return False
        if add in TO_MUL:
            new_mul = int(TO_MUL[AddOp(add)])
        elif add in _MOVES_TO_MUL and same_add:
            new_mul = int(_MOVES_TO_MUL[AddOp(add)])
        else:
            return False
        self.op = [new_add, new_mul]
        self.mux.reverse()
        self.cond.reverse()
        self.waddr.reverse()
        if self.alu == MUL or self.waddr[ADD] != UNUSED or self.waddr[MUL] not in SHARED_WRITES:
            self.ws = not self.ws
        self.alu = 1 - self.alu
        self.unpack_alus = {1 - alu for alu in self.unpack_alus}
        return True
