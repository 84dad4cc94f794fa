"""A program with fewer or better filled instructions that does the same.

better = optimise(words)
print(len(words), len(better.words), better.notes)

Each basic block is scheduled anew by several policies; the one that takes least time is kept if it
is better than the program's own order. Registers that live only in a block may be others. Branches
lead where they led. What cannot be moved, and why, is in the notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vc4lab.qpu.lint.lint import lint, pairs
from vc4lab.qpu.lint.parts import parts
from vc4lab.qpu.optimise.blocks import Blocks
from vc4lab.qpu.optimise.dependences import STYLES, Style
from vc4lab.qpu.optimise.flow import Flow, flow_of
from vc4lab.qpu.optimise.pieces import piece_of

MOST_WORDS: Final = 1 << 14
"""Instructions of a program that is optimised."""


@dataclass(frozen=True)
class Optimised:
    """A program that does what another does.

    Attributes
    ----------
    words
        Its instructions.
    sources
        For each, the instructions of the old program that it is made of.
    moved
        The place of each instruction that blocks of the old program begin with.
    notes
        What was left as it was, and why, each with an instruction of the old program.
    """

    words: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    moved: dict[int, int]
    notes: tuple[tuple[int, str], ...]


class TooLarge(ValueError):  # noqa: N818 - a fact about the program
    """A program with more than `MOST_WORDS` instructions."""


def optimise(
    words: Sequence[int],
    entries: Collection[int] = (),
    labels: Collection[int] = (),
    raw: Collection[int] = (),
    style: Style = STYLES[0],
) -> Optimised:
    """Rearrange a program. entries: instructions that may be entered from outside; labels: by branches
    to addresses that the program computes; raw: words that are data; style: how long memory takes.
    Raises TooLarge.
    """
    if len(words) > MOST_WORDS:
        raise TooLarge(f"{len(words)} instructions; at most {MOST_WORDS} are optimised")
    if not words:
        return Optimised((), (), {0: 0}, ())
    flow = flow_of(words, entries, labels, raw)
    blocks = Blocks(words, flow, _broken(words, raw), _unused(words, raw), style)
    for is_careful in (False, True):
        found = blocks.arranged(is_careful)
        if found is not None:
            data = {found.moved[index] for index in raw}
            if not _rules(found.words, data) - _rules(words, raw):
                return Optimised(tuple(found.words), tuple(found.sources), found.moved, tuple(_notes(flow)))
    same = {stretch.start: stretch.start for stretch in flow.stretches}
    why = "a restriction would be broken that was not before"
    return Optimised(tuple(words), tuple((index,) for index in range(len(words))), same, ((0, why),))


def _notes(flow: Flow) -> Iterator[tuple[int, str]]:
    if flow.is_fixed:
        yield 0, f"blocks begin where they did: {flow.why}"
    for stretch in flow.stretches:
        if stretch.kept:
            yield stretch.start, f"left as it is: {stretch.kept}"


def _rules(words: Sequence[int], raw: Collection[int]) -> Counter[str]:
    return Counter(finding.code for finding in lint(words, raw))


ROTATIONS: Final = "QPU-108"
"""A rotation right after the write of what it rotates: it means the new value, which then is there."""


def _broken(words: Sequence[int], raw: Collection[int]) -> set[int]:
    """Instructions between which a hazard is broken: what they compute depends on where they stand."""
    found: set[int] = set()
    for part in parts(words):
        for pair in pairs(part):
            if pair.hazard.code != ROTATIONS and not {pair.before, pair.after} & set(raw):
                found |= {pair.before, pair.after}
    return found


def _unused(words: Sequence[int], raw: Collection[int]) -> frozenset[str]:
    """Registers of both files that the program never touches."""
    used: set[str] = set()
    for index, word in enumerate(words):
        if index not in raw:
            piece = piece_of(word, index, 0)
            used |= piece.reads | piece.writes
    return frozenset(f"r{file}{n}" for file in "ab" for n in range(32) if n != 14) - used
