"""Records of a binning list, natively: frames begin and end, state is set, draws begin.

State goes into the state cache, many records in one call; record 112 begins a frame, records 4 and 5
end its lists; records 32 and 33 draw vertices that are shaded. Source: hardware reference 3.2, 3.4, 3.9.
"""

from __future__ import annotations

from vc4lab.memory.native import host
from vc4lab.records.codes import ListData, PrimitiveMode
from vc4lab.records.control import STATE_RECORD_BYTES, ids_of
from vc4lab.records.declarations import ClipperXyScaling, ClipperZScale, TileBinningMode
from vc4lab.records.payload import BinnerState
from vc4lab.records.states import (
    ClipWindow,
    LineWidth,
    PointSize,
    PrimitiveListFormat,
    RenderState,
    RhtXBoundary,
    ViewportOffset,
)
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import f32, i8, i32, i64, ptr
from vc4lab.simd.memory import alloca, load, store, table
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import fabs_, max_, min_
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import WORK_PER_CALL, BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import RETURN, close_list, write_state
from vc4lab.v3d.ptb.overwritten import keep
from vc4lab.v3d.state.native_records import RECORD_SLOT, is_one_of
from vc4lab.v3d.state.render_state import PRIMITIVE_TYPE, apply_record_native, rht_boundary, unlimited
from vc4lab.v3d.vertex.shader_lookup import field


@staged
def limits(c: BinnerContext) -> None:
    """Tiles primitives can touch: the frame, and the clip window once it was programmed."""
    c.first_x = 0
    c.first_y = 0
    c.last_x = c.width - 1
    c.last_y = c.height - 1
    programmed = load(i32, c.changed + pc.KIND_OF_RECORD[ClipWindow.id] * 4) != pc.NEVER_SET
    if programmed & (c.clip_used != 0):
        s = RenderState.at(c.state)
        width, height = s.clip_width, s.clip_height
        if ~unlimited(s.clip_left, width, height, c.empty_windows):
            log = c.shift_x - 4
            right = (s.clip_left + width - 1) >> log
            c.first_x = s.clip_left >> log
            c.last_x = select(width == 0, const(i32, -1), min_(right, c.last_x))
        if ~unlimited(s.clip_bottom, height, width, c.empty_windows):
            log = c.shift_y - 4
            top = (s.clip_bottom + height - 1) >> log
            c.first_y = s.clip_bottom >> log
            c.last_y = select(height == 0, const(i32, -1), min_(top, c.last_y))


@kernel(args=(ptr,), returns=None)
def update_limits(context: Value) -> None:
    """Recomputes the tiles after the clip window was reset."""
    limits(BinnerContext.at(context))


CLIPPER = ids_of(BinnerState)
assert (ClipperXyScaling.id, ClipperZScale.id) == CLIPPER, "a record without native code"


@staged
def _clipper(c: BinnerContext, identifier: int, payload: Value) -> None:
    """Two floats that stay out of the tile lists."""
    first, second = load(f32, payload), load(f32, payload + 4)
    if identifier == ClipperXyScaling.id:
        c.half_width = first
        c.half_height = second
        if c.guard_follows != 0:
            c.guard_x = fabs_(first)
            c.guard_y = fabs_(second)
    elif c.offset_first != 0:
        c.z_offset = first
        c.z_scale = second
    else:
        c.z_scale = first
        c.z_offset = second


@staged
def _cache(c: BinnerContext, op: Value, record: Value) -> None:
    """A record of the state cache: tiles that are drawn to will get it."""
    if (c.drawn != 0) & (c.counter != 0):
        c.counter = c.counter + 1
        c.drawn = 0
        if c.counter == pc.STATE_LIMIT:
            c.full = 1
    known = range(max(pc.KIND_OF_RECORD) + 1)
    slot = load(i8, table(i8, [pc.KIND_OF_RECORD.get(k, 0) for k in known]) + op).zext(i32)
    size = load(i8, table(i8, [STATE_RECORD_BYTES.get(k, 0) for k in known]) + op).zext(i32)
    store(c.changed + slot * 4, c.counter)
    store(c.record_bytes + slot * 4, size)
    store(c.records + slot * RECORD_SLOT, load(vec(i8, RECORD_SLOT), record))


@staged
def _follow(c: BinnerContext, identifier: int, payload: Value) -> None:
    """Take what the binner itself needs from a record of the state cache."""
    apply_record_native(c.state, identifier, payload)
    s = RenderState.at(c.state)
    if identifier == PrimitiveListFormat.id:
        c.format_in_force = load(i8, payload).zext(i32)
    if identifier == PointSize.id:
        c.point_size = s.point_size
    if identifier == LineWidth.id:
        c.line_width = s.line_width
    if identifier == ViewportOffset.id:
        c.viewport_x = s.viewport_x
        c.viewport_y = s.viewport_y
    if identifier in (ViewportOffset.id, RhtXBoundary.id):
        c.rht_boundary = rht_boundary(s, c.rht_moved)
    if identifier == ClipWindow.id:
        limits(c)


@kernel(args=(ptr, i32, ptr), returns=None)
def apply_state(context: Value, op: Value, record: Value) -> None:
    """Executes state record `op` at a host address, of which RECORD_SLOT bytes can be read."""
    c = BinnerContext.at(context)
    if is_one_of(op, tuple(sorted(STATE_RECORD_BYTES))):
        _cache(c, op, record)
    for identifier in sorted(STATE_RECORD_BYTES):
        if op == identifier:
            _follow(c, identifier, record + 1)
    for identifier in CLIPPER:
        if op == identifier:
            _clipper(c, identifier, record + 1)


@kernel(args=(ptr, ptr), returns=None)
def set_state(context: Value, record: Value) -> None:
    """One state record at a host address."""
    call(apply_state, context, load(i8, record).zext(i32), record)


_SMALLEST_BLOCK = 32
"""Bytes of a block of tile list memory whose code is 0; each next code doubles them."""


@kernel(args=(ptr, ptr), returns=None)
def configure(context: Value, payload: Value) -> None:
    """Record 112, whose payload is at a host address: the grid of tiles and their memory.

    There is room for its tiles. `pool_missing` says whether the memory is too small for them.
    """
    c = BinnerContext.at(context)
    m = TileBinningMode
    c.width = field(payload, m.tiles_x)
    c.height = field(payload, m.tiles_y)
    multisample = field(payload, m.multisample)
    halved = field(payload, m.double_buffer) & c.halves & (multisample ^ 1)
    halved = halved | field(payload, m.colour64)
    c.shift_x = 10 - multisample  # 64 or 32 pixels
    c.shift_y = 10 - multisample - halved
    initial = const(i32, _SMALLEST_BLOCK) << field(payload, m.initial_block)
    block = const(i32, _SMALLEST_BLOCK) << field(payload, m.block)
    c.initial_bytes = initial
    c.block_bytes = block
    base = field(payload, m.address)
    lists = (c.width * c.height).zext(i64) * initial.zext(i64)
    pool = base.zext(i64) + lists + (block - 1).zext(i64)
    pool = pool & (const(i64, 0) - block.zext(i64))
    left = field(payload, m.memory_size).zext(i64) - (pool - base.zext(i64))
    c.pool_address = pool.trunc(i32)
    c.pool_bytes = left.trunc(i32)
    c.pool_missing = select(left < 0, const(i32, 1), const(i32, 0))
    c.lists = base
    keep(c, base, lists.trunc(i32))
    c.spill_used = 0
    if c.format_told != 0:  # only a record 56 of this binning list makes it unnecessary
        c.format_in_force = -1
    _reset_tiles(c, base, initial)
    _add_counters(c)
    limits(c)


@staged
def _reset_tiles(c: BinnerContext, base: Value, initial: Value) -> None:
    """Every list begins in the fixed area: block y * width + x of `initial` bytes.

    After the last tile stands a state without a list, for what has no tile (`window.py`).
    """
    tiles = c.width * c.height
    for k in range(tiles):
        t = TileState.at(c.tiles + k * TileState.size)
        t.cursor = base + k * initial
        t.limit = base + k * initial + (initial - pc.LINK_RESERVE)
        t.seen = 0
        t.key = 0
        t.newest = 0
    none = TileState.at(c.tiles + tiles * TileState.size)
    none.newest = 0
    c.stamp = 0


@staged
def _add_counters(c: BinnerContext) -> None:
    """Add what was counted so far to the totals."""
    now, totals = c.field_ptr(pc.COUNTERS[0]), c.earlier
    for k in range(len(pc.COUNTERS)):
        total = totals + k * 8
        store(total, load(i64, total) + load(i32, now + k * 4).zext(i64))
        store(now + k * 4, const(i32, 0))


@kernel(args=(ptr, ptr, i32), returns=i32)
def finish_tile(context: Value, tile: Value, everything: Value) -> Value:
    """End a tile's list with Return (18), after all state if `everything` is not 0; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    if everything != 0:
        status = call(write_state, context, tile, 1)
    if status == pc.DONE:
        close_list(c, t)
        store(host(c.memory, t.cursor), const(i8, RETURN))
        t.cursor = t.cursor + 1
    return status


@kernel(args=(ptr, i32), returns=i32)
def finish_all(context: Value, everything: Value) -> Value:
    """End the lists of all tiles from the resume point (`primitive`) on; a status."""
    c = BinnerContext.at(context)
    status = const(i32, pc.DONE)
    k = c.primitive
    while (k < c.width * c.height) & (status == pc.DONE):
        status = call(finish_tile, context, c.tiles + k * TileState.size, everything)
        if status == pc.DONE:
            k = k + 1
    c.primitive = k
    if status == pc.DONE:  # what changed so far is prefix state of the next list
        c.counter = 0
        c.drawn = 0
        changed = c.changed
        for kind in range(len(pc.STATE_KINDS)):
            if load(i32, changed + kind * 4) != pc.NEVER_SET:
                store(changed + kind * 4, const(i32, 0))
    return status


@staged
def primitive_type(mode: Value) -> Value:
    """The type of a mode's primitives in compressed lists."""
    return load(i8, table(i8, list(PRIMITIVE_TYPE)) + mode).zext(i32)


@staged
def primitives(mode: Value, length: Value) -> Value:
    """How many primitives `length` vertices make."""
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


@kernel(args=(ptr,), returns=None)
def begin_draw(context: Value) -> None:
    """A draw whose mode, vertices and indices the context describes, before its first primitive.

    If the format of its lists is new, tiles get record 56.
    """
    c = BinnerContext.at(context)
    kind = primitive_type(c.mode)
    form = kind | ListData.INDEX16 << 4
    if c.format_in_force != form:
        record = alloca(RECORD_SLOT)
        store(record, splat(const(i8, 0)))
        store(record, const(i8, PrimitiveListFormat.id))
        store(record + 1, form.trunc(i8))
        call(apply_state, context, const(i32, PrimitiveListFormat.id), record)
    c.primitive_count = primitives(c.mode, c.length)
    c.primitive = 0
    c.part = -1
    c.tile_x = -1
    c.clip_record = 0
    c.key = ((c.counter << 2) | kind) + 1
    c.drawn = 1
    c.work = WORK_PER_CALL
