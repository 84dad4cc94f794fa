"""Texels of tiled images as native code: their addresses, and boxes of them moved.

`tiling.py` says where a texel lies; here that is split into a column and a row part.

    address = base + ((column(x) ^ row.xor) + row.add)

The split makes bilinear sampling cheap: two columns and two rows give four addresses. It works for
every size because an odd tile row, which runs right to left, is the exclusive or of the tile
column with all ones (-1 - x) plus one whole row: `ty * n + (n - 1 - x) = (ty + 1) * n + ~x`.
The sub-tile order (0,3,1,2 / 2,1,3,0) is `sy ^ 3*sx ^ 2*odd`. For texels of 32 bits and more the
place inside a tile depends on five bits of x and of y: a permutation of two registers looks it up.

A row of a utile is contiguous in memory: whole ones are moved at once, those that a box cuts texel
by texel. Texels of 8 to 64 bits; blocks of a compressed format count as texels of 64 bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from vc4lab.images.tiling import TILE_BYTES, UTILE_SHAPES, Tiling, UtileShape
from vc4lab.optimisations import TILE_TABLES
from vc4lab.simd.kernel import kernel
from vc4lab.simd.members import i8, i16, i32, i32x16, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.trace import current
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import max_, min_, permute_two

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
    """Return the part of an offset that row ``y`` contributes; ``pitch`` as in `tiling.pitch_bytes`."""
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
    """Return what rows add to that, by the low five bits of y, without the odd tile rows' part."""
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


TEXEL_BITS = (8, 16, 32, 64)
_ELEMENTS = {8: i8, 16: i16, 32: i32, 64: i64}


class TileCopy(Struct):
    """A box to be copied: `width` x `height` texels at `x`, `y` of the image at `image`."""

    image = ptr
    rows = ptr
    stride = i64
    """Bytes from row to row in raster order."""
    pitch = i32
    """As in `tiling.pitch_bytes`."""
    x = i32
    y = i32
    width = i32
    height = i32


def _kernel(bits: int, tiling: Tiling, to_tiles: bool) -> Any:
    shape = UTILE_SHAPES[bits]
    texel = _ELEMENTS[bits]
    row_type = vec(texel, shape.width)

    @kernel(args=(ptr,), returns=None)
    def copy(job: Value) -> None:
        c: Any = TileCopy.at(job)
        x: Any
        y: Any
        at: Any
        right = c.x + c.width
        first = c.x & -shape.width
        row = c.rows
        for y in range(c.y, c.y + c.height):
            part = row_offset(y, c.pitch, shape, tiling)
            for x in range(first, right, shape.width):
                run = c.image + combine(column_offset(x, shape, tiling), part).zext(i64)
                if (x >= c.x) & (x + shape.width <= right):
                    place = row + ((x - c.x) * (bits // 8)).zext(i64)
                    if to_tiles:
                        store(run, load(row_type, place))
                    else:
                        store(place, load(row_type, run))
                else:
                    for at in range(max_(x, c.x), min_(x + shape.width, right)):
                        inner = run + ((at - x) * (bits // 8)).zext(i64)
                        outer = row + ((at - c.x) * (bits // 8)).zext(i64)
                        if to_tiles:
                            store(inner, load(texel, outer))
                        else:
                            store(outer, load(texel, inner))
            row = row + c.stride

    return copy


@cache
def _native(bits: int, tiling: Tiling, to_tiles: bool) -> NativeFunction:
    name = f"tile_copy_{bits}_{tiling.name}_{'in' if to_tiles else 'out'}"
    module = build(name, {"copy": _kernel(bits, tiling, to_tiles)}, float_mode="caller", key=name)
    return module["copy"]


def copy_box(
    image: int,
    bits: int,
    tiling: Tiling,
    pitch: int,
    box: tuple[int, int, int, int],
    rows: int,
    stride: int,
    *,
    to_tiles: bool,
) -> None:
    """Move a box between a tiled image and rows of texels.

    Parameters
    ----------
    image, rows
        Host addresses of the image's first byte, and of the box's first texel in raster order.
    bits
        Bits of a texel, one of `TEXEL_BITS`.
    tiling, pitch
        T or LT, and bytes as `tiling.pitch_bytes` has them.
    box
        x, y, width and height in texels; the caller has checked that the image has room for it.
    stride
        Bytes between rows in raster order.
    to_tiles
        Into the image, else out of it.
    """
    x, y, width, height = box
    if width <= 0 or height <= 0:
        return
    job = TileCopy(image=image, rows=rows, stride=stride, pitch=pitch, x=x, y=y, width=width, height=height)
    _native(bits, tiling, to_tiles)(job.address)
