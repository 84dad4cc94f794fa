"""The vertex cache DMA (VCD), natively: attribute arrays in guest memory to rows of a batch."""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Value,
    clz_,
    const,
    gather,
    i8x16,
    i32,
    i64,
    iota,
    kernel,
    load,
    mask_bits,
    ptr,
    select,
    shuffle,
    splat,
    staged,
    store,
    unroll,
    vec,
)
from vc4lab.v3d.geometry.vertex_context import BATCH, VertexContext, VertexKey
from vc4lab.v3d.geometry.vpm import ROW_BYTES

QUAD = vec(i32, 4)

__all__ = ["batch_mask", "fetch_kernel", "fetch_rows", "lane_indices", "plan_words"]


def plan_words(key: VertexKey) -> list[tuple[int, int] | None]:
    """For every input row the array and the word in it that ends up there (None: nothing).

    Arrays are copied in ascending order, later ones overwrite, rows beyond the total size are
    dropped.
    """
    rows: list[tuple[int, int] | None] = [None] * key.rows_in
    for array, size, offset in sorted(key.attributes):
        for word in range((size + 3) // 4):
            row = offset // 4 + word
            if row < len(rows):
                rows[row] = (array, word)
    return rows


@staged
def batch_mask(c: Any, batch: Value) -> Value:
    """Which vertices of a batch are wanted (i8x16, non-zero = wanted)."""
    lane = iota(BATCH) + batch * BATCH
    inside = (lane >= c.first) & (lane <= c.last)
    wanted = splat(const(i8x16.elem, 1))
    if c.used != 0:
        wanted = load(i8x16, c.used + batch * BATCH)
    return inside & (wanted != 0)


@staged
def lane_indices(wanted: Value, batch: Value) -> Value:
    """Vertex index per lane; lanes that are not wanted repeat the last wanted vertex."""
    last = const(i32, 31) - clz_(mask_bits(wanted))
    return select(wanted, iota(BATCH), splat(last)) + batch * BATCH


def transpose(quads: list[Value]) -> list[Value]:
    """16 vectors of 4 words (one per lane) as 4 rows of 16 lanes."""
    pairs = [shuffle(quads[k], quads[k + 1], list(range(8))) for k in unroll(0, 16, 2)]
    fours = [shuffle(pairs[k], pairs[k + 1], list(range(16))) for k in unroll(0, 8, 2)]
    rows = []
    for word in unroll(4):
        order = [4 * lane + word for lane in unroll(8)]
        low = shuffle(fours[0], fours[1], order)
        high = shuffle(fours[2], fours[3], order)
        rows.append(shuffle(low, high, list(range(16))))
    return rows


@staged
def fetch_words(memory: Value, indices: Value, start: Value, stride: Value, words: Any) -> Any:
    """The named words of 16 elements, by word: by lanes if several, by a gather if only one.

    A group of four words is read from one masked address; at the very end of memory it reaches
    into the pad instead of wrapping.
    """
    found = {}
    for group in sorted({word // 4 for word in words}):
        members = [word for word in words if word // 4 == group]
        first = members[0]
        address = (indices * stride + (start + 4 * first)) & MEMORY_MASK
        if len(members) == 1:
            found[first] = gather(i32, memory, address)
        else:
            wide = address.zext(i64)
            quads = [load(QUAD, memory + wide[lane]) for lane in unroll(BATCH)]
            rows = transpose(quads)
            for word in members:
                found[word] = rows[word - first]
    return found


@staged
def fetch_rows(key: VertexKey, context: Value, indices: Value) -> list[Value]:
    """The attribute rows of the vertices `indices` (i32x16 each)."""
    c: Any = VertexContext.at(context)
    bases, strides = c.field_ptr("bases"), c.field_ptr("strides")
    plan = plan_words(key)
    arrays = {}
    for array in sorted({source[0] for source in plan if source is not None}):
        words = sorted({source[1] for source in plan if source is not None and source[0] == array})
        start, stride = load(i32, bases + 4 * array), load(i32, strides + 4 * array)
        arrays[array] = fetch_words(c.memory, indices, start, stride, words)
    zero = splat(const(i32, 0))
    return [zero if source is None else arrays[source[0]][source[1]] for source in plan]


def fetch_kernel(key: VertexKey) -> Any:
    """Kernel (context, batch, target): a batch's rows to host memory; returns the wanted lanes."""

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def fetch(context: Value, batch: Value, target: Value) -> Value:
        c: Any = VertexContext.at(context)
        wanted = batch_mask(c, batch)
        bits = mask_bits(wanted)
        if bits != 0:
            rows = fetch_rows(key, context, lane_indices(wanted, batch))
            for k in unroll(len(rows)):
                store(target + k * ROW_BYTES, rows[k])
        return bits

    return fetch
