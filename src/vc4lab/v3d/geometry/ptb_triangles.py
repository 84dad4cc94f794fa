"""Native binning of triangles, strips and fans, eight at a time.

Vectors fetch the indices, outcodes and positions of eight triangles and find those that are
rejected, those that touch one tile and those that need a closer look; the lists are then written
one triangle after the other, in order. The newest vertex comes last, as the relative codings want
it.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Array,
    Struct,
    Value,
    alloca,
    call,
    const,
    f64,
    gather,
    i32,
    i64,
    iota,
    kernel,
    load,
    mask_bits,
    max_,
    min_,
    popcount_,
    ptr,
    select,
    splat,
    staged,
    store,
    vec,
)
from vc4lab.v3d.geometry.clipper import (
    CORNER_BYTES,
    OUT_BAD,
    OUT_CUT,
    OUT_VOLUME,
    SLOTS,
    clip_polygon,
    screen_position,
    write_clip_record,
)
from vc4lab.v3d.geometry.list_writer import append_triangle, ready
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
from vc4lab.v3d.geometry.ptb_tiles import away, bin_triangle, faces_away

TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = 4, 5, 6

NO_RECORD = 1
"""`clip_record` of a part that needs none."""

BATCH = 8
_i32x8 = vec(i32, BATCH)


class TriangleWindow(Struct):
    """Eight triangles: vertex numbers, packed positions, outcodes of any corner, tile offset."""

    i0 = Array(i32, BATCH)
    i1 = Array(i32, BATCH)
    i2 = Array(i32, BATCH)
    w0 = Array(i32, BATCH)
    w1 = Array(i32, BATCH)
    w2 = Array(i32, BATCH)
    some = Array(i32, BATCH)
    tile = Array(i32, BATCH)
    rejected = i32  # lanes that no tile sees, as bits: outside a plane or not finite,
    outside = i32  # beyond all tiles,
    degenerate = i32  # without area,
    hidden = i32  # facing the wrong way, if the binner minds that
    bad = i32  # an index above the record's maximum
    single = i32  # lanes with one tile


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


@staged
def window_indices(c: Any, first: Value) -> Any:
    """Vertex numbers of the triangles from number `first` on, within the coordinate buffer.

    The fourth result: the largest of each triangle as the list has it.
    """
    number = splat(first, BATCH) + iota(BATCH)
    odd = number & splat(select(c.mode == TRIANGLE_STRIP, const(i32, 1), const(i32, 0)), BATCH)
    base = number * splat(select(c.mode == TRIANGLES, const(i32, 3), const(i32, 1)), BATCH)
    anchor = splat(select(c.mode == TRIANGLE_FAN, const(i32, 0), const(i32, -1)), BATCH)
    positions = ((base + odd) & anchor, base + 1 - odd, base + 2)
    j0, j1, j2 = positions
    if c.index_type == INDEX_ARRAY:
        start = splat(c.first_index, BATCH)
        j0, j1, j2 = (start + p for p in positions)
    elif c.index_type == INDEX_8:
        start = splat(c.index_address, BATCH)
        j0, j1, j2 = (gather(i32, c.memory, (start + p) & MEMORY_MASK) & 0xFF for p in positions)
    else:
        start = splat(c.index_address, BATCH)
        j0, j1, j2 = (gather(i32, c.memory, (start + (p << 1)) & MEMORY_MASK) for p in positions)
    low, high = splat(c.first_vertex, BATCH), splat(c.last_vertex, BATCH)
    clamped = [max_(min_(j & 0xFFFF, high), low) for j in (j0, j1, j2)]
    return (*clamped, max_(clamped[0], max_(clamped[1], clamped[2])))


@staged
def look(c: Any, window: Any, first: Value, count: Value) -> None:
    """Fill the window with `count` triangles from number `first` on."""
    i0, i1_, i2, highest = window_indices(c, first)
    store(window.field_ptr("i0"), i0)
    store(window.field_ptr("i1"), i1_)
    store(window.field_ptr("i2"), i2)
    here = iota(BATCH) < splat(count, BATCH)
    some = const(_i32x8, 0)
    every = const(_i32x8, 0)
    if c.clipping != 0:
        codes = [gather(i32, c.codes, index) & 0xFF for index in (i0, i1_, i2)]
        some = codes[0] | codes[1] | codes[2]
        every = codes[0] & codes[1] & codes[2]
    store(window.field_ptr("some"), some)
    rejected = ((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0)

    start, pitch = c.vertices + c.xy_row, splat(c.pitch, BATCH)
    words = [gather(i32, start, i.shr(4) * pitch + ((i & 15) << 2)) for i in (i0, i1_, i2)]
    for name, word in zip(("w0", "w1", "w2"), words, strict=True):
        store(window.field_ptr(name), word)
    x = [((word << 16) >> 16) + splat(c.viewport_x, BATCH) for word in words]
    y = [(word >> 16) + splat(c.viewport_y, BATCH) for word in words]
    shift_x, shift_y = splat(c.shift_x, BATCH), splat(c.shift_y, BATCH)
    left = max_(min_(x[0], min_(x[1], x[2])) >> shift_x, splat(c.first_x, BATCH))
    right = min_(max_(x[0], max_(x[1], x[2])) >> shift_x, splat(c.last_x, BATCH))
    bottom = max_(min_(y[0], min_(y[1], y[2])) >> shift_y, splat(c.first_y, BATCH))
    top = min_(max_(y[0], max_(y[1], y[2])) >> shift_y, splat(c.last_y, BATCH))
    # Products of 12.4 differences are exact in doubles.
    x1, x2 = (x[1] - x[0]).to_float(f64), (x[2] - x[0]).to_float(f64)
    y1, y2 = (y[1] - y[0]).to_float(f64), (y[2] - y[0]).to_float(f64)
    flat = x1 * y2 == x2 * y1

    bad = here & highest.ugt(splat(c.max_index, BATCH))
    usual = here & ~bad & ~rejected & ((some & OUT_CUT) == 0)
    outside = (left > right) | (bottom > top)
    hidden = const(_i32x8, 0)
    if c.leave_facing != 0:
        turn = x1 * y2 - x2 * y1
        hidden = select(away(c, turn < 0.0, turn > 0.0), const(_i32x8, 1), 0)
    shown = usual & (hidden == 0)
    single = shown & ~flat & (left == right) & (bottom == top)
    store(window.field_ptr("tile"), (bottom * splat(c.width, BATCH) + left) * TileState.size)
    window.bad = mask_bits(bad)
    window.rejected = mask_bits(here & ~bad & rejected)
    window.outside = mask_bits(usual & outside)
    window.degenerate = mask_bits(usual & ~outside & flat)
    window.hidden = mask_bits(usual & (hidden != 0))
    window.single = mask_bits(single)


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
            status = bin_one(
                context, window, lane, (window.single & bit) != 0, (window.bad & bit) != 0
            )
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
def bin_one(context: Value, window: Any, lane: Value, single: Value, bad: Value) -> Value:
    """Append the triangle of one lane; a status."""
    c: Any = BinContext.at(context)
    place = window.pointer + lane * 4
    i0 = load(i32, place + TriangleWindow.offset("i0"))
    i1_ = load(i32, place + TriangleWindow.offset("i1"))
    i2 = load(i32, place + TriangleWindow.offset("i2"))
    status = const(i32, DONE)
    if single:
        tile = c.tiles + load(i32, place + TriangleWindow.offset("tile")).sext(i64)
        status = ready(context, tile, const(i32, 0))
        if status == DONE:
            status = append_triangle(context, tile, i0, i1_, i2)
        c.entries = c.entries + select(status == DONE, const(i32, 1), const(i32, 0))
    elif bad:
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
