"""Makes operations: operands that may stand together, flags that live one after the other.

Words that lowered programs use, and floats as words.
"""

from __future__ import annotations

import struct

from vc4lab.qpu.isa.builder import SMALL_IMMEDIATE_CODES
from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Condition, MulOp
from vc4lab.qpu.isa.registers import SFU_WRITES
from vc4lab.qpu.machine.code import Block, Const, Flags, Op, Operand, Reg, StreamWord, Wants

ADD = {op.name.lower(): op for op in AddOp}
MUL = {op.name.lower(): op for op in MulOp}
BOTH = {"v8adds", "v8subs"}
SFU_ADDRESS = {name: address for address, name in SFU_WRITES.items()}
OPPOSITE = {
    Condition.ZS: Condition.ZC,
    Condition.ZC: Condition.ZS,
    Condition.NS: Condition.NC,
    Condition.NC: Condition.NS,
    Condition.CS: Condition.CC,
    Condition.CC: Condition.CS,
}
BRANCHES = {
    Condition.ZS: BranchCondition.ANY_ZS,
    Condition.ZC: BranchCondition.ANY_ZC,
    Condition.NS: BranchCondition.ANY_NS,
    Condition.NC: BranchCondition.ANY_NC,
    Condition.CS: BranchCondition.ANY_CS,
    Condition.CC: BranchCondition.ANY_CC,
}
"""The condition of a branch that is taken if one lane wants it, by the condition of the lanes that do."""
EVERY = {lanes: BranchCondition(found - 2) for lanes, found in BRANCHES.items()}
"""Likewise if all of them want it."""

COMPARISONS: dict[str, tuple[str, bool, Condition]] = {
    # operation whose flags say it, whether its operands change places, the lanes where it holds
    "flt": ("fmax", True, Condition.CS),
    "fge": ("fmax", True, Condition.CC),
    "feq": ("fsub", False, Condition.ZS),
    "fne": ("fsub", False, Condition.ZC),
    "ilt": ("max", True, Condition.CS),
    "ige": ("max", True, Condition.CC),
    "ult": ("sub", False, Condition.CS),
    "uge": ("sub", False, Condition.CC),
    "ieq": ("sub", False, Condition.ZS),
    "ine": ("sub", False, Condition.ZC),
}
"""The C flag of max is a > b, exactly; fsub gives 0 for equal numbers, and for those whose
difference is denormal."""


class Builder:
    """A program that grows at the end of its last block."""

    def __init__(self) -> None:
        self.blocks = [Block(0)]
        self.block = self.blocks[0]
        self.line = 0
        self._depends: dict[Reg, int] = {}
        """For each register, as bits, the flags on whose users it depends."""
        self._after: list[int] = []
        """For each flags, as bits, those whose users must be before their setter."""

    def begin_block(self, loops: tuple[int, ...]) -> Block:
        """Another block after all others."""
        self.block = Block(len(self.blocks), loops=loops)
        self.blocks.append(self.block)
        return self.block

    # ---------------------------------------------------------------- operations

    def add(self, op: Op, wants: Wants | None = Wants.ANY) -> Reg | None:
        """An operation at the end; its result is a new register unless it has a target or `wants`
        is None.
        """
        op.line = op.line or self.line
        self.block.ops.append(op)
        depends = 0
        for reg in op.reads:
            reg.uses += 1
            reg.readers.append(op)
            self._cross(reg)
            depends |= self._depends.get(reg, 0)
        if op.tied is not None:
            op.tied.uses += 1
            depends |= self._depends.get(op.tied, 0)
        if op.flags is not None:
            op.flags.users.append(op)
            self._after[op.flags.number] |= depends
            depends |= 1 << op.flags.number
        if op.sets is not None:
            self._after[op.sets.number] |= depends
        result = op.target if isinstance(op.target, Reg) else None
        if wants is not None and op.target is None:
            result = op.target = Reg(op, wants)
        for made in (result, op.second):
            if made is not None:
                made.op = op
                made.block = self.block.number
                self._depends[made] = depends
        return result

    def _cross(self, reg: Reg) -> None:
        """A register that another block made must be in a file."""
        if reg.block != self.block.number:
            assert reg.wants not in (Wants.R4, Wants.R5, Wants.ACCUMULATOR)
            if reg.wants is Wants.ANY:
                reg.wants = Wants.FILE

    def operands(self, *args: Operand) -> list[Operand]:
        """Operands that one operation can have: no two words of the uniform stream."""
        found = list(args)
        if len(found) == 2 and found[0] != found[1]:
            if all(self._is_streamed(one) for one in found):
                found[0] = self.move(found[0])
        return found

    @staticmethod
    def _is_streamed(operand: Operand) -> bool:
        if isinstance(operand, Const):
            return operand.word not in SMALL_IMMEDIATE_CODES
        return isinstance(operand, StreamWord)

    def make(self, name: str, *args: Operand, wants: Wants = Wants.ANY) -> Reg:
        """An ALU operation by its name; "mov" is what either ALU can do."""
        result = self.add(self.op(name, *args), wants)
        assert result is not None
        return result

    def op(self, name: str, *args: Operand) -> Op:
        """An operation that is not in the program yet."""
        given = self.operands(*args)
        if name == "mov":
            return Op("mov", AddOp.OR, MulOp.V8MIN, given)
        if name in BOTH:
            return Op(name, ADD[name], MUL[name], given)
        if name in ADD:
            return Op(name, ADD[name], None, given)
        return Op(name, None, MUL[name], given)

    def move(self, operand: Operand, wants: Wants = Wants.ANY) -> Reg:
        return self.make("mov", operand, wants=wants)

    def as_reg(self, operand: Operand) -> Reg:
        """The operand in a register."""
        return operand if isinstance(operand, Reg) else self.move(operand)

    # ---------------------------------------------------------------- changed afterwards

    def may_change(self, operand: Operand) -> Op | None:
        """The plain ALU operation that makes a register which nothing has read yet, in this block:
        it may write elsewhere, or in some lanes only.
        """
        if not isinstance(operand, Reg) or operand.uses or operand.block != self.block.number:
            return None
        op = operand.op
        if op is None or op.target is not operand or operand.wants not in (Wants.ANY, Wants.FILE):
            return None
        is_plain = op.tied is None and op.flags is None and op.sets is None and op.second is None
        if not is_plain or op.pack or op.rotate or op.signal is not None or op.after:
            return None
        return op

    def to_end(self, op: Op) -> None:
        """An operation of this block moves to the end: it depends on what came after it."""
        self.block.ops.remove(op)
        self.block.ops.append(op)

    def _depend(self, op: Op, result: Reg | None) -> None:
        """Flags and registers on which an operation depends now."""
        depends = 0
        for reg in (*op.reads, *((op.tied,) if op.tied is not None else ())):
            depends |= self._depends.get(reg, 0)
        if op.flags is not None:
            self._after[op.flags.number] |= depends
            depends |= 1 << op.flags.number
        if result is not None:
            self._depends[result] = depends

    def over(self, op: Op, old: Reg) -> None:
        """The operation writes over another register."""
        op.tied = old
        old.uses += 1
        self._cross(old)
        self.to_end(op)
        self._depend(op, op.target if isinstance(op.target, Reg) else None)

    def in_lanes(self, op: Op, flags: Flags, condition: Condition, old: Reg) -> Reg:
        """The operation happens in the lanes of a condition; the others keep `old`."""
        op.flags, op.condition = flags, int(condition)
        flags.users.append(op)
        self.over(op, old)
        assert isinstance(op.target, Reg)
        if old.wants is Wants.FILE_A:
            op.target.wants = Wants.FILE_A
        return op.target

    # ---------------------------------------------------------------- addresses

    def write(self, address: int, operand: Operand, file: str = "") -> Op:
        """A move to an address that is no register."""
        op = self.op("mov", operand)
        op.target, op.target_file = int(address), file
        self.add(op, None)
        return op

    def special(self, name: str, operand: Operand) -> Reg:
        """A special function: "recip", "recipsqrt", "exp", "log"."""
        op = self.op("mov", operand)
        op.name = name
        op.target = SFU_ADDRESS[name]
        op.peripheral = True
        op.second = Reg(op, Wants.R4)
        self.add(op, None)
        return op.second

    # ---------------------------------------------------------------- flags

    def flags(self, op: Op, wants: Wants | None = None) -> Flags:
        """The flags that an operation sets; it is added, with a result if one is wanted."""
        found = Flags(op, len(self._after))
        op.sets = found
        self._after.append(0)
        self.add(op, wants)
        return found

    def may_use(self, flags: Flags, *operands: Operand | None) -> bool:
        """Whether an operation with these operands can depend on the flags: none of them comes of
        an operation that does, in this block.
        """
        depends = 0
        for operand in operands:
            if isinstance(operand, Reg):
                depends |= self._depends.get(operand, 0)
        seen = 0
        while depends & ~seen:
            bit = (depends & ~seen) & -(depends & ~seen)
            seen |= bit
            depends |= self._after[bit.bit_length() - 1]
        return not depends >> flags.number & 1

    def conditional(self, op: Op, flags: Flags, condition: Condition, old: Reg) -> Reg:
        """An operation that writes over `old` in the lanes of a condition."""
        op.flags, op.condition, op.tied = flags, int(condition), old
        result = self.add(op)
        assert result is not None
        if Wants.FILE_A is old.wants:
            result.wants = Wants.FILE_A
        return result


ZERO, ONE, MINUS_ONE, TWO, HALF = (
    Const(0), Const(0x3F800000), Const(0xBF800000), Const(0x40000000), Const(0x3F000000),
)  # fmt: skip
ALL = Const(0xFFFFFFFF)


def real(value: float) -> Const:
    """A float as a constant."""
    return Const(struct.unpack("<I", struct.pack("<f", value))[0])


def as_float(constant: Const) -> float:
    """The float that a constant's bits are."""
    value: float = struct.unpack("<f", struct.pack("<I", constant.word))[0]
    return value


MUL_PIECE = Const(24)
"""Bits of the operands of the multiplier."""
