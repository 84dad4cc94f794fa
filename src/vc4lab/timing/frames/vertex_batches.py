"""The vertex cache manager (VCM): which batch of up to 16 vertices each named vertex comes from.

The chip collects distinct vertices into batches and shades each batch once. Whether a vertex that
was shaded is found again, and how far back, is not documented: `kept` is how many full batches
before the one being collected are looked at. A batch never goes on into another tile or draw.
Source: hardware reference 1.1, 1.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vc4lab.simd import NativeFunction, Struct, Value, build, const, i32, kernel, load, ptr, store
from vc4lab.timing.frames.columns import point_at
from vc4lab.timing.frames.frame import Frame
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES

BATCH = 16
"""Vertices that are shaded together."""


@dataclass(frozen=True)
class VertexBatches:
    """Batches of vertices in the order in which they are shaded.

    Attributes
    ----------
    batch_of
        The batch of each named vertex.
    sizes
        Vertices of each batch, 1 to 16.
    first_batch
        The first batch of each group, and at the end the number of batches.
    begins
        The place of each batch's first vertex among those that are named, and at the end the number
        of those.
    members
        The vertices of all batches, one batch after the other.
    """

    batch_of: NDArray[np.int32]
    sizes: NDArray[np.int32]
    first_batch: NDArray[np.int32]
    begins: NDArray[np.int32]
    members: NDArray[np.uint32]


class Collecting(Struct):
    """Groups of named vertices, and the tables that are filled.

    `starts`: where each group begins among the vertices, and where the last one ends; `seen`: the
    batch in which each vertex was shaded last.
    """

    vertices = ptr
    starts = ptr
    groups = i32
    kept = i32
    seen = ptr
    batch_of = ptr
    sizes = ptr
    first_batch = ptr
    begins = ptr
    members = ptr


@kernel(args=(ptr,), returns=i32)
def collect(pointer: Value) -> Value:
    """Fills the tables; how many batches there are."""
    c = Collecting.at(pointer)
    batches = const(i32, 0)
    members = const(i32, 0)
    for group in range(c.groups):
        first = batches
        size = const(i32, BATCH)  # of the last batch: the next vertex begins one
        store(c.first_batch + group * 4, first)
        end = load(i32, c.starts + group * 4 + 4)
        for number in range(load(i32, c.starts + group * 4), end):
            vertex = load(i32, c.vertices + number * 4)
            place = c.seen + (vertex & (MAX_VERTICES - 1)) * 4
            batch = load(i32, place)
            if (batch < first) | (batch < batches - 1 - c.kept):
                if size == BATCH:
                    size = const(i32, 0)
                    store(c.begins + batches * 4, number)
                    batches = batches + 1
                size = size + 1
                store(c.members + members * 4, vertex)
                members = members + 1
                batch = batches - 1
                store(place, batch)
                store(c.sizes + batch * 4, size)
            store(c.batch_of + number * 4, batch)
    store(c.first_batch + c.groups * 4, batches)
    return batches


@cache
def _native() -> NativeFunction:
    functions = {"collect": collect}
    return build("vertex_batches", functions, float_mode="default", key="batches")["collect"]


def collect_batches(vertices: NDArray[np.uint32], starts: NDArray[np.int32], kept: int = 0) -> VertexBatches:
    """The batches of groups of vertices; `starts`: their beginnings, and the last one's end."""
    named = np.ascontiguousarray(vertices, np.uint32)
    places = np.ascontiguousarray(starts, np.int32)
    groups = len(places) - 1
    seen = np.full(MAX_VERTICES, -1, np.int32)
    batch_of, sizes, begins = (np.zeros(len(named) + 1, np.int32) for _ in range(3))
    members = np.zeros(len(named) + 1, np.uint32)
    first_batch = np.zeros(groups + 1, np.int32)
    c = Collecting(groups=groups, kept=kept)
    arrays = {
        "vertices": named, "starts": places, "seen": seen, "batch_of": batch_of,
        "sizes": sizes, "first_batch": first_batch, "begins": begins, "members": members,
    }  # fmt: skip
    point_at(c, arrays)
    count = int(_native()(c.address))
    begins[count] = places[-1] if groups > 0 else 0
    return VertexBatches(
        batch_of[: len(named)],
        sizes[:count],
        first_batch,
        begins[: count + 1],
        members[: int(sizes[:count].sum(dtype=np.int64))],
    )


def tile_groups(frame: Frame) -> NDArray[np.int32]:
    """The lists of a frame in groups that may share batches: one tile, one draw in a row.

    Where each begins among the frame's lists, and how many lists there are.
    """
    lists = frame.lists
    if not len(lists):
        return np.zeros(1, np.int32)
    changes = (np.diff(lists["tile"]) != 0) | (np.diff(lists["draw"]) != 0)
    begins = np.concatenate([[0], changes.nonzero()[0] + 1, [len(lists)]])
    return begins.astype(np.int32)


def rendering_batches(frame: Frame, kept: int = 0) -> VertexBatches:
    """The batches that thread 1 shades, tile by tile; groups are those of `tile_groups`."""
    firsts = np.append(frame.lists["first_vertex"], len(frame.vertices))
    return collect_batches(frame.vertices, firsts[tile_groups(frame)], kept)
