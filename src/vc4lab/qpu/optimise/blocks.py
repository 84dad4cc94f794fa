"""The blocks of a program, each scheduled by itself, so that no hazard reaches from one to the next.

A block has the quickest order of several policies, and its own if none is quicker. Where the end of
one block and the beginning of another then stand too close, one of the two is scheduled again with a
distance to keep.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.builder import with_signal
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET, Branch, Instruction
from vc4lab.qpu.isa.hazards import HAZARDS, PLACEMENTS, Where
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.lint.lint import Pair, pairs
from vc4lab.qpu.lint.parts import parts
from vc4lab.qpu.optimise.dependences import Style
from vc4lab.qpu.optimise.flow import Flow, Stretch, target_of
from vc4lab.qpu.optimise.pieces import Piece, piece_of, split
from vc4lab.qpu.optimise.renaming import Named, renamings
from vc4lab.qpu.optimise.scheduling import POLICIES, Placed, schedule
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble

ROUNDS: Final = 40
"""How often blocks are scheduled again because of their neighbours."""
MOST_CLOSE: Final = 4096
"""Instructions of a program for which that is tried; blocks of larger ones keep every distance."""


class Layout(NamedTuple):
    """Blocks one after the other: instructions, for each the old ones that it is made of, and where
    the instructions are that the old blocks began with.
    """

    words: list[int]
    sources: list[tuple[int, ...]]
    moved: dict[int, int]


class Limits:
    """How many instructions are before and after pieces of a block at least, by their numbers."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.tails: dict[int, int] = {}

    def with_one(
        self, *, starts: dict[int, int] | None = None, tails: dict[int, int] | None = None
    ) -> Limits:
        """These and more."""
        found = Limits()
        for mine, old, more in ((found.starts, self.starts, starts), (found.tails, self.tails, tails)):
            mine.update(old)
            for number, least in (more or {}).items():
                mine[number] = max(mine.get(number, 0), least)
        return found


class Blocks:
    """A program's blocks.

    broken: instructions that break a hazard, which stay where they are; free: registers that nothing
    uses.
    """

    def __init__(
        self, words: Sequence[int], flow: Flow, broken: Collection[int], free: frozenset[str], style: Style
    ) -> None:
        self._words = words
        self._flow = flow
        self._free, self._style = free, style
        sites = Program(tuple(words)).uniform_sites
        parameters = {site.instruction_index for site in sites if site.kind == "texture"}
        self._old: list[Placed] = []
        self._named: list[list[Named]] = []
        for stretch in flow.stretches:
            span = range(stretch.start, stretch.stop)
            faults = sorted(set(broken).intersection(span))
            if faults and not stretch.kept:
                stretch.kept = f"instruction {faults[0]} breaks a restriction (vc4lab lint)"
            self._old.append(
                Placed([words[index] for index in span], [(index,) for index in span], [()] * len(span))
            )
            self._named.append([] if stretch.kept else list(_named(words, stretch, parameters)))

    def arranged(self, is_careful: bool) -> Layout | None:
        """All blocks scheduled; None if some cannot stand beside each other. is_careful: each keeps the
        distances that it had to its own beginning and end, which needs no look at the others.
        """
        if not is_careful and len(self._words) > MOST_CLOSE:
            return None
        limits = [self._limits(number, is_careful) for number in range(len(self._named))]
        done = [self._scheduled(number, limits[number]) for number in range(len(limits))]
        for _ in range(1 if is_careful else ROUNDS):
            layout = self._laid_out(done)
            close = [] if is_careful else self._too_close(layout)
            if not close:
                return layout
            changed: set[int] = set()
            for pair in close:
                if not self._part(pair, layout, limits, done, changed):
                    return None
        return None

    # ---------------------------------------------------------------- one block

    def _scheduled(self, number: int, limits: Limits) -> Placed:
        """The quickest of all ways; the program's own if none is better."""
        stretch, old = self._flow.stretches[number], self._old[number]
        if stretch.kept:
            return old
        best, cost = old, _cost(old.words, self._style)
        for renamed in renamings(self._named[number], stretch, self._free):
            for policy in POLICIES:
                pieces, branch = _pieces(renamed, stretch)
                found = schedule(
                    pieces, branch, stretch.ends, policy, self._style, limits.starts, limits.tails
                )
                if found is None or len(found.words) > len(old.words):
                    continue
                new = _cost(found.words, self._style)
                if new < cost:
                    best, cost = found, new
        if best is not old:
            best.words[:] = map(canonical, best.words)
        return self._padded(best, old, stretch) if self._flow.is_fixed else best

    def _padded(self, found: Placed, old: Placed, stretch: Stretch) -> Placed:
        """The block with as many instructions as it had; the old one if empty ones would be executed
        each time.
        """
        if len(found.words) == len(old.words) or stretch.stop == len(self._words):
            return found
        found.pad(len(old.words))
        falls = stretch.branch is None and stretch.ends is None
        return old if falls and _cost(found.words, self._style) >= _cost(old.words, self._style) else found

    def _limits(self, number: int, is_careful: bool) -> Limits:
        """Return the limits that a block keeps because of neighbours that are not known."""
        stretch, limits = self._flow.stretches[number], Limits()
        if stretch.kept:
            return limits
        pieces, _ = _pieces(self._named[number], stretch)
        for piece in pieces:
            kinds = piece.touched.kinds
            needs = [one.distance - 1 for one in HAZARDS if one.consumer & kinds & ~Kind.BRANCH]
            if needs and (is_careful or stretch.is_entered):
                limits.starts[piece.number] = min(max(needs), piece.index - stretch.start)
            makes = [one.distance - 1 for one in HAZARDS if one.producer & kinds]
            if makes and (is_careful or stretch.leaves):
                limits.tails[piece.number] = min(max(makes), stretch.stop - 1 - piece.index)
            first = any(rule.where is Where.FIRST and rule.kinds & kinds for rule in PLACEMENTS)
            if first and not stretch.start:
                limits.starts[piece.number] = min(2, piece.index)
        return limits

    # ---------------------------------------------------------------- neighbours

    def _laid_out(self, done: Sequence[Placed]) -> Layout:
        """The blocks one after the other, with branches to where the old ones led."""
        layout = Layout([], [], {})
        for stretch, placed in zip(self._flow.stretches, done, strict=True):
            layout.moved[stretch.start] = len(layout.words)
            layout.words.extend(placed.words)
            layout.sources.extend(placed.sources)
        layout.moved[len(self._words)] = len(layout.words)
        for at, word in enumerate(layout.words):
            branch = Instruction.decode(word)
            if isinstance(branch, Branch) and len(layout.sources[at]) == 1:
                target = target_of(self._words, layout.sources[at][0])
                if target is not None and target in layout.moved:
                    distance = INSTRUCTION_BYTES * (layout.moved[target] - at) - LINK_OFFSET
                    layout.words[at] = branch.replace(immediate=distance & 0xFFFFFFFF).encode()
        return layout

    def _too_close(self, layout: Layout) -> list[Pair]:
        """Instructions that a hazard wants further apart, one of them in a block that was arranged."""
        return [
            pair
            for part in parts(layout.words)
            for pair in pairs(part)
            if any(
                not self._flow.stretches[self._stretch_at(layout, at)].kept
                for at in (pair.before, pair.after)
            )
        ]

    def _stretch_at(self, layout: Layout, at: int) -> int:
        return bisect_right(self._flow.stretches, at, key=lambda one: layout.moved[one.start]) - 1

    def _part(
        self, pair: Pair, layout: Layout, limits: list[Limits], done: list[Placed], changed: set[int]
    ) -> bool:
        """Schedule one of two blocks again, so that they are further apart; whether one can be.

        changed: blocks for which that was done, so that the layout no longer holds for them.
        """
        if {self._stretch_at(layout, at) for at in (pair.before, pair.after)} & changed:
            return True
        more = pair.hazard.distance - pair.distance
        found: list[tuple[int, int, Limits, Placed]] = []
        for at, kind in ((pair.before, pair.hazard.producer), (pair.after, pair.hazard.consumer)):
            number = self._stretch_at(layout, at)
            placed = done[number]
            offset = at - layout.moved[self._flow.stretches[number].start]
            numbers = [
                one for one in placed.pieces[offset] if accesses(self._named[number][one][0]).kinds & kind
            ]
            if not numbers:
                continue
            if at == pair.before:
                least = len(placed.words) - 1 - offset + more
                wanted = limits[number].with_one(tails=dict.fromkeys(numbers, least))
            else:
                wanted = limits[number].with_one(starts=dict.fromkeys(numbers, offset + more))
            again = self._scheduled(number, wanted)
            found.append(
                (_cost(again.words, self._style) - _cost(placed.words, self._style), number, wanted, again)
            )
        if not found:
            return False
        _, number, limits[number], done[number] = min(found, key=lambda one: one[:2])
        changed.add(number)
        return True


def _named(words: Sequence[int], stretch: Stretch, parameters: Collection[int]) -> Iterator[Named]:
    for index in range(stretch.start, stretch.stop):
        word = with_signal(words[index], Signal.NONE) if index == stretch.ends else words[index]
        for part in split(word):
            takes = index in parameters and bool(accesses(part).kinds & Kind.TMU_WRITE)
            yield part, index, takes


def _pieces(named: Sequence[Named], stretch: Stretch) -> tuple[list[Piece], Piece | None]:
    pieces = [piece_of(word, index, number, takes) for number, (word, index, takes) in enumerate(named)]
    branch = next((one for one in pieces if one.index == stretch.branch), None)
    return [one for one in pieces if one is not branch], branch


def _cost(words: Sequence[int], style: Style) -> int:
    """About how many instructions' time a block takes: its own, and waits that the chip fills. What is
    waited for without having been asked for was asked for by the block before.
    """
    time = 0
    asked: dict[Kind, list[int]] = {consumer: [0] * style.crosses for _, consumer, _ in style.waits}
    for word in words:
        kinds = accesses(word).kinds
        time += 1
        for producer, consumer, distance in style.waits:
            if kinds & consumer and asked[consumer]:
                time = max(time, asked[consumer].pop(0) + distance)
            if kinds & producer:
                if producer != Kind.TMU_WRITE:
                    asked[consumer].clear()
                asked[consumer].append(time)
    return time


@lru_cache(maxsize=16384)
def canonical(word: int) -> int:
    """The word as the assembler makes it of its text: fields without any effect are as it sets them."""
    if word >> 60 == Signal.BRANCH or word >> 52 & 15:
        return word  # a pack counts for saturation also where nothing is packed
    (found,) = assemble(disassemble(word)).words
    return found
