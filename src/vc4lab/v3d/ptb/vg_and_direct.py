"""VG primitives (records 41, 42) into tile lists, and primitives that go to no tiles, natively.

Those without tiles are in coding 3, absolute, and go to host address `DirectContext.output`.

Vertices of VG primitives are words of guest memory, x in 15:0 and y in 31:16, 12.4; codes among them end a
list or leave a primitive out. Tile lists get them as x/y lists (record 56 data type 3), each primitive in
its shortest coding. Source: hardware reference 3.4 and 3.5, AG100-R pp. 67-68 and 78-79.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory.native import host
from vc4lab.records.codes import ListPrimitive, VgPrimitive
from vc4lab.records.primitives import ESCAPE_ABSOLUTE
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import i1, i8, i16, i32, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.types import Type
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import max_, min_
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import DONE, BinnerContext, DirectContext, TileState
from vc4lab.v3d.ptb.lines_and_triangles import line_ends, vertex_index
from vc4lab.v3d.ptb.list_writer import fits, ready, room
from vc4lab.v3d.ptb.state_records import primitive_type, primitives
from vc4lab.v3d.ptb.tiles import bin_triangle, faces_away
from vc4lab.v3d.ptb.window import LANES, TriangleWindow, window_indices

RHT, RHT_STRIP, TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = (int(kind) for kind in VgPrimitive)


# -- x/y lists: the counterpart of `list_writer` for indices


def _x(word: Value) -> Value:
    return word << 16 >> 16


def _y(word: Value) -> Value:
    return word >> 16


def fresh(t: TileState) -> Value:
    """Whether the open list has no previous primitive (a real one has no two equal vertices)."""
    result: Value = (t.p0 == pc.FAR_INDEX) & (t.p1 == pc.FAR_INDEX)
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
    if status == pc.DONE:
        if fresh(t) & (size < 8):  # the link started a new list: nothing to refer to
            size = const(i32, 13)
            status = room(context, tile, size)
    if status == pc.DONE:
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
    if status == pc.DONE:
        if fresh(t) & (size < 6):
            size = const(i32, 9)
            status = room(context, tile, size)
    if status == pc.DONE:
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


# -- VG lists


@staged
def _word(c: BinnerContext, position: Value) -> Value:
    return load(i32, host(c.memory, c.index_address + position * 4))


@staged
def take_triangles(c: BinnerContext, take: Any) -> Value:
    """Triangles, strips and fans from the resume point (`primitive`: the next vertex) on.

    `take` is called with the positions of each, and says with a status whether it is done.
    `vg_first` and `vg_second` are the vertices that a strip or fan keeps; `vg_held` says whether
    they are there (2: from the fan of the record before).
    """
    k = c.primitive
    status = const(i32, pc.DONE)
    fan = c.mode == TRIANGLE_FAN
    while (k < c.length) & (status == pc.DONE):
        a: Value = c.vg_first
        b: Value = c.vg_second
        held = c.vg_held
        third = k
        early_end = const(i1, False)
        if held != 1:
            early_end = fan & (_word(c, k + 1) == pc.VG_END)
            if held == 0:
                a = _word(c, k)
            if (held == 0) | (c.vg_keep_second != 0):
                b = _word(c, k + 1)
            third = k + 2
        w = _word(c, third)
        if (third >= c.length) | (w == pc.VG_END) | early_end:
            k = c.length
        elif w == pc.VG_DUMMY:
            k = third + 1
            c.vg_first = a
            c.vg_second = b
            keep = (c.mode != TRIANGLES) & (c.vg_restart == 0)
            c.vg_held = select(keep, const(i32, 1), const(i32, 0))
        else:
            odd = (c.mode == TRIANGLE_STRIP) & (c.vg_odd != 0)
            status = take(c, select(odd, b, a), select(odd, a, b), w)
            if status == pc.DONE:
                k = third + 1
                c.vg_first = select(fan, a, b)
                c.vg_second = w
                c.vg_held = select(c.mode == TRIANGLES, const(i32, 0), const(i32, 1))
                c.vg_odd = c.vg_odd ^ 1
        if c.vg_held == 0:
            c.vg_odd = 0
        if status == pc.DONE:
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, pc.PAUSED)
    c.primitive = k
    return status


@staged
def take_trapezoids(c: BinnerContext, take: Any) -> Value:
    """RHTs and RHT strips from the resume point on, from edge to edge."""
    k = c.primitive
    status = const(i32, pc.DONE)
    while (k < c.length) & (status == pc.DONE):
        a: Value = c.vg_second
        second = k
        if c.vg_held == 0:
            a = _word(c, k)
            second = k + 1
        w = _word(c, second)
        if (second >= c.length) | (w == pc.VG_END):
            k = c.length
        elif w == pc.VG_DUMMY:
            k = second + 1
            c.vg_second = a
            keep = (c.mode == RHT_STRIP) & (c.vg_restart == 0)
            c.vg_held = select(keep, const(i32, 1), const(i32, 0))
        else:
            status = take(c, a, w)
            if status == pc.DONE:
                k = second + 1
                c.vg_second = w
                c.vg_held = select(c.mode == RHT_STRIP, const(i32, 1), const(i32, 0))
        if status == pc.DONE:
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, pc.PAUSED)
    c.primitive = k
    return status


@staged
def bin_vg_triangle(c: BinnerContext, w0: Value, w1: Value, w2: Value) -> Value:
    """Append a triangle to the tiles it may touch; a status."""
    words = (w0, w1, w2)
    status = const(i32, pc.DONE)
    if ~faces_away(c, *words):
        status = bin_triangle(c.pointer, *words, *words, const(i32, 0), append_xy_triangle)
    return status


@staged
def bin_trapezoid(c: BinnerContext, w0: Value, w1: Value) -> Value:
    """Append an RHT to the tiles between its edge and the X boundary; a status."""
    x0, x1 = (w0 << 16 >> 16) + c.viewport_x, (w1 << 16 >> 16) + c.viewport_x
    y0, y1 = (w0 >> 16) + c.viewport_y, (w1 >> 16) + c.viewport_y
    x2 = c.rht_boundary
    left = max_(min_(x2, min_(x0, x1)) >> c.shift_x, c.first_x)
    right = min_(max_(x2, max_(x0, x1)) >> c.shift_x, c.last_x)
    bottom = max_(min_(y0, y1) >> c.shift_y, c.first_y)
    top = min_(max_(y0, y1) >> c.shift_y, c.last_y)
    status = const(i32, pc.DONE)
    if y0 == y1:
        c.degenerate = c.degenerate + 1
    elif (left > right) | (bottom > top):
        c.outside = c.outside + 1
    else:
        tx = left
        ty = bottom
        if c.tile_x >= 0:  # going on after running out of memory
            tx = c.tile_x
            ty = c.tile_y
            c.tile_x = -1
        while (ty <= top) & (status == pc.DONE):
            while (tx <= right) & (status == pc.DONE):
                tile = c.tiles + (ty * c.width + tx) * TileState.size
                status = ready(c.pointer, tile, const(i32, 0))
                if status == pc.DONE:
                    status = append_xy_rht(c.pointer, tile, w0, w1)
                if status == pc.DONE:
                    c.entries = c.entries + 1
                    tx = tx + 1
            if status == pc.DONE:
                c.work = c.work - (right - left)
                tx = left
                ty = ty + 1
        if status != pc.DONE:
            c.tile_x = tx
            c.tile_y = ty
    return status


@kernel(args=(ptr,), returns=i32)
def draw_vg_triangles(context: Value) -> Value:
    """Bin triangles, strips and fans from the resume point on."""
    return take_triangles(BinnerContext.at(context), bin_vg_triangle)


@kernel(args=(ptr,), returns=i32)
def draw_vg_trapezoids(context: Value) -> Value:
    """Bin RHTs and RHT strips from the resume point on."""
    return take_trapezoids(BinnerContext.at(context), bin_trapezoid)


@staged
def _write(context: Value, vertices: tuple[Value, ...], kind: Type = i16) -> None:
    d = DirectContext.at(context)
    place = d.output
    store(place, const(i8, ESCAPE_ABSOLUTE))
    for number, vertex in enumerate(vertices):
        store(place + (1 + number * kind.bits // 8), vertex if kind is i32 else vertex.trunc(kind))
    d.output = place + (1 + len(vertices) * kind.bits // 8)


@staged
def _write_positions(c: BinnerContext, *words: Value) -> Value:
    _write(c.pointer, words, i32)
    return const(i32, DONE)


@kernel(args=(ptr,), returns=None)
def direct_vertices(context: Value) -> None:
    """Writes the primitives of a draw (records 32 and 33) up to the first index that is too large.

    `length` becomes the number of vertices before that.
    """
    c = BinnerContext.at(context)
    good: Any = const(i32, 0)
    while (good < c.length) & ~vertex_index(c, good).ugt(c.max_index):
        good = good + 1
    c.bad_index = vertex_index(c, good)
    c.length = good
    kind, count = primitive_type(c.mode), primitives(c.mode, good)
    if kind == ListPrimitive.POINTS:
        for k in range(count):
            _write(context, (vertex_index(c, k),))
    elif kind == ListPrimitive.LINES:
        for k in range(count):
            _write(context, line_ends(c, k))
    else:
        window = TriangleWindow.at(alloca(TriangleWindow.size))
        corners = [window.field_ptr(name) for name in ("i0", "i1", "i2")]
        first: Any
        for first in range(0, count, LANES):
            row = window_indices(c, window, const(i1, False), first)
            for place, index in zip(corners, row, strict=True):
                store(place, index, align=64)
            rest: Any = min_(count - first, LANES)
            for k in range(rest):
                _write(context, tuple(load(i32, place + k * 4) for place in corners))


@kernel(args=(ptr,), returns=None)
def direct_triangles(context: Value) -> None:
    """Writes the triangles of a VG list."""
    take_triangles(BinnerContext.at(context), _write_positions)


@kernel(args=(ptr,), returns=None)
def direct_trapezoids(context: Value) -> None:
    """Writes the trapezoids of a VG list."""
    take_trapezoids(BinnerContext.at(context), _write_positions)
