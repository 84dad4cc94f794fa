"""What drawing each tile of a frame took, as the recording variant of the tile loop wrote it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.v3d.events import TileDrawn
from vc4lab.v3d.job_time import JOB_CLOCKS, JobCounts, job_clocks
from vc4lab.v3d.state.tile_context import COUNTERS, FIRST_WORK_COUNTER
from vc4lab.v3d.tiles.job import OP_TILE, OP_WORDS, TileRecord

if TYPE_CHECKING:
    from vc4lab.v3d.tiles.job import NativeFrame


def tiles_drawn(frame: NativeFrame) -> tuple[TileDrawn, ...]:
    """The tiles of a frame that `TileThreads.run` has drawn with `record`, in list order.

    A list may name a tile's coordinates again and again while it works on it: that is one tile.
    """
    count = frame.chains[frame.count]
    ops = np.frombuffer(frame.ops, np.uint32, OP_WORDS * count).reshape(count, OP_WORDS)
    words = ctypes.sizeof(frame.records) // 4
    records = np.frombuffer(frame.records, np.int32, words).reshape(-1, TileRecord.size // 4)
    found: list[tuple[tuple[int, int], list[int]]] = []
    for number in (ops[:, 0] == OP_TILE).nonzero()[0].tolist():
        amounts = records[number, : len(COUNTERS)].tolist()
        x, y = ops[number, 1:3].tolist()
        if found and found[-1][0] == (x, y):
            amounts = list(map(int.__add__, found.pop()[1], amounts))
        found.append(((x, y), amounts))
    return tuple(_tile(*place, amounts) for place, amounts in found)


def _tile(x: int, y: int, amounts: list[int]) -> TileDrawn:
    clocks = job_clocks(JobCounts(0, 0, 0, *amounts[FIRST_WORK_COUNTER:])) - JOB_CLOCKS
    return TileDrawn(x, y, clocks, dict(zip(COUNTERS, amounts, strict=True)))
