"""Instruction words from their parts, without text: what a compiler writes.

    alu(add=Half(AddOp.FADD, Mux.R0, Mux.A, (32, "a")), raddr_a=3)

Every part has the value that means "nothing" unless given. Ranges are not checked word by word:
callers are programs, and what they build goes through the lint and the disassembler in tests.
Source: VideoCore IV 3D Architecture Reference Guide, "QPU Instruction Encoding" (pp. 26-36).
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET, NOP_WORD
from vc4lab.qpu.isa.operations import SMALL_IMMEDIATES, BranchCondition, Condition, LoadMode, Signal
from vc4lab.qpu.isa.registers import Read, Write

SMALL_IMMEDIATE_CODES: dict[int, int] = {
    word: code for code, word in reversed(list(enumerate(SMALL_IMMEDIATES[:48])))
}
"""32-bit word -> its code as a small immediate."""

NOP = NOP_WORD
_NO_WRITE = int(Write.NOP)
_NO_READ = int(Read.NOP)


class Half(NamedTuple):
    """The work of one ALU.

    Attributes
    ----------
    op
        `AddOp` or `MulOp`.
    a, b
        Its operands, as `Mux`.
    address
        Where the result goes.
    condition
        In which lanes.
    """

    op: int
    a: int
    b: int
    address: int = _NO_WRITE
    condition: int = Condition.ALWAYS

    def through(self, old: int, new: int) -> Half:
        """Make this operation with operands read through another file."""
        return self._replace(a=new if self.a == old else self.a, b=new if self.b == old else self.b)


_IDLE = Half(0, 0, 0, _NO_WRITE, Condition.NEVER)


def alu(
    add: Half | None = None,
    mul: Half | None = None,
    *,
    signal: int = Signal.NONE,
    raddr_a: int = _NO_READ,
    raddr_b: int = _NO_READ,
    swap: bool = False,
    set_flags: bool = False,
    pm: bool = False,
    pack: int = 0,
    unpack: int = 0,
) -> int:
    """An ALU instruction. raddr_b is the small immediate's code with that signal; swap: the add
    ALU writes address space B.
    """
    add, mul = add or _IDLE, mul or _IDLE
    return (
        signal << 60
        | unpack << 57
        | pm << 56
        | pack << 52
        | add.condition << 49
        | mul.condition << 46
        | set_flags << 45
        | swap << 44
        | add.address << 38
        | mul.address << 32
        | mul.op << 29
        | add.op << 24
        | raddr_a << 18
        | raddr_b << 12
        | add.a << 9
        | add.b << 6
        | mul.a << 3
        | mul.b
    )


def load_immediate(word: int, address: int, *, swap: bool = False) -> int:
    """A 32-bit word into a register, in all lanes."""
    return (
        Signal.LOAD_IMMEDIATE << 60
        | Condition.ALWAYS << 49
        | Condition.NEVER << 46
        | swap << 44
        | address << 38
        | _NO_WRITE << 32
        | word & 0xFFFFFFFF
    )


def semaphore(number: int, address: int, *, acquires: bool, swap: bool = False) -> int:
    """Wait for one of 16 semaphores, or release it; the number goes into a register, too."""
    word = load_immediate(number | acquires << 4, address, swap=swap)
    return word | LoadMode.SEMAPHORE << 57


def branch(condition: BranchCondition, index: int, target: int) -> int:
    """A relative branch: the instruction with number `index` goes on with number `target`."""
    distance = INSTRUCTION_BYTES * (target - index) - LINK_OFFSET
    return (
        Signal.BRANCH << 60
        | condition << 52
        | 1 << 51  # relative
        | _NO_WRITE << 38
        | _NO_WRITE << 32
        | distance & 0xFFFFFFFF
    )


def with_signal(word: int, signal: Signal) -> int:
    """Make this instruction with another signal."""
    return word & (1 << 60) - 1 | signal << 60
