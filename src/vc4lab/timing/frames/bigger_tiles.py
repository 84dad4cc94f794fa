"""A frame as it would be in bigger tiles: the lists of several tiles become one.

A primitive is in the list of a bigger tile if it is in that of a tile which the bigger one has. So
each primitive, vertex batch and vector is there once, as if the frame had been binned for such
tiles; which primitive is which is known by its render state, its vertices and its clip record.
Primitives of one tile keep their order; of those that share no tile the one with the lower vertex
comes first. What the feed does not have is shared out: bytes of compressed lists as in the lists
before, records of a rendering list by the number of its tiles, primitives that are faced away by
their share of those without pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.compute.model import NotTimed
from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.columns import Table, starts
from vc4lab.timing.frames.frame import Binning, Frame
from vc4lab.timing.frames.merging import merged
from vc4lab.v3d.state.tile_context import LIST_COUNTERS

Numbers = NDArray[np.int64]

CORNERS = 3
NONE = -1
"""In place of a vertex that a line or point does not have."""


@dataclass(frozen=True)
class Listed:
    """The primitives of all lists, in their order: list, place in it, corners, bigger tile.

    number: equal for what is one primitive of a bigger tile.
    """

    list: Numbers
    place: Numbers
    corners: Numbers
    sizes: Numbers
    tile: Numbers
    number: Numbers


def bigger_tiles(frame: Frame, across: int, down: int) -> Frame:
    """The frame in tiles that are so many times as wide and as high. Raises NotTimed."""
    if (across, down) == (1, 1) or not len(frame.tiles):
        return frame
    if frame.lost:
        raise NotTimed("a frame that was not recorded as a whole, in bigger tiles")
    width, height = frame.tile_width * across, frame.tile_height * down
    of_tile, tiles = _tiles(frame, width, height)
    listed = _listed(frame, of_tile)
    order = _in_order(frame, listed, len(tiles))
    lists, first, new_list, new_place = _lists(frame, listed, order)
    blocks, requests, lines = _blocks(frame, listed, tiles, of_tile, new_list, new_place)
    _count(frame, listed, lists, blocks, new_list)
    _add_lists(frame, tiles, of_tile, lists)
    ratio = len(tiles) / len(frame.tiles)
    main = frame.records[frame.records["tile"] < 0]
    chosen = listed.corners[first]
    vertices = chosen[np.arange(CORNERS) < listed.sizes[first][:, None]]
    return replace(
        frame,
        tile_width=width,
        tile_height=height,
        binnings=_binnings(frame, lists, across, down),
        tiles=tiles,
        ops=_operations(frame, of_tile, tiles),
        lists=lists,
        records=main[: -int(-len(main) * ratio // 1)],
        vertices=vertices.astype(np.uint32),
        blocks=blocks,
        requests=requests,
        lines=lines,
    )


def _tiles(frame: Frame, width: int, height: int) -> tuple[Numbers, Table]:
    """Return each tile's bigger one, as an index, and the bigger ones in the order in which they begin."""
    old = frame.tiles
    cells = np.stack([old["x"] // width, old["y"] // height], axis=1)
    _, firsts, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(firsts))
    firsts = np.sort(firsts)
    tiles = old[firsts].copy()
    tiles["x"], tiles["y"] = (cells[firsts] * (width, height)).T
    return place[inverse.reshape(-1)].astype(np.int64), tiles


def _listed(frame: Frame, of_tile: Numbers) -> Listed:
    """The primitives of all lists. Raises NotTimed."""
    lists = frame.lists
    counts = lists["primitives"].astype(np.int64)
    sizes = lists["vertices"] // np.maximum(counts, 1)
    if (sizes * counts != lists["vertices"]).any() or (sizes[counts > 0] < 1).any():
        raise NotTimed("lists that have coordinates in place of vertices, in bigger tiles")
    list_ = np.repeat(np.arange(len(lists)), counts)
    place = np.arange(len(list_)) - starts(counts)[:-1][list_]
    size = sizes[list_].astype(np.int64)
    corners = np.full((len(list_), CORNERS), NONE, np.int64)
    first = lists["first_vertex"].astype(np.int64)[list_] + place * size
    for corner in range(CORNERS):
        there = (size > corner).nonzero()[0]
        corners[there, corner] = frame.vertices[first[there] + corner]
    key = np.zeros((len(list_), 6), np.int64)
    key[:, 0], key[:, 1] = lists["tile"][list_], lists["draw"][list_]
    key[:, 2] = np.where(place == 0, lists["clip"][list_], 0)
    key[:, 3:] = np.sort(corners, axis=1)
    again = _occurrence(key)  # the same triangle twice in a draw is twice in the same tiles
    key[:, 0] = tile = of_tile[key[:, 0]]
    number = _distinct(np.column_stack([key, again]))
    return Listed(list_, place, corners, size, tile, number)


def _sorted(key: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """The order of equal rows one after the other, and where others begin in it."""
    order = np.lexsort(key.T[::-1])
    rows = key[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return order, new


def _occurrence(key: Numbers) -> Numbers:
    """Count for each row how many equal ones come before it."""
    order, new = _sorted(key)
    firsts = new.nonzero()[0]
    found = np.empty(len(key), np.int64)
    run = np.cumsum(new) - 1
    found[order] = np.arange(len(key)) - firsts[run] if len(key) else 0
    return found


def _distinct(key: Numbers) -> Numbers:
    """Numbers of the distinct rows."""
    order, new = _sorted(key)
    found = np.empty(len(key), np.int64)
    found[order] = np.cumsum(new) - 1
    return found


def _in_order(frame: Frame, listed: Listed, tiles: int) -> Numbers:
    """The primitives' numbers, bigger tile by bigger tile."""
    count = int(listed.number.max(initial=-1)) + 1
    old = frame.lists["tile"].astype(np.int64)[listed.list]
    order = np.lexsort((np.arange(len(old)), old, listed.tile))
    changes = np.diff(old[order], prepend=-1) != 0
    firsts = changes.nonzero()[0]
    place = np.append(firsts, len(order)).astype(np.int32)
    of_sequence = listed.tile[order][firsts]
    begins = np.searchsorted(of_sequence, np.arange(tiles + 1)).astype(np.int32)
    draw = np.zeros(count, np.int32)
    lowest = np.zeros(count, np.int32)
    draw[listed.number] = frame.lists["draw"][listed.list]
    lowest[listed.number] = listed.corners[:, 0] & 0x7FFFFFFF
    return merged(begins, place, np.ascontiguousarray(listed.number[order], np.int32), draw, lowest)


def _lists(frame: Frame, listed: Listed, order: Numbers) -> tuple[Table, Numbers, Numbers, Numbers]:
    """The lists; of each primitive where it stood first; of each number its list and place."""
    count = len(order)
    first = np.zeros(count, np.int64)
    first[listed.number[::-1]] = np.arange(len(listed.number))[::-1]
    first = first[order]
    tile, old = listed.tile[first], listed.list[first]
    draw = frame.lists["draw"][old]
    clipped = np.where(listed.place[first] == 0, frame.lists["clipped"][old], 0)
    new = np.ones(count, bool)
    new[1:] = (np.diff(tile) != 0) | (np.diff(draw) != 0) | (clipped[1:] > 0)
    begins = new.nonzero()[0]
    table = np.zeros(len(begins), cols.LIST)
    of_primitive = np.cumsum(new) - 1
    sizes = listed.sizes[first]
    shares = frame.lists["bytes"] / np.maximum(frame.lists["primitives"], 1)
    table["tile"], table["draw"] = tile[begins], draw[begins]
    table["address"], table["clip"] = (frame.lists[name][old[begins]] for name in ("address", "clip"))
    table["clipped"] = clipped[begins]
    table["drawn"] = frame.lists["drawn"][old[begins]]
    table["primitives"] = np.bincount(of_primitive, minlength=len(begins))
    table["vertices"] = np.bincount(of_primitive, sizes, len(begins))
    table["first_vertex"] = starts(table["vertices"])[:-1]
    table["bytes"] = np.ceil(np.bincount(of_primitive, shares[old], len(begins)))
    new_list, new_place = np.zeros(count, np.int64), np.zeros(count, np.int64)
    new_list[order], new_place[order] = of_primitive, np.arange(count) - begins[of_primitive]
    return table, first, new_list, new_place


def _blocks(
    frame: Frame, listed: Listed, tiles: Table, of_tile: Numbers, new_list: Numbers,
    new_place: Numbers,
) -> tuple[Table, Table, NDArray[np.uint32]]:  # fmt: skip
    """Blocks with their requests and lines, by the primitives' new places."""
    owner = frame.list_of_block
    listing = starts(frame.lists["primitives"])[:-1][owner] + frame.blocks["position"]
    number = listed.number[listing]
    order = np.lexsort((np.arange(len(number)), new_place[number], new_list[number]))
    blocks = frame.blocks[order].copy()
    mine, old = number[order], frame.lists["tile"][owner[order]]
    list_, place = new_list[mine], new_place[mine]
    fresh = np.diff(list_, prepend=-1) != 0
    changes = fresh | (np.diff(place, prepend=-1) != 0)
    before = np.cumsum(changes) - 1
    base = np.maximum.accumulate(np.where(fresh, before, 0)) if len(before) else before
    blocks["primitive"], blocks["position"] = before - base, place
    dx = frame.tiles["x"][old] - tiles["x"][of_tile[old]]
    dy = frame.tiles["y"][old] - tiles["y"][of_tile[old]]
    blocks["place"] += (dx + (dy << 8)).astype(np.int32)
    asked = _spread(frame.first_request, order)
    requests = frame.requests[asked]
    return blocks, requests, frame.lines[_spread(frame.first_line, asked)]


def _spread(begins: Numbers, order: Numbers) -> Numbers:
    """Return the indices of all members, group by group in another order; begins: of the groups."""
    counts = np.diff(begins)[order]
    within = np.arange(counts.sum()) - np.repeat(starts(counts)[:-1], counts)
    found: Numbers = np.repeat(begins[:-1][order], counts) + within
    return found


def _count(frame: Frame, listed: Listed, lists: Table, blocks: Table, new_list: Numbers) -> None:
    """Set the counters of each list; blocks are those of the bigger tiles already."""
    count = len(lists)
    firsts = starts(frame.lists["primitives"])[:-1]
    there = (frame.lists["primitives"] > 0).nonzero()[0]
    owner = new_list[listed.number[firsts[there]]]
    for name in LIST_COUNTERS:
        lists[name] = np.bincount(owner, frame.lists[name][there], count)
    of_block = _owner_of_blocks(frame, listed, new_list)
    lists["blocks"] = np.bincount(of_block, minlength=count)
    lists["first_block"] = starts(lists["blocks"])[:-1]
    ends = starts(lists["blocks"])[1:] - 1
    some = lists["blocks"] > 0
    seen = np.zeros(count, np.int64)
    seen[some] = blocks["primitive"][ends[some]] + 1
    drawn = np.where(lists["drawn"], lists["primitives"], 0)
    hidden = np.maximum(drawn - seen, 0)
    away = lists["primitives_reversed"].astype(np.int64)
    without = away + lists["primitives_empty"]
    share = np.divide(away, without, out=np.zeros(count), where=without > 0)
    lists["primitives_reversed"] = np.rint(hidden * share)
    lists["primitives_valid"] = drawn - lists["primitives_reversed"]
    lists["primitives_empty"] = lists["primitives_valid"] - seen


def _owner_of_blocks(frame: Frame, listed: Listed, new_list: Numbers) -> Numbers:
    listing = starts(frame.lists["primitives"])[:-1][frame.list_of_block]
    found: Numbers = new_list[listed.number[listing + frame.blocks["position"]]]
    return found


def _add_lists(frame: Frame, tiles: Table, of_tile: Numbers, lists: Table) -> None:
    """Set each tile's list: its compressed lists, and besides them as much as its longest one had before."""
    old, count = frame.tiles, len(tiles)
    inside = np.bincount(frame.lists["tile"], frame.lists["bytes"], len(old))
    for name, others, mine in (
        ("records", old["records"] - old["lists"], np.bincount(lists["tile"], minlength=count)),
        ("bytes", old["bytes"] - inside, np.bincount(lists["tile"], lists["bytes"], count)),
    ):
        most = np.zeros(count, np.int64)
        np.maximum.at(most, of_tile, np.maximum(others, 0).astype(np.int64))
        tiles[name] = most + mine
    tiles["lists"] = np.bincount(lists["tile"], minlength=count)
    tiles["first_list"] = np.searchsorted(lists["tile"], np.arange(count))


def _operations(frame: Frame, of_tile: Numbers, tiles: Table) -> Table:
    """Loads, draws and stores: those of the tile that has most, with the bytes of all."""
    ops = frame.ops
    key = np.column_stack([ops["tile"], ops["kind"], ops["surface"]]).astype(np.int64)
    key = np.column_stack([key, _occurrence(key)])
    key[:, 0] = of_tile[key[:, 0]]
    number = _distinct(key)
    moved = np.bincount(number, ops["bytes"])
    most = np.lexsort((np.arange(len(of_tile)), -frame.tiles["ops"], of_tile))
    begins = np.searchsorted(of_tile[most], np.arange(len(tiles)))
    model = most[begins]
    chosen = _spread(starts(frame.tiles["ops"]), model)
    table = ops[chosen].copy()
    table["bytes"] = moved[number[chosen]]
    counts = frame.tiles["ops"][model]
    table["tile"] = np.repeat(np.arange(len(tiles)), counts)
    tiles["ops"], tiles["first_op"] = counts, starts(counts)[:-1]
    return table


def _binnings(frame: Frame, lists: Table, across: int, down: int) -> tuple[Binning, ...]:
    """The flushes: fewer entries, fewer blocks of list memory, fewer tiles."""
    entries = _ratio(lists["primitives"], frame.lists["primitives"])
    memory = _ratio(lists["bytes"], frame.lists["bytes"])
    found = []
    for one in frame.binnings:
        draws = one.draws.copy()
        for name, ratio in (("entries", entries), ("blocks", memory)):
            draws[name] = np.diff(np.rint(starts(draws[name]) * ratio))
        columns, rows = one.tiles
        tiles = -(-columns // across), -(-rows // down)
        found.append(replace(one, draws=draws, tiles=tiles))
    return tuple(found)


def _ratio(new: Any, old: Any) -> float:
    return float(new.sum()) / max(float(old.sum()), 1.0)
