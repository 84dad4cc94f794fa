"""A frame that was collected, reduced to one of its tiles."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.records.control import parse_list
from vc4lab.records.declarations import BranchToSublist
from vc4lab.v3d.tile_lists.scan_context import NO_END
from vc4lab.v3d.tiles.job import OP_DRAW_PIECES, OP_TILE, OP_WORDS

if TYPE_CHECKING:
    from typing import Any

    from vc4lab.records.control import Reader
    from vc4lab.v3d.tiles.collector import CollectContext, Collector

_WORD = 0xFFFFFFFF


def keep_tile(collector: Collector, read: Reader, x: int, y: int) -> bool:
    """Leave only the chain of operations with the tile whose first pixel is (x, y).

    Pieces of the rendering list before it that name no tile's list stay, too: they may set state. read:
    guest memory. False: there is no such tile,
    and nothing has changed.
    """
    context = collector.context
    ops, chains, count = _arrays(context)
    chain = _chain_with(ops, chains, count, x, y)
    if chain is None:
        return False
    first, end = int(chains[chain]), int(chains[chain + 1]) if chain + 1 < count else int(context.op_count)
    kept = ops[first:end].copy()
    _keep_pieces(context, read, kept)
    ops[: len(kept)] = kept
    context.op_count, context.chain_count = len(kept), 1
    chains[0] = 0
    return True


def _arrays(context: CollectContext) -> tuple[Any, Any, int]:
    """Operations and the first operation of each chain, in place; how many chains there are."""
    count = int(context.chain_count)
    ops = _words(context.ops, OP_WORDS * int(context.op_count)).reshape(-1, OP_WORDS)
    return ops, _words(context.chains, count + 1), count


def _names_list(read: Reader, start: int, end: int) -> bool:
    """Whether a piece of the rendering list branches to a tile's list."""
    return any(one.id == BranchToSublist.id for one in parse_list(read, start, end))


def _words(place: int, count: int) -> Any:
    """Words at a host address, in place."""
    words: Any = (ctypes.c_int32 * count).from_address(place)
    return np.frombuffer(words, np.int32) if count else np.zeros(0, np.int32)


def _chain_with(ops: Any, chains: Any, count: int, x: int, y: int) -> int | None:
    """The last chain that works on a tile."""
    tiles = np.flatnonzero((ops[:, 0] == OP_TILE) & (ops[:, 1] == x) & (ops[:, 2] == y))
    if not len(tiles):
        return None
    return int(np.searchsorted(chains[:count], tiles[-1], side="right")) - 1


def _keep_pieces(context: CollectContext, read: Reader, ops: Any) -> None:
    """Leave the pieces of list that operations draw, and those of the rendering list before."""
    total = int(context.piece_count)
    starts, ends = (_words(place, total) for place in (context.pieces, context.piece_ends))
    draws = ops[ops[:, 0] == OP_DRAW_PIECES]
    wanted = np.zeros(total, bool)
    for first, count in draws[:, 1:3].tolist():
        wanted[first : first + count] = True
    first = int(wanted.argmax()) if wanted.any() else 0
    for number, (start, end) in enumerate(zip(starts[:first].tolist(), ends[:first].tolist(), strict=True)):
        wanted[number] = end != NO_END and not _names_list(read, start & _WORD, end & _WORD)
    places = np.cumsum(wanted) - 1
    for row in np.flatnonzero(ops[:, 0] == OP_DRAW_PIECES):
        ops[row, 1] = places[ops[row, 1]] if ops[row, 2] else 0
    left = int(wanted.sum())
    starts[:left], ends[:left] = starts[wanted].copy(), ends[wanted].copy()
    context.piece_count = left
