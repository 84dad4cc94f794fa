"""Native binning of lines and points: assembles primitives, rejects, clips, finds tiles, appends.

Loops and strips become independent lines. Triangles: `triangles.py`.
"""

from __future__ import annotations

from vc4lab.memory.pointers import host
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.states import MAX_POINT_SIZE
from vc4lab.simd import (
    Value,
    alloca,
    call,
    const,
    f32,
    fabs_,
    fmax_,
    fmin_,
    i1,
    i8,
    i16,
    i32,
    kernel,
    load,
    max_,
    min_,
    ptr,
    select,
    staged,
)
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.clipper import (
    CORNER_BYTES,
    OUT_BAD,
    OUT_CUT,
    OUT_FAR,
    OUT_GUARD,
    OUT_NEAR,
    OUT_VOLUME,
    SMALLEST_W,
    clip_segment,
    screen_position,
    vertex_pointer,
    write_clip_record,
)
from vc4lab.v3d.ptb.context import BinnerContext
from vc4lab.v3d.ptb.tiles import bin_box, screen_x, screen_y
from vc4lab.v3d.ptb.triangles import NO_CLIP_RECORD
from vc4lab.v3d.state.draw_input import INDEX_8, INDEX_ARRAY
from vc4lab.v3d.tile_lists.primitive_decoder import LINES, POINTS


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
