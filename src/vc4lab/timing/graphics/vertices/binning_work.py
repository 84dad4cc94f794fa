"""From what thread 0 did to the tables of its control list executor and of the binner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.declarations import Flush, FlushAllState
from vc4lab.timing.compute.kinds import LINE_BITS
from vc4lab.timing.frames.columns import Table, dtype_of, starts
from vc4lab.timing.frames.frame import Binning, Frame
from vc4lab.timing.graphics.state import Fetch
from vc4lab.timing.graphics.vertices.state import BinningRecord, Chunk, RecordKind
from vc4lab.timing.graphics.vertices.vertex_work import Vertices, binned_draws, binning_vertices

Numbers = NDArray[np.int64]

_FLUSHES = (Flush.id, FlushAllState.id)
_VG = (41, 42)
_LOOP = 2
_FIRST, _EACH = (np.ones(16, np.int64) for _ in range(2))
for _mode, _vertices, _more in (
    (1, 2, 2), (2, 2, 1), (3, 2, 1), (4, 3, 3), (5, 3, 1), (6, 3, 1),
):  # fmt: skip
    _FIRST[_mode], _EACH[_mode] = _vertices, _more
"""By mode: vertices of the first primitive, and how many each one after it takes."""
_VG_FIRST, _VG_EACH = _FIRST.copy(), _EACH.copy()
_VG_FIRST[1] = _VG_EACH[1] = 2
_VG_FIRST[3], _VG_EACH[3] = 2, 1


@dataclass(frozen=True)
class BinningWork:
    """Thread 0 in a frame.

    records, reads: rows of `BinningRecord`, and of `Fetch` for the list and its indices. chunks:
    rows of `Chunk`; first_chunk: of each item (a draw or a flush) its first one, and the end.
    flushes: how many there are.
    """

    vertices: Vertices
    records: Table
    reads: Table
    chunks: Table
    first_chunk: NDArray[np.int32]
    flushes: int


def binning_work(frame: Frame, kept: int = 0) -> BinningWork:
    """The tables of a frame. Raises NotTimed."""
    vertices = binning_vertices(frame, kept)
    draws = binned_draws(frame)
    chunks, first_chunk = _chunks(frame, draws, vertices, kept)
    records, spans = _records(frame, draws, vertices)
    reads, last = _reads(spans)
    is_list = spans["draw"] < 0
    records["last_read"] = last[is_list]
    _add_index_reads(vertices, draws, spans[~is_list], last[~is_list])
    return BinningWork(vertices, records, reads, chunks, first_chunk, len(frame.binnings))


# -- the list

_SPAN = np.dtype([("start", "i8"), ("bytes", "i8"), ("draw", "i4")])
"""Bytes that are read one after the other; draw: whose indices they are, or -1."""


def _records(frame: Frame, draws: Table, vertices: Vertices) -> tuple[Table, Table]:
    """Rows of `BinningRecord`, and what is read for them in order."""
    tables, spans = [], []
    first_draw = first_item = 0
    for binning in frame.binnings:
        found = binning.records
        count = len(binning.draws)
        places, flush = _places(binning)
        table = np.zeros(len(found), dtype_of(BinningRecord))
        table["group"] = table["item"] = -1
        numbers = np.arange(count)[places >= 0] + first_draw
        at = places[places >= 0]
        table["kind"][at] = int(RecordKind.DRAW)
        table["item"][at] = numbers - first_draw + first_item
        table["until"][at] = vertices.first_batch[numbers + 1]
        named = np.diff(vertices.first_batch)[numbers] > 0
        table["group"][at] = np.where(named, numbers, -1)
        table["kind"][flush], table["item"][flush] = int(RecordKind.FLUSH), first_item + count
        tables.append(table)
        spans.append(_spans(found, at, numbers, draws))
        first_draw += count
        first_item += count + 1
    if not tables:
        return np.zeros(0, dtype_of(BinningRecord)), np.zeros(0, _SPAN)
    return np.concatenate(tables), np.concatenate(spans)


def _places(binning: Binning) -> tuple[Numbers, int]:
    """Return the records' indices of the draws (-1: not found), and of the flush: the last record."""
    addresses = binning.records["address"].tolist()
    places = np.full(len(binning.draws), -1, np.int64)
    at = 0
    for number, address in enumerate(binning.draws["record"].tolist()):
        while at < len(addresses) and addresses[at] != address:
            at += 1
        if at == len(addresses):
            break
        places[number] = at
        at += 1
    flushes = np.isin(binning.records["id"], _FLUSHES).nonzero()[0]
    return places, int(flushes[-1]) if len(flushes) else len(addresses) - 1


def _spans(records: Table, at: Numbers, numbers: Numbers, draws: Table) -> Table:
    """Return the spans of memory that a list and its draws' indices are read from, in order."""
    mine = draws[numbers]
    indexed = (mine["index_bytes"] > 0) & (mine["vertices"] > 0)
    table = np.zeros(len(records) + int(indexed.sum()), _SPAN)
    order = np.argsort(np.concatenate([np.arange(len(records)), at[indexed] + 0.5]), kind="stable")
    table["draw"] = -1
    table["start"][: len(records)] = records["address"]
    table["bytes"][: len(records)] = np.maximum(records["bytes"], 1)
    rest = table[len(records) :]
    rest["start"], rest["draw"] = mine["place"][indexed], numbers[indexed]
    rest["bytes"] = mine["vertices"][indexed].astype(np.int64) * mine["index_bytes"][indexed]
    return table[order]


def _reads(spans: Table) -> tuple[Table, Numbers]:
    """Lines that are read, each once as long as reading goes straight on; of each span its last."""
    if not len(spans):
        return np.zeros(0, dtype_of(Fetch)), np.zeros(0, np.int64)
    start, size = spans["start"], spans["bytes"]
    end = start + size
    new = np.ones(len(spans), bool)
    new[1:] = (start[1:] != end[:-1]) | (np.diff(spans["draw"]) != 0)
    firsts = new.nonzero()[0]
    run = np.cumsum(new) - 1
    run_start = start[firsts]
    run_end = end[np.append(firsts[1:], len(spans)) - 1]
    lines = (run_end - 1 >> LINE_BITS) - (run_start >> LINE_BITS) + 1
    before = starts(lines)
    last = before[run] + (end - 1 >> LINE_BITS) - (run_start[run] >> LINE_BITS)
    of_line = np.repeat(np.arange(len(firsts)), lines)
    number = np.arange(before[-1]) - before[of_line]
    line = (run_start[of_line] >> LINE_BITS) + number
    table = np.zeros(len(line), dtype_of(Fetch))
    low = np.maximum(line << LINE_BITS, run_start[of_line])
    high = np.minimum(line + 1 << LINE_BITS, run_end[of_line])
    table["location"], table["bytes"] = low & MEMORY_MASK, high - low
    return table, last


def _add_index_reads(vertices: Vertices, draws: Table, spans: Table, last: Numbers) -> None:
    """Which read brings the last index of each batch."""
    if not len(spans):
        return
    of_draw = np.full(len(draws), -1, np.int64)
    of_draw[spans["draw"]] = np.arange(len(spans))
    draw = np.repeat(np.arange(len(draws)), np.diff(vertices.first_batch))
    span = of_draw[draw]
    mine = (span >= 0).nonzero()[0]
    span, draw = span[mine], draw[mine]
    past = vertices.found.begins[1:].astype(np.int64)[mine] - draws["first_vertex"][draw]
    place = spans["start"][span]
    final = place + past * draws["index_bytes"][draw] - 1
    whole = place + spans["bytes"][span] - 1
    reads = last[span] - (whole >> LINE_BITS) + (final >> LINE_BITS)
    vertices.batches["list_read"][mine] = reads


# -- the binner


def primitives_of(mode: Any, op: Any, vertices: Any) -> Numbers:
    """Primitives that are complete after so many vertices."""
    is_vg = np.isin(op, _VG)
    first = np.where(is_vg, _VG_FIRST[mode & 15], _FIRST[mode & 15])
    each = np.where(is_vg, _VG_EACH[mode & 15], _EACH[mode & 15])
    count = np.asarray(vertices, np.int64)
    return np.where(count < first, 0, (count - first) // each + 1)


def _chunks(frame: Frame, draws: Table, vertices: Vertices, kept: int) -> tuple[Table, NDArray[np.int32]]:
    """Divide the binner's work into chunks: each draw batch by batch, each flush."""
    counts = np.diff(vertices.first_batch)
    each = np.maximum(counts, 1)
    draw = np.repeat(np.arange(len(draws)), each)
    firsts = starts(each)
    number = np.arange(len(draw)) - firsts[draw]
    has = counts[draw] > 0
    batch = np.where(has, vertices.first_batch[draw] + number, -1)
    ends = np.append(vertices.found.begins[1:], 0).astype(np.int64)[batch]
    mine = draws[draw]
    is_vg = np.isin(mine["op"], _VG)
    past = np.where(has, ends - mine["first_vertex"], np.where(is_vg, mine["length"], 0))
    done = primitives_of(mine["mode"], mine["op"], past)
    is_last = number == each[draw] - 1
    loop = is_last & (mine["mode"] == _LOOP) & ~is_vg & (done > 0)
    done = done + loop
    total = done[firsts[1:] - 1][draw] if len(draw) else done
    table = np.zeros(len(draw), dtype_of(Chunk))
    table["batch"] = batch
    table["primitives"] = _added(done, number)
    for name in ("entries", "clipped", "blocks"):
        shared = mine[name].astype(np.int64) * done // np.maximum(total, 1)
        shared = np.where(is_last, mine[name], shared)
        table["writes" if name == "blocks" else name] = _added(shared, number)
    table["keep"] = np.where(is_last, vertices.first_batch[draw + 1], np.maximum(batch + 1 - kept, 0))
    return _with_flushes(frame, table, firsts)


def _added(sums: Numbers, number: Numbers) -> Numbers:
    """From sums within a draw to what each chunk adds."""
    return np.where(number == 0, sums, np.diff(sums, prepend=0))


def _with_flushes(frame: Frame, chunks: Table, firsts: Numbers) -> tuple[Table, NDArray[np.int32]]:
    """The chunks of all draws with those of flushes between them, and where items begin."""
    parts, counts = [], []
    draw = 0
    for binning in frame.binnings:
        count = len(binning.draws)
        mine = chunks[firsts[draw] : firsts[draw + count]].copy()
        counts += [np.diff(firsts[draw : draw + count + 1]), np.ones(1, np.int64)]
        tiles = binning.tiles[0] * binning.tiles[1]
        pool = binning.memory[0] + tiles * binning.initial_bytes
        mine["write_bytes"] = binning.block_bytes
        before = starts(mine["writes"])[:-1] * binning.block_bytes
        mine["location"] = (pool + before) & MEMORY_MASK
        flush = np.zeros(1, dtype_of(Chunk))
        flush["batch"], flush["tiles"] = -1, max(tiles, 1)
        flush["writes"], flush["write_bytes"] = tiles, binning.initial_bytes
        flush["location"] = binning.memory[0] & MEMORY_MASK
        parts += [mine, flush]
        draw += count
    if not parts:
        return np.zeros(0, dtype_of(Chunk)), np.zeros(1, np.int32)
    return np.concatenate(parts), starts(np.concatenate(counts)).astype(np.int32)
