"""One instruction while it is filled: which operations still fit beside those it has.

Both ALUs share two read ports, one per file; a small immediate takes that of file B, a uniform
either. One unpack, one pack, one signal, one unit outside the QPU.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.isa.builder import SMALL_IMMEDIATE_CODES, Half, alu, load_immediate, semaphore
from vc4lab.qpu.isa.operations import AddOp, Mux, Signal
from vc4lab.qpu.isa.registers import Read as Address
from vc4lab.qpu.isa.registers import Write as WriteAddress
from vc4lab.qpu.machine.code import Const, Op, Read, Reg, Streamed, StreamWord

R0, R4, R5 = 64, 68, 69
"""Places of accumulators; files A and B are before."""
UNIFORM = int(Address.UNIFORM)
NO_READ = int(Address.NOP)
_A, _B = int(Mux.A), int(Mux.B)


class Move(NamedTuple):
    """An operand that must be elsewhere before its operation can be in any instruction."""

    reg: Reg
    wants: str
    """ "a", "b" (not in file A), "accumulator" or "not b"."""


class Plan(NamedTuple):
    """How an operation goes into an instruction."""

    is_add: bool
    code: int
    muxes: tuple[int, ...]
    raddr_a: int
    raddr_b: int
    immediate: int
    uniform: Streamed | None
    pm: int
    unpack: int
    reads: int
    """Bits: 1 r4 as it is, 2 file A as it is."""


class Slot:
    """An instruction. -1: not chosen."""

    __slots__ = (
        "add", "alone", "has_look_up", "immediate", "is_sealed", "loads_to", "mul", "ops", "pack",
        "peripheral", "pm", "raddr_a", "raddr_b", "reads", "rotate", "set_flags", "signal", "swap", "takes",
        "uniform", "unpack",
    )  # fmt: skip

    def __init__(self) -> None:
        self.add: Half | None = None
        self.mul: Half | None = None
        self.raddr_a = -1
        self.raddr_b = -1
        self.immediate = -1
        self.uniform: Streamed | None = None
        self.takes: StreamWord | None = None
        self.signal: Signal | None = None
        self.pm = -1
        self.pack = 0
        self.unpack = 0
        self.reads = 0
        self.swap = -1
        self.rotate = 0
        self.set_flags = False
        self.is_sealed = False
        """Its flags come from the mul ALU: the add ALU must do nothing."""
        self.peripheral = False
        self.has_look_up = False
        """An address for memory: the kernel wants no small immediate beside it."""
        self.alone: Op | None = None
        """A load immediate or a semaphore: nothing else is in the instruction."""
        self.loads_to = int(WriteAddress.NOP)
        self.ops: list[Op] = []

    def word(self) -> int:
        """The instruction."""
        if self.alone is not None:
            return self._alone(self.alone)
        signal = Signal.NONE if self.signal is None else self.signal
        raddr_b = self.raddr_b
        if self.immediate >= 0 or self.rotate:
            signal = Signal.SMALL_IMMEDIATE
            raddr_b = self.rotate + 48 if self.rotate else self.immediate
        return alu(
            self.add,
            self.mul,
            signal=signal,
            raddr_a=NO_READ if self.raddr_a < 0 else self.raddr_a,
            raddr_b=NO_READ if raddr_b < 0 else raddr_b,
            swap=self.swap == 1,
            set_flags=self.set_flags,
            pm=self.pm == 1,
            pack=self.pack,
            unpack=self.unpack,
        )

    def _alone(self, op: Op) -> int:
        swap = self.swap == 1
        if op.semaphore is not None:
            acquires = op.semaphore >= 0
            number = op.semaphore if acquires else ~op.semaphore
            return semaphore(number, self.loads_to, acquires=acquires, swap=swap)
        assert op.loads is not None
        return load_immediate(op.loads, self.loads_to, swap=swap)

    # ---------------------------------------------------------------- operands

    def plan(self, op: Op, is_add: bool, now: int, may_read_uniform: bool) -> Plan | Move | None:  # noqa: C901
        """How the operation's operands are read here; None: not in this instruction."""
        code = op.add if is_add else op.mul
        assert code is not None
        raddr_a, raddr_b, immediate = self.raddr_a, self.raddr_b, self.immediate
        uniform, pm, unpack, reads = self.uniform, self.pm, self.unpack, self.reads
        if op.pack:
            if self.pack or pm not in (-1, int(op.pm)):
                return None
            pm = int(op.pm)
        if op.is_look_up and (immediate >= 0 or self.rotate):
            return None
        if self.rotate:
            raddr_b = NO_READ
        elif op.rotate:
            if self.has_look_up or self.signal is not None or raddr_b >= 0 or immediate >= 0:
                return None
            raddr_b = NO_READ
        muxes = [-1] * len(op.args)
        later: list[int] = []
        for index, arg in enumerate(op.args):
            if not isinstance(arg, Reg):
                later.append(index)
                continue
            place = arg.place
            if place is None or arg.ready > now:
                return None
            wanted = op.unpacks[index]
            if wanted and 32 <= place < R4:
                return Move(arg, "a")
            if op.rotate:
                if not R0 <= place < R4:
                    return Move(arg, "accumulator")
                if arg.ready >= now:
                    return None
            if place >= R0:
                muxes[index] = place - R0
                if place == R4:
                    if wanted:
                        if pm == 0 or reads & 1 or unpack not in (0, wanted):
                            return None
                        pm, unpack = 1, wanted
                    elif pm == 1 and unpack:
                        return None
                    else:
                        reads |= 1
            elif place < 32:
                if raddr_a not in (-1, place):
                    other = op.args[1 - index] if len(op.args) == 2 else None
                    if isinstance(other, Reg) and other is not arg and index == 1:
                        if other.place is not None and other.place < 32 != place:
                            if other.place != place:
                                return Move(arg, "not a") if not wanted else Move(other, "not a")
                    return None
                muxes[index] = _A
                raddr_a = place
                if wanted:
                    if pm == 1 or reads & 2 or (unpack and unpack != wanted) or self.unpack:
                        return None
                    pm, unpack = 0, wanted
                    if op.is_unpack:
                        code = int(AddOp.FMAX) if is_add else -1
                elif pm == 0 and unpack:
                    return None
                else:
                    reads |= 2
            else:
                if immediate >= 0 or raddr_b not in (-1, place - 32):
                    if index == 1:
                        other = op.args[0]
                        if isinstance(other, Reg) and other is not arg:
                            if other.place is not None and 32 <= other.place < R0:
                                if other.place != place:
                                    return Move(arg, "not b")
                    return None
                muxes[index] = _B
                raddr_b = place - 32
        if code < 0:
            return None
        for index in later:
            arg = op.args[index]
            if isinstance(arg, Read):
                if arg.b >= 0 and (raddr_b == arg.b or (raddr_b == -1 and immediate < 0)):
                    muxes[index], raddr_b = _B, arg.b
                elif arg.a >= 0 and raddr_a in (-1, arg.a):
                    if pm == 0 and unpack:
                        return None
                    muxes[index], raddr_a = _A, arg.a
                    reads |= 2
                else:
                    return self._blocked(op, index, arg)
                continue
            if isinstance(arg, Const):
                small = SMALL_IMMEDIATE_CODES.get(arg.word)
                if small is not None and self.signal is None and not (self.rotate or self.has_look_up):
                    if immediate == small or (immediate < 0 and raddr_b < 0):
                        muxes[index], immediate = _B, small
                        continue
                if op.is_clamp:
                    return self._displaced(op, index)
            assert isinstance(arg, StreamWord | Const)
            if not may_read_uniform:
                return self._displaced(op, index)
            if self.takes is not None or op.takes is not None:
                return None
            if uniform is not None and uniform != arg:
                return None
            if raddr_a == UNIFORM:
                if pm == 0 and unpack:
                    return None
                muxes[index] = _A
            elif raddr_b == UNIFORM and immediate < 0:
                muxes[index] = _B
            elif uniform is None and raddr_b < 0 and immediate < 0 and raddr_a >= 0:
                muxes[index], raddr_b, uniform = _B, UNIFORM, arg
            elif uniform is None and raddr_a < 0 and not (pm == 0 and unpack):
                muxes[index], raddr_a, uniform = _A, UNIFORM, arg
                reads |= 2
            elif uniform is None and raddr_b < 0 and immediate < 0:
                muxes[index], raddr_b, uniform = _B, UNIFORM, arg
            else:
                return None
        if immediate >= 0 and self.signal is not None:
            return None
        return Plan(is_add, code, tuple(muxes), raddr_a, raddr_b, immediate, uniform, pm, unpack, reads)

    def flip(self) -> bool:
        """Read the stream that an operation reads through the other file; whether that is possible."""
        if self.uniform is not None or self.unpack or self.immediate >= 0 or self.rotate:
            return False
        if self.raddr_a == UNIFORM and self.raddr_b < 0:
            self.raddr_a, self.raddr_b, old, new = -1, UNIFORM, _A, _B
        elif self.raddr_b == UNIFORM and self.raddr_a < 0:
            self.raddr_a, self.raddr_b, old, new = UNIFORM, -1, _B, _A
        else:
            return False
        if self.add is not None:
            self.add = self.add.through(old, new)
        if self.mul is not None:
            self.mul = self.mul.through(old, new)
        return True

    @staticmethod
    def _blocked(op: Op, index: int, read: Read) -> Move | None:
        """An operand in the file that a special read needs."""
        if len(op.args) == 2 and read.b < 0 and isinstance(other := op.args[1 - index], Reg):
            if other.place is not None and other.place < 32:
                return Move(other, "not a")
        if len(op.args) == 2 and read.a < 0 and isinstance(other := op.args[1 - index], Reg):
            if other.place is not None and 32 <= other.place < R0:
                return Move(other, "not b")
        return None

    @staticmethod
    def _displaced(op: Op, index: int) -> Move | None:
        """Return the move that takes a register out of file B beside a constant: no uniform can be read."""
        other = op.args[1 - index] if len(op.args) == 2 else None
        if isinstance(op.args[index], Const) and isinstance(other, Reg):
            if other.place is not None and 32 <= other.place < R0:
                return Move(other, "not b")
        return None

    def take(self, op: Op, plan: Plan, address: int, swap: int) -> None:
        """Put an operation here."""
        self.ops.append(op)
        self.raddr_a, self.raddr_b, self.immediate = plan.raddr_a, plan.raddr_b, plan.immediate
        if self.rotate:
            self.raddr_b = -1
        self.uniform, self.pm, self.unpack, self.reads = (
            plan.uniform, plan.pm, plan.unpack, plan.reads,
        )  # fmt: skip
        muxes = plan.muxes
        half = Half(plan.code, muxes[0], muxes[-1], address, op.condition)
        if plan.is_add:
            self.add = half
        else:
            self.mul = half
        if swap >= 0:
            self.swap = swap
        if op.pack:
            self.pack = op.pack
            self.pm = int(op.pm)
        if op.rotate:
            self.rotate = op.rotate
        if op.sets is not None:
            self.set_flags = True
            self.is_sealed |= not plan.is_add
        if op.takes is not None:
            self.takes = op.takes
        if op.signal is not None:
            self.signal = op.signal
        self.peripheral |= op.peripheral
        self.has_look_up |= op.is_look_up
