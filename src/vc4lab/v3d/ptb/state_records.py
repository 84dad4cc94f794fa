"""State records of a binning list, natively: into the state cache, many in one call.

Source: hardware reference 3.2, 3.9.
"""

from __future__ import annotations

from vc4lab.records.declarations import ClipperXyScaling, ClipperZScale
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
from vc4lab.records.use import STATE_RECORD_BYTES, ids_of
from vc4lab.simd import (
    Value,
    call,
    const,
    f32,
    fabs_,
    i8,
    i32,
    kernel,
    load,
    min_,
    ptr,
    select,
    staged,
    store,
    table,
    vec,
)
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import BinnerContext
from vc4lab.v3d.state.native_records import RECORD_SLOT, is_one_of
from vc4lab.v3d.state.render_state import apply_record_native, rht_boundary, unlimited


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
    """What the binner itself takes from a record of the state cache."""
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
