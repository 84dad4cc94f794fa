"""Reads the regular part of a rendering list natively: tiles become operations for the workers.

Nearly all of a rendering list is "coordinates, sub-list, store", hundreds of times. This kernel
turns those records into the operation arrays of `fragment.tile_job` and stops at everything else,
which `rendering.py` then executes in Python. State records and sub-lists are only stepped over
here: the pieces of list they lie in are walked when the frame is drawn.

Source: hardware reference 3.3.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import TileBuffer
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import StoreGeneral
from vc4lab.simd import (
    Value,
    const,
    i1,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.v3d.fragment.tile_job import (
    OP_CLEAR_COLOUR,
    OP_CLEAR_ZS,
    OP_DRAW_PIECES,
    OP_LOAD,
    OP_STORE,
    OP_TILE,
    TileOp,
)
from vc4lab.v3d.lists.collect_context import (
    BUDGET,
    EXHAUSTED,
    FRAME_END,
    FRAME_SURFACE,
    FULL,
    MAX_LOADS,
    MAX_SURFACES,
    MISPLACED,
    OPS_PER_RECORD,
    OTHER,
    TILE_AGAIN,
    CollectContext,
)
from vc4lab.v3d.lists.render_state import PRIMITIVE_LIST_FORMAT, STATE_RECORD_BYTES

COORDINATES, SUB_LIST, STORE, STORE_END, STORE_GENERAL, LOAD_GENERAL = 115, 17, 24, 25, 28, 29

_STORED = (TileBuffer.COLOUR, TileBuffer.ZS, TileBuffer.Z)
_SURFACE_BITS = (
    StoreGeneral.buffer.mask
    | StoreGeneral.tiling.mask
    | StoreGeneral.format.mask
    | StoreGeneral.address.mask
)
"""The bits of records 28 and 29 that say which surface is meant."""


@staged
def _emit(c: Any, kind: int, a: Any, b: Any) -> None:
    op: Any = TileOp.at(c.ops + c.op_count * TileOp.size)
    op.kind = kind
    op.a = a
    op.b = b
    c.op_count = c.op_count + 1


@staged
def _surface(c: Any, payload: Value) -> Value:
    """Number of the surface a load or store names; -1 if the table is full."""
    wanted = payload & _SURFACE_BITS
    found: Any = const(i32, -1)
    for k in range(1, c.surface_count):
        if load(i64, c.surfaces + k * 8) == wanted:
            found = k
    if (found < 0) & (c.surface_count < MAX_SURFACES):
        found = c.surface_count
        store(c.surfaces + found * 8, wanted)
        c.surface_count = found + 1
    return found


@staged
def _open_task(c: Any) -> None:
    """The operations every task begins with; a fresh tile buffer begins a chain of its own."""
    if c.chain_open == 0:
        c.chain_open = 1
        if c.fresh != 0:
            store(c.chains + c.chain_count * 4, c.op_count)
            c.chain_count = c.chain_count + 1
            _emit(c, OP_CLEAR_COLOUR, c.buffer_colour, 0)
            _emit(c, OP_CLEAR_ZS, c.buffer_zs, 0)


@staged
def _store(c: Any, address: Value, number: Value, keep_colour: Any, keep_zs: Any) -> None:
    """The end of a task: draw its pieces, store surface `number` (-1: nothing), clear."""
    _open_task(c)
    _emit(c, OP_TILE, c.column * c.tile_width, c.row * c.tile_height)
    for k in range(c.load_count):
        _emit(c, OP_LOAD, load(i32, c.loads + k * 4), 0)
    c.load_count = 0
    if c.piece_start != address:
        store(c.pieces + c.piece_count * 4, c.piece_start)
        store(c.piece_ends + c.piece_count * 4, address)
        c.piece_count = c.piece_count + 1
    if c.piece_count > c.first_piece:
        _emit(c, OP_DRAW_PIECES, c.first_piece, c.piece_count - c.first_piece)
    if number >= 0:
        _emit(c, OP_STORE, number, 0)
        c.tasks = c.tasks + 1
        tile = (c.row & 0xFF) * 256 + (c.column & 0xFF)
        store(c.stored + tile, const(i8, 1))
    both = const(i1, True)
    if keep_colour != 0:
        both = const(i1, False)
    else:
        c.buffer_colour = c.colour
    if keep_zs != 0:
        both = const(i1, False)
    else:
        c.buffer_zs = c.zs
    if both:
        c.fresh = 1
    else:
        if keep_colour == 0:
            _emit(c, OP_CLEAR_COLOUR, c.colour, 0)
        if keep_zs == 0:
            _emit(c, OP_CLEAR_ZS, c.zs, 0)
        c.fresh = 0
    c.chain_open = 0
    c.first_piece = c.piece_count
    c.has_coordinates = 0


@staged
def _skipped(op: Value) -> Value:
    """Bytes of a record that is walked later, 0 for any other."""
    size = select((op >= 1) & (op <= 3), const(i32, 1), const(i32, 0))
    for identifier, length in STATE_RECORD_BYTES.items():
        size = select(op == identifier, const(i32, length), size)
    return size


@kernel(args=(ptr,), returns=i32)
def collect(context: Value) -> Value:
    """Executes records until one that is not for this kernel; returns why it stopped."""
    c: Any = CollectContext.at(context)
    reason = const(i32, -1)
    budget = const(i32, BUDGET)
    while reason < 0:
        address = c.here
        pointer = c.memory + (address & MEMORY_MASK).zext(i64)
        op = load(i8, pointer).zext(i32)
        budget = budget - 1
        room = (c.op_count + OPS_PER_RECORD + MAX_LOADS < c.op_capacity) & (
            c.piece_count + 1 < c.piece_capacity
        )
        is_store = (op == STORE) | (op == STORE_END) | (op == STORE_GENERAL)
        if address == c.end:
            reason = const(i32, OTHER)
        elif budget <= 0:
            reason = const(i32, EXHAUSTED)
        elif op == COORDINATES:
            c.column = load(i8, pointer + 1).zext(i32)
            c.row = load(i8, pointer + 2).zext(i32)
            c.has_coordinates = 1
            c.here = address + RECORD_SIZES[COORDINATES]
        elif (op == SUB_LIST) & (c.has_coordinates != 0):
            c.here = address + RECORD_SIZES[SUB_LIST]
        elif is_store & (not_room(room)):
            reason = const(i32, FULL)
        elif is_store & (c.has_coordinates == 0):
            reason = const(i32, MISPLACED)
        elif is_store:
            reason = _execute_store(c, address, pointer, op)
        elif op == LOAD_GENERAL:
            reason = _execute_load(c, address, pointer)
        elif _skipped(op) != 0:
            if op == PRIMITIVE_LIST_FORMAT:
                c.list_format = load(i8, pointer + 1).zext(i32)
            c.here = address + _skipped(op)
        else:
            reason = const(i32, OTHER)
    return reason


@staged
def not_room(room: Value) -> Value:
    """The opposite of a staged truth."""
    return room == const(i1, False)


@staged
def _payload(pointer: Value) -> Value:
    """The 48 bits of a record 28 or 29."""
    low = load(i32, pointer + 1).zext(i64)
    return low | (load(i16, pointer + 5).zext(i64) << 32)


@staged
def _execute_store(c: Any, address: Value, pointer: Value, op: Value) -> Value:
    reason = const(i32, -1)
    tile = (c.row & 0xFF) * 256 + (c.column & 0xFF)
    again = (load(i8, c.stored + tile) != 0) & (c.fresh != 0)
    if op == STORE_GENERAL:
        payload = _payload(pointer)
        buffer = (payload & StoreGeneral.buffer.mask).trunc(i32)
        known = buffer == TileBuffer.NONE
        for stored in _STORED:
            known = known | (buffer == int(stored))
        nothing = buffer == TileBuffer.NONE
        keep_colour = (payload & StoreGeneral.disable_colour_clear.mask).trunc(i32)
        keep_zs = (payload & StoreGeneral.disable_zs_clear.mask).trunc(i32)
        last = (payload & StoreGeneral.last_tile.mask) != 0
        number = const(i32, -1)
        if not_room(nothing) & known:
            number = _surface(c, payload)
        if not_room(known) | (not_room(nothing) & (number < 0)):
            reason = const(i32, OTHER)
        elif again & not_room(nothing):
            reason = const(i32, TILE_AGAIN)
        else:
            idle = nothing & (c.fresh != 0) & (c.load_count == 0)
            if idle & (keep_colour == 0) & (keep_zs == 0):
                _idle_store(c, address)
            elif idle & (keep_colour != 0) & (keep_zs != 0) & (c.piece_count == c.first_piece):
                c.has_coordinates = 0
            else:
                _store(c, address, number, keep_colour, keep_zs)
            c.here = address + RECORD_SIZES[STORE_GENERAL]
            c.piece_start = c.here
            if last:
                reason = const(i32, FRAME_END)
    elif again:
        reason = const(i32, TILE_AGAIN)
    else:
        _store(c, address, const(i32, FRAME_SURFACE), 0, 0)
        c.here = address + RECORD_SIZES[STORE]
        c.piece_start = c.here
        if op == STORE_END:
            reason = const(i32, FRAME_END)
    return reason


@staged
def _idle_store(c: Any, address: Value) -> None:
    """A store of nothing on a fresh tile buffer: only the new clear values count."""
    if c.piece_start != address:
        store(c.pieces + c.piece_count * 4, c.piece_start)
        store(c.piece_ends + c.piece_count * 4, address)
        c.piece_count = c.piece_count + 1
    c.first_piece = c.piece_count
    c.buffer_colour = c.colour
    c.buffer_zs = c.zs
    c.has_coordinates = 0


@staged
def _execute_load(c: Any, address: Value, pointer: Value) -> Value:
    reason = const(i32, -1)
    payload = _payload(pointer)
    buffer = (payload & StoreGeneral.buffer.mask).trunc(i32)
    if (buffer == int(TileBuffer.COLOUR)) | (buffer == int(TileBuffer.ZS)):
        number = _surface(c, payload)
        if (number < 0) | (c.load_count >= MAX_LOADS):
            reason = const(i32, OTHER)
        else:
            store(c.loads + c.load_count * 4, number)
            c.load_count = c.load_count + 1
            c.here = address + RECORD_SIZES[LOAD_GENERAL]
    elif buffer == int(TileBuffer.NONE):
        c.here = address + RECORD_SIZES[LOAD_GENERAL]
    else:
        reason = const(i32, OTHER)
    return reason
