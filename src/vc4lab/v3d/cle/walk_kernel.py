"""Executes a binning list natively: state records, draws whose shader is known, begin and end.

Everything else is left to `binning.py`, which does the same in Python: records of another kind
or out of order, unknown programs, whatever needs a message. The walker touches nothing before it
knows that it can do a record. Source: hardware reference 3.2, 3.4, 3.7.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.pointers import host
from vc4lab.records.codes import ListData, PrimitiveMode
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import (
    Flush,
    FlushAllState,
    GlShaderState,
    IncrementSemaphore,
    IndexedPrimitives,
    NvShaderState,
    PrimitiveListFormat,
    StartTileBinning,
    TileBinningMode,
    VertexArrayPrimitives,
)
from vc4lab.records.payload import BINNING, BinnerState, Ignored, State
from vc4lab.records.shader import GlShaderRecord, NvShaderRecord
from vc4lab.records.use import ids_of
from vc4lab.simd import (
    Value,
    call,
    call_pointer,
    const,
    i1,
    i8,
    i32,
    i64,
    kernel,
    load,
    max_,
    ptr,
    select,
    splat,
    staged,
    store,
    table,
    umin,
)
from vc4lab.v3d.checks.hints import LIST_ALIGNMENT, RECORD_ALIGNMENT
from vc4lab.v3d.cle import walk_context as wc
from vc4lab.v3d.cle.walk_context import FLUSHED, GOES_ON, INTERRUPTED, OTHER, WalkContext
from vc4lab.v3d.cle.walk_notes import note_draw, note_mode
from vc4lab.v3d.ptb.context import (
    DONE,
    RECORD_SLOT,
    STATE_LIMIT,
    WORK_PER_CALL,
    BinContext,
)
from vc4lab.v3d.ptb.state_records import apply_state
from vc4lab.v3d.state.draw_input import INDEX_8, INDEX_16, INDEX_ARRAY, MAX_LENGTH, PRIMITIVE_TYPE
from vc4lab.v3d.state.native_records import is_one_of
from vc4lab.v3d.state.render_state import RenderState
from vc4lab.v3d.vertex.context import BATCH, COORDINATE_ROWS
from vc4lab.v3d.vertex.nv import CLIP_HEADER_WORDS, PSE_WORDS, NvContext
from vc4lab.v3d.vertex.shader_lookup import (
    arrays_named,
    field,
    gl_pipeline,
    is_named,
    shade_range,
)
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

_MODE = TileBinningMode
INDEXED, ARRAY = IndexedPrimitives.id, VertexArrayPrimitives.id
NV_BYTES = NvShaderRecord.bit_width // 8


@staged
def _primitives(mode: Value, length: Value) -> Value:
    """`ptb_input.primitive_count`."""
    count = max_(length - 2, const(i32, 0))
    if mode == PrimitiveMode.POINTS:
        count = length
    elif mode == PrimitiveMode.LINES:
        count = length.udiv(2)
    elif mode == PrimitiveMode.LINE_LOOP:
        count = select(length > 1, length, const(i32, 0))
    elif mode == PrimitiveMode.LINE_STRIP:
        count = max_(length - 1, const(i32, 0))
    elif mode == PrimitiveMode.TRIANGLES:
        count = length.udiv(3)
    return count


@staged
def _find_range(w: Any, source: Value, address: Value, length: Value) -> None:
    """Lowest and highest vertex of an indexed draw, and its used map."""
    scan = select(source == INDEX_8, w.bytes_used, w.shorts_used)
    types = (ptr, i32, i32, ptr, ptr)
    call_pointer(scan, None, types, w.memory, address, length, w.used, w.field_ptr("first"))


@staged
def _forget_range(w: Any) -> None:
    """The used map is all zero again."""
    for batch in range(w.first >> 4, (w.last >> 4) + 1):
        store(w.used + batch * BATCH, splat(const(i8, 0)))


@staged
def _arrays_named(w: Any, shader: Value) -> Value:
    """Whether Python has nothing to say about where the vertices come from."""
    if shader == 0:
        n: Any = NvContext.at(w.nv)
        size = (w.last - w.first + 1).zext(i64) * n.stride.zext(i64)
        known = is_named(w, n.base + w.first * n.stride, size)
    else:
        known = arrays_named(w, shader, w.first, w.last)
    return known


@staged
def _shade(w: Any, shader: Value, pitch: Value, used: Value) -> Value:
    """The coordinates of vertices w.first … w.last, by ShaderEntry `shader`, 0: NV; whether done.

    What is not done leaves no trace and can be done again by Python.
    """
    done: Any = const(i1, True)
    output = w.output + (const(i64, 0) - ((w.first >> 4) * pitch).sext(i64))
    if shader == 0:
        n: Any = NvContext.at(w.nv)
        n.output = output
        n.used = used
        n.first = w.first
        n.last = w.last
        call_pointer(w.copy_nv, None, (ptr,), w.nv)
    else:
        done = shade_range(w, shader, output, used, w.first, w.last, pitch)
    c: Any = BinContext.at(w.binner)
    c.vertices = output
    c.pitch = pitch
    c.first_vertex = w.first
    c.last_vertex = w.last
    return done


@staged
def _bin(w: Any, binner: Value, kind: Value) -> Value:
    """Bins the draw that the context describes, primitives of list type `kind`."""
    c: Any = BinContext.at(w.binner)
    form = kind | ListData.INDEX16 << 4
    if c.format_in_force != form:
        record = w.format_record
        store(record, const(i8, PrimitiveListFormat.id))
        store(record + 1, form.trunc(i8))
        call(apply_state, w.binner, const(i32, PrimitiveListFormat.id), record)
    c.primitive_count = _primitives(c.mode, c.length)
    c.primitive = 0
    c.part = -1
    c.tile_x = -1
    c.clip_record = 0
    c.key = ((c.counter << 2) | kind) + 1
    c.drawn = 1
    if c.clipping != 0:
        ends = (w.first >> 4, w.last >> 4)
        call_pointer(w.outcodes, None, (ptr, i32, i32), w.binner, *ends)
    c.work = WORK_PER_CALL
    w.status = call_pointer(binner, i32, (ptr,), w.binner)
    return select(w.status == DONE, const(i32, GOES_ON), const(i32, INTERRUPTED))


@kernel(args=(ptr, ptr, i32), returns=i32)
def execute_draw(context: Value, record: Value, op: Value) -> Value:
    """Record 32 or 33 at a host address: GOES_ON, OTHER or INTERRUPTED."""
    w: Any = WalkContext.at(context)
    c: Any = BinContext.at(w.binner)
    s: Any = RenderState.at(c.state)
    mode: Any = load(i8, record + 1).zext(i32)
    length = load(i32, record + 2)
    source, start = const(i32, INDEX_ARRAY), load(i32, record + 6)
    limit, maximum = const(i64, 0xFFFF), const(i32, -1)
    top = start.zext(i64) + length.zext(i64)
    if op == INDEXED:
        source = INDEX_8 + (mode >> 4)
        mode = mode & 15
        limit, top = const(i64, MAX_LENGTH), length.zext(i64)
        maximum = load(i32, record + 10)
    kind = load(i8, table(i8, [*PRIMITIVE_TYPE, 0]) + umin(mode, len(PRIMITIVE_TYPE))).zext(i32)
    binner = load(ptr, w.field_ptr("binners") + kind * 8)
    ready = (w.started != 0) & (w.configured != 0) & (w.ended == 0)
    ready = ready & (c.tiles != 0)  # none yet in a machine whose state was loaded
    ready = ready & ((c.last_x | c.last_y) >= 0)  # else there is something to say
    ready = ready & mode.ult(len(PRIMITIVE_TYPE)) & source.ule(INDEX_16) & (top <= limit)
    ready = ready & (w.indices + length.zext(i64) <= MAX_LENGTH) & (binner != 0)
    ready = ready & ((source != INDEX_8) | (w.bytes_used != 0))
    ready = ready & ((source != INDEX_16) | (w.shorts_used != 0))
    shader_record = host(w.memory, s.shader_word)
    shader, pitch = const(ptr, 0), const(i32, 0)
    header, point_size, clipping = const(i32, 1), const(i32, 0), const(i32, 0)
    if s.shader_kind == GlShaderState.id:
        shader_record = host(w.memory, s.shader_word & ~15)
        point_size = field(shader_record, GlShaderRecord.point_size)
        clipping = field(shader_record, GlShaderRecord.clipping)
        if ready:
            rows = point_size + COORDINATE_ROWS
            shader = call(gl_pipeline, context, s.shader_word, rows, const(i32, 0))
            pitch = rows * ROW_BYTES
        ready = ready & (shader != 0)
    elif s.shader_kind == NvShaderState.id:
        point_size = field(shader_record, NvShaderRecord.point_size)
        clipping = field(shader_record, NvShaderRecord.clipping)
        header = field(shader_record, NvShaderRecord.clip_header)
        inside = (s.shader_word & MEMORY_MASK) <= MEMORY_SIZE - NV_BYTES
        ready = ready & (w.copy_nv != 0) & inside & is_named(w, s.shader_word, const(i64, NV_BYTES))
        ready = ready & ((s.shader_word & MEMORY_MASK) != 0)
        n: Any = NvContext.at(w.nv)
        n.base = field(shader_record, NvShaderRecord.vertices)
        n.stride = field(shader_record, NvShaderRecord.stride)
        n.rows = header * CLIP_HEADER_WORDS + PSE_WORDS + point_size
        pitch = n.rows * ROW_BYTES
        n.pitch = pitch
    else:
        ready = const(i1, False)
    if w.clipping_disabled != 0:
        clipping = const(i32, 0)
    clipping = clipping & header
    ready = ready & ((clipping == 0) | (w.outcodes != 0))
    if source != INDEX_ARRAY:
        ready = ready & is_named(w, start, length.zext(i64) << (source - INDEX_8).zext(i64))
    result = select(ready, const(i32, GOES_ON), const(i32, OTHER))
    if ready & (length != 0):
        w.first = start
        w.last = start + length - 1
        used = const(ptr, 0)
        if source != INDEX_ARRAY:
            _find_range(w, source, start, length)
            used = w.used
        w.work = w.work - (length >> 3) - ((w.last - w.first) >> 4) - wc.DRAW_WORK
        done = const(i1, False)
        if _arrays_named(w, shader):
            done = _shade(w, shader, pitch, used)
        if source != INDEX_ARRAY:
            _forget_range(w)
        result = const(i32, OTHER)
        if done:
            row = header * (CLIP_HEADER_WORDS * ROW_BYTES)
            c.xy_row = row
            size_row = row + PSE_WORDS * ROW_BYTES
            c.size_row = select(point_size != 0, size_row, const(i32, -1))
            c.clipping = clipping
            c.mode = mode
            c.index_type = source
            c.index_address = select(source == INDEX_ARRAY, const(i32, 0), start)
            c.first_index = select(source == INDEX_ARRAY, start, const(i32, 0))
            c.length = length
            c.max_index = maximum
            if w.note_room != 0:
                note_draw(w, op, s, source, start, length)
            result = _bin(w, binner, kind)
    if result != OTHER:
        w.indices = w.indices + length.zext(i64)
        w.drawn = w.drawn + 1
    return result


@staged
def _configure(w: Any, c: Any, record: Value) -> Value:
    """Record 112, if there is nothing to say about it."""
    payload = record + 1
    address, state = field(payload, _MODE.address), field(payload, _MODE.state_address)
    tiles = field(payload, _MODE.tiles_x) * field(payload, _MODE.tiles_y)
    aligned = ((address & (LIST_ALIGNMENT - 1)) | (state & (RECORD_ALIGNMENT - 1))) == 0
    known = aligned & is_named(w, address, const(i64, 1)) & is_named(w, state, const(i64, 1))
    known = known & (tiles != 0) & (tiles <= c.tile_room) & (w.configure != 0)
    known = known & (w.drawn == 0) & ((w.events & wc.CONFIGURED) == 0)  # Python looks in between
    result = const(i32, OTHER)
    if known:
        call_pointer(w.configure, None, (ptr, ptr), w.binner, payload)
        if c.pool_missing == 0:  # else Python does it again, and reports
            w.configured = 1
            w.ended = 0
            w.events = w.events | wc.CONFIGURED
            if w.note_room != 0:
                note_mode(w, address, field(payload, _MODE.memory_size), state, tiles)
            result = const(i32, GOES_ON)
    return result


@staged
def _start(w: Any, c: Any, _record: Value) -> Value:
    """Record 6, unless there is no record 112 before it."""
    result = const(i32, OTHER)
    if w.configured != 0:
        w.started = 1
        w.ended = 0
        w.events = w.events | wc.BEGUN
        if c.counter == 0:  # what was set before is prefix state
            c.counter = 1
            c.drawn = 0
        result = const(i32, GOES_ON)
    return result


@staged
def _flush(w: Any, c: Any, everything: Value) -> Value:
    """Record 4 or 5; Python then sees to what follows."""
    result = const(i32, OTHER)
    if (w.finish != 0) & (c.tiles != 0):
        c.primitive = 0
        w.flushed_all = everything
        w.status = call_pointer(w.finish, i32, (ptr, i32), w.binner, everything)
        result = const(i32, FLUSHED)
    return result


@staged
def _flush_some(w: Any, c: Any, _record: Value) -> Value:
    return _flush(w, c, const(i32, 0))


@staged
def _flush_all(w: Any, c: Any, _record: Value) -> Value:
    return _flush(w, c, const(i32, 1))


@staged
def _increment(w: Any, _c: Any, _record: Value) -> Value:
    w.events = w.events | wc.ARMED
    return const(i32, GOES_ON)


SYSTEM: dict[int, Any] = {
    Flush.id: _flush_some,
    FlushAllState.id: _flush_all,
    StartTileBinning.id: _start,
    IncrementSemaphore.id: _increment,
    TileBinningMode.id: _configure,
}
DRAWS = (INDEXED, ARRAY)
_BY_KIND = ids_of(Ignored, State, BinnerState, native=BINNING)
assert {*SYSTEM, *DRAWS, *_BY_KIND} == set(wc.WALKED), "a record without native code"


@kernel(args=(ptr, ptr, i32), returns=i32)
def execute_system(context: Value, record: Value, op: Value) -> Value:
    """A record of `SYSTEM` at a host address: GOES_ON, OTHER or FLUSHED."""
    w: Any = WalkContext.at(context)
    c: Any = BinContext.at(w.binner)
    result = const(i32, GOES_ON)
    for identifier, execute in SYSTEM.items():
        if op == identifier:
            result = execute(w, c, record)
    return result


@kernel(args=(ptr,), returns=i32)
def walk(context: Value) -> Value:
    """Executes records from `here` to OTHER, INTERRUPTED or FLUSHED; `here` is after the last one.

    It stops before any record that is not for here, one that the list's end cuts off, one after
    which the counter of changes would be full, and when the work of one call is done or no room is
    left for notes.
    """
    w: Any = WalkContext.at(context)
    c: Any = BinContext.at(w.binner)
    sizes = table(i8, [RECORD_SIZES[op] if op in wc.WALKED else 0 for op in range(256)])
    w.work = wc.WORK_PER_CALL
    result: Any = const(i32, GOES_ON)
    while result == GOES_ON:
        here = w.here
        place = here & MEMORY_MASK
        record = w.memory + place.zext(i64)
        op = load(i8, record).zext(i32)
        size = load(i8, sizes + op).zext(i32)
        left = w.end - here
        w.work = w.work - 1
        outside = (left == 0) | ((left > 0) & (left < size)) | (place > MEMORY_MASK - RECORD_SLOT)
        full = (c.drawn != 0) & (c.counter == STATE_LIMIT - 1)
        full = full | ((w.note_room != 0) & (w.note_count == w.note_room))
        if (size == 0) | outside | full | (w.work < 0):
            result = const(i32, OTHER)
        elif is_one_of(op, DRAWS):
            result = call(execute_draw, context, record, op)
        elif is_one_of(op, SYSTEM):
            result = call(execute_system, context, record, op)
        elif size > 1:
            call(apply_state, w.binner, op, record)
        if result != OTHER:
            w.here = here + size
    return result
