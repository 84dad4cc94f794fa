"""Divides what thread 1 reads, the rendering list and the lists of tiles, into steps.

The feed has records and compressed lists, but not which record comes before which list. Records of
the rendering list are shared out among the tiles, other records of a tile list among its groups of
lists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vc4lab.memory import MEMORY_MASK
from vc4lab.timing.frames.columns import Table, dtype_of
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.state import ListStep, StepKind

Numbers = NDArray[np.int64]

_ROW = np.dtype([("step", dtype_of(ListStep)), ("tile", "i8"), ("place", "i8"), ("after", "i8")])
"""A step, and by what it is sorted."""

IN_LISTS = 3
"""Place of lists among the steps of a tile (`tile_operations`)."""


def list_steps(
    frame: Frame,
    groups: NDArray[np.int32],
    tile_of_work: NDArray[np.int32],
    place_of_work: Numbers,
    line: int,
) -> Table:
    """All steps in their order. line: bytes that are read at a time."""
    begins = groups[:-1].astype(np.int64)
    count = len(frame.lists)
    rows = (
        _tiles(frame),
        _rows(StepKind.WORK, len(tile_of_work), tile_of_work, place_of_work),
        _groups(frame, begins),
        _lists(frame, count),
    )
    table = np.concatenate(rows)
    table = table[np.lexsort((table["after"], table["place"], table["tile"]))]
    steps = np.ascontiguousarray(table["step"])
    _add_lines(steps, line)
    return steps


def _rows(
    kind: StepKind, count: int, tile: NDArray[np.int32], place: Numbers | int, after: Numbers | None = None
) -> Table:
    table = np.zeros(count, _ROW)
    table["step"]["kind"], table["step"]["number"] = int(kind), np.arange(count)
    table["tile"], table["place"] = tile, place
    table["after"] = np.arange(count) if after is None else after
    return table


def _shares(total: NDArray[np.int64], parts: NDArray[np.int64], number: Numbers) -> Numbers:
    """The share of each of so many parts, by its number: they add up to the total."""
    parts = np.maximum(parts, 1)
    return total * (number + 1) // parts - total * number // parts


def _others(frame: Frame) -> tuple[Numbers, Numbers]:
    """Bytes and records of each tile list that are no compressed lists."""
    tiles, lists = frame.tiles, frame.lists
    inside = np.bincount(lists["tile"], lists["bytes"], len(tiles))[: len(tiles)]
    left = np.maximum(tiles["bytes"] - inside.astype(np.int64), 0)
    return left, np.maximum(tiles["records"].astype(np.int64) - tiles["lists"], 0)


def _tiles(frame: Frame) -> Table:
    """A step where each tile begins, with its part of the rendering list."""
    count = len(frame.tiles)
    table = _rows(StepKind.TILE, count, np.arange(count, dtype=np.int32), 0)
    steps = table["step"]
    main = frame.records[frame.records["tile"] < 0]
    number = np.arange(count)
    total = np.full(count, main["bytes"].sum(), np.int64)
    steps["bytes"] = _shares(total, np.full(count, count), number)
    steps["records"] = _shares(np.full(count, len(main)), np.full(count, count), number)
    if len(main):
        steps["location"] = int(main["address"].min()) + np.cumsum(steps["bytes"])
    steps["jumps"] = 1
    alone = frame.tiles["lists"] == 0
    left, records = _others(frame)
    steps["bytes"] += np.where(alone, left, 0).astype(np.int32)
    steps["records"] += np.where(alone, records, 0).astype(np.int32)
    return table


def _groups(frame: Frame, begins: Numbers) -> Table:
    """A step before each group of lists, with its part of the other records of the tile."""
    lists = frame.lists
    tile = lists["tile"][begins]
    table = _rows(StepKind.GROUP, len(begins), tile, IN_LISTS, 2 * begins)
    steps = table["step"]
    counts = np.bincount(tile, minlength=len(frame.tiles)).astype(np.int64)
    number = np.arange(len(begins)) - (np.cumsum(counts) - counts)[tile]
    left, records = _others(frame)
    steps["bytes"] = _shares(left[tile], counts[tile], number)
    steps["records"] = _shares(records[tile], counts[tile], number)
    steps["location"] = lists["address"][begins].astype(np.int64) - steps["bytes"]
    steps["jumps"] = number == 0
    return table


def _lists(frame: Frame, count: int) -> Table:
    """A step for each list. Those in tile lists go on in another block at the end of each."""
    lists = frame.lists
    table = _rows(StepKind.LIST, count, lists["tile"], IN_LISTS, 2 * np.arange(count, dtype=np.int64) + 1)
    steps = table["step"]
    steps["location"], steps["bytes"] = lists["address"], lists["bytes"]
    steps["records"] = 1
    for binning in frame.binnings:
        start, size = binning.memory
        offset = (lists["address"].astype(np.int64) - start) & MEMORY_MASK
        block = max(binning.block_bytes, 32)
        ends = (offset % block + np.maximum(lists["bytes"] - 1, 0)) // block
        steps["jumps"] = np.where(offset < size, ends, steps["jumps"])
    return table


def _add_lines(steps: Table, line: int) -> None:
    """How many lines each step reads that the one before has not read."""
    reads = (steps["bytes"] > 0).nonzero()[0]
    rows = steps[reads]
    first = rows["location"] // line
    last = (rows["location"] + rows["bytes"] - 1) // line
    before = np.concatenate([[-1], last[:-1]])
    again = first == before
    again[rows["kind"] == int(StepKind.TILE)] = False
    straight = last - first + 1 - again
    pieces = rows["jumps"] + 1 - again
    inside = (rows["kind"] == int(StepKind.LIST)) & (rows["jumps"] > 0)
    rows["lines"] = np.where(inside, np.maximum(pieces, straight), straight)
    rows["location"] = (first + again) * line
    steps[reads] = rows
