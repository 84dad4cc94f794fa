"""Native binning of triangles, strips and fans, eight at a time.

`ptb_window` looks at eight triangles; the lists are then written in order: runs of triangles in the
same tile as they were coded there, others one after the other. The newest vertex comes last, as the
relative codings want it.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    alloca,
    call,
    const,
    i32,
    kernel,
    load,
    max_,
    min_,
    popcount_,
    ptr,
    select,
    staged,
)
from vc4lab.v3d.geometry.clipper import (
    CORNER_BYTES,
    OUT_CUT,
    SLOTS,
    clip_polygon,
    screen_position,
    write_clip_record,
)
from vc4lab.v3d.geometry.ptb_context import (
    BAD_INDEX,
    DONE,
    OUT_OF_MEMORY,
    PAUSED,
    BinContext,
)
from vc4lab.v3d.geometry.ptb_tiles import bin_triangle, faces_away
from vc4lab.v3d.geometry.ptb_window import BATCH, TriangleWindow, append_lane, append_run, look

NO_RECORD = 1
"""`clip_record` of a part that needs none."""


@kernel(args=(ptr, i32, i32, i32, i32, i32, i32, i32), returns=i32)
def bin_some_tiles(
    context: Value, i0: Value, i1_: Value, i2: Value, w0: Value, w1: Value, w2: Value, clip: Value
) -> Value:
    """Append a triangle with these screen words to every tile it may touch."""
    return bin_triangle(context, i0, i1_, i2, w0, w1, w2, clip)


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
        w0, w1 = screen_position(c, corners), screen_position(c, second)
        w2 = screen_position(c, third)
        if ~faces_away(c, w0, w1, w2):
            if c.clip_record == 0:
                c.clip_record = call(write_clip_record, context, corners, second, third, 3)
            clip = c.clip_record
            if clip == 0:
                status = const(i32, OUT_OF_MEMORY)
            else:
                word = select(clip == NO_RECORD, const(i32, 0), clip)
                status = call(bin_some_tiles, context, i0, i1_, i2, w0, w1, w2, word)
        if status == DONE:
            part = part + 1
            c.clip_record = 0
    c.part = select(status == DONE, const(i32, -1), part)
    return status


@kernel(args=(ptr,), returns=i32)
def draw_triangles(context: Value) -> Value:
    """Bin triangles, strips and fans from the resume point on."""
    c: Any = BinContext.at(context)
    window: Any = TriangleWindow.at(alloca(TriangleWindow.size))
    status = const(i32, DONE)
    while (c.primitive < c.primitive_count) & (status == DONE):
        first = c.primitive
        count = min_(c.primitive_count - first, const(i32, BATCH))
        look(c, window, first, count)
        every = (const(i32, 1) << count) - 1
        left = every & ~(window.rejected | window.outside | window.degenerate | window.hidden)
        done = every
        while left != 0:
            bit = left & -left
            lane = popcount_(bit - 1)
            taken = const(i32, 0)
            if (window.chained & window.single & bit) != 0:
                taken = append_run(c, window, lane)
                c.entries = c.entries + taken
            if taken > 0:
                left = left & -(bit << taken)
            else:
                tiles = ((window.single | window.pair).shr(lane) & 1) + (window.pair.shr(lane) & 1)
                if (tiles != 0) & (c.tile_x < 0):
                    status = append_lane(context, window, lane, tiles)
                else:
                    status = bin_one(context, window, lane, (window.bad & bit) != 0)
                left = left & (left - 1)
                if status != DONE:
                    done = bit - 1
                    left = const(i32, 0)
        c.rejected = c.rejected + popcount_(window.rejected & done)
        c.outside = c.outside + popcount_(window.outside & done)
        c.degenerate = c.degenerate + popcount_(window.degenerate & done)
        c.primitive = first + popcount_(done)
        c.work = c.work - popcount_(done)
        if (c.work < 0) & (status == DONE):
            status = const(i32, PAUSED)
    return status


@staged
def bin_one(context: Value, window: Any, lane: Value, bad: Value) -> Value:
    """Append the triangle of one lane, which is to be clipped or has many tiles; a status."""
    c: Any = BinContext.at(context)
    place = window.pointer + lane * 4
    i0 = load(i32, place + TriangleWindow.offset("i0"))
    i1_ = load(i32, place + TriangleWindow.offset("i1"))
    i2 = load(i32, place + TriangleWindow.offset("i2"))
    status = const(i32, DONE)
    if bad:
        c.bad_index = max_(i0, max_(i1_, i2))
        status = const(i32, BAD_INDEX)
    elif (load(i32, place + TriangleWindow.offset("some")) & OUT_CUT) != 0:
        status = call(bin_clipped_triangle, context, i0, i1_, i2)
    else:
        w0 = load(i32, place + TriangleWindow.offset("w0"))
        w1 = load(i32, place + TriangleWindow.offset("w1"))
        w2 = load(i32, place + TriangleWindow.offset("w2"))
        status = call(bin_some_tiles, context, i0, i1_, i2, w0, w1, w2, 0)
    return status
