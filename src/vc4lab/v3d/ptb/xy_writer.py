"""Appends primitives to x/y lists (record 56 data type 3), each in its shortest coding.

Source: AG100-R pp. 78-79; hardware reference 3.5. The counterpart of `list_writer` for indices.
"""

from __future__ import annotations

from vc4lab.memory.pointers import host
from vc4lab.simd import Value, const, i8, i16, i32, select, staged, store
from vc4lab.v3d.ptb.context import DONE, FAR_INDEX, BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import fits, room
from vc4lab.v3d.tile_lists.primitive_decoder import ESCAPE_ABSOLUTE


def _x(word: Value) -> Value:
    return word << 16 >> 16


def _y(word: Value) -> Value:
    return word >> 16


def fresh(t: TileState) -> Value:
    """Whether the open list has no previous primitive (a real one has no two equal vertices)."""
    result: Value = (t.p0 == FAR_INDEX) & (t.p1 == FAR_INDEX)
    return result


def _short(kind: Value, dx: Value, dy: Value) -> Value:
    """Coding 0: k, dx (bits 7:2 and, lowest, 8), dy in 15:9."""
    return kind | ((dx >> 1 & 63) << 2) | ((dx & 1) << 8) | ((dy & 127) << 9)


def _is_short(dx: Value, dy: Value) -> Value:
    """Whether `_short` can say it: where dx's upper six bits are 100000 is an escape code."""
    return fits(dx, -62, 63) & fits(dy, -64, 63) & ((dx >> 1 & 63) != 32)


def _long(kind: Value, dx: Value, dy: Value) -> Value:
    """Coding 3 with k: dx in bits 13:4, dy in 23:14."""
    return (kind << 2) | ((dx & 1023) << 4) | ((dy & 1023) << 14) | 3


def _is_long(dx: Value, dy: Value) -> Value:
    """Whether `_long` can say it."""
    return fits(dx, -512, 511) & fits(dy, -512, 511)


@staged
def _store_joined(here: Value, low: Value, size: Value) -> None:
    """Store what refers to the primitive before: `_short` (2 bytes) or `_long` (3)."""
    store(here, low.trunc(i16))
    if size == 3:
        store(here + 2, low.shr(16).trunc(i8))


@staged
def append_xy_triangle(context: Value, tile: Value, w0: Value, w1: Value, w2: Value) -> Value:
    """Add a triangle of packed positions to the open list; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    p0, p1, p2 = t.p0, t.p1, t.p2
    dx, dy = _x(w2) - _x(p2), _y(w2) - _y(p2)
    ax, ay = _x(w1) - _x(w0), _y(w1) - _y(w0)
    bx, by = _x(w2) - _x(w0), _y(w2) - _y(w0)
    zero, one = (w0 == p2) & (w1 == p1), (w0 == p0) & (w1 == p2)
    two = (w0 == p1) & (w1 == p0)
    strip = (zero | one | two) & ~fresh(t)
    kind = select(zero, const(i32, 0), select(one, const(i32, 1), const(i32, 2)))
    size = const(i32, 13)
    low = const(i32, 0)
    if strip & _is_short(dx, dy):
        low = _short(kind, dx, dy)
        size = const(i32, 2)
    elif strip & _is_long(dx, dy):
        low = _long(kind, dx, dy)
        size = const(i32, 3)
    elif fits(ax, -64, 63) & fits(ay, -64, 63) & fits(bx, -64, 63) & fits(by, -64, 63):
        low = ((ax & 127) << 4) | ((ay & 127) << 11) | ((bx & 127) << 18) | ((by & 127) << 25) | 15
        size = const(i32, 8)
    status = room(context, tile, size)
    if status == DONE:
        if fresh(t) & (size < 8):  # the link started a new list: nothing to refer to
            size = const(i32, 13)
            status = room(context, tile, size)
    if status == DONE:
        here = host(c.memory, t.cursor)
        if size <= 3:
            _store_joined(here, low, size)
        elif size == 8:
            store(here, low)
            store(here + 4, w0)
        else:
            store(here, const(i8, ESCAPE_ABSOLUTE))
            store(here + 1, w0)
            store(here + 5, w1)
            store(here + 9, w2)
        t.cursor = t.cursor + size
        t.p0 = w0
        t.p1 = w1
        t.p2 = w2
        t.newest = 0
    return status


@staged
def append_xy_rht(context: Value, tile: Value, w0: Value, w1: Value) -> Value:
    """Add a trapezoid's edge to the open list; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    p0, p1 = t.p0, t.p1
    dx, dy = _x(w1) - _x(p1), _y(w1) - _y(p1)
    ax, ay = _x(w1) - _x(w0), _y(w1) - _y(w0)
    joined = ((w0 == p1) | (w0 == p0)) & ~fresh(t)
    kind = select(w0 == p1, const(i32, 0), const(i32, 1))
    size = const(i32, 9)
    low = const(i32, 0)
    if joined & _is_short(dx, dy):
        low = _short(kind, dx, dy)
        size = const(i32, 2)
    elif joined & _is_long(dx, dy):
        low = _long(kind, dx, dy)
        size = const(i32, 3)
    elif _is_short(ax, ay):
        low = _short(const(i32, 2), ax, ay)
        size = const(i32, 6)
    status = room(context, tile, size)
    if status == DONE:
        if fresh(t) & (size < 6):
            size = const(i32, 9)
            status = room(context, tile, size)
    if status == DONE:
        here = host(c.memory, t.cursor)
        if size <= 3:
            _store_joined(here, low, size)
        elif size == 6:
            store(here, low.trunc(i16))
            store(here + 2, w0)
        else:
            store(here, const(i8, ESCAPE_ABSOLUTE))
            store(here + 1, w0)
            store(here + 5, w1)
        t.cursor = t.cursor + size
        t.p0 = w0
        t.p1 = w1
        t.p2 = w1
    return status
