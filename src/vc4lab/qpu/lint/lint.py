"""Checks a QPU program against the restrictions that the hardware has and does not enforce.

    for finding in lint(words):
        print(finding.index, finding.code, finding.message)

The rules are the tables of `../isa/hazards.py`; every code is an entry in the catalogue (`vc4lab
explain QPU-101`). Rules about neighbours look along every way the program can go, branches
included. What a table cannot say is here: a program without its end, and what a thread switch
destroys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from vc4lab.qpu.isa.accesses import TLB_ACCESS, Accesses, Kind
from vc4lab.qpu.isa.encoding import END_DELAY_SLOTS, INSTRUCTION_BYTES, Branch
from vc4lab.qpu.isa.hazards import (
    CONSUMERS,
    FORMS,
    HAZARDS,
    MAX_DISTANCE,
    PAIRINGS,
    PLACEMENTS,
    PRODUCERS,
    SINGLES,
    Hazard,
)
from vc4lab.qpu.isa.registers import TMU_WRITES
from vc4lab.qpu.lint.parts import Part, parts
from vc4lab.qpu.lint.unset import FLAGS, read_before_written

_LOST: Final = ("r0", "r1", "r2", "r3", "flags")
"""Registers and flags that do not survive a thread switch."""


@dataclass(frozen=True)
class Finding:
    """A broken rule: diagnostic code, instruction index, sentence."""

    code: str
    index: int
    message: str


class Pair(NamedTuple):
    """Two instructions of a way through the program that break a hazard, and the register at fault
    ("" for none).
    """

    hazard: Hazard
    before: int
    after: int
    distance: int
    place: str

    @property
    def finding(self) -> Finding:
        return Finding(self.hazard.code, self.after, self.hazard.message(self.place, self.distance))


def lint(words: Sequence[int], raw: Collection[int] = ()) -> list[Finding]:
    """Findings of all programs in a sequence of words, ordered by instruction.

    A new program begins after each program end's delay slots, as in a file that holds several
    shaders. raw: indices of words that need not be instructions.
    """
    findings: list[Finding] = []
    for part in parts(words):
        findings += (pair.finding for pair in pairs(part))
        for rule in (singles, _ends, _lost_at_switches, _unset, _scoreboard):
            findings += rule(part)
    raw = frozenset(raw)
    kept = dict.fromkeys(finding for finding in findings if finding.index not in raw)
    return sorted(kept, key=lambda f: (f.index, f.code))


# Rules of the tables ----------------------------------------------------------------------------


def pairs(part: Part) -> Iterator[Pair]:
    """Hazards that are broken on some way through the program."""
    for index in part.indices():
        before = part.touched[index]
        if before.kinds & PRODUCERS:
            for after, distance in part.following(index, MAX_DISTANCE):
                yield from between(part.touched, index, after, distance)


def between(touched: Sequence[Accesses], before: int, after: int, distance: int) -> Iterator[Pair]:
    """Hazards that two instructions break at a distance."""
    first, second = touched[before], touched[after]
    if not (first.kinds & PRODUCERS and second.kinds & CONSUMERS):
        return
    for hazard in HAZARDS:
        places = hazard.broken(first, second, distance)
        if places is not None:
            for place in sorted(places) or ("",):
                yield Pair(hazard, before, after, distance, place)


def singles(part: Part) -> Iterator[Finding]:
    """Instructions at fault by themselves, by what they combine or by where they stand."""
    parameters = _texture_parameters(part)
    for index in part.indices():
        touched = part.touched[index]
        if touched.kinds & SINGLES:
            for form in FORMS:
                if touched.kinds & form.kind:
                    place = ", ".join(sorted(touched.at(form.kind)))
                    yield Finding(form.code, index, form.text.format(place=place))
        if len(touched.units) > 1 or index in parameters:
            for pairing in PAIRINGS:
                message = pairing.broken(touched, index in parameters)
                if message:
                    yield Finding(pairing.code, index, message)
        after_end = part.after_end(index)
        for placement in PLACEMENTS:
            if touched.kinds & placement.kinds:
                if placement.where.holds(index - part.start, after_end):
                    yield Finding(placement.code, index, placement.text)


def _texture_parameters(part: Part) -> set[int]:
    """Instructions that take a uniform for the texture unit, in textual order of the program."""
    found = set()
    pending = [False, False]
    for index in part.indices():
        if not part.touched[index].kinds & Kind.TMU_WRITE:
            continue
        for _, address in part.all[index].write_addresses():
            if address in TMU_WRITES:
                unit, coordinate = TMU_WRITES[address]
                if coordinate != "s" or pending[unit]:
                    found.add(index)
                pending[unit] = coordinate != "s"
    return found


# Rules about a program as a whole ---------------------------------------------------------------


def _ends(part: Part) -> Iterator[Finding]:
    """A program that runs past its last instruction, or never comes to an end."""
    if part.start and not any(part.touched[index].kinds for index in part.indices()):
        return  # padding after a program
    last = part.stop - 1
    if part.stop in part.successors(last):
        missing = part.after_end(last)
        if missing >= 0:
            count = END_DELAY_SLOTS - missing
            text = f"thrend needs two more instructions after it, {count} missing"
        elif any(isinstance(part.all[i], Branch) for i in range(max(last - 2, part.start), last + 1)):
            text = "a branch needs three more instructions after it: its delay slots"
        else:
            text = "the program goes on past this instruction, its last; thrend is missing"
        yield Finding("QPU-121", last, text)
    elif not part.ends and not _returns(part):
        yield Finding("QPU-121", last, "the program has no thrend: it never ends")


def _returns(part: Part) -> bool:
    """Whether it may be left by a branch to somewhere else."""
    for index in part.indices():
        branch = part.all[index]
        if isinstance(branch, Branch):
            if branch.register or not branch.relative:
                return True
            target = branch.target(index * INSTRUCTION_BYTES) // INSTRUCTION_BYTES
            if not part.start <= target < part.stop:
                return True
    return False


def _lost_at_switches(part: Part) -> Iterator[Finding]:
    """Accumulators and flags that are read after a thread switch and before they are written."""
    seen: dict[int, frozenset[str]] = {}
    todo: list[tuple[int, frozenset[str]]] = []
    for index in part.indices():
        if part.touched[index].kinds & Kind.THREAD_SWITCH:
            slot = index + END_DELAY_SLOTS
            if slot < part.stop and index not in part.ends:
                todo += [(after, frozenset(_LOST)) for after in part.successors(slot)]
    while todo:
        index, lost = todo.pop()
        known = seen.get(index, frozenset())
        if index >= part.stop or lost <= known:
            continue
        lost |= known
        seen[index] = lost
        for name in sorted(lost & _used(part.touched[index])):
            text = f"{name} is read, but was lost by the thread switch before"
            yield Finding("QPU-123", index, text)
        left = lost - _used(part.touched[index]) - _filled(part.touched[index])
        if left:
            todo += [(after, left) for after in part.successors(index)]


def _unset(part: Part) -> Iterator[Finding]:
    """Registers that are read before anything was written to them."""
    for index, name in read_before_written(part):
        are = "are" if name == FLAGS else "is"
        yield Finding("QPU-131", index, f"{name} {are} read, but nothing has been written there before")


def _used(touched: Accesses) -> frozenset[str]:
    flags = {"flags"} if touched.kinds & Kind.FLAGS_READ else set()
    return touched.at(Kind.ACCUMULATOR_READ) | flags


def _filled(touched: Accesses) -> frozenset[str]:
    flags = {"flags"} if touched.kinds & Kind.FLAGS_WRITE else set()
    return touched.at(Kind.ACCUMULATOR_WRITE) | flags


_FREE: Final = 0
_HELD: Final = 1
_RELEASED: Final = 2


def _scoreboard(part: Part) -> Iterator[Finding]:
    """Accesses to the tile buffer while the scoreboard is not held, and switches while it is."""
    if not any(touched.kinds & TLB_ACCESS for touched in part.touched[part.start : part.stop]):
        return
    seen: set[tuple[int, int]] = set()
    todo = [(part.start, _FREE)]
    while todo:
        index, state = todo.pop()
        if index >= part.stop or (index, state) in seen:
            continue
        seen.add((index, state))
        kinds = part.touched[index].kinds
        if state == _RELEASED:
            if kinds & TLB_ACCESS:
                text = "the tile buffer is accessed after sbdone has released the scoreboard"
                yield Finding("QPU-128", index, text)
        elif kinds & (TLB_ACCESS | Kind.SCOREBOARD_WAIT):
            if state == _FREE and kinds & Kind.PROGRAM_END:
                text = "the first access to the tile buffer is in the program-end instruction"
                yield Finding("QPU-130", index, text)
            state = _HELD
        if kinds & Kind.THREAD_SWITCH and state == _HELD:
            yield Finding("QPU-129", index, "the thread switches while it holds the scoreboard")
        if kinds & Kind.SCOREBOARD_UNLOCK:
            state = _RELEASED
        todo += [(after, state) for after in part.successors(index)]
