"""Executes a binning list: state records, draws, begin and end, in one place.

Where native code needs Python (a program that is not compiled, a message, an address named for the
first time) it returns a request (`binning_context.py`) and executes the record again. Records of
other kinds and the end of the list are left to the executor. Source: hardware reference 3.2, 3.4,
3.7.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.control import RECORD_SIZES, ids_of
from vc4lab.records.declarations import (
    Flush,
    FlushAllState,
    IncrementSemaphore,
    IndexedPrimitives,
    StartTileBinning,
    TileBinningMode,
    VertexArrayPrimitives,
)
from vc4lab.records.payload import BINNING, BinnerState, Ignored, State
from vc4lab.simd import Value, call, const, i8, i32, i64, kernel, load, ptr, select, staged, table
from vc4lab.v3d.checks.hints import LIST_ALIGNMENT, RECORD_ALIGNMENT
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.binning_context import BinningContext, DrawMark, note_mode
from vc4lab.v3d.cle.draw_kernel import execute_draw, report
from vc4lab.v3d.ptb.context import DONE, BinnerContext
from vc4lab.v3d.ptb.state_records import apply_state, configure, finish_all
from vc4lab.v3d.state.native_records import is_one_of, note_record, whole_record
from vc4lab.v3d.vertex.shader_lookup import field, is_named

_MODE = TileBinningMode


@staged
def _configure(w: BinningContext, c: BinnerContext, record: Value) -> Value:
    """Record 112."""
    payload = record + 1
    address, state = field(payload, _MODE.address), field(payload, _MODE.state_address)
    tiles = field(payload, _MODE.tiles_x) * field(payload, _MODE.tiles_y)
    aligned = ((address & (LIST_ALIGNMENT - 1)) | (state & (RECORD_ALIGNMENT - 1))) == 0
    known = aligned & is_named(w, address, const(i64, 1)) & is_named(w, state, const(i64, 1))
    known = known & (tiles != 0)
    known = known & ((field(payload, _MODE.auto_initialise) != 0) | (w.checks_state == 0))
    asked = (w.answers & bc.NAMED) != 0
    result = const(i32, bc.GOES_ON)
    if (w.events & (bc.PLACED | bc.CONFIGURED)) != 0:
        result = const(i32, bc.PAUSED)
    elif ~known & ~asked:
        result = const(i32, bc.NAME)
    elif (c.tiles == 0) | (tiles > c.tile_room):
        w.wanted = tiles
        result = const(i32, bc.MAKE_TILES)
    else:
        call(configure, w.binner, payload)
        w.configured = select(tiles != 0, const(i32, 1), const(i32, 0))
        w.ended = 0
        w.events = w.events | bc.CONFIGURED
        if (w.note_room != 0) & ~asked:
            note_mode(w, address, field(payload, _MODE.memory_size), state, tiles)
        if c.pool_missing != 0:
            w.events = w.events | bc.SHORT
            result = const(i32, bc.STOPS)
    return result


@staged
def _start(w: BinningContext, c: BinnerContext, _record: Value) -> Value:
    """Record 6."""
    w.started = 1
    w.ended = 0
    w.events = w.events | bc.BEGUN
    if c.counter == 0:  # what was set before is prefix state
        c.counter = 1
        c.drawn = 0
    result = const(i32, bc.GOES_ON)
    if w.configured == 0:
        result = report(w, bc.EARLY_START)
    return result


@staged
def _flush(w: BinningContext, c: BinnerContext, everything: Value) -> Value:
    """Record 4 or 5; Python then sees to what follows."""
    w.flushed_all = everything
    w.status = DONE
    if c.tiles != 0:
        c.primitive = 0
        w.status = call(finish_all, w.binner, everything)
    return const(i32, bc.FLUSHED)


@staged
def _flush_some(w: BinningContext, c: BinnerContext, _record: Value) -> Value:
    return _flush(w, c, const(i32, 0))


@staged
def _flush_all(w: BinningContext, c: BinnerContext, _record: Value) -> Value:
    return _flush(w, c, const(i32, 1))


@staged
def _increment(w: BinningContext, _c: BinnerContext, _record: Value) -> Value:
    w.events = w.events | bc.ARMED
    return const(i32, bc.GOES_ON)


SYSTEM: dict[int, Any] = {
    Flush.id: _flush_some,
    FlushAllState.id: _flush_all,
    StartTileBinning.id: _start,
    IncrementSemaphore.id: _increment,
    TileBinningMode.id: _configure,
}
DRAWS = (IndexedPrimitives.id, VertexArrayPrimitives.id)
_BY_KIND = ids_of(Ignored, State, BinnerState, native=BINNING)
assert {*SYSTEM, *DRAWS, *_BY_KIND} == set(bc.NATIVE_RECORDS), "a record without native code"


@kernel(args=(ptr, ptr, i32), returns=i32)
def execute_system(context: Value, record: Value, op: Value) -> Value:
    """A record of `SYSTEM` at a host address."""
    w = BinningContext.at(context)
    c = BinnerContext.at(w.binner)
    result = const(i32, bc.GOES_ON)
    for identifier, execute in SYSTEM.items():
        if op == identifier:
            result = execute(w, c, record)
    return result


@staged
def execute_noted(w: BinningContext, c: BinnerContext, record: Value, op: Value) -> Value:
    """A record of `DRAWS`, with a note of what it took."""
    mark = DrawMark(w, c)
    result = call(execute_draw, w.pointer, record, op)
    if result <= bc.INTERRUPTED:
        mark.finish(w, c, op)
    return result


@staged
def execute_list(context: Value, recording: bool, works: bool) -> Value:
    """Executes records from `here` on; returns what came of the last one it looked at.

    `here` is after it, if it was executed. Stops before a record of another kind or one cut off by
    the end of the list, when the work of one call is done or no room is left for notes.
    `recording`: it notes what it executes; `works`: it notes draws (`DrawBinned`).
    """
    w = BinningContext.at(context)
    c = BinnerContext.at(w.binner)
    sizes = table(i8, [RECORD_SIZES[op] if op in bc.NATIVE_RECORDS else 0 for op in range(256)])
    w.work = bc.WORK_PER_CALL
    result = const(i32, bc.GOES_ON)
    while result == bc.GOES_ON:
        here = w.here
        record = whole_record(w.memory, here, w.edge)
        op = load(i8, record).zext(i32)
        size = load(i8, sizes + op).zext(i32)
        left = w.end - here
        w.work = w.work - 1
        paused = (w.work < 0) | ((w.note_room != 0) & (w.note_count == w.note_room))
        if (size == 0) | (left == 0) | ((left > 0) & (left < size)):
            result = const(i32, bc.OTHER)
        elif paused:
            result = const(i32, bc.PAUSED)
        elif is_one_of(op, DRAWS):
            if works:
                result = execute_noted(w, c, record, op)
            else:
                result = call(execute_draw, context, record, op)
        elif is_one_of(op, SYSTEM):
            result = call(execute_system, context, record, op)
        elif size > 1:
            call(apply_state, w.binner, op, record)
        if result < bc.OTHER:
            if recording:
                note_record(w, here, op)
            w.here = here + size
            w.answers = 0
            if c.full != 0:
                c.full = 0
                w.events = w.events | bc.FULL
                result = select(result == bc.GOES_ON, const(i32, bc.STOPS), result)
        w.record_at = here
    return result
