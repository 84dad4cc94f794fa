"""Covered quads that wait to be shaded, and the planes of their triangles.

A quad is a word: its offset in the tile buffer in 15:0, covered pixels in 19:16, those between the
Z planes in 23:20. Beside it stands the record of its triangle, in bytes from the first record.
"""

from __future__ import annotations

from vc4lab.simd import Struct, Value, alloca, f32, i32, store
from vc4lab.v3d.pse.batch import FIXED_PLANES, BlockPlace, CoveredBlock
from vc4lab.v3d.pse.setup import Primitive
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.state.tile_layout import QUAD_BYTES, QUAD_ROW_BYTES, SINGLE

QUEUE_LIMIT = 64
"""Quads after which the queue is emptied before the next triangle."""
MAX_QUADS = QUEUE_LIMIT + 4
MAX_RECORDS = QUEUE_LIMIT
"""A triangle in the queue has a quad there."""


class Tail(Struct):
    """What a record holds after its planes (three floats each)."""

    x0 = i32
    y0 = i32
    z_low = f32
    z_high = f32
    z_offset = f32


def record_bytes(key: FragmentKey) -> int:
    """Size of a triangle's record."""
    return (FIXED_PLANES + key.n_varyings) * 12 + Tail.size


class QuadQueue:
    """The queue of a draw while its triangles are rasterised."""

    def __init__(self, key: FragmentKey) -> None:
        self.size = record_bytes(key)
        self.quads = alloca(MAX_QUADS * 4 + 64)
        self.owners = alloca(MAX_QUADS * 4 + 64)
        self.records = alloca(MAX_RECORDS * self.size + 16)  # read four words at a time

    def write(self, number: Value, primitive: Primitive) -> None:
        """Puts a triangle into record `number`."""
        place = self.records + number * self.size
        planes = primitive.varyings
        attributes = zip(planes.a, planes.b, planes.c, strict=True)
        for k, plane in enumerate([primitive.depth, primitive.reciprocal_w, *attributes]):
            for part, value in enumerate(plane):
                if value is not None:
                    store(place + (12 * k + 4 * part), value)
        tail = Tail.at(place + (self.size - Tail.size))
        tail.x0, tail.y0 = primitive.x0, primitive.y0
        tail.z_low, tail.z_high = primitive.z_low, primitive.z_high
        if primitive.z_offset is not None:
            tail.z_offset = primitive.z_offset

    def push(self, count: Value, record: Value, listed: CoveredBlock, place: BlockPlace) -> Value:
        """Appends the covered quads of a block; the new number of quads."""
        first = SINGLE.even_offset(place.x, place.y)
        covered, flags = listed.covered.zext(i32), listed.flags.zext(i32)
        owner = record * self.size
        for quad in range(4):
            mine = covered.shr(4 * quad) & 15
            offset = first + (quad & 1) * QUAD_BYTES + (quad >> 1) * QUAD_ROW_BYTES
            word = offset | (mine << 16) | ((flags.shr(4 * quad) & 15) << 20)
            store(self.quads + count * 4, word)
            store(self.owners + count * 4, owner)
            count = count + (mine != 0).zext(i32)
        return count
