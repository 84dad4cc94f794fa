"""Lines of a frame buffer, RGB or YUV, as 32-bit pixels (blue in the low byte)."""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.images.tiling import SUBTILE_ORDER
from vc4lab.simd.control import unroll
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import Array, i8x16, i16x16, i32, i32x16, i64, ptr
from vc4lab.simd.memory import gather, load, store, table
from vc4lab.simd.native import NativeModule, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, select, splat
from vc4lab.simd.vector import iota, max_, min_

BLOCK = 16
"""Pixels that are worked on at once; lines have room for so many more."""
_SUBTILES = [place for order in SUBTILE_ORDER for place in order]
"""Place of a sub-tile in its tile, by (odd row of tiles, lower half, right half)."""


class Layer(Struct):
    """A plane as the kernels see it. `line`, `raw`: scratch lines of the frame buffer's width."""

    frame = ptr
    pitch = i64
    tiled = i32
    tiles = i64
    """In a row."""
    pixel_bytes = i32
    plain = i32
    """The pixels are what is wanted."""
    low = Array(i32, 4)
    """Lowest bits of red, green, blue, alpha; their mask; factor, addend and shift that make 8 bits."""
    mask = Array(i32, 4)
    factor = Array(i32, 4)
    plus = Array(i32, 4)
    down = Array(i32, 4)
    left = i32
    right = i32
    """Pixels that are needed of a line."""
    rows = ptr
    """Source line of each line that is made."""
    row_count = i32
    columns = ptr
    """Source pixel of each pixel that is made; 0: one after the other from `left` on."""
    count = i32
    """Pixels of a line that is made."""
    taps = i32
    weights = ptr
    blend = i32
    alpha = i32
    rounding = i32
    out = ptr
    out_pitch = i64
    raw = ptr
    line = ptr
    picked = ptr


@staged
def line_of(layer: Layer, row: Value) -> Value:
    """Return the address of pixel `left` of a source line, converted."""
    place = layer.frame + row.zext(i64) * layer.pitch
    if layer.tiled != 0:
        detile_line(layer, row)
        place = layer.raw
    start = place + layer.left.zext(i64) * layer.pixel_bytes.zext(i64)
    if layer.plain == 0:
        convert_line(layer, start)
        start = layer.line
    return start


@staged
def wide(number: Any) -> Value:
    """A number that is not negative, as part of an address."""
    result: Value = number.zext(i64)
    return result


@staged
def detile_line(layer: Layer, row: Value) -> None:
    """Copy the sub-tiles' parts of a line of a T-tiled frame buffer into `raw`."""
    tile_row = row.shr(5)
    odd = tile_row & 1
    orders = table(i32, _SUBTILES)
    order = orders + ((odd * 4 + (row.shr(4) & 1) * 2) * 4).zext(i64)
    inner = ((row.shr(2) & 3) * 256 + (row & 3) * 16).zext(i64)
    tiles = layer.frame + tile_row.zext(i64) * layer.tiles * 4096 + inner
    first = (layer.left * layer.pixel_bytes).shr(6)
    end = (layer.right * layer.pixel_bytes + 63).shr(6)
    for number in range(first, end):
        column = wide(number).shr(1)
        column = select(odd == 1, layer.tiles - 1 - column, column)
        subtile = load(i32, order + wide((number & 1) * 4)).zext(i64)
        source = tiles + column * 4096 + subtile * 1024
        target = layer.raw + wide(number * 64)
        for utile in unroll(4):
            store(target + 16 * utile, load(i8x16, source + 64 * utile))


@staged
def convert_line(layer: Layer, start: Value) -> None:
    """Pixels of any format into `line`."""
    channels = [
        [load(i32, layer.field_ptr(name) + 4 * n) for name in ("low", "mask", "factor", "plus", "down")]
        for n in range(4)
    ]
    count = layer.right - layer.left
    size = layer.pixel_bytes
    for done in range(0, count, BLOCK):
        place = start + wide(done * size)
        pixels = splat(0, BLOCK)
        if size == 4:
            pixels = load(i32x16, place)
        elif size == 2:
            pixels = load(i16x16, place).zext(i32x16)
        elif size == 1:
            pixels = load(i8x16, place).zext(i32x16)
        else:
            pixels = gather(i32, place, iota(BLOCK) * 3) & 0xFFFFFF
        red, green, blue, alpha = [
            ((pixels.shr(splat(low, BLOCK)) & mask) * factor + plus).shr(splat(down, BLOCK))
            for low, mask, factor, plus, down in channels
        ]
        store(layer.line + wide(done * 4), alpha << 24 | red << 16 | green << 8 | blue)


COEFFICIENT_BITS = 8


class Samples(Struct):
    """One component in memory. Sample (x, y), at n = x step + skip of a row, is at (n >> shift)
    column + y row + (n & mask): columns of 2^shift bytes side by side, or one that is wide enough.
    """

    start = ptr
    step = i32
    skip = i32
    shift = i32
    mask = i32
    column = i32
    row = i32
    right = i32
    """The last sample of a row, and of a column."""
    bottom = i32


class Picture(Struct):
    """A plane. halved: whether chroma has half the columns, half the rows. blends: whether it is
    made up of neighbours in between. offsets, matrix: of Y, Cb, Cr, row by row for red, green and
    blue, in 256ths.
    """

    parts = Array(Samples, 3)
    width = i32
    height = i32
    halved = Array(i32, 2)
    blends = i32
    rounding = i32
    offsets = Array(i32, 3)
    matrix = Array(i32, 9)
    out = ptr


@staged
def sample(part: Samples, x: Value, y: Value) -> Value:
    """Sixteen samples, at columns and rows."""
    place = x * part.step + part.skip
    offset = place.shr(splat(part.shift, BLOCK)) * part.column + y * part.row + (place & part.mask)
    return gather(i32, part.start, offset) & 0xFF


@staged
def between(part: Samples, x: Value, y: Value, half_x: Value, half_y: Value) -> Value:
    """Samples of a component with fewer of them: three parts of the nearest, one of the next."""
    near_x, near_y = x.shr(splat(half_x, BLOCK)), y.shr(splat(half_y, BLOCK))
    far_x = near_x + ((x & 1) * 2 - 1) * half_x
    far_y = near_y + ((y & 1) * 2 - 1) * half_y
    far_x = max_(min_(far_x, part.right), 0)
    far_y = max_(min_(far_y, part.bottom), 0)
    upper = sample(part, near_x, near_y) * 3 + sample(part, far_x, near_y)
    lower = sample(part, near_x, far_y) * 3 + sample(part, far_x, far_y)
    return (upper * 3 + lower + 8) >> 4


@staged
def nearest(part: Samples, x: Value, y: Value, half_x: Value, half_y: Value) -> Value:
    """The sample that a pixel shares with its neighbours."""
    column = min_(x.shr(splat(half_x, BLOCK)), part.right)
    return sample(part, column, min_(y.shr(splat(half_y, BLOCK)), part.bottom))


@kernel(args=(ptr,), returns=None)
def convert(place: Value) -> None:
    """All pixels of a `Picture` into `out`, row by row without gaps."""
    picture = Picture.at(place)
    parts = [Samples.at(picture.parts + Samples.size * n) for n in range(3)]
    half_x = load(i32, picture.halved)
    half_y = load(i32, picture.halved + 4)
    offsets = [load(i32, picture.offsets + 4 * n) for n in range(3)]
    matrix = [load(i32, picture.matrix + 4 * n) for n in range(9)]
    width = picture.width
    for line in range(picture.height):
        target = picture.out + wide(line) * (width * 4).zext(i64)
        y = splat(line, BLOCK)
        for done in range(0, width, BLOCK):
            x = min_(iota(BLOCK) + done, width - 1)
            luma = sample(parts[0], x, y)
            first: Any = splat(0, BLOCK)
            second: Any = splat(0, BLOCK)
            if picture.blends != 0:
                first = between(parts[1], x, y, half_x, half_y)
                second = between(parts[2], x, y, half_x, half_y)
            else:
                first = nearest(parts[1], x, y, half_x, half_y)
                second = nearest(parts[2], x, y, half_x, half_y)
            own = luma + offsets[0], first - 128 + offsets[1], second - 128 + offsets[2]
            pixels = splat(-1 << 24, BLOCK)
            for n in unroll(3):
                total = splat(picture.rounding, BLOCK)
                for k in unroll(3):
                    total = total + own[k] * matrix[3 * n + k]
                pixels = pixels | max_(min_(total >> COEFFICIENT_BITS, 255), 0) << 8 * (2 - n)
            store(target + wide(done * 4), pixels)


@cache
def converter() -> NativeModule:
    """The kernel as machine code, made once (and kept on disk)."""
    return build("scanout_yuv", {"convert": convert}, float_mode="caller", key="scanout_yuv")
