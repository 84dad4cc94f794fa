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
    iota,
    kernel,
    load,
    mask_bits,
    ptr,
    select,
    splat,
    staged,
    store,
    unroll,
)
from vc4lab.v3d.geometry.vertex_context import BATCH, VertexContext, VertexKey
from vc4lab.v3d.geometry.vpm import ROW_BYTES

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


@staged
def fetch_rows(key: VertexKey, context: Value, indices: Value) -> list[Value]:
    """The attribute rows of the vertices `indices` (i32x16 each)."""
    c: Any = VertexContext.at(context)
    bases, strides = c.field_ptr("bases"), c.field_ptr("strides")
    rows = []
    for source in plan_words(key):
        if source is None:
            rows.append(splat(const(i32, 0)))
        else:
            array, word = source
            start = load(i32, bases + 4 * array) + 4 * word
            address = (indices * load(i32, strides + 4 * array) + start) & MEMORY_MASK
            rows.append(gather(i32, c.memory, address))
    return rows


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
