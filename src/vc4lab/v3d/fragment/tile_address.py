"""Addresses of texels as native code: what `tiling.py` says, split into a column and a row part.

    address = base + ((column(x) ^ row.xor) + row.add)

The split makes bilinear sampling cheap: two columns and two rows give four addresses. It works for
every size because an odd tile row, which runs right to left, is the exclusive or of the tile
column with all ones (-1 - x) plus one whole row: `ty * n + (n - 1 - x) = (ty + 1) * n + ~x`.
The sub-tile order (0,3,1,2 / 2,1,3,0) is `sy ^ 3*sx ^ 2*odd`.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.simd import Value, select
from vc4lab.v3d.fragment.tiling import TILE_BYTES, Tiling, UtileShape

_BELOW_TILE = TILE_BYTES - 1


class RowAddress(NamedTuple):
    """The part of an address that depends on y: first xor with the column, then add."""

    xor: Value | None
    add: Value


def _field(value: Value, shift: int, mask: int) -> Value:
    """``value`` moved left (right if negative) by ``shift``, masked."""
    moved = value << shift if shift > 0 else value.shr(-shift) if shift < 0 else value
    return moved & mask


def column_offset(x: Value, shape: UtileShape, tiling: Tiling) -> Value:
    """Byte offset that the column ``x`` (i32 vector or scalar) contributes."""
    texel_shift = shape.bits_per_texel.bit_length() - 4
    if tiling is Tiling.RASTER:
        return _field(x, texel_shift, -1)
    low = shape.width_log2
    inner_bytes = 1 << shape.row_bytes_log2
    inner = _field(x, texel_shift, inner_bytes - 1 & ~((1 << max(texel_shift, 0)) - 1))
    if tiling is Tiling.LT:
        return inner | _field(x, 6 - low, -64)
    utile = _field(x, 6 - low, 0xC0)
    # Bit 2 of the utile column sits at bits 10 and 11, the tile column above.
    subtile = _field(x, 8 - low, 0x400)
    return inner | utile | subtile | _field(x, 9 - low, ~0x7FF)


def row_offset(y: Value, pitch: Value, shape: UtileShape, tiling: Tiling) -> RowAddress:
    """What the row ``y`` contributes; ``pitch`` as in `tiling.pitch_bytes`."""
    if tiling is Tiling.RASTER:
        return RowAddress(None, y * pitch)
    low = shape.height_log2
    inner = _field(y, shape.row_bytes_log2, (shape.height - 1) << shape.row_bytes_log2)
    if tiling is Tiling.LT:
        return RowAddress(inner, y.shr(low) * pitch)
    utile = _field(y, 8 - low, 0xF00)
    odd_rows = ((y << (28 - low)) >> 31) & ~_BELOW_TILE
    tile_pairs = (y + 8 * shape.height).shr(low + 4)
    return RowAddress(inner | utile | odd_rows, tile_pairs * (pitch << 1))


def mixed_column(x: Value, shape: UtileShape, linear_tile: Value) -> Value:
    """Column part where ``linear_tile`` (lane mask) chooses LT, else T."""
    tiled = column_offset(x, shape, Tiling.T)
    return select(linear_tile, column_offset(x, shape, Tiling.LT), tiled)


def mixed_row(y: Value, pitch: Value, shape: UtileShape, linear_tile: Value) -> RowAddress:
    """Row part where ``linear_tile`` (lane mask) chooses LT, else T."""
    tiled = row_offset(y, pitch, shape, Tiling.T)
    linear = row_offset(y, pitch, shape, Tiling.LT)
    assert tiled.xor is not None
    assert linear.xor is not None
    return RowAddress(
        select(linear_tile, linear.xor, tiled.xor), select(linear_tile, linear.add, tiled.add)
    )


def combine(column: Value, row: RowAddress) -> Value:
    """Byte offset of the texel from the base of its image."""
    return (column if row.xor is None else column ^ row.xor) + row.add
