"""NV mode: vertices the program has shaded itself, copied from guest memory into batches.

A vertex is an optional clip header (Xc, Yc, Zc, Wc) and the words of the primitive setup (Ys:Xs,
Zs, 1/Wc [, point size], varyings); the binner gets the first words, the fragment stage those after
the header. Source: AG100-R pp. 79-81, tables 45-47.
"""

from __future__ import annotations

from functools import lru_cache

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import NativeFunction, Value, any_, build, i64, kernel, load, ptr, store, unroll
from vc4lab.v3d.vertex.context import VERTEX_BATCH, NvContext
from vc4lab.v3d.vertex.fetch import QUAD, batch_mask, lane_indices, transpose
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES


@kernel(args=(ptr,), returns=None)
def copy_vertices(context: Value) -> None:
    """Copy the wanted vertices: word r of vertex i to row r of its batch."""
    c = NvContext.at(context)
    for batch in range(c.first >> 4, (c.last >> 4) + 1):
        wanted = batch_mask(c, batch)
        if any_(wanted):
            start = lane_indices(wanted, batch) * c.stride + c.base
            target = c.output + batch * c.pitch
            for group in range((c.rows + 3) >> 2):
                first = group * 4
                address = ((start + first * 4) & MEMORY_MASK).zext(i64)
                quads = [load(QUAD, c.memory + address[lane]) for lane in unroll(VERTEX_BATCH)]
                rows = transpose(quads)
                for k in unroll(4):
                    if first + k < c.rows:
                        store(target + (first + k) * ROW_BYTES, rows[k])


@lru_cache(maxsize=1)
def copy_function() -> NativeFunction:
    """Native `copy_vertices`."""
    kernels = {"copy": copy_vertices}
    return build("nv_vertices", kernels, float_mode="default", key="nv_vertices")["copy"]
