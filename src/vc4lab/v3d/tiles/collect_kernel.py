"""Reads the regular part of a rendering list natively: tiles become operations for the workers.

Nearly all of a rendering list is "coordinates, sub-list, store", hundreds of times. This kernel
turns those records into the operation arrays of `job.py` and stops at everything else, which
`../cle/rendering.py` then executes in Python. State records and sub-lists are only stepped over
here: the pieces of list they lie in are walked when the frame is drawn.

Source: hardware reference 3.3.
"""

from __future__ import annotations

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import (
    BranchToSublist,
    ClearColours,
    PrimitiveListFormat,
    TileCoordinates,
    TileRenderingMode,
    WaitSemaphore,
)
from vc4lab.records.payload import Ignored, State
from vc4lab.records.use import records_of
from vc4lab.simd import (
    Value,
    const,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
)
from vc4lab.v3d.state.native_records import is_one_of, size_among
from vc4lab.v3d.tiles.collect_context import (
    BUDGET,
    COLLECTED,
    EXHAUSTED,
    FULL,
    MAX_LOADS,
    MISPLACED,
    MODE_BYTES,
    OPS_PER_RECORD,
    OTHER,
    CollectContext,
)
from vc4lab.v3d.tiles.collect_transfers import LOADS, STORES, execute_load, execute_store

COORDINATES, SUB_LIST, WAIT = TileCoordinates.id, BranchToSublist.id, WaitSemaphore.id
CLEAR_COLOURS, MODE = ClearColours.id, TileRenderingMode.id
SKIPPED = {kind.id: kind.size for kind in records_of(Ignored, State)}
"""Records that are walked later."""
_OWN = (COORDINATES, SUB_LIST, WAIT, CLEAR_COLOURS, MODE, *STORES, *LOADS)
assert {*_OWN, *SKIPPED} == set(COLLECTED), "a record without native code"


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
    last = MODE_BYTES - 2
    different = load(i64, payload) ^ load(i64, mode)
    rest = load(i16, payload + last) ^ load(i16, mode + last)
    return (c.mode_known != 0) & (different == 0) & (rest == 0)


@kernel(args=(ptr,), returns=i32)
def collect(context: Value) -> Value:
    """Executes records until one that is not for this kernel; returns why it stopped."""
    c = CollectContext.at(context)
    reason = const(i32, -1)
    budget = const(i32, BUDGET)
    while reason < 0:
        address = c.here
        copied = c.record != 0
        pointer = select(copied, c.record, c.memory + (address & MEMORY_MASK).zext(i64))
        op = load(i8, pointer).zext(i32)
        budget = budget - 1
        room = (c.op_count + OPS_PER_RECORD + MAX_LOADS < c.op_capacity) & (
            c.piece_count + 1 < c.piece_capacity
        )
        left = c.end - address
        whole = (left < 0) | (left >= RECORD_SIZES[CLEAR_COLOURS])
        whole = whole & ((address & MEMORY_MASK) <= MEMORY_MASK - RECORD_SIZES[CLEAR_COLOURS])
        whole = whole | copied
        is_store = is_one_of(op, STORES)
        if address == c.end:
            reason = const(i32, OTHER)
        elif budget <= 0:
            reason = const(i32, EXHAUSTED)
        elif op == COORDINATES:
            c.column = load(i8, pointer + 1).zext(i32)
            c.row = load(i8, pointer + 2).zext(i32)
            c.has_coordinates = 1
            c.here = address + RECORD_SIZES[COORDINATES]
        elif (op == CLEAR_COLOURS) & whole:
            _clear_colours(c, pointer + 1)
            c.here = address + RECORD_SIZES[CLEAR_COLOURS]
        elif (op == WAIT) & (c.increments > 0):
            c.increments = c.increments - 1
            c.here = address + RECORD_SIZES[WAIT]
        elif (op == MODE) & whole & _mode_in_force(c, pointer + 1):
            c.here = address + RECORD_SIZES[MODE]
        elif (op == SUB_LIST) & (c.has_coordinates != 0):
            if c.tile_list == 0:
                c.tile_list = load(i32, pointer + 1)
                c.tile_list_at = address
            c.here = address + RECORD_SIZES[SUB_LIST]
        elif is_store & ~room:
            reason = const(i32, FULL)
        elif is_store & (c.has_coordinates == 0):
            reason = const(i32, MISPLACED)
        elif is_store:
            reason = execute_store(c, address, pointer, op)
        elif is_one_of(op, LOADS):
            reason = execute_load(c, address, pointer, op)
        elif size_among(op, SKIPPED) != 0:
            if op == PrimitiveListFormat.id:
                c.list_format = load(i8, pointer + 1).zext(i32)
            c.here = address + size_among(op, SKIPPED)
        else:
            reason = const(i32, OTHER)
    return reason
