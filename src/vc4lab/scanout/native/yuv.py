"""Planes of brightness and colour (Y, Cb, Cr) as 32-bit pixels, blue in the low byte."""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.scanout.native.lines import BLOCK, wide
from vc4lab.simd import (
    Array,
    NativeModule,
    Struct,
    Value,
    build,
    gather,
    i32,
    i64,
    iota,
    kernel,
    load,
    max_,
    min_,
    ptr,
    splat,
    staged,
    store,
    unroll,
)

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
