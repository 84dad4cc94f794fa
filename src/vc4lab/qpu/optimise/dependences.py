"""Which pieces of a block wait for which, and how long: registers, flags, streams, memory.

A distance is in instructions, 0 is "not before, but in the same one at the earliest". What makes a
distance longer than a register's own is from the table of hazards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vc4lab.qpu.isa.accesses import Accesses, Kind
from vc4lab.qpu.isa.hazards import HAZARDS
from vc4lab.qpu.optimise.pieces import Order, Piece

Waits = tuple[tuple[Kind, Kind, int], ...]
"""(producer, consumer, instructions): what the chip waits for by itself, and is better filled."""


class Style(NamedTuple):
    """How long results are expected to take.

    Attributes
    ----------
    name
        For messages.
    waits
        Between a request and what waits for it.
    crosses
        Whether the block before counts: what it asked for is expected to take as long.
    """

    name: str
    waits: Waits
    crosses: bool


def _waits(tmu: int, dma: int) -> Waits:
    return (
        (Kind.TMU_WRITE, Kind.TMU_LOAD, tmu),
        (Kind.VPM_SETUP, Kind.VPM_READ, 3),
        (Kind.DMA_START, Kind.VPM_WAIT, dma),
    )


STYLES: Final = (
    Style("memory far away", _waits(12, 32), True),
    Style("memory near", _waits(9, 16), False),
    Style("nothing waits", _waits(1, 1), False),
)
"""Which of them is the best depends on what else uses the memory."""
_ORDERS: Final = tuple(member for member in Order if member != Order.ALL)


def hazard_distance(before: Accesses, after: Accesses) -> int:
    """How far apart the hardware's hazards want two instructions; 0: they do not care."""
    found = 0
    for hazard in HAZARDS:
        if before.kinds & hazard.producer and after.kinds & hazard.consumer:
            if not hazard.same_place or before.at(hazard.producer) & after.at(hazard.consumer):
                found = max(found, hazard.distance)
    return found


def wait_after(style: Style, before: Accesses, after: Accesses) -> int:
    """For how many instructions other work is better than the second of two."""
    return max(
        (
            distance
            for producer, consumer, distance in style.waits
            if before.kinds & producer and after.kinds & consumer
        ),
        default=0,
    )


def wait_before(style: Style, after: Accesses) -> int:
    """For how many instructions other work is better than one that waits for what a block before has
    asked for.
    """
    if not style.crosses:
        return 0
    return max((distance for _, consumer, distance in style.waits if after.kinds & consumer), default=0)


def connect(pieces: Sequence[Piece], style: Style) -> None:
    """Set `next`, `waiting` and `height` of all pieces of a block; they are in a valid order."""
    writer: dict[str, Piece] = {}
    readers: dict[str, list[Piece]] = {}
    last: dict[Order, Piece] = {}
    barrier: Piece | None = None
    since: list[Piece] = []
    for piece in pieces:
        before: dict[Piece, int] = {}
        for name in piece.reads:
            if name in writer:
                _need(before, writer[name], 1)
        for name in piece.writes:
            if name in writer:
                _need(before, writer[name], 1)
            for reader in readers.get(name, ()):
                _need(before, reader, 0)
        for member in _ORDERS:
            if piece.order & member:
                if member in last:
                    _need(before, last[member], 1)
                last[member] = piece
        if barrier is not None:
            _need(before, barrier, int(bool(piece.order)))
        if piece.order & Order.ALL:
            for other in since:
                _need(before, other, int(bool(other.order)))
            barrier, since = piece, []
        since.append(piece)
        _keep_names(piece, writer, readers)
        before.pop(piece, None)
        for other, distance in before.items():
            distance = max(distance, hazard_distance(other.touched, piece.touched))
            other.next.append((piece, distance))
        piece.waiting = len(before)
    set_heights(pieces, style)


def _need(before: dict[Piece, int], other: Piece, distance: int) -> None:
    before[other] = max(before.get(other, 0), distance)


def _keep_names(piece: Piece, writer: dict[str, Piece], readers: dict[str, list[Piece]]) -> None:
    for name in piece.writes:
        writer[name] = piece
        readers[name] = []
    for name in piece.reads - piece.writes:
        readers.setdefault(name, []).append(piece)


def set_heights(pieces: Iterable[Piece], style: Style) -> None:
    """How many instructions at least come after each piece begins."""
    for piece in reversed(list(pieces)):
        piece.height = max(
            (
                after.height + max(distance, wait_after(style, piece.touched, after.touched))
                for after, distance in piece.next
            ),
            default=0,
        )
