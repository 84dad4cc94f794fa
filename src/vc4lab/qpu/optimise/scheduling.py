"""One block's pieces put into instructions again: the most urgent first, as many as fit.

A piece is urgent if a long chain of others waits for it. Where nothing can be done, an instruction
is empty; where only what the chip would wait for is left, it is begun all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vc4lab.qpu.isa.accesses import accesses
from vc4lab.qpu.isa.builder import NOP
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import PAIRINGS
from vc4lab.qpu.machine.output import end
from vc4lab.qpu.optimise.dependences import Style, connect, set_heights, wait_after, wait_before
from vc4lab.qpu.optimise.pairs import together
from vc4lab.qpu.optimise.pieces import Order, Piece

MOST_TRIED = 24
"""Pieces that are tried for one instruction."""


class Policy(NamedTuple):
    """A way to choose. order: by how much a piece is more urgent than the next of the program's own
    order, in instructions of a chain.
    """

    order: float


POLICIES = (Policy(0.0), Policy(0.1), Policy(0.5), Policy(1000.0))


class Placed(NamedTuple):
    """A scheduled block. sources: for each word the instructions it is made of; pieces: their numbers."""

    words: list[int]
    sources: list[tuple[int, ...]]
    pieces: list[tuple[int, ...]]

    def pad(self, length: int) -> None:
        """Empty instructions up to a length."""
        missing = max(length - len(self.words), 0)
        self.words.extend([NOP] * missing)
        self.sources.extend([()] * missing)
        self.pieces.extend([()] * missing)


def schedule(
    pieces: Sequence[Piece],
    branch: Piece | None,
    ends_at: int | None,
    policy: Policy,
    style: Style,
    starts: Mapping[int, int],
    tails: Mapping[int, int],
) -> Placed | None:
    """Put the pieces of a block into instructions; None if a branch finds no place.

    branch: the last thing the block does, with its delay slots; ends_at: index of the instruction with
    the program end. starts, tails: by a piece's number, how many instructions are before and after
    it at least.
    """
    chain = [*pieces]
    if branch is not None:
        chain = sorted([*pieces, branch], key=lambda one: one.number)
    connect(chain, style)
    if branch is not None:
        _bind(branch, chain, style)
    for piece in pieces:
        piece.first = starts.get(piece.number, 0)
        piece.height = max(piece.height, tails.get(piece.number, 0))
    placed, at = _fill(pieces, branch, policy, style)
    placed.pad(max((at[one] + 1 + tails.get(one.number, 0) for one in pieces), default=0))
    if branch is not None:
        return _with_branch(placed, branch, at, pieces)
    if ends_at is not None:
        return _with_end(placed, pieces, at, ends_at)
    return placed


def _bind(branch: Piece, chain: Sequence[Piece], style: Style) -> None:
    """Let what waits for the branch wait for all that it needs, too; the branch itself is no piece that
    is placed.
    """
    for piece in chain:
        for other, distance in piece.next:
            if other is branch:
                known = {one for one, _ in piece.next}
                for after, more in branch.next:
                    if after not in known:
                        piece.next.append((after, max(distance, 1) + max(more - 1, 0)))
                        after.waiting += 1
    for after, _ in branch.next:
        after.waiting -= 1
    branch.height = BRANCH_DELAY_SLOTS + 1
    kept = branch.next
    branch.next = []
    set_heights((piece for piece in chain if piece is not branch), style)
    branch.next = kept


def _fill(
    pieces: Sequence[Piece], branch: Piece | None, policy: Policy, style: Style
) -> tuple[Placed, dict[Piece, int]]:
    """Instructions without the branch, and where each piece is."""
    placed = Placed([], [], [])
    at: dict[Piece, int] = {}
    soft = {piece: wait_before(style, piece.touched) for piece in pieces}
    ready = [piece for piece in pieces if not piece.waiting]
    now = 0
    while len(at) < len(pieces):
        word = NOP
        taken: list[Piece] = []
        tried: set[Piece] = set()
        while True:
            found = [one for one in ready if one.first <= now and one not in tried]
            found.sort(
                key=lambda one: (soft.get(one, 0) > now, policy.order * one.number - one.height, one.number)
            )
            for piece in found[:MOST_TRIED]:
                tried.add(piece)
                if taken and soft.get(piece, 0) > now:
                    continue
                joined = _joined(word, piece, taken)
                if joined is not None:
                    word = joined
                    taken.append(piece)
                    _commit(piece, now, ready, soft, branch, style)
                    at[piece] = now
                    break
            else:
                break
        placed.words.append(word)
        placed.sources.append(tuple(dict.fromkeys(piece.index for piece in taken)))
        placed.pieces.append(tuple(piece.number for piece in taken))
        now += 1
    return placed, at


def _commit(
    piece: Piece, now: int, ready: list[Piece], soft: dict[Piece, int], branch: Piece | None, style: Style
) -> None:
    ready.remove(piece)
    for after, distance in piece.next:
        if after is branch:
            continue
        after.waiting -= 1
        after.first = max(after.first, now + distance)
        wait = wait_after(style, piece.touched, after.touched)
        if wait:
            soft[after] = max(soft.get(after, 0), now + wait)
        if not after.waiting:
            ready.append(after)


def _joined(word: int, piece: Piece, taken: Sequence[Piece]) -> int | None:
    """An instruction with a piece more, if it fits."""
    if not taken:
        return piece.word
    joined = together(word, piece.word)
    if joined is not None and (piece.takes_parameter or any(one.takes_parameter for one in taken)):
        touched = accesses(joined)
        if any(rule.broken(touched, True) for rule in PAIRINGS):
            return None
    return joined


def _with_branch(
    placed: Placed, branch: Piece, at: Mapping[Piece, int], pieces: Sequence[Piece]
) -> Placed | None:
    """The branch as early as what it needs allows, with three instructions after it."""
    least = max(
        (at[one] + max(distance, 1) for one in pieces for after, distance in one.next if after is branch),
        default=0,
    )
    most = min(
        (at[after] - max(distance - 1, 0) for after, distance in branch.next), default=len(placed.words)
    )
    length = len(placed.words)
    where = min(max(least, length - BRANCH_DELAY_SLOTS), most)
    if where < least or length - where > BRANCH_DELAY_SLOTS:
        return None
    placed.pad(where)
    placed.words.insert(where, branch.word)
    placed.sources.insert(where, (branch.index,))
    placed.pieces.insert(where, (branch.number,))
    placed.pad(where + 1 + BRANCH_DELAY_SLOTS)
    return placed


def _with_end(placed: Placed, pieces: Sequence[Piece], at: Mapping[Piece, int], ends_at: int) -> Placed:
    """The program end as early as its rules allow. What others see stays before it if it was."""
    early = [at[one] for one in pieces if one.order & Order.ALL and one.index <= ends_at]
    words = placed.words
    placed.pad(max(early, default=-1) + 1 + END_DELAY_SLOTS)
    words[:] = end(words)
    added = len(words) - len(placed.sources)
    placed.sources.extend([()] * added)
    placed.pieces.extend([()] * added)
    return placed
