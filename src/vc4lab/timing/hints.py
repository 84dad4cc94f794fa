"""What could make a program quicker: pairs that one instruction could hold, latencies without work.

Nothing is changed here. A pair is named only if both instructions can be put into one word that
touches what both touch, in the same basic block, next to each other. Source: hardware reference 4.2
to 4.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vc4lab.qpu.isa.accesses import Accesses, Kind, accesses
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS, Alu, Branch, Instruction
from vc4lab.qpu.isa.operations import AddOp, Condition, MulOp, Mux, Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import plan
from vc4lab.qpu.text.lint import lint
from vc4lab.timing.compute.kinds import CAUSE_TEXT, Cause
from vc4lab.timing.program_use import ProgramUse

REACH = 8
"""Words before and after a pair that the lint looks at; no rule reaches further."""
LEAST_CLOCKS = 4
"""Clocks that an instruction waits each time, from which on it is named."""
_REQUESTS = {
    CAUSE_TEXT[Cause.TMU_RESULT]: (Kind.TMU_WRITE, "the texture request"),
    CAUSE_TEXT[Cause.LOAD_WAIT]: (Kind.DMA_START, "the DMA load"),
    CAUSE_TEXT[Cause.STORE_WAIT]: (Kind.DMA_START, "the DMA store"),
}
_NO_RETRY = Kind.BRANCH | Kind.THREAD_SWITCH | Kind.PROGRAM_END | Kind.SEMAPHORE | Kind.MUTEX
"""What is not moved or paired."""


@dataclass(frozen=True)
class Hint:
    """A place, and what could be done there; clocks: what it costs now, on all QPUs."""

    address: int
    clocks: int
    text: str


def hints_of(use: ProgramUse, slot: int) -> list[Hint]:
    """All hints about a program, the dearest first. slot: clocks of an instruction."""
    found = [*_pairs(use, slot), *_latencies(use), *_idle(use, slot)]
    return sorted(found, key=lambda hint: -hint.clocks)


def _pairs(use: ProgramUse, slot: int) -> Iterator[Hint]:
    """Neighbours that one word could hold. Each instruction is in one pair."""
    program, starts = use.program, _starts(use.program)
    bound = _bound(program)
    index = 0
    while index + 1 < len(program.words):
        first, second = program.words[index : index + 2]
        after = index + 1
        both = use.seen[index].executed and after not in starts and program.after(index) == after
        if both and index not in bound and after not in bound:
            word = merged(first, second)
            if word is not None and _keeps_rules(program, index, word):
                saved = slot * use.seen[after].executed
                text = f"`{use.seen[index].text}` and `{use.seen[after].text}` fit one instruction"
                yield Hint(program.address_of(index), saved, text)
                index += 1
        index += 1


def _starts(program: Program) -> set[int]:
    """Instructions that branches lead to."""
    found = set(program.targets)
    for index, word in enumerate(program.words):
        branch = Instruction.decode(word)
        if isinstance(branch, Branch) and not branch.register:
            target = program.index_of(branch.target(program.address_of(index)))
            if target is not None:
                found.add(target)
    return found


def _bound(program: Program) -> set[int]:
    """Instructions that stay where they are: in delay slots, and those that have some."""
    found: set[int] = set()
    for index, word in enumerate(program.words):
        touched = accesses(word)
        if touched.kinds & Kind.BRANCH:
            found.update(range(index, index + 1 + BRANCH_DELAY_SLOTS))
        elif touched.kinds & _NO_RETRY:
            found.update(range(index, index + 1 + END_DELAY_SLOTS))
    return found


def _keeps_rules(program: Program, index: int, word: int) -> bool:
    """Whether the lint finds no more with one word in the place of two, looking at the words around."""
    start, end = max(index - REACH, 0), min(index + 2 + REACH, len(program.words))
    before, after = program.words[start:index], program.words[index + 2 : end]
    now = Counter(one.code for one in lint([*before, *program.words[index : index + 2], *after]))
    then = Counter(one.code for one in lint([*before, word, *after]))
    return then <= now


def merged(first: int, second: int) -> int | None:
    """The word that does what two neighbours do; None: none is known to."""
    a, b = Instruction.decode(first), Instruction.decode(second)
    if not isinstance(a, Alu) or not isinstance(b, Alu) or _depends(accesses(first), accesses(second)):
        return None
    if any(one.pm or one.pack or one.unpack for one in (a, b)) or (a.sf and b.sf):
        return None
    if any(_is_odd(one) for one in (a, b)):
        return None
    signals = [int(one.signal) for one in (a, b) if one.signal != Signal.NONE]
    if len(signals) > 1 or Signal.BREAKPOINT in signals:
        return None
    for add, mul in ((a, b), (b, a)):
        if add.op_mul or not add.op_add or (mul.sf and not add.sf):
            continue  # flags are the add ALU's where it has an operation
        as_mul = _on_mul(mul)
        if as_mul is None:
            continue
        word = _together(add, as_mul, signals[0] if signals else int(Signal.NONE))
        if word is not None and _same(word, first, second):
            return word
    return None


def _is_odd(alu: Alu) -> bool:
    """Whether an ALU without an operation has a target, or an operand is of no register: what these
    give is not documented, and depends on what was before.
    """
    add, mul = (alu.op_add, alu.waddr_add), (alu.op_mul, alu.waddr_mul)
    if any(not op and address != Write.NOP for op, address in (add, mul)):
        return True
    muxes = alu.muxes()
    no_b = alu.raddr_b == Read.NOP and not alu.has_small_immediate
    return (Mux.A in muxes and alu.raddr_a == Read.NOP) or (Mux.B in muxes and no_b)


def _on_mul(alu: Alu) -> Alu | None:
    """An instruction with its one operation on the mul ALU; None: it cannot be there."""
    if alu.op_mul:
        return alu if not alu.op_add else None
    if alu.op_add != AddOp.OR or alu.add_a != alu.add_b or alu.sf:
        return None
    return alu.replace(
        op_add=AddOp.NOP, op_mul=MulOp.V8MIN, mul_a=alu.add_a, mul_b=alu.add_b,
        waddr_mul=alu.waddr_add, waddr_add=Write.NOP, cond_mul=alu.cond_add, cond_add=Condition.NEVER,
        ws=1 - int(alu.ws),
    )  # fmt: skip


def _together(add: Alu, mul: Alu, signal: int) -> int | None:
    ports = []
    for name in ("raddr_a", "raddr_b"):
        wanted = {
            int(getattr(one, name))
            for one in (add, mul)
            if getattr(one, name) != Read.NOP or (name == "raddr_b" and one.has_small_immediate)
        }
        if len(wanted) > 1:
            return None
        ports.append(wanted.pop() if wanted else int(Read.NOP))
    if (add.has_small_immediate or mul.has_small_immediate) and any(
        one.raddr_b != Read.NOP and not one.has_small_immediate for one in (add, mul)
    ):
        return None
    for swap in (0, 1):
        if _target(add.add_file, add.waddr_add, "b" if swap else "a") and _target(
            mul.mul_file, mul.waddr_mul, "a" if swap else "b"
        ):
            break
    else:
        return None
    return add.replace(
        signal=signal, raddr_a=ports[0], raddr_b=ports[1], op_mul=mul.op_mul, mul_a=mul.mul_a,
        mul_b=mul.mul_b, waddr_mul=mul.waddr_mul, cond_mul=mul.cond_mul, ws=swap,
    ).encode()  # fmt: skip


def _target(file: str, address: int, wanted: str) -> bool:
    """Whether a result can go through a file's addresses."""
    anywhere = Write.ACC0 <= address <= Write.ACC3 or address == Write.NOP
    return file == wanted or anywhere


def _depends(first: Accesses, second: Accesses) -> bool:
    """Whether the second cannot be issued with the first."""
    written = first.at(Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE)
    read = second.at(Kind.REGISTER_READ | Kind.ACCUMULATOR_READ | Kind.ROTATED | Kind.ROTATION_AMOUNT)
    if written & (read | second.at(Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE)):
        return True
    if first.kinds & Kind.FLAGS_WRITE and second.kinds & Kind.FLAGS_READ:
        return True
    if first.kinds & (Kind.R4_LOAD | Kind.SFU_WRITE) and second.kinds & (Kind.R4_READ | Kind.R4_LOAD):
        return True
    if first.kinds & Kind.FLAGS_WRITE and second.kinds & Kind.FLAGS_WRITE:
        return True
    return bool((first.kinds | second.kinds) & _NO_RETRY) or bool(
        set(first.units) & set(second.units) & _ORDERED
    )


_ORDERED = {
    Kind.UNIFORM_READ, Kind.VPM_READ, Kind.VPM_WRITE, Kind.VPM_SETUP, Kind.VPM_WAIT, Kind.DMA_START,
    Kind.TMU_WRITE, Kind.TMU_LOAD, Kind.SFU_WRITE, Kind.TLB_COLOUR_WRITE, Kind.TLB_Z_WRITE,
    Kind.VARYING_READ,
}  # fmt: skip
"""What keeps its order, and of which an instruction has one."""
_MEMORY = Kind.VPM_READ | Kind.VPM_WRITE | Kind.VPM_SETUP | Kind.VPM_WAIT | Kind.DMA_START


_STAYS = _MEMORY | Kind.R4_READ | Kind.TMU_WRITE | Kind.UNIFORM_READ | Kind.TMU_LOAD
"""What is not moved before a result that is waited for."""


def _same(word: int, first: int, second: int) -> bool:
    """Whether a word touches what both touch, and VPM and DMA keep to one access."""
    one, (a, b) = accesses(word), (accesses(first), accesses(second))
    if a.kinds & _MEMORY and b.kinds & _MEMORY:
        return False
    places = {
        kind: a.places.get(kind, frozenset()) | b.places.get(kind, frozenset())
        for kind in {*a.places, *b.places}
    }
    return dict(one.places) == places and sorted(one.units) == sorted((*a.units, *b.units))


def _latencies(use: ProgramUse) -> Iterator[Hint]:
    """Instructions that wait for a result: where it was asked for, and what could be done meanwhile."""
    program = use.program
    for index, one in enumerate(use.seen):
        for cause, (kind, what) in _REQUESTS.items():
            clocks = one.stalls.get(cause, 0)
            if not one.executed or clocks < LEAST_CLOCKS * one.executed:
                continue
            asked = _asked(program, index, kind)
            each = clocks / one.executed
            text = f"`{one.text}` waits {each:.1f} clocks ({cause})"
            if asked is not None:
                gap = index - asked - 1
                text += f", {_count(gap)} after {what} at 0x{program.address_of(asked):08x}"
                free = _independent(program, index)
                need = "needs" if free == 1 else "need"
                text += (
                    f"; {_count(free)} after it {need} no part of the result and could go between"
                    if free
                    else "; asking earlier, in the round before, would hide it"
                )
            yield Hint(one.address, clocks, text)


def _count(number: int) -> str:
    return "1 instruction" if number == 1 else f"{number} instructions"


def _asked(program: Program, index: int, kind: Kind) -> int | None:
    """The nearest request before, if it lies in the same stretch."""
    for at in range(index - 1, max(index - 200, -1), -1):
        touched = accesses(program.words[at])
        if touched.kinds & kind:
            return at
        if touched.kinds & Kind.BRANCH:
            return None
    return None


def _independent(program: Program, index: int) -> int:
    """How many instructions up to the next branch need nothing of this one, nor of those that do."""
    starts = _starts(program)
    held = [accesses(program.words[index])]
    count = 0
    for at in range(index + 1, len(program.words)):
        touched = accesses(program.words[at])
        if at in starts or touched.kinds & (Kind.BRANCH | Kind.PROGRAM_END | Kind.THREAD_SWITCH):
            break
        idle = plan(program.words[at]).idle
        moves = not touched.kinds & _STAYS
        if not idle and moves and not any(_depends(one, touched) or _overtakes(one, touched) for one in held):
            count += 1
        elif not idle:
            held.append(touched)
    return count


def _overtakes(first: Accesses, second: Accesses) -> bool:
    """Whether the second changes what the first reads."""
    read = first.at(Kind.REGISTER_READ | Kind.ACCUMULATOR_READ)
    written = second.at(Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE)
    flags = second.kinds & Kind.FLAGS_WRITE and first.kinds & (Kind.FLAGS_READ | Kind.FLAGS_WRITE)
    return bool(read & written) or bool(flags)


def _idle(use: ProgramUse, slot: int) -> Iterator[Hint]:
    """Delay slots of branches that nothing is in."""
    program = use.program
    for index, word in enumerate(program.words):
        slots = range(index + 1, min(index + 1 + BRANCH_DELAY_SLOTS, len(program.words)))
        if not accesses(word).kinds & Kind.BRANCH:
            continue
        idle = [at for at in slots if plan(program.words[at]).idle and use.seen[at].executed]
        clocks = slot * sum(use.seen[at].executed for at in idle)
        if idle:
            text = f"{len(idle)} of the 3 delay slots of `{use.seen[index].text}` do nothing"
            yield Hint(use.seen[index].address, clocks, text)
