"""From the words of a program to segments, and to the routes that runs take through them.

A segment is a run of instructions of which only the first one may have to wait for other hardware,
so that the event scheduler has one step for it and not one for each instruction. What an instruction
meets is decided once from its word (`compute/decode.py`).

Words of uniforms are where they are in the text: drivers set the pointer anew at the targets of
branches. So it is known which instructions begin a line of them, and which make the next line come.

Which way a run with branches went is not recorded, only how many instructions it had: the route is
one through the program that has as many, or nearly; of several the first one found. A vector takes
the route of the block that executed most. Branches to registers or to fixed addresses count as not
taken.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import lru_cache

from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    SWITCH_DELAY_SLOTS,
    Branch,
    Instruction,
)
from vc4lab.qpu.isa.operations import BranchCondition
from vc4lab.qpu.program.program import Program
from vc4lab.timing.compute.decode import Need, needs
from vc4lab.timing.compute.kinds import LINE, Flag
from vc4lab.timing.graphics.shaders.state import REQUEST_WORDS

Words = tuple[int, ...]

NOTHING = Flag(0)
LINE_WORDS = LINE // 4
"""Uniforms of a line."""
MAX_RUN = 1 << 14
"""Instructions of a route; runs of more are timed as if they had so many."""

_KEPT = (
    Flag.LOOKUP0 | Flag.LOOKUP1 | Flag.RESULT0 | Flag.RESULT1 | Flag.SFU | Flag.VARYING | Flag.LOCK
    | Flag.UNLOCK | Flag.TILE_LOAD | Flag.VPM_SETUP | Flag.VPM_READ | Flag.VPM_WRITE | Flag.END
)  # fmt: skip
"""Needs of an instruction that may let it wait wherever it stands."""


@dataclass(frozen=True)
class Run:
    """A segment: the values of `Segment` that depend on the program."""

    first: int
    meets: Flag = NOTHING
    slots: int = 0
    words: int = 0
    line: int = 0
    uniforms: int = 0
    tile: int = 0


@dataclass(frozen=True)
class Stretch:
    """Instructions that are run through one after the other.

    runs: numbers of its segments. following: where it may go on; none: the program ends.
    """

    runs: tuple[int, ...]
    instructions: int
    following: tuple[int, ...]


@dataclass(frozen=True)
class Way:
    """A route: numbers of segments, and instructions. exact: so many as were asked for."""

    runs: tuple[int, ...]
    instructions: int
    exact: bool = True


class SegmentedProgram:
    """The segments of a program whose first uniform is word `offset` of a line.

    ahead: words of uniforms that are fetched ahead.
    """

    def __init__(self, words: Words, offset: int, ahead: int) -> None:
        self.program = Program(words)
        self.runs: list[Run] = []
        self._needs: list[Need] = needs(self.program)
        self._branches = _branches(words)
        self._fetches = _fetches(self.program, offset, ahead)
        self._words = _uniform_words(self.program)
        self._requests = {
            request.instruction_index: min(len(request.coordinates), REQUEST_WORDS)
            for request in self.program.texture_requests
        }
        targets = {target for target, _ in self._branches.values() if target is not None}
        self._targets = frozenset(targets)
        self._stretches: dict[int, Stretch] = {}
        self._ways: dict[int, Way] = {}
        self._plain: Way | None = None

    # -- stretches

    def stretch(self, first: int) -> Stretch:
        """The instructions from one on that are run through without a choice."""
        found = self._stretches.get(first)
        if found is None:
            end, following = self._end(first)
            found = Stretch(self._cut(first, end, not following), end - first, following)
            self._stretches[first] = found
        return found

    def _end(self, first: int) -> tuple[int, tuple[int, ...]]:
        """Return the end of a stretch, and the instructions at which it may go on."""
        count = len(self._needs)
        for at in range(first, count):
            if at > first and at in self._targets:
                return at, (at,)
            if self._needs[at].flags & Flag.END:
                return min(at + 1 + END_DELAY_SLOTS, count), ()
            if at in self._branches:
                target, always = self._branches[at]
                end = min(at + 1 + BRANCH_DELAY_SLOTS, count)
                plain = (end,) if end < count else ()
                if target is None:
                    return end, plain
                return end, (target,) if always else (*plain, target)
        return count, ()

    def _cut(self, first: int, end: int, last: bool) -> tuple[int, ...]:
        """Makes the segments of a stretch; their numbers."""
        found: list[Run] = []
        switch_at = -1
        switch = NOTHING
        locked = False
        for at in range(first, end):
            flags = self._needs[at].flags
            meets = self._meets(at)
            if locked:
                meets &= ~Flag.LOCK
            locked |= bool(meets & Flag.LOCK)
            if last and at >= end - 1 - END_DELAY_SLOTS:
                meets &= ~Flag.UNLOCK  # its end does that
            if at == switch_at:
                meets |= switch
            if flags & (Flag.SWITCH | Flag.LAST_SWITCH):
                switch_at = at + 1 + SWITCH_DELAY_SLOTS
                switch = Flag.LAST_SWITCH if flags & Flag.LAST_SWITCH else Flag.SWITCH
            if meets or not found:
                line = self._fetches.lines.get(at, 0)
                found.append(Run(at, meets, words=self._requests.get(at, 0), line=line))
            run = found[-1]
            found[-1] = replace(
                run,
                slots=run.slots + 1,
                uniforms=run.uniforms + self._words.get(at, 0),
                tile=run.tile + bool(flags & Flag.TILE),
            )
        if switch_at >= end and not last:
            found.append(Run(end - 1, switch))  # what comes after is another stretch
        self.runs += found or [Run(first)]
        found = found or self.runs[-1:]
        return tuple(range(len(self.runs) - len(found), len(self.runs)))

    def _meets(self, at: int) -> Flag:
        """Return what an instruction may wait for: a uniform only if it is the first of a line."""
        flags = Flag(self._needs[at].flags)
        found = flags & _KEPT
        if flags & Flag.TILE:
            found |= Flag.LOCK
        if at in self._fetches.firsts:
            found |= Flag.UNIFORM
        if at in self._fetches.lines:
            found |= Flag.MOVES_UNIFORMS
        return found

    # -- routes

    def way(self, instructions: int = 0) -> Way:
        """The route of a run of so many instructions; 0: no branch is taken that need not be."""
        if not self._branches or instructions <= 0:
            if self._plain is None:
                self._plain = self._without_choice()
            return self._plain
        wanted = min(instructions, MAX_RUN)
        found = self._ways.get(wanted)
        if found is None:
            found = self._ways[wanted] = self._search(wanted)
        return replace(found, exact=found.instructions == instructions)

    def _without_choice(self) -> Way:
        at, total = 0, 0
        runs: list[int] = []
        seen: set[int] = set()
        while at not in seen:
            seen.add(at)
            stretch = self.stretch(at)
            runs += stretch.runs
            total += stretch.instructions
            if not stretch.following:
                break
            at = stretch.following[0]
        return Way(tuple(runs), total)

    def _search(self, wanted: int) -> Way:
        """Routes in the order of their lengths, until one is as long as wanted, or longer."""
        before: dict[tuple[int, int], tuple[int, int] | None] = {(0, 0): None}
        todo = [(0, 0)]
        best: tuple[int, tuple[int, int]] | None = None
        while todo:
            key = heapq.heappop(todo)
            length, at = key
            if length > wanted and best is not None:
                break
            stretch = self.stretch(at)
            total = length + stretch.instructions
            if not stretch.following:
                if best is None or abs(total - wanted) < abs(best[0] - wanted):
                    best = total, key
                if total == wanted:
                    break
            if length > 2 * MAX_RUN:
                break
            for following in stretch.following:
                after = (total, following)
                if after not in before:
                    before[after] = key
                    heapq.heappush(todo, after)
        if best is None:
            return self._without_choice()
        runs: list[tuple[int, ...]] = []
        step: tuple[int, int] | None = best[1]
        while step is not None:
            runs.append(self.stretch(step[1]).runs)
            step = before[step]
        return Way(tuple(run for part in reversed(runs) for run in part), best[0])


@lru_cache(maxsize=4096)
def segmented(words: Words, offset: int, ahead: int) -> SegmentedProgram:
    """A program's segments; made once."""
    return SegmentedProgram(words, offset, ahead)


# -- what words say


def _branches(words: Words) -> dict[int, tuple[int | None, bool]]:
    """Return each branch's target, None if unknown or outside of the program, and whether it is certain."""
    found: dict[int, tuple[int | None, bool]] = {}
    for at, word in enumerate(words):
        branch = Instruction.decode(word)
        if isinstance(branch, Branch):
            target: int | None = None
            if branch.relative and not branch.register:
                address = branch.target(at * 8)
                if address % 8 == 0 and address // 8 < len(words):
                    target = address // 8
            found[at] = target, branch.condition == BranchCondition.ALWAYS
    return found


@dataclass(frozen=True)
class _Fetches:
    """firsts: instructions that read the first word of a line of uniforms, or of a new place.

    lines: instructions that make a line come: its number.
    """

    firsts: frozenset[int]
    lines: dict[int, int]


def _uniform_words(program: Program) -> dict[int, int]:
    """How many words of uniforms each instruction reads."""
    found: dict[int, int] = {}
    for site in program.uniform_sites:
        found[site.instruction_index] = found.get(site.instruction_index, 0) + 1
    return found


def _fetches(program: Program, offset: int, ahead: int) -> _Fetches:
    firsts: set[int] = set()
    lines: dict[int, int] = {}
    moves = [at for at, one in enumerate(needs(program)) if one.flags & Flag.MOVES_UNIFORMS]
    fresh = True
    for site in program.uniform_sites:
        while moves and moves[0] < site.instruction_index:
            lines[moves.pop(0)] = (offset + site.index) // LINE_WORDS
            fresh = True
        word = offset + site.index
        line, place = divmod(word, LINE_WORDS)
        if fresh or place == 0:
            firsts.add(site.instruction_index)
        if place == LINE_WORDS - ahead or (fresh and place > LINE_WORDS - ahead):
            lines[site.instruction_index] = line + 1
        fresh = False
    return _Fetches(frozenset(firsts), lines)
