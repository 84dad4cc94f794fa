"""Blending texels of half floats (types S16F and RGBA64) as native code.

Each blend is first + (second - first) * weight in single precision, rounded toward zero like all
float arithmetic of a QPU, and becomes a half again. Denormal halves count as 0; exponent 31 counts
as one more power of two, so that no infinity enters the arithmetic and no float flag is raised. A
weight of 0 passes the texel through untouched, whatever it is. The definition is in
``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from vc4lab.simd import Value, f32, i32, select

_BIAS = (127 - 15) << 23
"""From a half's exponent to a float's, in place."""

_SMALLEST, _LARGEST, _INFINITY = 0x0400, 0x7BFF, 0x7C00
"""Normal halves, and what lies above."""


def blend_halves(first: Value, second: Value, weight: Value, rounding: str) -> Value:
    """Bits 15:0 of each lane as a half, `weight` in 1/256 for the second."""
    a, b = to_single(first), to_single(second)
    mixed = a + (b - a) * (weight.to_float() * (1 / 256))
    return select(weight == 0, first & 0xFFFF, to_half(mixed, rounding))


def blend_half_pairs(first: Value, second: Value, weight: Value, rounding: str) -> Value:
    """Two halves in each lane."""
    low = blend_halves(first, second, weight, rounding)
    return low | (blend_halves(first.shr(16), second.shr(16), weight, rounding) << 16)


def to_single(half: Value) -> Value:
    """The number in bits 15:0."""
    magnitude = ((half & 0x7FFF) << 13) + _BIAS
    magnitude = select((half & _INFINITY) != 0, magnitude, 0)
    return (magnitude | ((half & 0x8000) << 16)).bitcast(f32)


def to_half(number: Value, rounding: str) -> Value:
    """The half nearest to a float ("round", ties to even) or the next toward zero ("truncate")."""
    bits = number.bitcast(i32)
    magnitude = bits & 0x7FFFFFFF
    if rounding == "round":
        magnitude = magnitude + 0xFFF + (magnitude.shr(13) & 1)
    half = magnitude.shr(13) - (_BIAS >> 13)
    sign = bits.shr(16) & 0x8000
    return select(half < _SMALLEST, 0, select(half > _LARGEST, _INFINITY, half) | sign)
