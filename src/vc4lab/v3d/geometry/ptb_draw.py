"""Native binning of one draw: assembles primitives, rejects, clips, finds tiles, appends.

Primitives become independent triangles, lines and points; the newest vertex of a strip or fan comes
last, as the relative codings want it. Tile boxes are conservative; tiles that a triangle's edges or
a line's sides exclude are left out.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    abs_,
    alloca,
    call,
    const,
    f32,
    fmax_,
    fmin_,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    max_,
    min_,
    ptr,
    select,
    staged,
)
from vc4lab.v3d.geometry.clipper import (
    CORNER_BYTES,
    OUT_BAD,
    OUT_CUT,
    OUT_VOLUME,
    SLOTS,
    clip_polygon,
    clip_segment,
    screen_position,
    vertex_pointer,
    write_clip_record,
)
from vc4lab.v3d.geometry.list_writer import append_line, append_point, append_triangle, ready
from vc4lab.v3d.geometry.primitive_decoder import host
from vc4lab.v3d.geometry.ptb_context import (
    BAD_INDEX,
    DONE,
    INDEX_8,
    INDEX_ARRAY,
    OUT_OF_MEMORY,
    PAUSED,
    BinContext,
    TileState,
)

POINTS, LINES, LINE_LOOP, LINE_STRIP = 0, 1, 2, 3
TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = 4, 5, 6

NO_RECORD = 1
"""`clip_record` of a part that needs none."""


@staged
def vertex_index(c: Any, position: Value) -> Value:
    """Index of the vertex at a position of the draw; never outside the coordinate buffer."""
    if c.index_type == INDEX_ARRAY:
        index = c.first_index + position
    elif c.index_type == INDEX_8:
        index = load(i8, host(c.memory, c.index_address + position)).zext(i32)
    else:
        index = load(i16, host(c.memory, c.index_address + position * 2)).zext(i32)
    return max_(min_(index & 0xFFFF, c.last_vertex), c.first_vertex)


@staged
def _code(c: Any, index: Value) -> Value:
    return load(i8, c.codes + index).zext(i32)


@staged
def _tile(c: Any, x: Value, y: Value) -> Value:
    return c.tiles + (y * c.width + x) * TileState.size


@staged
def _xy(c: Any, index: Value) -> Value:
    return load(i32, vertex_pointer(c, index) + c.xy_row)


@staged
def _x(c: Any, word: Value) -> Value:
    return word.trunc(i16).sext(i32) + c.viewport_x


@staged
def _y(c: Any, word: Value) -> Value:
    return (word >> 16) + c.viewport_y


class Edge:
    """Edge function of a triangle at tile corners, and its largest gain inside a tile."""

    def __init__(self, c: Any, ax: Value, ay: Value, bx: Value, by: Value, sign: Value) -> None:
        dx, dy = (bx - ax).sext(i64) * sign, (by - ay).sext(i64) * sign
        zero = const(i64, 0)
        self.ax, self.ay, self.dx, self.dy = ax, ay, dx, dy
        self.step_x = -dy << c.shift_x.zext(i64)
        self.step_y = dx << c.shift_y.zext(i64)
        self.gain = max_(self.step_x, zero) + max_(self.step_y, zero)

    def at(self, x: Value, y: Value) -> Value:
        """Largest value inside the tile whose corner is (x, y) in 1/16 pixels."""
        along = self.dx * (y - self.ay).sext(i64)
        return along - self.dy * (x - self.ax).sext(i64) + self.gain


@staged
def bin_triangle(
    context: Value, i0: Value, i1_: Value, i2: Value, w0: Value, w1: Value, w2: Value, clip: Value
) -> Value:
    """Append a triangle with screen words w0..w2 to every tile it may touch; a status."""
    c: Any = BinContext.at(context)
    x0, x1, x2 = _x(c, w0), _x(c, w1), _x(c, w2)
    y0, y1, y2 = _y(c, w0), _y(c, w1), _y(c, w2)
    left = max_(min_(x0, min_(x1, x2)) >> c.shift_x, c.first_x)
    right = min_(max_(x0, max_(x1, x2)) >> c.shift_x, c.last_x)
    bottom = max_(min_(y0, min_(y1, y2)) >> c.shift_y, c.first_y)
    top = min_(max_(y0, max_(y1, y2)) >> c.shift_y, c.last_y)
    area = (x1 - x0).sext(i64) * (y2 - y0).sext(i64) - (x2 - x0).sext(i64) * (y1 - y0).sext(i64)
    status = const(i32, DONE)
    if (left > right) | (bottom > top):
        c.outside = c.outside + 1
    elif area == 0:
        c.degenerate = c.degenerate + 1
    elif (left == right) & (bottom == top):
        tile = _tile(c, left, bottom)
        status = ready(context, tile, clip)
        if status == DONE:
            status = append_triangle(context, tile, i0, i1_, i2)
        c.entries = c.entries + select(status == DONE, const(i32, 1), const(i32, 0))
    else:
        sign = select(area > 0, const(i64, 1), const(i64, -1))
        edges = (
            Edge(c, x0, y0, x1, y1, sign),
            Edge(c, x1, y1, x2, y2, sign),
            Edge(c, x2, y2, x0, y0, sign),
        )
        tx = left
        ty = bottom
        if c.tile_x >= 0:  # going on after running out of memory
            tx = c.tile_x
            ty = c.tile_y
            c.tile_x = -1
        while (ty <= top) & (status == DONE):
            px, py = tx << c.shift_x, ty << c.shift_y
            e0, e1, e2 = edges[0].at(px, py), edges[1].at(px, py), edges[2].at(px, py)
            while (tx <= right) & (status == DONE):
                if (e0 | e1 | e2) >= 0:
                    tile = _tile(c, tx, ty)
                    status = ready(context, tile, clip)
                    if status == DONE:
                        status = append_triangle(context, tile, i0, i1_, i2)
                    c.entries = c.entries + 1
                e0 = e0 + edges[0].step_x
                e1 = e1 + edges[1].step_x
                e2 = e2 + edges[2].step_x
                tx = tx + 1
            if status == DONE:
                c.work = c.work - (right - left)
                tx = left
                ty = ty + 1
        if status != DONE:
            c.entries = c.entries - 1
            c.tile_x = tx - 1
            c.tile_y = ty
    return status


@staged
def bin_box(
    context: Value, kind: int, words: tuple[Value, Value], reach: Value, indices: Any, clip: Value
) -> Value:
    """Append a point or line whose outline stays within `reach` (1/16 pixels) of its vertices."""
    c: Any = BinContext.at(context)
    x0, x1 = _x(c, words[0]), _x(c, words[1])
    y0, y1 = _y(c, words[0]), _y(c, words[1])
    left = max_((min_(x0, x1) - reach) >> c.shift_x, c.first_x)
    right = min_((max_(x0, x1) + reach) >> c.shift_x, c.last_x)
    bottom = max_((min_(y0, y1) - reach) >> c.shift_y, c.first_y)
    top = min_((max_(y0, y1) + reach) >> c.shift_y, c.last_y)
    status = const(i32, DONE)
    if (left > right) | (bottom > top):
        c.outside = c.outside + 1
    else:
        dx, dy = (x1 - x0).sext(i64), (y1 - y0).sext(i64)
        slack = (abs_(dx) + abs_(dy)) * reach.sext(i64)
        step_x, step_y = -dy << c.shift_x.zext(i64), dx << c.shift_y.zext(i64)
        zero = const(i64, 0)
        highest = max_(step_x, zero) + max_(step_y, zero) + slack
        lowest = min_(step_x, zero) + min_(step_y, zero) - slack
        tx = left
        ty = bottom
        if c.tile_x >= 0:
            tx = c.tile_x
            ty = c.tile_y
            c.tile_x = -1
        while (ty <= top) & (status == DONE):
            while (tx <= right) & (status == DONE):
                along = dx * ((ty << c.shift_y) - y0).sext(i64)
                here = along - dy * ((tx << c.shift_x) - x0).sext(i64)
                if (here + highest >= 0) & (here + lowest <= 0):
                    tile = _tile(c, tx, ty)
                    status = ready(context, tile, clip)
                    if status == DONE:
                        if kind == POINTS:
                            status = append_point(context, tile, indices[0])
                        else:
                            status = append_line(context, tile, indices[0], indices[1])
                    c.entries = c.entries + 1
                tx = tx + 1
            if status == DONE:
                c.work = c.work - (right - left)
                tx = left
                ty = ty + 1
        if status != DONE:
            c.entries = c.entries - 1
            c.tile_x = tx - 1
            c.tile_y = ty
    return status


@kernel(args=(ptr, i32, i32, i32), returns=i32)
def bin_clipped_triangle(context: Value, i0: Value, i1_: Value, i2: Value) -> Value:
    """Clip a triangle and append the fan of what is left, each part as a record 49."""
    c: Any = BinContext.at(context)
    corners = alloca(CORNER_BYTES * SLOTS)
    status = const(i32, DONE)
    count = call(clip_polygon, context, corners, i0, i1_, i2)
    part = c.part
    if part < 0:
        part = const(i32, 1)
        if count == 0:
            c.rejected = c.rejected + 1
        else:
            c.clipped = c.clipped + 1
    while (part + 1 < count) & (status == DONE):
        second = corners + part * CORNER_BYTES
        third = second + CORNER_BYTES
        if c.clip_record == 0:
            c.clip_record = call(write_clip_record, context, corners, second, third, 3)
        clip = c.clip_record
        if clip == 0:
            status = const(i32, OUT_OF_MEMORY)
        else:
            status = bin_triangle(
                context,
                i0,
                i1_,
                i2,
                screen_position(c, corners),
                screen_position(c, second),
                screen_position(c, third),
                select(clip == NO_RECORD, const(i32, 0), clip),
            )
        if status == DONE:
            part = part + 1
            c.clip_record = 0
    c.part = select(status == DONE, const(i32, -1), part)
    return status


@kernel(args=(ptr, i32, i32, i32), returns=i32)
def bin_clipped_line(context: Value, i0: Value, i1_: Value, reach: Value) -> Value:
    """Clip a line and append what is left as a record 49."""
    c: Any = BinContext.at(context)
    corners = alloca(CORNER_BYTES * 2)
    status = const(i32, DONE)
    if call(clip_segment, context, corners, i0, i1_) == 0:
        c.rejected = c.rejected + 1
    else:
        end = corners + CORNER_BYTES
        if c.clip_record == 0:
            c.clip_record = call(write_clip_record, context, corners, end, end, 2)
            c.clipped = c.clipped + 1
        clip = c.clip_record
        if clip == 0:
            c.clipped = c.clipped - 1
            status = const(i32, OUT_OF_MEMORY)
        else:
            words = (screen_position(c, corners), screen_position(c, end))
            word = select(clip == NO_RECORD, const(i32, 0), clip)
            status = bin_box(context, LINES, words, reach, (i0, i1_), word)
        if status == DONE:
            c.clip_record = 0
    return status


@staged
def _reach(size: Value) -> Value:
    """Half of a size in pixels, in 1/16 pixels, rounded up; NaN and nonsense are limited."""
    limited = fmin_(fmax_(size, const(f32, 0.0)), const(f32, 4096.0))
    return (limited * 8.0).to_int(i32) + 1


@staged
def _checked(c: Any, index: Value, status: Value) -> Value:
    """BAD_INDEX when an index exceeds the record's maximum."""
    if index.ugt(c.max_index):
        c.bad_index = index
        status = const(i32, BAD_INDEX)
    return status


@kernel(args=(ptr,), returns=i32)
def draw_triangles(context: Value) -> Value:
    """Bin triangles, strips and fans from the resume point on."""
    c: Any = BinContext.at(context)
    k = c.primitive
    status = const(i32, DONE)
    stride = select(c.mode == TRIANGLES, const(i32, 3), const(i32, 1))
    swap = select(c.mode == TRIANGLE_STRIP, const(i32, 1), const(i32, 0))
    anchor = select(c.mode == TRIANGLE_FAN, const(i32, 0), const(i32, -1))
    while (k < c.primitive_count) & (status == DONE):
        odd = k & swap
        base = k * stride
        i0 = vertex_index(c, (base + odd) & anchor)
        i1_ = vertex_index(c, base + 1 - odd)
        i2 = vertex_index(c, base + 2)
        status = _checked(c, max_(i0, max_(i1_, i2)), status)
        some = const(i32, 0)
        every = const(i32, 0)
        if c.clipping != 0:
            c0, c1, c2 = _code(c, i0), _code(c, i1_), _code(c, i2)
            some = c0 | c1 | c2
            every = c0 & c1 & c2
        if status == DONE:
            if ((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0):
                c.rejected = c.rejected + 1
            elif (some & OUT_CUT) != 0:
                status = call(bin_clipped_triangle, context, i0, i1_, i2)
            else:
                w0, w1, w2 = _xy(c, i0), _xy(c, i1_), _xy(c, i2)
                status = bin_triangle(context, i0, i1_, i2, w0, w1, w2, const(i32, 0))
        if status == DONE:
            k = k + 1
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, PAUSED)
    c.primitive = k
    return status


@kernel(args=(ptr,), returns=i32)
def draw_lines(context: Value) -> Value:
    """Bin lines, loops and strips from the resume point on."""
    c: Any = BinContext.at(context)
    k = c.primitive
    status = const(i32, DONE)
    stride = select(c.mode == LINES, const(i32, 2), const(i32, 1))
    reach = _reach(c.line_width)
    while (k < c.primitive_count) & (status == DONE):
        after = k * stride + 1
        i0 = vertex_index(c, after - 1)
        i1_ = vertex_index(c, select(after < c.length, after, const(i32, 0)))
        status = _checked(c, max_(i0, i1_), status)
        some = const(i32, 0)
        every = const(i32, 0)
        if c.clipping != 0:
            c0, c1 = _code(c, i0), _code(c, i1_)
            some = c0 | c1
            every = c0 & c1
        if status == DONE:
            if ((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0):
                c.rejected = c.rejected + 1
            elif (some & OUT_CUT) != 0:
                status = call(bin_clipped_line, context, i0, i1_, reach)
            else:
                words = (_xy(c, i0), _xy(c, i1_))
                status = bin_box(context, LINES, words, reach, (i0, i1_), const(i32, 0))
        if status == DONE:
            k = k + 1
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, PAUSED)
    c.primitive = k
    return status


@kernel(args=(ptr,), returns=i32)
def draw_points(context: Value) -> Value:
    """Bin points from the resume point on; a point outside the volume is culled, never clipped."""
    c: Any = BinContext.at(context)
    k = c.primitive
    status = const(i32, DONE)
    while (k < c.primitive_count) & (status == DONE):
        index = vertex_index(c, k)
        status = _checked(c, index, status)
        code = const(i32, 0)
        if c.clipping != 0:
            code = _code(c, index)
        if status == DONE:
            if (code & (OUT_VOLUME | OUT_BAD)) != 0:
                c.rejected = c.rejected + 1
            else:
                size = c.point_size
                if c.size_row >= 0:
                    size = load(f32, vertex_pointer(c, index) + c.size_row)
                word = _xy(c, index)
                status = bin_box(
                    context, POINTS, (word, word), _reach(size), (index,), const(i32, 0)
                )
        if status == DONE:
            k = k + 1
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, PAUSED)
    c.primitive = k
    return status
