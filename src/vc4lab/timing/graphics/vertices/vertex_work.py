"""From the vertices that draws name to the batches and reads that the chip makes of them.

A batch's reads are those of its vertices' attributes, base + index * stride, without what two of
them share: bytes in one line of 64 are read together, as a burst.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    build,
    const,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    store,
)
from vc4lab.timing.compute.kinds import LINE, LINE_BITS
from vc4lab.timing.compute.model import NotTimed
from vc4lab.timing.frames import columns as cols
from vc4lab.timing.frames.columns import Table, dtype_of, point_at, starts
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.frames.vertex_batches import (
    BATCH,
    VertexBatches,
    collect_batches,
    rendering_batches,
    tile_groups,
)
from vc4lab.timing.graphics.state import Batch, Fetch
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING

COORDINATE_ROWS = 7
"""Rows of the VPM that a coordinate shader writes (8 with a point size, which is not recorded)."""

MAX_FETCHES = 1 << 24
"""Reads of a frame's attributes that are timed."""

_ADDRESS = (1 << 30) - 1
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Vertices:
    """The batches of a list thread in a frame, rows of `Batch`; what they read, rows of `Fetch`.

    first_batch: of each group (a draw of thread 0; lists of one tile and draw of thread 1) its
    first batch, and the end. found: which vertices each batch has.
    """

    batches: Table
    fetches: Table
    first_batch: NDArray[np.int32]
    found: VertexBatches

    def use_shaders(self, rows: NDArray[np.int32]) -> None:
        """From draws, as `shader` has them at first, to rows of `Work.shaders`."""
        column = self.batches["shader"]
        shaded = column >= 0
        column[shaded] = rows[column[shaded]]


class Array(Struct):
    """The place of an attribute array's elements in memory."""

    location = i64
    stride = i64
    bytes = i64


class Fetching(Struct):
    """Batches whose reads are looked for. next: the first one without; room: for reads in `out`.

    members, first_member: vertices of the batches. first_array: of each draw its first array.
    most: reads that a batch has at most. base: reads that were found before.
    """

    members = ptr
    first_member = ptr
    draws = ptr
    first_array = ptr
    arrays = ptr
    first_fetch = ptr
    out = ptr
    next = i32
    count = i32
    room = i32
    most = i32
    base = i32
    unused = i32


@kernel(args=(ptr,), returns=i32)
def find_fetches(pointer: Value) -> Value:
    """Writes the reads of as many batches as there is room for; how many reads there are."""
    f = Fetching.at(pointer)
    count = const(i32, 0)
    while (f.next < f.count) & (count + f.most <= f.room):
        batch = f.next
        store(f.first_fetch + batch * 4, f.base + count)
        first = count
        draw = f.draws + batch * 4
        arrays = f.first_array + load(i32, draw) * 4
        end = load(i32, f.first_member + batch * 4 + 4)
        for member in range(load(i32, f.first_member + batch * 4), end):
            vertex = load(i32, f.members + member * 4).zext(i64)
            for number in range(load(i32, arrays), load(i32, arrays + 4)):
                array = Array.at(f.arrays + number * Array.size, 8)
                at: Value = (array.location + vertex * array.stride) & _ADDRESS
                last = at + array.bytes
                while at < last:
                    line = at >> LINE_BITS
                    upto = min_(last, (line + 1) << LINE_BITS)
                    place = count - 1
                    looking = const(i32, 1)
                    while (place >= first) & (looking != 0):
                        fetch = Fetch.at(f.out + place.sext(i64) * Fetch.size, 8)
                        if fetch.location >> LINE_BITS == line:
                            looking = const(i32, 0)
                            until = max_(fetch.location + fetch.bytes, upto)
                            fetch.location = min_(fetch.location, at)
                            fetch.bytes = until - fetch.location
                        else:
                            place = place - 1
                    if looking != 0:
                        fetch = Fetch.at(f.out + count.sext(i64) * Fetch.size, 8)
                        fetch.location = at
                        fetch.bytes = upto - at
                        count = count + 1
                    at = upto
        f.next = batch + 1
    return count


@cache
def _native() -> NativeFunction:
    functions = {"fetches": find_fetches}
    return build("vertex_fetches", functions, float_mode="default", key="fetches")["fetches"]


def fetches_of(
    found: VertexBatches, draws: NDArray[np.int32], attributes: Table, count: int
) -> tuple[Table, NDArray[np.int32]]:
    """The reads of batches, and where each batch's begin. draws: of each batch; count: of draws.

    Raises NotTimed.
    """
    arrays = np.zeros(max(len(attributes), 1), dtype_of(Array))
    rows = arrays[: len(attributes)]
    rows["location"], rows["stride"] = attributes["address"], attributes["stride"]
    rows["bytes"] = np.maximum(attributes["bytes"], 0)
    first_array = np.searchsorted(attributes["draw"], np.arange(count + 1)).astype(np.int32)
    lines = starts(attributes["bytes"] // LINE + 2)[first_array]
    most = BATCH * int(np.diff(lines).max(initial=0))
    first_member = starts(found.sizes).astype(np.int32)
    first_fetch = np.zeros(len(draws) + 1, np.int32)
    f = Fetching(count=len(draws), most=most)
    held = {
        "members": np.ascontiguousarray(found.members), "first_member": first_member,
        "draws": np.ascontiguousarray(draws, np.int32), "first_array": first_array,
        "arrays": arrays, "first_fetch": first_fetch,
    }  # fmt: skip
    point_at(f, held)
    parts: list[Table] = []
    while f.next < len(draws):
        part = np.zeros(max(_CHUNK, most), dtype_of(Fetch))
        f.out, f.room = part.ctypes.data, len(part)
        wrote = int(_native()(f.address))
        f.base += wrote
        parts.append(part[:wrote].copy())
        if f.base > MAX_FETCHES:
            raise NotTimed(f"a frame whose vertices are read more than {MAX_FETCHES} times")
    first_fetch[len(draws)] = f.base
    return np.concatenate(parts or [np.zeros(0, dtype_of(Fetch))]), first_fetch


def _vertices(
    thread: int,
    found: VertexBatches,
    draw_of_group: NDArray[np.int32],
    attributes: Table,
    shaders: NDArray[np.int32],
    attribute_bytes: NDArray[np.int32],
    shaded_rows: NDArray[np.int32],
) -> Vertices:
    """The tables; the last three have a row for each draw. shaders: -1 for vertices in memory."""
    draws = np.repeat(draw_of_group, np.diff(found.first_batch)).astype(np.int32)
    table = np.zeros(len(draws), dtype_of(Batch))
    fetches, first_fetch = fetches_of(found, draws, attributes, len(shaders))
    first_array = np.searchsorted(attributes["draw"], np.arange(len(shaders) + 1))
    rows = np.clip(attribute_bytes, 0, 1 << 12) + 3 >> 2
    words = np.diff(starts(attributes["bytes"] + 3 >> 2)[first_array])
    words = np.minimum(words, rows)
    table["thread"], table["vertices"] = thread, found.sizes
    table["shader"], table["rows"] = shaders[draws], rows[draws]
    table["shaded_rows"] = np.where(shaders >= 0, shaded_rows, 0)[draws]
    table["first_fetch"], table["fetches"] = first_fetch[:-1], np.diff(first_fetch)
    table["words"] = words[draws] * found.sizes
    table["named"] = np.diff(found.begins)
    table["list_read"] = -1
    return Vertices(table, fetches, found.first_batch, found)


def rendering_vertices(frame: Frame, kept: int = 0, found: VertexBatches | None = None) -> Vertices:
    """Return the vertices that thread 1 shades, tile by tile. Shaders: by draw."""
    found = found or rendering_batches(frame, kept)
    firsts = tile_groups(frame)[:-1]
    draws = frame.draws
    numbers = np.arange(len(draws), dtype=np.int32)
    return _vertices(
        RENDERING,
        found,
        frame.lists["draw"][firsts],
        frame.attributes,
        np.where(draws["vertex_program"] >= 0, numbers, np.int32(-1)),
        draws["attribute_bytes"],
        draws["vertex_words"],
    )


def binned_draws(frame: Frame) -> Table:
    """The draws of all flushes of a frame; `first_vertex` counts through all of them."""
    parts = [binning.draws.copy() for binning in frame.binnings]
    before = 0
    for part, binning in zip(parts, frame.binnings, strict=True):
        part["first_vertex"] += before
        before += len(binning.vertices)
    return np.concatenate(parts) if parts else np.zeros(0, cols.BINNED)


def binning_vertices(frame: Frame, kept: int = 0) -> Vertices:
    """Return the vertices that thread 0 shades, draw by draw. Shaders: by draw."""
    draws = binned_draws(frame)
    named = [binning.vertices for binning in frame.binnings] or [np.zeros(0, np.uint32)]
    attributes = [binning.attributes.copy() for binning in frame.binnings]
    before = 0
    for part, binning in zip(attributes, frame.binnings, strict=True):
        part["draw"] += before
        before += len(binning.draws)
    vertices = np.concatenate(named)
    firsts = np.append(draws["first_vertex"], len(vertices)).astype(np.int32)
    numbers = np.arange(len(draws), dtype=np.int32)
    return _vertices(
        BINNING,
        collect_batches(vertices, firsts, kept),
        numbers,
        np.concatenate(attributes) if attributes else np.zeros(0, cols.ATTRIBUTE),
        np.where(draws["program"] >= 0, numbers, np.int32(-1)),
        draws["attribute_bytes"],
        np.full(len(draws), COORDINATE_ROWS, np.int32),
    )
