"""A picture's colours through a matrix and gamma ramps, in place."""

from __future__ import annotations

from functools import cache

from vc4lab.scanout.colours import FACTOR_BITS, STEPS
from vc4lab.scanout.native.lines import BLOCK, wide
from vc4lab.simd import (
    Array,
    NativeModule,
    Struct,
    Value,
    build,
    gather,
    i32,
    i32x16,
    i64,
    iota,
    kernel,
    load,
    masked_load,
    masked_store,
    max_,
    min_,
    ptr,
    splat,
    staged,
    unroll,
)

LOW_BITS = (16, 8, 0)
"""Lowest bits of red, green and blue in a pixel."""


class Colours(Struct):
    """A picture and what happens to it."""

    out = ptr
    pitch = i64
    width = i32
    height = i32
    mixes = i32
    """Whether the matrix counts."""
    factors = Array(i32, 9)
    offsets = Array(i32, 3)
    rounding = i32
    ramps = ptr
    """256 numbers for red, for green and for blue, each in 32 bits; 0: none."""


@kernel(args=(ptr,), returns=None)
def correct(place: Value) -> None:
    """Each pixel of the picture."""
    colours = Colours.at(place)
    factors = [load(i32, colours.factors + 4 * n) for n in range(9)]
    offsets = [load(i32, colours.offsets + 4 * n) for n in range(3)]
    for number in range(colours.height):
        line = colours.out + wide(number) * colours.pitch
        for done in range(0, colours.width, BLOCK):
            at = line + wide(done * 4)
            inside = iota(BLOCK) < colours.width - done
            pixels = masked_load(i32x16, at, inside)
            if colours.mixes != 0:
                pixels = mixed(pixels, factors, offsets, colours.rounding)
            if colours.ramps != 0:
                pixels = replaced(pixels, colours.ramps)
            masked_store(at, pixels, inside)


@staged
def mixed(pixels: Value, factors: list[Value], offsets: list[Value], rounding: Value) -> Value:
    """Sixteen pixels through the matrix."""
    own = [pixels.shr(low) & 255 for low in LOW_BITS]
    result = splat(0, BLOCK)
    for n in unroll(3):
        total = splat(rounding, BLOCK)
        for k in unroll(3):
            total = total + own[k] * factors[3 * n + k]
        sums = (total >> FACTOR_BITS) + offsets[n]
        result = result | max_(min_(sums, 255), 0) << LOW_BITS[n]
    return result


@staged
def replaced(pixels: Value, ramps: Value) -> Value:
    """Sixteen pixels through the ramps."""
    result = splat(0, BLOCK)
    for n in unroll(3):
        step = (pixels.shr(LOW_BITS[n]) & 255) + STEPS * n
        result = result | gather(i32, ramps, step * 4) << LOW_BITS[n]
    return result


@cache
def corrector() -> NativeModule:
    """The kernel as machine code, made once (and kept on disk)."""
    return build("scanout_colours", {"correct": correct}, float_mode="caller", key="scanout_colours")
