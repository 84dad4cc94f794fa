"""Native binning of points, lines, triangles, strips and fans: assembled, rejected, clipped, put into tiles.

Loops and strips of lines become independent lines. Of triangles `window.py` looks at many and says
which tiles they go to; the lists are then written in order. The newest vertex comes last, as the
relative codings want it.
"""

from __future__ import annotations

from vc4lab.memory.native import host
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.states import MAX_POINT_SIZE
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import f32, i1, i8, i16, i32, i64, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import fabs_, fmax_, fmin_, max_, min_, popcount_
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.clipper import (
    CORNER_BYTES,
    OUT_BAD,
    OUT_CUT,
    OUT_FAR,
    OUT_GUARD,
    OUT_NEAR,
    OUT_VOLUME,
    SLOTS,
    SMALLEST_W,
    clip_polygon,
    clip_segment,
    screen_position,
    vertex_pointer,
    write_clip_record,
)
from vc4lab.v3d.ptb.context import BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import append_triangle, fits, ready
from vc4lab.v3d.ptb.tiles import bin_box, bin_triangle, faces_away, screen_x, screen_y
from vc4lab.v3d.ptb.window import NUMBER_AT, SECOND, SPECIAL, TILE_MASK, WINDOW, TriangleWindow, look
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_ARRAY
from vc4lab.v3d.tile_lists.primitive_decoder import LINES, POINTS

NEXT_TWO = 1 << 4 | 2 << 10 | 15
"""Coding of a triangle that names its first vertex in 31:16; the other two are those after it."""

NO_CLIP_RECORD = 1
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
    c = BinnerContext.at(context)
    corners = alloca(CORNER_BYTES * SLOTS)
    status = const(i32, pc.DONE)
    count = call(clip_polygon, context, corners, i0, i1_, i2)
    part: Value = c.part
    if part < 0:
        part = const(i32, 1)
        if count == 0:
            c.rejected = c.rejected + 1
        else:
            c.clipped = c.clipped + 1
    while (part + 1 < count) & (status == pc.DONE):
        second = corners + part * CORNER_BYTES
        third = second + CORNER_BYTES
        w0, w1 = screen_position(c, corners), screen_position(c, second)
        w2 = screen_position(c, third)
        if ~faces_away(c, w0, w1, w2):
            if c.clip_record == 0:
                c.clip_record = call(write_clip_record, context, corners, second, third, 3)
            clip = c.clip_record
            if clip == 0:
                status = const(i32, pc.OUT_OF_MEMORY)
            else:
                word = select(clip == NO_CLIP_RECORD, const(i32, 0), clip)
                status = call(bin_some_tiles, context, i0, i1_, i2, w0, w1, w2, word)
        if status == pc.DONE:
            part = part + 1
            c.clip_record = 0
    c.part = select(status == pc.DONE, const(i32, -1), part)
    return status


@staged
def bin_special(context: Value, i0: Value, i1_: Value, i2: Value) -> Value:
    """Append a triangle that is to be clipped, has many tiles or a bad index; a status."""
    c = BinnerContext.at(context)
    highest = max_(i0, max_(i1_, i2))
    some = const(i32, 0)
    if c.clipping != 0:
        for index in (i0, i1_, i2):
            some = some | load(i8, c.codes + index).zext(i32)
    w0, w1, w2 = (load(i32, vertex_pointer(c, i) + c.xy_row) for i in (i0, i1_, i2))
    status = const(i32, pc.DONE)
    if highest.ugt(c.max_index):
        c.bad_index = highest
        status = const(i32, pc.BAD_INDEX)
    elif (some & OUT_CUT) != 0:
        status = call(bin_clipped_triangle, context, i0, i1_, i2)
    elif ~faces_away(c, w0, w1, w2):
        status = call(bin_some_tiles, context, i0, i1_, i2, w0, w1, w2, 0)
    return status


@kernel(args=(ptr, ptr, i32), returns=i32)
def append_entry(context: Value, window: Value, entry: Value) -> Value:
    """Append what an entry of the window stands for; a status.

    When memory runs out before the second tile, `tile_x` and `tile_y` say where to go on.
    """
    c = BinnerContext.at(context)
    w = TriangleWindow.at(window)
    place = window + (entry.shr(NUMBER_AT) & (WINDOW - 1)) * 4
    i0, i1_, i2 = (load(i32, place + TriangleWindow.offset(name)) for name in ("i0", "i1", "i2"))
    if (entry & SPECIAL) != 0:
        status = bin_special(context, i0, i1_, i2)
    else:
        number = entry & TILE_MASK
        tile = c.tiles + (number * TileState.size).zext(i64)
        status = ready(context, tile, const(i32, 0))
        if status == pc.DONE:
            status = append_triangle(context, tile, i0, i1_, i2)
        if status == pc.DONE:
            c.entries = c.entries + 1
            if w.plain == 0:
                t = TileState.at(tile)
                t.newest = c.stamp + 1 + (entry.shr(NUMBER_AT) & (WINDOW - 1))
        elif (entry & SECOND) != 0:
            c.tile_y = number.udiv(c.width)
            c.tile_x = number.urem(c.width)
    return status


@staged
def append_plain(context: Value, window: TriangleWindow, k: Value) -> Value:
    """Append entries from the `k`th on, of triangles of three vertices in a row, as long as nothing
    comes between; the number of the next one.

    After such a triangle in the same list there are two codings: near and far.
    """
    c = BinnerContext.at(context)
    memory, tiles, key, count = c.memory, c.tiles, c.key, window.count
    going = k < count
    while going:
        place = window.pointer + (k * 4).zext(i64)
        where = load(i32, place + TriangleWindow.where.offset)
        index = load(i32, place + TriangleWindow.vertex.offset)
        t = TileState.at(tiles + where.zext(i64))
        cursor, step = t.cursor, index - t.p0
        near = fits(step, -8, 7)
        size = select(near, const(i32, 2), const(i32, 4))
        going = (t.newest == key) & (t.limit - cursor >= size)
        if going:
            word = select(near, (step & 15) * 0x1110 | 3, (index << 16) | NEXT_TWO)
            store(host(memory, cursor), word)  # always four bytes, which end inside the block
            t.cursor = cursor + size
            t.p0 = index
            k = k + 1
            going = k < count
    return k


@staged
def append_coded_ones(context: Value, window: TriangleWindow, k: Value) -> Value:
    """As `append_plain`, for triangles of any vertices, each after the one with the number before it."""
    c = BinnerContext.at(context)
    memory, tiles, count, stamp = c.memory, c.tiles, window.count, c.stamp
    going = k < count
    while going:
        place = window.pointer + (k * 4).zext(i64)
        number = load(i32, place).shr(NUMBER_AT) & (WINDOW - 1)
        t = TileState.at(tiles + load(i32, place + TriangleWindow.where.offset).zext(i64))
        place = window.pointer + (number * 4).zext(i64)
        cursor, size = t.cursor, load(i32, place + TriangleWindow.bytes_.offset)
        # always eight bytes: LINK_RESERVE of them may lie beyond the limit
        enough = max_(size, const(i32, 8 - pc.LINK_RESERVE))
        going = (t.newest == stamp + number) & (t.limit - cursor >= enough)
        if going:
            coding = window.pointer + (number * 8).zext(i64) + TriangleWindow.coding.offset
            store(host(memory, cursor), load(i64, coding))
            t.cursor = cursor + size
            t.p0 = load(i32, place + TriangleWindow.i0.offset)
            t.p1 = load(i32, place + TriangleWindow.i1.offset)
            t.p2 = load(i32, place + TriangleWindow.i2.offset)
            t.newest = stamp + number + 1
            k = k + 1
            going = k < count
    return k


@staged
def append_window(context: Value, window: TriangleWindow) -> tuple[Value, Value]:
    """Append what the window has found; how many entries that were, and a status."""
    c = BinnerContext.at(context)
    status = const(i32, pc.DONE)
    k = const(i32, 0)
    slow = const(i32, 0)
    while (k < window.count) & (status == pc.DONE):
        if window.plain != 0:
            k = append_plain(context, window, k)
        else:
            k = append_coded_ones(context, window, k)
        if k < window.count:
            entry = load(i32, window.entries + k * 4)
            status = call(append_entry, context, window.pointer, entry)
            if status == pc.DONE:
                k = k + 1
                slow = slow + 1
    c.entries = c.entries + (k - slow)
    return k, status


@kernel(args=(ptr,), returns=i32)
def draw_triangles(context: Value) -> Value:
    """Bin triangles, strips and fans from the resume point on."""
    c = BinnerContext.at(context)
    window = TriangleWindow.at(alloca(TriangleWindow.size))
    status = const(i32, pc.DONE)
    while (c.primitive < c.primitive_count) & (status == pc.DONE):
        first = c.primitive
        # windows begin at multiples of their size, where vertices in a row stand in whole batches
        count = min_(c.primitive_count - first, WINDOW - (first & (WINDOW - 1)))
        look(c, window, first, count)
        taken, status = append_window(context, window)
        done = count
        if status != pc.DONE:
            done = load(i32, window.entries + taken * 4).shr(NUMBER_AT) & (WINDOW - 1)
        seen = lowest_bits(done)
        c.rejected = c.rejected + popcount_(window.rejected & seen).trunc(i32)
        c.outside = c.outside + popcount_(window.outside & seen).trunc(i32)
        c.degenerate = c.degenerate + popcount_(window.degenerate & seen).trunc(i32)
        c.primitive = first + done
        c.work = c.work - done - taken
        if (c.work < 0) & (status == pc.DONE):
            status = const(i32, pc.PAUSED)
    return status


@staged
def lowest_bits(count: Value) -> Value:
    """The lowest `count` bits of 64 (up to all)."""
    some = (const(i64, 1) << (count & 63).zext(i64)) - 1
    return select(count > 63, const(i64, -1), some)


@staged
def vertex_index(c: BinnerContext, position: Value | int) -> Value:
    """Index of the vertex at a position of the draw; never outside the coordinate buffer."""
    index: Value
    if c.index_type == INDEX_ARRAY:
        index = c.first_index + position
    elif c.index_type == INDEX_8:
        index = load(i8, host(c.memory, c.index_address + position)).zext(i32)
    else:
        index = load(i16, host(c.memory, c.index_address + position * 2)).zext(i32)
    return max_(min_(index & 0xFFFF, c.last_vertex), c.first_vertex)


@staged
def _code(c: BinnerContext, index: Value) -> Value:
    return load(i8, c.codes + index).zext(i32)


@staged
def _xy(c: BinnerContext, index: Value) -> Value:
    return load(i32, vertex_pointer(c, index) + c.xy_row)


@kernel(args=(ptr, i32, i32, i32), returns=i32)
def bin_clipped_line(context: Value, i0: Value, i1_: Value, reach: Value) -> Value:
    """Clip a line and append what is left as a record 49."""
    c = BinnerContext.at(context)
    corners = alloca(CORNER_BYTES * 2)
    status = const(i32, pc.DONE)
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
            status = const(i32, pc.OUT_OF_MEMORY)
        else:
            words = (screen_position(c, corners), screen_position(c, end))
            word = select(clip == NO_CLIP_RECORD, const(i32, 0), clip)
            status = bin_box(context, LINES, words, reach, (i0, i1_), word)
        if status == pc.DONE:
            c.clip_record = 0
    return status


@staged
def _reach(size: Value, largest: float) -> Value:
    """Half of a size in pixels, in 1/16 pixels, rounded up; NaN and nonsense are limited."""
    limited = fmin_(fmax_(size, const(f32, 0.0)), const(f32, largest))
    return (limited * 8.0).to_int(i32) + 1


@staged
def _checked(c: BinnerContext, index: Value, status: Value) -> Value:
    """BAD_INDEX when an index exceeds the record's maximum."""
    if index.ugt(c.max_index):
        c.bad_index = index
        status = const(i32, pc.BAD_INDEX)
    return status


@staged
def line_ends(c: BinnerContext, number: Value | int) -> tuple[Value, Value]:
    """Vertex numbers of a line of the draw."""
    after = select(c.mode == PrimitiveMode.LINES, number * 2, number) + 1
    i0 = vertex_index(c, after - 1)
    i1_ = vertex_index(c, select(after < c.length, after, const(i32, 0)))
    if (after >= c.length) & (c.close_first != 0):
        i0, i1_ = i1_, i0
    return i0, i1_


@kernel(args=(ptr,), returns=i32)
def draw_lines(context: Value) -> Value:
    """Bin lines, loops and strips from the resume point on."""
    c = BinnerContext.at(context)
    k = c.primitive
    status = const(i32, pc.DONE)
    reach = _reach(c.line_width, 4096.0)
    while (k < c.primitive_count) & (status == pc.DONE):
        i0, i1_ = line_ends(c, k)
        status = _checked(c, max_(i0, i1_), status)
        some = const(i32, 0)
        every = const(i32, 0)
        if c.clipping != 0:
            c0, c1 = _code(c, i0), _code(c, i1_)
            some = c0 | c1
            every = c0 & c1
        if status == pc.DONE:
            if ((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0):
                c.rejected = c.rejected + 1
            elif (some & OUT_CUT) != 0:
                status = call(bin_clipped_line, context, i0, i1_, reach)
            else:
                words = (_xy(c, i0), _xy(c, i1_))
                status = bin_box(context, LINES, words, reach, (i0, i1_), const(i32, 0))
        if status == pc.DONE:
            k = k + 1
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, pc.PAUSED)
    c.primitive = k
    return status


@staged
def _point_culled(c: BinnerContext, index: Value) -> Value:
    """Whether a point is left out (i1): its Z or W is outside the view volume.

    One whose centre lies beside the volume may still reach into it, as far as its position can
    be said in 12.4.
    """
    code = _code(c, index)
    culled = (code & (OUT_NEAR | OUT_FAR | OUT_BAD)) != 0
    if (code & OUT_GUARD) != 0:  # a guard band may be as narrow as the viewport
        vertex = vertex_pointer(c, index)
        x, y, w = (load(f32, vertex + 64 * k) for k in (0, 1, 3))
        limit = w * pc.GUARD_BAND
        away = (fabs_(x * c.half_width) > limit) | (fabs_(y * c.half_height) > limit)
        culled = culled | away | (w < SMALLEST_W)
    return culled


@kernel(args=(ptr,), returns=i32)
def draw_points(context: Value) -> Value:
    """Bin points from the resume point on; they are culled by Z and W only, never clipped."""
    c = BinnerContext.at(context)
    k = c.primitive
    status = const(i32, pc.DONE)
    left, right = c.first_x << c.shift_x, (c.last_x + 1) << c.shift_x
    bottom, top = c.first_y << c.shift_y, (c.last_y + 1) << c.shift_y
    same_reach = _reach(c.point_size, MAX_POINT_SIZE)
    while (k < c.primitive_count) & (status == pc.DONE):
        index = vertex_index(c, k)
        status = _checked(c, index, status)
        culled = const(i1, False)
        if (c.clipping != 0) & (status == pc.DONE):
            culled = _point_culled(c, index)
        if status == pc.DONE:
            if culled:
                c.rejected = c.rejected + 1
            else:
                reach = same_reach
                if c.size_row >= 0:
                    size = load(f32, vertex_pointer(c, index) + c.size_row)
                    reach = _reach(size, MAX_POINT_SIZE)
                word = _xy(c, index)
                x, y = screen_x(c, word), screen_y(c, word)
                beside = (x + reach < left) | (x - reach >= right)
                if beside | (y + reach < bottom) | (y - reach >= top):
                    c.outside = c.outside + 1
                else:
                    none = const(i32, 0)
                    status = bin_box(context, POINTS, (word, word), reach, (index,), none)
        if status == pc.DONE:
            k = k + 1
            c.work = c.work - 1
            if c.work < 0:
                status = const(i32, pc.PAUSED)
    c.primitive = k
    return status
