"""An instruction prepared for execution: all that depends on the word alone, decided once; and what
happens a few instructions later, after delay slots: branches, thread switches and the program end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    SWITCH_DELAY_SLOTS,
    Alu,
    Branch,
    Instruction,
    LoadImmediate,
    Semaphore,
)
from vc4lab.qpu.isa.operations import END_SIGNALS, ONE_OPERAND_ADD_OPS, Condition, Mux, Signal
from vc4lab.qpu.isa.registers import TMU_WRITES, Read, Write


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an ALU result: address space, address, condition, and the pack that applies (0:
    none).
    """

    file: str
    address: int
    condition: int
    pack: int = 0  # of a write to regfile A, pm=0
    colour: int = 0  # of the mul ALU, pm=1

    @property
    def is_write(self) -> bool:
        """Whether anything can happen: even a lookup that no lane asked for starts."""
        if self.address == Write.NOP:
            return False
        return self.condition != Condition.NEVER or self.address in TMU_WRITES


@dataclass(frozen=True, slots=True)
class Plan:
    """One instruction; kind is "alu", "load", "semaphore" or "branch". Fields of other kinds stay
    at their defaults.
    """

    kind: str
    instruction: Instruction
    signal: int
    add: Target
    mul: Target
    add_op: int = 0
    mul_op: int = 0
    add_mux: tuple[int, int] = (0, 0)
    mul_mux: tuple[int, int] = (0, 0)
    raddr_a: int = Read.NOP
    raddr_b: int | None = Read.NOP  # None: small immediate
    immediate: int = 0
    lanes: tuple[int, ...] = ()
    unpack_a: int = 0
    unpack_r4: int = 0
    unpack_float: bool = False
    rotation: int = 0  # 0: none, -1: by r5
    rotate_full: bool = False
    sets_flags: str = ""  # "add" or "mul": the ALU that gives the flags
    muxes: frozenset[int] = field(default_factory=frozenset)
    branch: Branch | None = None
    idle: bool = False
    """Nothing happens in it: no operation, read, write or signal."""

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """Physical registers this instruction may look at."""
        found = []
        if self.kind == "branch":
            assert self.branch is not None
            if self.branch.register:
                found.append(("a", int(self.branch.raddr_a)))
        if self.kind == "alu":
            if self.raddr_a < 32:
                found.append(("a", self.raddr_a))
            if self.raddr_b is not None and self.raddr_b < 32:
                found.append(("b", self.raddr_b))
        return tuple(found)


@lru_cache(maxsize=65536)
def plan(word: int, sf_with_never: str = "add", load_condition: str = "add") -> Plan:
    """The plan of an instruction word under the two unknowns that decide who sets the flags."""
    instruction = Instruction.decode(word)
    signal = int(instruction.signal)
    add_file, mul_file = instruction.add_file, instruction.mul_file
    waddr_add, waddr_mul = int(instruction.waddr_add), int(instruction.waddr_mul)
    if isinstance(instruction, Branch):
        return Plan(
            "branch",
            instruction,
            signal,
            Target(add_file, waddr_add, Condition.ALWAYS),
            Target(mul_file, waddr_mul, Condition.ALWAYS),
            sets_flags="add" if instruction.sf else "",
            branch=instruction,
        )
    assert isinstance(instruction, Alu | LoadImmediate | Semaphore)
    pm, pack = int(instruction.pm), int(instruction.pack)
    cond_add, cond_mul = int(instruction.cond_add), int(instruction.cond_mul)
    add = Target(add_file, waddr_add, cond_add, pack if not pm and add_file == "a" else 0)
    mul = Target(mul_file, waddr_mul, cond_mul, pack if not pm and mul_file == "a" else 0, pack if pm else 0)
    sf = int(instruction.sf)
    if not isinstance(instruction, Alu):
        source = "mul" if cond_add == 0 and load_condition == "mul-if-never" else "add"
        lanes = instruction.lanes() if isinstance(instruction, LoadImmediate) else ()
        if not lanes:
            lanes = (word & 0xFFFFFFFF,) * 16
        kind = "load" if isinstance(instruction, LoadImmediate) else "semaphore"
        return Plan(kind, instruction, signal, add, mul, lanes=lanes, sets_flags=source if sf else "")
    add_op, mul_op = int(instruction.op_add), int(instruction.op_mul)
    use_mul = add_op == 0 or (cond_add == 0 and sf_with_never == "mul")
    small = instruction.has_small_immediate
    rotation = instruction.rotation
    muxes = frozenset(int(m) for m in instruction.muxes())
    mul_mux = (int(instruction.mul_a), int(instruction.mul_b))
    unpack = int(instruction.unpack)
    add_a = int(instruction.add_a)
    ports = (int(instruction.raddr_a), Read.NOP if small else int(instruction.raddr_b))
    quiet = small or signal == Signal.NONE
    writes = add.is_write or mul.is_write
    return Plan(
        "alu",
        instruction,
        Signal.NONE if small else signal,
        add,
        mul,
        add_op=add_op,
        mul_op=mul_op,
        add_mux=(add_a, add_a if add_op in ONE_OPERAND_ADD_OPS else int(instruction.add_b)),
        mul_mux=mul_mux,
        raddr_a=int(instruction.raddr_a),
        raddr_b=None if small else int(instruction.raddr_b),
        immediate=instruction.small_immediate or 0,
        unpack_a=0 if pm else unpack,
        unpack_r4=unpack if pm else 0,
        unpack_float=instruction.has_float_input,
        rotation=0 if rotation is None else -1 if rotation == "r5" else int(rotation),
        rotate_full=max(mul_mux) <= Mux.R3,
        sets_flags=("mul" if use_mul else "add") if sf else "",
        muxes=muxes,
        idle=quiet and not (add_op or mul_op or writes) and ports == (Read.NOP, Read.NOP),
    )


class Event(NamedTuple):
    """Something due after `remaining` more instructions: "branch" (target: address or None if
    dynamic), "switch" (target 1: the last one) or "end".
    """

    remaining: int
    kind: str
    target: int | None = 0


def signal_events(p: Plan) -> tuple[Event, ...]:
    """The events that an instruction's signal starts."""
    if p.signal == Signal.NONE or p.kind != "alu":
        return ()
    if p.signal in END_SIGNALS:
        return (Event(END_DELAY_SLOTS, "end"),)
    if p.signal in (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH):
        return (Event(SWITCH_DELAY_SLOTS, "switch", int(p.signal == Signal.LAST_THREAD_SWITCH)),)
    return ()


def branch_event(target: int | None) -> Event:
    """A taken branch."""
    return Event(BRANCH_DELAY_SLOTS, "branch", target)


def age(events: tuple[Event, ...], new: tuple[Event, ...]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """(due now, still pending) after an instruction that started the events `new`."""
    if len(events) == 1:  # as nearly always, and the interpreter is slow enough
        (remaining, kind, target) = events[0]
        if remaining == 1:
            return events, new
        return (), (Event(remaining - 1, kind, target), *new)
    due = tuple(e for e in events if e.remaining == 1)
    later = tuple(e._replace(remaining=e.remaining - 1) for e in events if e.remaining > 1)
    return due, later + new
