"""Primitive records of a binning list: whether they are legal there, shading, binning.

A draw that needs Python (a shader that native code cannot run, a message, an address named for the
first time) is a request, and is executed again: `binning_context.py`. Source: hardware reference
3.4, 3.7.
"""

from __future__ import annotations

from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.native import host
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.declarations import IndexedPrimitives
from vc4lab.records.shader import CLIP_HEADER_WORDS, PSE_WORDS, GlShaderRecord, NvShaderRecord
from vc4lab.records.states import GlShaderState, NvShaderState, RenderState
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import i1, i8, i32, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import umin
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.binning_context import BinningContext, note_draw
from vc4lab.v3d.ptb.context import DONE, BinnerContext
from vc4lab.v3d.ptb.state_records import begin_draw, primitive_type
from vc4lab.v3d.state.native_records import whole_record
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_16, INDEX_ARRAY, MAX_LENGTH, PRIMITIVE_TYPE
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import COORDINATE_ROWS, VERTEX_BATCH, NvContext
from vc4lab.v3d.vertex.shader_lookup import arrays_named, field, gl_pipeline, is_named, shade_range
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

INDEXED = IndexedPrimitives.id
NV_BYTES = NvShaderRecord.bit_width // 8


@staged
def report(w: BinningContext, finding: Value | int) -> Value:
    """Leaves the record to a message by Python."""
    w.finding = finding
    return const(i32, bc.REPORTS)


@staged
def _function(w: BinningContext, number: Value) -> Value:
    return load(ptr, w.functions + number * 8)


@staged
def _is_missing(w: BinningContext, number: Value, needed: Value) -> Value:
    """Whether a native function of another module is needed but not compiled yet."""
    missing = needed & (_function(w, number) == 0)
    w.wanted = select(missing, number, w.wanted)
    return missing


@staged
def _admit(w: BinningContext, c: BinnerContext) -> Value:
    """The finding about a primitive record out of place; else 0, and the event PLACED."""
    s = RenderState.at(c.state)
    finding = select(s.shader_kind == 0, const(i32, bc.NO_SHADER), const(i32, 0))
    finding = select((w.configured == 0) | (c.tiles == 0), const(i32, bc.NO_GRID), finding)
    finding = select(w.started == 0, const(i32, bc.NOT_STARTED), finding)
    finding = select(w.ended != 0, const(i32, bc.AFTER_FLUSH), finding)
    w.events = w.events | select(finding == 0, const(i32, bc.PLACED), const(i32, 0))
    return finding


@staged
def _exceeds_limit(w: BinningContext, length: Value) -> Value:
    """Whether the draws of this list together exceed MAX_LENGTH; a single draw may."""
    before = w.indices
    return (before != 0) & (before + length.zext(i64) > MAX_LENGTH)


@kernel(args=(ptr, i32), returns=i32)
def admit_vg(context: Value, length: Value) -> Value:
    """The finding about a VG record of `length` words, which are counted, or 0."""
    w = BinningContext.at(context)
    finding = _admit(w, BinnerContext.at(w.binner))
    if finding == 0:
        finding = select(_exceeds_limit(w, length), const(i32, bc.TOO_MANY), const(i32, 0))
        w.indices = w.indices + length.zext(i64)
    return finding


@staged
def _find_range(w: BinningContext, source: Value, start: Value, length: Value) -> None:
    """The first and last vertex of a draw, and the used map of an indexed one."""
    if source == INDEX_ARRAY:
        w.first = umin(start, MAX_VERTICES)
        top = start.zext(i64) + length.zext(i64)
        w.last = select(top > MAX_VERTICES, const(i64, MAX_VERTICES), top).trunc(i32) - 1
    else:
        scan = _function(w, source - INDEX_8 + bc.BYTES)
        types = (ptr, i32, i32, ptr, ptr)
        call_pointer(scan, None, types, w.memory, start, length, w.used, w.field_ptr("first"))


@staged
def _clear_used(w: BinningContext) -> None:
    """Clears the used map."""
    for batch in range(w.first >> 4, (w.last >> 4) + 1):
        store(w.used + batch * VERTEX_BATCH, splat(const(i8, 0)))


@staged
def _indices_named(w: BinningContext, source: Value, start: Value, length: Value) -> Value:
    """Whether the range of the indices needs no check by Python."""
    size = length.zext(i64) << (source - INDEX_8).zext(i64)
    return (source == INDEX_ARRAY) | is_named(w, start, size)


@staged
def _shade_gl(w: BinningContext, c: BinnerContext, s: RenderState, pitch: Value, named: Value) -> Value:
    """The coordinates of vertices w.first … w.last by their shader; GOES_ON or a request."""
    shader = call(gl_pipeline, w.pointer, s.shader_word, pitch.udiv(ROW_BYTES), const(i32, 0))
    result = const(i32, bc.SHADE)
    if shader != 0:
        result = const(i32, bc.NAME)
        if ((w.answers & bc.NAMED) != 0) | (named & arrays_named(w, shader, w.first, w.last)):
            done = shade_range(w, shader, c.vertices, w.marks, w.first, w.last)
            result = select(done, const(i32, bc.GOES_ON), const(i32, bc.SHADE))
    return result


@staged
def _copy_nv(w: BinningContext, c: BinnerContext, s: RenderState, pitch: Value, named: Value) -> Value:
    """Copies the coordinates of vertices shaded beforehand; GOES_ON or a request."""
    record = whole_record(w.memory, s.shader_word, w.edge)
    n = NvContext.at(w.nv)
    n.base = field(record, NvShaderRecord.vertices)
    n.stride = field(record, NvShaderRecord.stride)
    n.rows = pitch.udiv(ROW_BYTES)
    n.pitch = pitch
    n.output = c.vertices
    n.used = w.marks
    n.first = w.first
    n.last = w.last
    size = (w.last - w.first + 1).zext(i64) * n.stride.zext(i64)
    named = named & is_named(w, n.base + w.first * n.stride, size)
    named = named & is_named(w, s.shader_word, const(i64, NV_BYTES))
    named = named & ((s.shader_word & MEMORY_MASK) != 0)
    result = const(i32, bc.NAME)
    if ((w.answers & bc.NAMED) != 0) | named:
        call_pointer(_function(w, const(i32, bc.COPY_NV)), None, (ptr,), w.nv)
        result = const(i32, bc.GOES_ON)
    return result


@staged
def _bin(w: BinningContext, c: BinnerContext, kind: Value) -> Value:
    """Bins the draw that the context describes, primitives of list type `kind`."""
    call(begin_draw, w.binner)
    if c.clipping != 0:
        outcodes, ends = _function(w, const(i32, bc.OUTCODES)), (w.first >> 4, w.last >> 4)
        call_pointer(outcodes, None, (ptr, i32, i32), w.binner, *ends)
    w.events = w.events | bc.ACCEPTED
    status = call_pointer(_function(w, kind), i32, (ptr,), w.binner)
    w.status = status
    return select(status == DONE, const(i32, bc.GOES_ON), const(i32, bc.INTERRUPTED))


@kernel(args=(ptr, i32, i32), returns=i32)
def draw_vertices(context: Value, op: Value, count: Value) -> Value:
    """Shades and bins a draw of `count` vertices: mode, indices and maximum are in the context."""
    w = BinningContext.at(context)
    c = BinnerContext.at(w.binner)
    s = RenderState.at(c.state)
    source, length = c.index_type, umin(count, MAX_LENGTH)
    start = select(source == INDEX_ARRAY, c.first_index, c.index_address)
    c.length = length
    kind = primitive_type(c.mode)
    header = const(i32, 1)
    record = host(w.memory, s.shader_word & ~15)
    point_size = field(record, GlShaderRecord.point_size)
    clipping = field(record, GlShaderRecord.clipping)
    pitch = (point_size + COORDINATE_ROWS) * ROW_BYTES
    is_nv = s.shader_kind == NvShaderState.id
    if is_nv:
        record = whole_record(w.memory, s.shader_word, w.edge)
        point_size = field(record, NvShaderRecord.point_size)
        clipping = field(record, NvShaderRecord.clipping)
        header = field(record, NvShaderRecord.clip_header)
        pitch = (header * CLIP_HEADER_WORDS + PSE_WORDS + point_size) * ROW_BYTES
    if w.clipping_disabled != 0:
        clipping = const(i32, 0)
    clipping = clipping & header
    missing = _is_missing(w, kind, const(i1, True))
    for number, needed in (
        (bc.OUTCODES, clipping != 0),
        (bc.BYTES, source == INDEX_8),
        (bc.SHORTS, source == INDEX_16),
        (bc.COPY_NV, is_nv),
    ):
        missing = missing | _is_missing(w, const(i32, number), needed)
    result = select(missing, const(i32, bc.COMPILE), const(i32, bc.GOES_ON))
    asked = w.answers & (bc.SHADED | bc.NAMED | bc.LEFT_OUT)
    if ~missing & (asked == 0):
        _find_range(w, source, start, length)
        w.marks = select(source == INDEX_ARRAY, const(ptr, 0), w.used)
        w.work = w.work - (length >> 3) - ((w.last - w.first) >> 4) - bc.DRAW_WORK
        c.vertices = w.output + (const(i64, 0) - ((w.first >> 4) * pitch).sext(i64))
    if ~missing & (w.last >= w.first):
        if (w.answers & (bc.SHADED | bc.LEFT_OUT)) == 0:
            named = _indices_named(w, source, start, length)
            if is_nv:
                result = _copy_nv(w, c, s, pitch, named)
            else:
                result = _shade_gl(w, c, s, pitch, named)
            if (result == bc.GOES_ON) & (w.note_room != 0) & (asked == 0):
                note_draw(w, op, s, source, start, length)
        if (result == bc.GOES_ON) & ((w.answers & bc.LEFT_OUT) == 0):
            row = header * (CLIP_HEADER_WORDS * ROW_BYTES)
            c.pitch = pitch
            c.first_vertex = w.first
            c.last_vertex = w.last
            c.xy_row = row
            size_row = row + PSE_WORDS * ROW_BYTES
            c.size_row = select(point_size != 0, size_row, const(i32, -1))
            c.clipping = clipping
            if (length != count) & ((w.answers & bc.LENGTH_REPORTED) == 0):
                result = const(i32, bc.ASK_LENGTH)
            else:
                result = _bin(w, c, kind)
        if (result < bc.OTHER) & (source != INDEX_ARRAY):
            _clear_used(w)
    return result


@staged
def _vertices_needed(mode: Value) -> Value:
    """The number of vertices that one primitive needs."""
    points, triangles = int(PrimitiveMode.POINTS), int(PrimitiveMode.TRIANGLES)
    several = select(mode.uge(triangles), const(i32, 3), const(i32, 2))
    return select(mode == points, const(i32, 1), several)


@kernel(args=(ptr, ptr, i32), returns=i32)
def execute_draw(context: Value, record: Value, op: Value) -> Value:
    """Record 32 or 33 at a host address."""
    w = BinningContext.at(context)
    c = BinnerContext.at(w.binner)
    s = RenderState.at(c.state)
    mode = load(i8, record + 1).zext(i32)
    length = load(i32, record + 2)
    source, start = const(i32, INDEX_ARRAY), load(i32, record + 6)
    maximum = const(i32, -1)
    top = start.zext(i64) + length.zext(i64)
    if op == INDEXED:
        source = INDEX_8 + (mode >> 4)
        mode = mode & 15
        top = const(i64, 0)
        maximum = load(i32, record + 10)
    result = const(i32, bc.GOES_ON)
    if (top > 0xFFFF) & ((w.answers & bc.ARRAY_REPORTED) == 0):
        result = const(i32, bc.ASK_ARRAY)
    elif source.ugt(INDEX_16):
        result = report(w, bc.BAD_INDEX_TYPE)
    elif mode.uge(len(PRIMITIVE_TYPE)):
        result = report(w, bc.BAD_MODE)
    else:
        finding = _admit(w, c)
        nothing = (c.last_x | c.last_y) < 0
        if finding != 0:
            result = report(w, finding)
        elif nothing & ((w.answers & bc.WINDOW_REPORTED) == 0):
            result = const(i32, bc.ASK_WINDOW)
        elif (s.shader_kind != GlShaderState.id) & (s.shader_kind != NvShaderState.id):
            result = report(w, bc.NO_VERTICES)
        else:
            if _exceeds_limit(w, length):
                result = report(w, bc.TOO_MANY)
            else:
                c.mode = mode
                c.index_type = source
                c.index_address = select(source == INDEX_ARRAY, const(i32, 0), start)
                c.first_index = select(source == INDEX_ARRAY, start, const(i32, 0))
                c.max_index = maximum
                result = call(draw_vertices, context, op, length)
            if result < bc.OTHER:
                if length.ult(_vertices_needed(mode)):
                    w.events = w.events | bc.FEW
                    w.few_at = w.here
                    result = select(result == bc.GOES_ON, const(i32, bc.STOPS), result)
                w.indices = w.indices + length.zext(i64)
    return result
