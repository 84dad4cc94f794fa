"""Boxes of pictures between rows (raster order) and tiled images, as native code.

A row of a utile is contiguous in memory: whole ones are moved at once, those that a box cuts texel
by texel. Texels of 8 to 64 bits; blocks of a compressed format count as texels of 64 bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.images.tile_address import column_offset, combine, row_offset
from vc4lab.images.tiling import UTILE_SHAPES, Tiling
from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    build,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    store,
    vec,
)

TEXEL_BITS = (8, 16, 32, 64)
_ELEMENTS = {8: i8, 16: i16, 32: i32, 64: i64}


class TileCopy(Struct):
    """What is moved: a box of `width` x `height` texels at `x`, `y` of the image at `image`."""

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
