"""Indices of a draw, natively: the lowest and the highest of them, and less a number as 16 bits."""

from __future__ import annotations

from typing import Any

from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i8, i16, i16x16, i32, i32x16, i64
from vc4lab.simd.memory import load, store
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import reduce_umax, umax, umin

LANES = 16
BLOCK = 4 * LANES
"""Bytes that are looked at in one turn."""


@staged
def index_range(place: Value, count: Value, size: Value, restart: Value | None = None) -> tuple[Value, Value]:
    """The lowest and the highest of `count` > 0 unsigned indices of 1, 2 or 4 bytes, except those
    that are `restart`; if there are no others, -1 and 0.
    """
    low, high = const(i32, -1), const(i32, 0)
    if size == 2:
        low, high = _range_of(place, count, 2, restart)
    elif size == 1:
        low, high = _range_of(place, count, 1, restart)
    else:
        low, high = _range_of(place, count, 4, restart)
    return low, high


@staged
def _range_of(place: Value, count: Value, size: int, restart: Value | None) -> tuple[Value, Value]:
    per_turn = BLOCK // size
    mask = (1 << 8 * size) - 1 if size < 4 else -1
    low, high = const(i32, -1), const(i32, 0)
    number = const(i32, 0)
    whole = count & -per_turn
    if whole != 0:
        lows, highs = splat(const(i32, -1)), splat(const(i32, 0))
        while number.ult(whole):
            words = load(i32x16, place + number.zext(i64) * size)
            for part in tuple(range(4 // size)):
                one = words.shr(8 * size * part) & mask
                lowest, highest = _but(one, restart, lows * 0)
                lows, highs = umin(lows, lowest), umax(highs, highest)
            number += per_turn
        low, high = ~reduce_umax(~lows), reduce_umax(highs)
    while number.ult(count):
        index = _index(place, number, size)
        lowest, highest = _but(index, restart, const(i32, 0))
        low, high = umin(low, lowest), umax(high, highest)
        number += 1
    return low, high


@staged
def _but(index: Value, restart: Value | None, zero: Value) -> tuple[Value, Value]:
    """Indices for the lowest and for the highest, where neither is to be `restart`."""
    if restart is None:
        return index, index
    is_restart = index == restart
    return select(is_restart, ~zero, index), select(is_restart, zero, index)


@staged
def _index(place: Value, number: Value, size: int) -> Value:
    one = load({1: i8, 2: i16, 4: i32}[size], place + number.zext(i64) * size)
    return one.zext(i32) if size < 4 else one


@staged
def until_restart(place: Value, first: Value, count: Value, size: Value, restart: Value) -> Value:
    """How many indices from `first` on come before one that is `restart`, or before the end."""
    number = first
    going = number.ult(count)
    while going:
        index = const(i32, 0)
        if size == 2:
            index = _index(place, number, 2)
        elif size == 1:
            index = _index(place, number, 1)
        else:
            index = _index(place, number, 4)
        going = index != restart
        if going:
            number += 1
            going = number.ult(count)
    return number - first


@staged
def shifted(to: Value, place: Value, count: Value, less: Value, size: Value) -> None:
    """`count` indices of 32 or 16 bits less a number, as 16 bits; up to 32 bytes more go there."""
    number: Any = const(i32, 0)
    lanes = splat(less)
    while number.ult(count):
        if size == 4:
            words = load(i32x16, place + number.zext(i64) * 4)
            store(to + number.zext(i64) * 2, (words - lanes).trunc(i16x16))
        else:
            shorts = load(i16x16, place + number.zext(i64) * 2)
            store(to + number.zext(i64) * 2, shorts - lanes.trunc(i16x16))
        number += LANES
