"""Native binning of VG primitives (records 41, 42): triangles and trapezoids of bare positions.

Vertices are words of guest memory, x in 15:0 and y in 31:16, 12.4; codes among them end a list or
leave a primitive out. Tile lists get them as x/y lists (record 56 data type 3). Source: hardware
reference 3.4, AG100-R pp. 67-68.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory.pointers import host
from vc4lab.records.codes import VgPrimitive
from vc4lab.simd import Value, const, i1, i32, kernel, load, max_, min_, ptr, select, staged
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import ready
from vc4lab.v3d.ptb.tiles import bin_triangle, faces_away
from vc4lab.v3d.ptb.xy_writer import append_xy_rht, append_xy_triangle

RHT, RHT_STRIP, TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = (int(kind) for kind in VgPrimitive)


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
    """The same of RHTs and RHT strips, from edge to edge."""
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
