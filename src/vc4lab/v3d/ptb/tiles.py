"""Finds the tiles a primitive may touch and appends it to their lists.

Tile boxes are conservative; tiles that a triangle's edges or a line's sides exclude are left out.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.states import RenderState
from vc4lab.simd import Value, abs_, const, i16, i32, i64, max_, min_, select, splat, staged
from vc4lab.v3d.ptb.context import DONE, BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import append_line, append_point, append_triangle, ready
from vc4lab.v3d.state.render_state import CLOCKWISE_IS_FORWARD, ENABLE_FORWARD, ENABLE_REVERSE
from vc4lab.v3d.tile_lists.primitive_decoder import POINTS


@staged
def _tile(c: BinnerContext, x: Value, y: Value) -> Value:
    return c.tiles + (y * c.width + x) * TileState.size


@staged
def screen_x(c: BinnerContext, word: Value) -> Value:
    """In the frame, of a vertex's Ys:Xs, in 1/16 pixels."""
    return word.trunc(i16).sext(i32) + c.viewport_x


@staged
def screen_y(c: BinnerContext, word: Value) -> Value:
    return (word >> 16) + c.viewport_y


@staged
def faces_away(c: BinnerContext, w0: Value, w1: Value, w2: Value) -> Value:
    """Whether the binner leaves out a triangle with these screen words for its facing (i1)."""
    x0, x1, x2 = screen_x(c, w0), screen_x(c, w1), screen_x(c, w2)
    y0, y1, y2 = screen_y(c, w0), screen_y(c, w1), screen_y(c, w2)
    area = (x1 - x0).sext(i64) * (y2 - y0).sext(i64) - (x2 - x0).sext(i64) * (y1 - y0).sext(i64)
    return (c.leave_facing != 0) & away(c, area < 0, area > 0)


def away(c: BinnerContext, negative: Value, positive: Value) -> Value:
    """Whether areas with these signs are those of a face that record 96 does not enable."""
    state = RenderState.at(c.state)
    config = state.config
    clockwise = (config & CLOCKWISE_IS_FORWARD) != 0
    forward, reverse = (config & ENABLE_FORWARD) == 0, (config & ENABLE_REVERSE) == 0
    down, up = select(clockwise, forward, reverse), select(clockwise, reverse, forward)
    if negative.type.lanes:
        down, up = splat(down, negative.type.lanes), splat(up, negative.type.lanes)
    found: Value = (negative & down) | (positive & up)
    return found


class Edge:
    """Edge function of a triangle at tile corners, and its largest gain inside a tile."""

    def __init__(self, c: BinnerContext, ax: Value, ay: Value, bx: Value, by: Value, sign: Value) -> None:
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
    context: Value,
    i0: Value,
    i1_: Value,
    i2: Value,
    w0: Value,
    w1: Value,
    w2: Value,
    clip: Value,
    append: Any = append_triangle,
) -> Value:
    """Append a triangle with screen words w0..w2 to every tile it may touch; a status.

    `append` writes it: `append_triangle` its vertex numbers i0..i2, or another one its positions.
    """
    c = BinnerContext.at(context)
    x0, x1, x2 = screen_x(c, w0), screen_x(c, w1), screen_x(c, w2)
    y0, y1, y2 = screen_y(c, w0), screen_y(c, w1), screen_y(c, w2)
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
            status = append(context, tile, i0, i1_, i2)
        c.entries = c.entries + select(status == DONE, const(i32, 1), const(i32, 0))
    else:
        sign = select(area > 0, const(i64, 1), const(i64, -1))
        edges = (Edge(c, x0, y0, x1, y1, sign), Edge(c, x1, y1, x2, y2, sign), Edge(c, x2, y2, x0, y0, sign))
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
                        status = append(context, tile, i0, i1_, i2)
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
    context: Value,
    kind: int,
    words: tuple[Value, Value],
    reach: Value,
    indices: tuple[Value, ...],
    clip: Value,
) -> Value:
    """Append a point or line whose outline stays within `reach` (1/16 pixels) of its vertices."""
    c = BinnerContext.at(context)
    x0, x1 = screen_x(c, words[0]), screen_x(c, words[1])
    y0, y1 = screen_y(c, words[0]), screen_y(c, words[1])
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
