"""Addresses of texels as native code: what `tiling.py` says, split into a column and a row part.

    address = base + ((column(x) ^ row.xor) + row.add)

The split makes bilinear sampling cheap: two columns and two rows give four addresses. It works for
every size because an odd tile row, which runs right to left, is the exclusive or of the tile
column with all ones (-1 - x) plus one whole row: `ty * n + (n - 1 - x) = (ty + 1) * n + ~x`.
The sub-tile order (0,3,1,2 / 2,1,3,0) is `sy ^ 3*sx ^ 2*odd`. For texels of 32 bits and more the
place inside a tile depends on five bits of x and of y: a permutation of two registers looks it up.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.images.tiling import TILE_BYTES, Tiling, UtileShape
from vc4lab.optimisations import TILE_TABLES
from vc4lab.simd import Value, const, i32x16, permute_two, select
from vc4lab.simd.trace import current

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
    if _looked_up(x, low):
        return _lookup(x, column_table(shape)) | _field(x, 9 - low, ~_BELOW_TILE)
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
    odd_rows = (y << (28 - low)) >> 31
    tile_pairs = (y + 8 * shape.height).shr(low + 4)
    if _looked_up(y, low):
        # The bit that marks odd tile rows is bit 11 of the offset as well.
        within = _lookup(y, row_table(shape)) | (odd_rows & ~(_BELOW_TILE >> 1))
    else:
        within = inner | _field(y, 8 - low, 0xF00) | (odd_rows & ~_BELOW_TILE)
    return RowAddress(within, tile_pairs * (pitch << 1))


def _looked_up(position: Value, low: int) -> bool:
    """Whether the offset inside a tile depends on five bits: one permutation of 32 numbers."""
    level = current().module.target.level
    return low <= 2 and position.type.lanes == 16 and TILE_TABLES.serves(level)


def _lookup(position: Value, numbers: list[int]) -> Value:
    halves = [const(i32x16, numbers[k : k + 16]) for k in (0, 16)]
    return permute_two(halves[0], halves[1], position)


def column_table(shape: UtileShape) -> list[int]:
    """Offsets inside a T tile of an even tile row by the low five bits of x."""
    low, texel = shape.width_log2, shape.bits_per_texel // 8
    inner = [(x % shape.width) * texel for x in range(32)]
    return [inner[x] | (x >> low & 3) << 6 | (x >> (low + 2) & 1) * 0xC00 for x in range(32)]


def row_table(shape: UtileShape) -> list[int]:
    """What rows add to that, by the low five bits of y, without the odd tile rows' part."""
    low = shape.height_log2
    return [(y % shape.height) << shape.row_bytes_log2 | (y >> low & 7) << 8 for y in range(32)]


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
    return RowAddress(select(linear_tile, linear.xor, tiled.xor), select(linear_tile, linear.add, tiled.add))


def combine(column: Value, row: RowAddress) -> Value:
    """Byte offset of the texel from the base of its image."""
    return (column if row.xor is None else column ^ row.xor) + row.add
