"""Texture coordinates as native code: from float words to wrapped texel indices.

Everything is made finite and small with integer operations first, so that no float operation here
raises the sticky "invalid" or "overflow" flags: the QPU's fast path reads those. The definition of
each function is its namesake in ``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from vc4lab.records.texture import Wrap
from vc4lab.simd import Value, f32, floor_, fmax_, fmin_, i32, max_, min_, select, shuffle, umin

COORDINATE_LIMIT = 0x4B800000
"""2**24 as a float word: larger floats are even integers; repeat and mirror see no difference."""
BIAS_LIMIT = 0x42800000
"""64.0, more levels than there are."""

_SIGN = -0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_BELOW_ONE = 0x3F7FFFFF


def splat_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of ``x`` in all lanes."""
    return shuffle(x, [lane] * 16)


def quad_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of each quad in all lanes of the quad."""
    return shuffle(x, [(i & ~3) + lane for i in range(16)])


def finite(word: Value, limit: int, not_finite: str = "zero") -> Value:
    """A float word as f32x16, its magnitude at most ``limit``.

    ``not_finite``: infinities and NaN become 0 ("zero"), or ``limit`` like other large numbers.
    """
    magnitude = word & _MAGNITUDE
    if not_finite == "zero":
        limited = select(magnitude < _INFINITY, min_(magnitude, limit), 0)
    else:
        limited = min_(magnitude, limit)
    return (limited | (word & _SIGN)).bitcast(f32)


def unit(word: Value, not_finite: str = "zero") -> Value:
    """A float word clamped to 0 .. 1: `finite` and clamping in one.

    Positive floats are ordered like integers, negative ones are negative, and above all others
    without a sign. 1 becomes the next float below: in the last texel as well.
    """
    if not_finite == "zero":
        limited = select(word.ult(_INFINITY), min_(word, _BELOW_ONE), 0)
    else:
        limited = min_(max_(word, 0), _BELOW_ONE)
    return limited.bitcast(f32)


def truncate(value: Value) -> Value:
    """Float to integer toward zero for values known to be small (no saturation, no flags)."""
    return value._convert("fptosi", i32.like(value.type))


def floor_to_int(value: Value) -> Value:
    """Largest integer not above ``value``, for values known to be small."""
    return truncate(floor_(value))


def fixed_coordinate(value: Value, scale: Value, wrap: Wrap, is_unit: bool = False) -> Value:
    """Texel coordinate times ``scale`` / size (float bits): with 8 fractional bits for 256 * size.

    ``is_unit``: the value comes from `unit`.
    """
    size = scale.bitcast(f32)
    if wrap is Wrap.REPEAT:
        # Rounded toward zero, so the fraction is always below 1.
        return truncate((value - floor_(value)) * size)
    if wrap is Wrap.MIRROR:
        return truncate((value - floor_(value * 0.5) * 2.0) * size)
    if is_unit:
        return truncate(value * size)
    if wrap is Wrap.CLAMP:
        return truncate(fmin_(fmax_(value, 0.0), 1.0) * size)
    return floor_to_int(fmin_(fmax_(value, -1.0), 2.0) * size)


def wrap_index(index: Value, last: Value, wrap: Wrap, which: str, is_unit: bool) -> Value:
    """The texel index 0 .. ``last``, for what `fixed_coordinate` can yield.

    ``which``: the "lower" or "upper" texel of a bilinear pair (the coordinate less 1/2, one more),
    or the "only" one of nearest sampling; ``is_unit`` as in `fixed_coordinate`.
    """
    if wrap is Wrap.REPEAT:
        if which == "only":  # the fraction is below 1
            return index
        return select(index > last, 0, index) if which == "upper" else umin(index, last)
    if wrap is Wrap.CLAMP:
        if is_unit:  # below 1 as well
            return {"lower": max_(index, 0), "upper": min_(index, last), "only": index}[which]
        return min_(max_(index, 0), last) if which == "lower" else min_(index, last)
    if wrap is Wrap.MIRROR:
        mirrored = min_(index, last * 2 + 1 - index)
        return mirrored if which == "only" else max_(mirrored, 0)
    return min_(max_(index, 0), last)
