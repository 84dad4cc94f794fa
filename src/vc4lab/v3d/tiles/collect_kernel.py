"""Reads rendering lists natively: tiles become operations for the workers.

Nearly all of a rendering list is "coordinates, sub-list, store", hundreds of times. This kernel
turns those records into the operation arrays of `job.py`. What it cannot do alone is a request
(`collect_context.py`), which `../cle/rendering.py` serves. State records and tile lists are only
stepped over here: the pieces of list they lie in are walked when the frame is drawn.

Source: hardware reference 3.3.
"""

from __future__ import annotations

from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import (
    BranchToSublist,
    ClearColours,
    TileCoordinates,
    TileRenderingMode,
    WaitSemaphore,
)
from vc4lab.records.payload import Ignored, State
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.records.use import ids_of
from vc4lab.simd import Value, const, i8, i16, i32, i64, load, select, staged, store, table, vec
from vc4lab.v3d.state.native_records import is_one_of, note_record, whole_record
from vc4lab.v3d.tiles import collect_context as cc
from vc4lab.v3d.tiles.collect_context import CollectContext
from vc4lab.v3d.tiles.collect_transfers import LOADS, STORES, execute_load, execute_store

COORDINATES, SUB_LIST, WAIT = TileCoordinates.id, BranchToSublist.id, WaitSemaphore.id
CLEAR_COLOURS, MODE = ClearColours.id, TileRenderingMode.id
_OWN = (COORDINATES, SUB_LIST, WAIT, CLEAR_COLOURS, MODE, *STORES, *LOADS)
_WALKED_LATER = ids_of(Ignored, State)
assert {*_OWN, *_WALKED_LATER} == set(cc.COLLECTED), "a record without native code"


@staged
def _clear_colours(c: CollectContext, payload: Value) -> None:
    """Record 114; Z and stencil make one word."""
    c.colour = load(i32, payload + ClearColours.colour.lo // 8)
    c.colour_high = load(i32, payload + ClearColours.colour_high.lo // 8)
    stencil = load(i8, payload + ClearColours.stencil.lo // 8).zext(i32)
    c.zs = (load(i32, payload + ClearColours.z.lo // 8) << 8) | stencil
    c.mask = load(i8, payload + ClearColours.vg_mask.lo // 8).zext(i32)


@staged
def _mode_in_force(c: CollectContext, payload: Value) -> Value:
    """Whether a record 113 says what the last one said, and Python need not see it."""
    mode = c.mode
    last = cc.MODE_BYTES - 2
    different = load(i64, payload) ^ load(i64, mode)
    rest = load(i16, payload + last) ^ load(i16, mode + last)
    return (c.mode_known != 0) & (different == 0) & (rest == 0)


@staged
def _empty(c: CollectContext) -> None:
    """Empties the arrays after a frame; the tile buffer and loads that wait stay as they are.

    Pieces are counted anew already: there may be one, of a list that begins with a jump.
    """
    c.is_drawn = c.tile_list = c.op_count = c.chain_count = 0
    c.frame = c.frame + 1
    if c.frame > cc.LAST_FRAME:
        c.frame = 1
        for tile in range(const(i32, cc.MAX_TILES // 64)):
            store(c.stored + tile * 64, const(vec(i8, 64), 0))
    if c.fresh == 0:
        c.chain_count = 1
        store(c.chains, const(i32, 0))


@staged
def collect(context: Value, recording: bool) -> Value:
    """Executes records from `here` on; returns why it stopped, at `record_at`.

    `recording`: it notes what it executes.
    """
    c = CollectContext.at(context)
    if c.is_drawn != 0:
        _empty(c)
    sizes = table(i8, [RECORD_SIZES[op] if op in cc.COLLECTED else 0 for op in range(256)])
    reason = const(i32, -1)
    budget = const(i32, cc.BUDGET)
    address: Value = c.here
    while reason < 0:
        address = c.here
        pointer = whole_record(c.memory, address, c.edge)
        op = load(i8, pointer).zext(i32)
        size = load(i8, sizes + op).zext(i32)
        budget = budget - 1
        room = (c.op_count + cc.OPS_PER_RECORD + cc.MAX_LOADS < c.op_capacity) & (
            c.piece_count + 1 < c.piece_capacity
        )
        is_store = is_one_of(op, STORES)
        if (size == 0) | (c.end - address).ult(size):
            reason = const(i32, cc.OTHER)
        elif budget <= 0:
            reason = const(i32, cc.EXHAUSTED)
        elif op == COORDINATES:
            c.column = load(i8, pointer + 1).zext(i32)
            c.row = load(i8, pointer + 2).zext(i32)
            c.has_coordinates = 1
        elif op == CLEAR_COLOURS:
            _clear_colours(c, pointer + 1)
        elif op == WAIT:
            if c.increments > 0:
                c.increments = c.increments - 1
            else:
                reason = const(i32, cc.STALL)
        elif op == MODE:
            reason = select(_mode_in_force(c, pointer + 1), reason, const(i32, cc.NEW_MODE))
        elif op == SUB_LIST:
            if c.has_coordinates == 0:
                reason = const(i32, cc.CALL)
            elif c.tile_list == 0:
                c.tile_list = load(i32, pointer + 1)
                c.tile_list_at = address
        elif is_store & ~room:
            reason = const(i32, cc.FULL)
        elif is_store & (c.has_coordinates == 0):
            reason = const(i32, cc.MISPLACED)
        elif is_store:
            reason = execute_store(c, address, pointer, op, size)
        elif is_one_of(op, LOADS):
            reason = execute_load(c, pointer, op)
        elif op == PrimitiveListFormat.id:
            c.list_format = load(i8, pointer + 1).zext(i32)
        if (reason < 0) | (reason >= cc.FRAME_END):
            if recording:
                note_record(c, address, op)
            c.here = address + size
    c.record_at = address
    return reason
