"""QPU instruction encodings: one bit-field class per instruction form.

Every 64-bit word decodes to exactly one form (`decode`), whose fields together cover all 64 bits,
so encoding the fields again gives the same word, reserved values and don't-care bits included.

Source: VideoCore IV 3D Architecture Reference Guide, "QPU Instruction Encoding" (pp. 26-36).
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NoReturn

from vc4lab.bits import Bits, Layout
from vc4lab.qpu.isa.operations import (
    END_SIGNALS,
    FLOAT_INPUT_ADD_OPS,
    ONE_OPERAND_ADD_OPS,
    ROTATE_BY_R5,
    SMALL_IMMEDIATES,
    AddOp,
    BranchCondition,
    Condition,
    LoadMode,
    MulOp,
    Mux,
    Pack,
    Signal,
    Unpack,
)
from vc4lab.qpu.isa.registers import WRITE_NAMES, Write

INSTRUCTION_BYTES: Final = 8
BRANCH_DELAY_SLOTS: Final = 3
END_DELAY_SLOTS: Final = 2
SWITCH_DELAY_SLOTS: Final = 2
"""After a thread switch."""
LINK_OFFSET: Final = INSTRUCTION_BYTES * (1 + BRANCH_DELAY_SLOTS)
"""Distance in bytes from a branch to the instruction after its delay slots."""
LANES: Final = 16
NOP_WORD: Final = 0x100009E7009E7000
WORD_MASK: Final = (1 << 64) - 1

File = Literal["a", "b"]


class Instruction(Layout, width=64):
    """Any 64-bit QPU instruction; use `decode` to get the right form, `replace` to change fields.

    Immutable and hashable; `encode` gives the word itself. The fields here are those that all
    forms have in common.
    """

    __slots__ = ()

    signal = Bits(63, 60, enum=Signal)
    ws = Bits(44, 44, doc="swap: the add ALU writes address space B, the mul ALU A")
    waddr_add = Bits(43, 38)
    waddr_mul = Bits(37, 32)

    def __init__(self, value: int = 0) -> None:
        if not 0 <= value <= WORD_MASK:
            raise ValueError(f"instruction word {value:#x} is not an unsigned 64-bit number")
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"instructions are immutable; use replace({name}=...)")

    @staticmethod
    def decode(word: int) -> Alu | LoadImmediate | Semaphore | Branch:
        """The instruction of a word (0 <= word < 2**64), as the class of its form."""
        signal = word >> 60 & 15
        if signal == Signal.BRANCH:
            return Branch(word)
        if signal == Signal.LOAD_IMMEDIATE:
            if word >> 57 & 7 == LoadMode.SEMAPHORE:
                return Semaphore(word)
            return LoadImmediate(word)
        return Alu(word)

    def encode(self) -> int:
        """The 64-bit word."""
        return self.value

    @property
    def ends_program(self) -> bool:
        """Whether the program stops after two more instructions."""
        return self.signal in END_SIGNALS

    @property
    def add_file(self) -> File:
        """Address space that ``waddr_add`` belongs to."""
        return "b" if self.ws else "a"

    @property
    def mul_file(self) -> File:
        """Address space that ``waddr_mul`` belongs to."""
        return "a" if self.ws else "b"

    def write_addresses(self) -> tuple[tuple[File, int], tuple[File, int]]:
        """(address space, address) of the add and of the mul result; 39 means no write."""
        return (self.add_file, self.waddr_add), (self.mul_file, self.waddr_mul)

    def read_addresses(self) -> tuple[tuple[File, int], ...]:
        """(file, address) of every register read the word triggers, selected by a mux or not."""
        return ()

    @property
    def add_target(self) -> str:
        """Name of the add ALU's destination."""
        name: str = WRITE_NAMES[self.add_file][self.waddr_add]
        return name

    @property
    def mul_target(self) -> str:
        """Name of the mul ALU's destination."""
        name: str = WRITE_NAMES[self.mul_file][self.waddr_mul]
        return name


class _Conditional(Instruction):
    """The middle of the word as ALU, load immediate and semaphore instructions share it."""

    __slots__ = ()

    pm = Bits(56, 56, doc="1: pack the mul result, unpack r4; 0: regfile A on both sides")
    pack = Bits(55, 52, enum=Pack)
    cond_add = Bits(51, 49, enum=Condition)
    cond_mul = Bits(48, 46, enum=Condition)
    sf = Bits(45, 45, doc="set flags")


class Alu(_Conditional):
    """Add and mul ALU operation, with a register or a small immediate (signal 13) on port B."""

    __slots__ = ()

    unpack = Bits(59, 57, enum=Unpack)
    op_mul = Bits(31, 29, enum=MulOp)
    op_add = Bits(28, 24, enum=AddOp)
    raddr_a = Bits(23, 18)
    raddr_b = Bits(17, 12, doc="address, or the small immediate code with signal 13")
    add_a = Bits(11, 9, enum=Mux)
    add_b = Bits(8, 6, enum=Mux)
    mul_a = Bits(5, 3, enum=Mux)
    mul_b = Bits(2, 0, enum=Mux)

    @property
    def has_small_immediate(self) -> bool:
        return bool(self.signal == Signal.SMALL_IMMEDIATE)

    @property
    def small_immediate(self) -> int | None:
        """Word that mux B delivers if this is the small immediate form, else None."""
        return SMALL_IMMEDIATES[self.raddr_b] if self.has_small_immediate else None

    @property
    def rotation(self) -> int | Literal["r5"] | None:
        """Upward rotation of the mul result: 1..15, "r5" (by lane 0 of r5), or None."""
        if not self.has_small_immediate or self.raddr_b < ROTATE_BY_R5:
            return None
        return int(self.raddr_b) - ROTATE_BY_R5 or "r5"

    @property
    def has_float_input(self) -> bool:
        """Whether a regfile A unpack delivers its float form.

        That takes a float operation in an ALU that reads the value.
        """
        add = self.op_add in FLOAT_INPUT_ADD_OPS and Mux.A in (self.add_a, self.add_b)
        mul = self.op_mul == MulOp.FMUL and Mux.A in (self.mul_a, self.mul_b)
        return add or mul

    @property
    def add_is_move(self) -> bool:
        return bool(self.op_add == AddOp.OR and self.add_a == self.add_b)

    @property
    def mul_is_move(self) -> bool:
        return bool(self.op_mul == MulOp.V8MIN and self.mul_a == self.mul_b)

    def read_addresses(self) -> tuple[tuple[File, int], ...]:
        if self.has_small_immediate:
            return (("a", self.raddr_a),)
        return (("a", self.raddr_a), ("b", self.raddr_b))

    def muxes(self) -> frozenset[Mux]:
        """Every source that an operation of this instruction uses."""
        used: set[Mux] = set()
        if self.op_add:
            used.add(self.add_a)
            if self.op_add not in ONE_OPERAND_ADD_OPS:
                used.add(self.add_b)
        if self.op_mul:
            used |= {self.mul_a, self.mul_b}
        return frozenset(used)


class LoadImmediate(_Conditional):
    """Load of a 32-bit word, or of 2-bit values per lane, through both ALUs."""

    __slots__ = ()

    mode = Bits(59, 57, enum=LoadMode)
    immediate = Bits(31, 0)

    def lanes(self) -> tuple[int, ...]:
        """The 16 unsigned 32-bit values; reserved modes are read as a plain word."""
        immediate: int = self.immediate
        if self.mode not in (LoadMode.PER_LANE_SIGNED, LoadMode.PER_LANE_UNSIGNED):
            return (immediate,) * LANES
        weight = 2 if self.mode == LoadMode.PER_LANE_UNSIGNED else -2
        return tuple(
            (weight * (immediate >> 16 + i & 1) + (immediate >> i & 1)) & 0xFFFFFFFF for i in range(LANES)
        )


class Semaphore(_Conditional):
    """Increment (release) or decrement (acquire) of one of 16 semaphores."""

    __slots__ = ()

    mode = Bits(59, 57, enum=LoadMode)
    unused = Bits(31, 5)
    acquire = Bits(4, 4, doc="1: decrement, stalling at 0; 0: increment, stalling at 15")
    number = Bits(3, 0)


class Branch(Instruction):
    """Conditional jump with three delay slots; both link addresses are written when taken."""

    __slots__ = ()

    unused = Bits(59, 56)
    condition = Bits(55, 52, enum=BranchCondition)
    relative = Bits(51, 51)
    register = Bits(50, 50, doc="1: add a regfile A register to the target")
    raddr_a = Bits(49, 45)
    immediate = Bits(31, 0)

    @property
    def sf(self) -> int:
        """Set flags: the same bit as the lowest of ``raddr_a``."""
        return self.value >> 45 & 1

    @property
    def stays_relative(self) -> bool:
        """Whether no address matters: in the target, as a link or for the flags."""
        links = any(register != Write.NOP for _, register in self.write_addresses())
        return bool(self.relative) and not (self.register or self.sf or links)

    def target(self, address: int, register: int = 0) -> int:
        """Byte address (32 bit) jumped to from an instruction at ``address``."""
        base = address + LINK_OFFSET if self.relative else 0
        found: int = (self.immediate + base + (register if self.register else 0)) & 0xFFFFFFFF
        return found


def words_of(code: bytes) -> tuple[int, ...]:
    """Little-endian 64-bit words of a byte string; an incomplete last word is dropped."""
    return tuple(word for (word,) in struct.iter_unpack("<Q", code[: len(code) // 8 * 8]))


NOP: Final = Alu(NOP_WORD)
