"""Small frames that are made by hand: draws of thread 0, lists of thread 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.columns import starts
from vc4lab.timing.frames.frame import Binning, Frame


def draw_of(vertices: Sequence[int], mode: int = 4, index_bytes: int = 0, **columns: int) -> dict[str, Any]:
    """A draw for `frame_of`."""
    return {"named": list(vertices), "mode": mode, "index_bytes": index_bytes, **columns}


def frame_of(
    draws: Sequence[dict[str, Any]] = (),
    groups: Sequence[Sequence[int]] = (),
    *,
    arrays: Sequence[tuple[int, int, int]] = ((0x10000, 12, 12),),
    in_memory: bool = False,
    tiles: tuple[int, int] = (2, 1),
) -> Frame:
    """A frame. draws: of thread 0. groups: the vertices of a tile's list each, of thread 1.

    arrays: address, bytes and stride of the attributes that all draws have; in_memory: vertices are
    shaded before (NV).
    """
    program = -1 if in_memory else 0
    size = sum(bytes_ for _, bytes_, _ in arrays)
    binned = np.zeros(len(draws), cols.BINNED)
    records = np.zeros(len(draws) + 1, cols.RECORD)
    at, place = 0x2000, 0x4000
    for number, draw in enumerate(draws):
        row = binned[number]
        plain = {key: value for key, value in draw.items() if key != "named"}
        for name, value in plain.items():
            row[name] = value
        row["op"] = 32 if row["index_bytes"] else 33
        row["record"], row["program"] = at, program
        row["length"] = row["vertices"] = len(draw["named"])
        row["attribute_bytes"], row["attributes"] = size, len(arrays)
        if row["index_bytes"]:
            row["place"] = place
            place += len(draw["named"]) * int(row["index_bytes"])
        length = 14 if row["index_bytes"] else 10
        records[number] = (at, row["op"], length, -1)
        at += length
    records[len(draws)] = (at, 4, 1, -1)
    binned["first_vertex"] = starts(binned["vertices"])[:-1]
    named = [vertex for draw in draws for vertex in draw["named"]]
    binning = Binning(
        records, binned, _arrays(arrays, len(draws)), np.array(named, np.uint32), tiles, 32, 32,
        (0x100000, 0x10000),
    )  # fmt: skip
    lists = np.zeros(len(groups), cols.LIST)
    lists["tile"] = np.arange(len(groups))
    lists["vertices"] = [len(group) for group in groups]
    lists["first_vertex"] = starts(lists["vertices"])[:-1]
    lists["primitives"], lists["drawn"] = lists["vertices"] // 3, True
    states = np.zeros(1, cols.DRAW)
    states["vertex_program"], states["attribute_bytes"] = program, size
    states["vertex_words"], states["attributes"] = 3, len(arrays)
    nothing = np.zeros(0, cols.RECORD)
    return Frame(
        128, 64, 64, 64, False, False, (binning,) if draws else (), (), states,
        np.zeros(0, cols.TEXTURE), _arrays(arrays, 1), np.zeros(len(groups), cols.TILE),
        np.zeros(0, cols.OP), lists, nothing,
        np.array([vertex for group in groups for vertex in group], np.uint32),
        nothing, nothing, np.zeros(0, np.uint32), (), 0,
    )  # fmt: skip


def _arrays(arrays: Sequence[tuple[int, int, int]], draws: int) -> cols.Table:
    rows = [
        (draw, number, address, size, stride)
        for draw in range(draws)
        for number, (address, size, stride) in enumerate(arrays)
    ]
    return np.array(rows, cols.ATTRIBUTE)
