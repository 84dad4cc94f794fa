"""Colour conversion between the tile buffer (RGBA8888) and 16-bit 565 surfaces.

Neither the rounding nor the dither pattern of the hardware is documented; `vc4lab unknowns` lists
the choices. Source: hardware reference 7.10; expansion as the texture unit does it (6.3).
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i16, i32, i32x16, min_
from vc4lab.v3d.unknowns import Unknowns

BAYER = (0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5)
"""4x4 ordered dither matrix, row by row."""


def _rounded_5(value: Value) -> Value:
    raised = value + (value >= 128).zext(i32)
    return (raised + 3 - raised.shr(5)).shr(3)


def _rounded_6(value: Value) -> Value:
    low = (value <= 84).zext(i32)
    high = (value >= 171).zext(i32)
    return (value + low - high).shr(2)


def to_565(words: Value, lane_x: list[int], lane_y: list[int], dither: bool, u: Unknowns) -> Value:
    """16 RGBA8888 words as 16 halves: R 15:11, G 10:5, B 4:0.

    `lane_x`, `lane_y`: position of each lane modulo 4 in the frame, for the dither matrix.
    """
    red, green, blue = words & 255, words.shr(8) & 255, words.shr(16) & 255
    if dither and u["dither_565"] == "bayer":
        steps = [BAYER[(y & 3) * 4 + (x & 3)] for x, y in zip(lane_x, lane_y, strict=True)]
        five = const(i32x16, [step >> 1 for step in steps])
        six = const(i32x16, [step >> 2 for step in steps])
        red, blue = min_(red + five, 255).shr(3), min_(blue + five, 255).shr(3)
        green = min_(green + six, 255).shr(2)
    elif u["rounding_565"] == "round":
        red, green, blue = _rounded_5(red), _rounded_6(green), _rounded_5(blue)
    else:
        red, green, blue = red.shr(3), green.shr(2), blue.shr(3)
    return ((red << 11) | (green << 5) | blue).trunc(i16)


def from_565(halves: Value) -> Value:
    """16 halves as RGBA8888 words, alpha 255."""
    words = halves.zext(i32)
    red, green, blue = words.shr(11), words.shr(5) & 63, words & 31
    red, blue = (red * 33).shr(2), (blue * 33).shr(2)
    green = (green * 65).shr(4)
    return red | (green << 8) | (blue << 16) | (-1 << 24)
