"""Finds what could make a program quicker: pairs for one instruction, latencies without work.

Nothing is changed here. A pair is named only if both instructions can be put into one word that
touches what both touch, in the same basic block, next to each other. Each hint says what `vc4lab opt`
does about it: it is asked. Source: hardware reference 4.2 to 4.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vc4lab.qpu.isa.accesses import Accesses, Kind, accesses
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS, Branch, Instruction
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.optimise.optimise import TooLarge, optimise
from vc4lab.qpu.optimise.pairs import merged
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import plan
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
"""Kinds of instruction that are not moved or paired."""


@dataclass(frozen=True)
class Hint:
    """A place, and what could be done there; clocks: what it costs now, on all QPUs."""

    address: int
    clocks: int
    text: str


def hints_of(use: ProgramUse, slot: int) -> list[Hint]:
    """All hints about a program, the dearest first. slot: clocks of an instruction."""
    better = _Better(use.program)
    found = [*_pairs(use, slot, better), *_latencies(use, better), *_idle(use, slot, better)]
    return sorted(found, key=lambda hint: -hint.clocks)


class _Better:
    """The program as `vc4lab opt` makes it, and where its instructions are then."""

    def __init__(self, program: Program) -> None:
        self.words: tuple[int, ...] = ()
        self._places: dict[int, list[int]] = {}
        targets = sorted(program.targets)
        try:
            found = optimise(program.words, labels=targets)
        except TooLarge:
            return
        self.words = found.words
        for place, sources in enumerate(found.sources):
            for index in sources:
                self._places.setdefault(index, []).append(place)

    def joins(self, first: int, second: int) -> bool:
        """Whether two instructions are one then."""
        places = {place for index in (first, second) for place in self._places.get(index, ())}
        return len(places) == 1

    def between(self, first: int, second: int) -> int | None:
        """How many instructions are between two then; None if that is not known."""
        one, other = self._places.get(first), self._places.get(second)
        return min(other) - max(one) - 1 if one and other and max(one) < min(other) else None

    def idle_after(self, branch: int) -> int | None:
        """How many of a branch's delay slots do nothing then."""
        places = self._places.get(branch)
        if not places:
            return None
        slots = self.words[places[0] + 1 : places[0] + 1 + BRANCH_DELAY_SLOTS]
        return sum(plan(word).idle for word in slots)


def _pairs(use: ProgramUse, slot: int, better: _Better) -> Iterator[Hint]:
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
                text += "; vc4lab opt makes them one" if better.joins(index, after) else ""
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
"""Accesses that keep their order, and of which an instruction has one of each."""
_MEMORY = Kind.VPM_READ | Kind.VPM_WRITE | Kind.VPM_SETUP | Kind.VPM_WAIT | Kind.DMA_START
_STAYS = _MEMORY | Kind.R4_READ | Kind.TMU_WRITE | Kind.UNIFORM_READ | Kind.TMU_LOAD
"""Kinds of instruction that are not moved before a result that is waited for."""


def _latencies(use: ProgramUse, better: _Better) -> Iterator[Hint]:
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
                then = better.between(asked, index)
                text += f"; vc4lab opt puts {then} there" if then is not None and then > gap else ""
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


def _idle(use: ProgramUse, slot: int, better: _Better) -> Iterator[Hint]:
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
            then = better.idle_after(index)
            text += f"; after vc4lab opt {then} of them" if then is not None and then < len(idle) else ""
            yield Hint(use.seen[index].address, clocks, text)
