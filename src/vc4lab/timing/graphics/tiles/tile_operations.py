"""Lists the tile buffer's operations of each tile: loads, draws, stores, with what they move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vc4lab.images.tiling import Tiling
from vc4lab.timing.frames.columns import Table, dtype_of
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.state import TileWork, TileWorkKind
from vc4lab.v3d.tiles import job as tj

Numbers = NDArray[np.int64]

CHUNK = 1024
"""Bytes of a row of `TileWork` where a surface has no rows of pixels in memory."""

_LOADS = (tj.OP_LOAD, tj.OP_LOAD_FULL)
_STORES = (tj.OP_STORE, tj.OP_STORE_FULL)
_KINDS = np.full(16, -1, np.int64)
for _ops, _kind in (
    (_LOADS, TileWorkKind.LOAD),
    (_STORES, TileWorkKind.STORE),
    ((tj.OP_DRAW_PIECES,), TileWorkKind.DRAW),
):
    _KINDS[list(_ops)] = int(_kind)


def tile_operations(frame: Frame, ends: Numbers) -> tuple[Table, Numbers]:
    """Operations with a DONE after each tile's, and of each where among the tile's steps it is.

    The place is 1 before the first draw, 2 for draws, 4 after, 5 for DONE; lists have 3.
    """
    ops = frame.ops
    kinds = _KINDS[ops["kind"]]
    chosen = (kinds >= 0).nonzero()[0]
    kinds, mine = kinds[chosen], ops[chosen]
    tiles = len(frame.tiles)
    count = len(chosen)
    table = np.zeros(count + tiles, np.dtype([("work", dtype_of(TileWork)), ("place", "i8")]))
    work = table["work"]
    work["kind"][:count], work["tile"][:count] = kinds, mine["tile"]
    work["kind"][count:], work["tile"][count:] = int(TileWorkKind.DONE), np.arange(tiles)
    work["vectors"] = ends[work["tile"]]
    work["first"] = np.concatenate([[0], ends])[work["tile"]]
    first_draw = np.full(tiles, len(ops) + 1)
    draws = kinds == int(TileWorkKind.DRAW)
    np.minimum.at(first_draw, mine["tile"][draws], chosen[draws])
    later = (kinds != int(TileWorkKind.LOAD)) | (chosen > first_draw[mine["tile"]])
    table["place"][:count] = np.where(draws, 2, np.where(later, 4, 1))
    table["place"][count:] = 5
    _add_transfers(frame, work[:count], mine)
    order = np.lexsort((np.append(chosen, np.arange(tiles)), table["place"], work["tile"]))
    return np.ascontiguousarray(work[order]), table["place"][order]


def _add_transfers(frame: Frame, work: Table, ops: Table) -> None:
    """Which bytes loads and stores move."""
    moves = (ops["bytes"] > 0).nonzero()[0]
    x, y = (frame.tiles[name][ops["tile"]].astype(np.int64) for name in ("x", "y"))
    work["location"][moves] = ops["address"][moves]
    work["row_bytes"][moves] = CHUNK
    work["rows"][moves] = -(-ops["bytes"][moves] // CHUNK)
    work["pitch"][moves] = CHUNK
    for number, surface in enumerate(frame.surfaces):
        at = ((ops["surface"] == number) & (ops["bytes"] > 0)).nonzero()[0]
        pixel = surface.bits // 8
        wide = np.clip(surface.width - x[at], 0, frame.tile_width)
        high = np.clip(surface.height - y[at], 0, frame.tile_height)
        if surface.tiling == Tiling.RASTER:
            work["location"][at] += y[at] * surface.pitch + x[at] * pixel
            work["row_bytes"][at], work["rows"][at] = wide * pixel, high
            work["pitch"][at] = surface.pitch
        else:
            across = -(-surface.width // frame.tile_width)
            before = y[at] // frame.tile_height * across + x[at] // frame.tile_width
            work["location"][at] += before * (frame.tile_width * frame.tile_height * pixel)
            work["rows"][at] = -(-(wide * high * pixel) // CHUNK)
