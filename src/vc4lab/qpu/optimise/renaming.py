"""Values that live only inside a block, given other registers: so that pieces wait less for each
other, and fit beside each other.

A value begins with a write of a whole register and ends with the last read before the next one.
Values that come from before the block or are read after it keep their register. A place is only
given to a value while nothing else is in it, in the program's own order; what the scheduler then
moves keeps that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vc4lab.qpu.optimise.flow import EVERY, Stretch
from vc4lab.qpu.optimise.operands import ACCUMULATORS, can_rename, renamed
from vc4lab.qpu.optimise.pieces import FLAGS, Piece, piece_of

ROUNDS = 12
"""Tries to find places for values that each fit their instructions, but not together."""
Named = tuple[int, int, bool]
"""A piece's word, its instruction, whether it takes a texture parameter."""
_KEPT = frozenset({"r4", "r5", FLAGS, "ms_mask", "rev_flag"})


@dataclass(eq=False)
class Value:
    """Describes what one register holds from one write on.

    Attributes
    ----------
    name
        The register; `place` the one that it gets.
    first, last
        Pieces that write it and that read it last; -1 and the number of pieces for the block's own
        borders.
    pieces
        Those that write and read it.
    may_move
        Whether another register would do.
    """

    name: str
    place: str
    first: int
    last: int
    may_move: bool
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


def renamings(named: Sequence[Named], stretch: Stretch, free: frozenset[str]) -> Iterator[Sequence[Named]]:
    """The pieces as they are; with values spread over the registers of their own kind; with as many
    as fit in accumulators. free: registers that the program does not use.
    """
    yield named
    for prefers in (_same_kind, _accumulators_first):
        pieces = [piece_of(word, index, number) for number, (word, index, _) in enumerate(named)]
        values = _values(pieces, stretch)
        for _ in range(ROUNDS):
            result: list[Named] = []
            failed = _place(values, pieces, stretch, free, prefers)
            if not failed:
                result, failed = _renamed(named, values)
            if not failed:
                if result != list(named):
                    yield result
                break
            for value in failed:
                value.may_move, value.place = False, value.name


def _values(pieces: Sequence[Piece], stretch: Stretch) -> list[Value]:
    """All values of a block, in the order in which they begin."""
    end = len(pieces)
    now: dict[str, Value] = {}
    found: list[Value] = []
    for number, piece in enumerate(pieces):
        movable = can_rename(piece.word)
        for name in piece.reads | (piece.writes if piece.is_partial else frozenset()):
            value = now.get(name)
            if value is None:
                value = now[name] = Value(name, name, -1, number, False)
                found.append(value)
            value.last = number
            value.readers.append(number)
            value.may_move &= movable
        for name in piece.writes:
            if piece.is_partial:
                now[name].writers.append(number)
                continue
            may = movable and name not in _KEPT
            now[name] = Value(name, name, number, number, may, [number])
            found.append(now[name])
    for name, value in now.items():
        if name in stretch.live:
            value.last, value.may_move = end, False
    for name in stretch.live - set(now):
        found.append(Value(name, name, -1, end, False))
    return found


def _same_kind(value: Value) -> tuple[Callable[[str], bool], ...]:
    if value.name in ACCUMULATORS:
        return (lambda place: place in ACCUMULATORS,)
    return (lambda place: place[:2] == value.name[:2],)


def _accumulators_first(value: Value) -> tuple[Callable[[str], bool], ...]:
    return (lambda place: place in ACCUMULATORS, *_same_kind(value))


def _place(
    values: Sequence[Value],
    pieces: Sequence[Piece],
    stretch: Stretch,
    free: frozenset[str],
    prefers: Callable[[Value], tuple[Callable[[str], bool], ...]],
) -> list[Value]:
    """Choose places: of those that are free for as long, the one that is so for longest. Values for
    which there is none, because another has got their own.
    """
    used = {value.name for value in values}
    places = sorted(
        (used | free | (EVERY - stretch.live if not stretch.leaves else set())) - _KEPT - {"ra14", "rb14"}
    )
    busy: dict[str, list[Value]] = {place: [] for place in places}
    for value in values:
        if not value.may_move:
            busy.setdefault(value.name, []).append(value)
    for value in values:
        if not value.may_move:
            continue
        place = _choice(value, busy, prefers(value), pieces)
        if place is None:
            return [value]
        value.place = place
        busy[place].append(value)
    return []


def _choice(
    value: Value,
    busy: Mapping[str, Sequence[Value]],
    kinds: Sequence[Callable[[str], bool]],
    pieces: Sequence[Piece],
) -> str | None:
    for is_wanted in kinds:
        found = []
        for place, others in busy.items():
            if place in _KEPT or not is_wanted(place) or any(_overlap(value, other) for other in others):
                continue
            since = max((other.last for other in others if other.last <= value.first), default=-1)
            found.append((since, place != value.name, place))
        for _, _, place in sorted(found):
            if place == value.name or _fits(value, place, pieces):
                return place
    return None


def _overlap(value: Value, other: Value) -> bool:
    """Whether two values cannot share a place; one may begin in the piece that reads the other last."""
    last = value.last if value.last > value.first else value.first + 1  # a result that nothing reads
    end = other.last if other.last > other.first else other.first + 1
    return value.first < end and other.first < last


def _fits(value: Value, place: str, pieces: Sequence[Piece]) -> bool:
    """Whether the instructions have room for another place, all others as they are."""
    change = {value.name: place}
    return all(renamed(pieces[at].word, {}, change) is not None for at in value.writers) and all(
        renamed(pieces[at].word, change, {}) is not None for at in value.readers
    )


def _renamed(named: Sequence[Named], values: Sequence[Value]) -> tuple[list[Named], list[Value]]:
    """The pieces with the chosen places, and values that fit an instruction each, but not both."""
    reads: dict[int, dict[str, Value]] = {}
    writes: dict[int, dict[str, Value]] = {}
    for value in values:
        if value.place != value.name:
            for at in value.readers:
                reads.setdefault(at, {})[value.name] = value
            for at in value.writers:
                writes.setdefault(at, {})[value.name] = value
    result = list(named)
    failed: list[Value] = []
    for at in {*reads, *writes}:
        word, index, takes = named[at]
        read, written = reads.get(at, {}), writes.get(at, {})
        new = renamed(
            word,
            {name: value.place for name, value in read.items()},
            {name: value.place for name, value in written.items()},
        )
        if new is None:
            failed += [*read.values(), *written.values()]
        else:
            result[at] = new, index, takes
    return result, failed
