"""Comparison functions of the depth and stencil tests, as staged code."""

from __future__ import annotations

from vc4lab.records.codes import Compare
from vc4lab.simd import (
    Value,
    const,
    mask16,
    splat,
)


def compare(function: int, new: Value, old: Value) -> Value:
    """`new function old` per lane for a function known at compile time; a mask."""
    if function == Compare.NEVER:
        return const(mask16, 0)
    if function == Compare.LESS:
        return new < old
    if function == Compare.EQUAL:
        return new == old
    if function == Compare.LESS_EQUAL:
        return new <= old
    if function == Compare.GREATER:
        return new > old
    if function == Compare.NOT_EQUAL:
        return new != old
    if function == Compare.GREATER_EQUAL:
        return new >= old
    return const(mask16, [1] * 16)


def compare_dynamic(function: Value, new: Value, old: Value) -> Value:
    """Like `compare` for a function only known when drawing (scalar i32)."""

    def wanted(bit: int) -> Value:
        return splat((function & bit) != 0)

    return ((new < old) & wanted(1)) | ((new == old) & wanted(2)) | ((new > old) & wanted(4))
