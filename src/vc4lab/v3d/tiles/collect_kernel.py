"""Reads rendering lists natively: tiles become operations for the workers.

Nearly all of a rendering list is "coordinates, sub-list, store", hundreds of times. This kernel
turns those records into the operation arrays of `job.py`. What it cannot do alone is a request
(`collector.py`), which `../cle/rendering.py` serves. State records and tile lists are only
stepped over here: the pieces of list they lie in are walked when the frame is drawn.

Records 24 to 29 become loads and stores of a tile. Source: hardware reference 3.3.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.codes import TileBuffer
from vc4lab.records.control import RECORD_SIZES, ids_of
from vc4lab.records.declarations import (
    BranchToSublist,
    ClearColours,
    LoadFull,
    LoadGeneral,
    StoreFull,
    StoreGeneral,
    StoreResolved,
    StoreResolvedEnd,
    TileCoordinates,
    TileRenderingMode,
    WaitSemaphore,
)
from vc4lab.records.payload import Ignored, State
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.simd import Value, const, i1, i8, i16, i32, i64, load, select, staged, store, table, vec
from vc4lab.v3d.state.frame_mode import PART_COLOUR, PART_MASK, PART_ZS
from vc4lab.v3d.state.native_records import is_one_of, note_record, whole_record
from vc4lab.v3d.tiles import collector as cc
from vc4lab.v3d.tiles import job as tj
from vc4lab.v3d.tiles.collector import CollectContext
from vc4lab.v3d.tiles.job import TileOp

STORE, STORE_END, STORE_FULL = StoreResolved.id, StoreResolvedEnd.id, StoreFull.id
LOAD_FULL, STORE_GENERAL, LOAD_GENERAL = LoadFull.id, StoreGeneral.id, LoadGeneral.id
STORES, LOADS = (STORE, STORE_END, STORE_FULL, STORE_GENERAL), (LOAD_FULL, LOAD_GENERAL)

_STORED = (TileBuffer.COLOUR, TileBuffer.ZS, TileBuffer.Z, TileBuffer.VG_MASK)
_SURFACE_BITS = (
    StoreGeneral.buffer.mask
    | StoreGeneral.tiling.mask
    | StoreGeneral.format.mask
    | StoreGeneral.decimate.mask
    | StoreGeneral.address.mask
)
"""The bits of records 28 and 29 that say which surface is meant."""


@staged
def _emit(c: CollectContext, kind: Value | int, a: Value | int, b: Value | int) -> None:
    op = TileOp.at(c.ops + c.op_count * TileOp.size)
    op.kind = kind
    op.a = a
    op.b = b
    c.op_count = c.op_count + 1


@staged
def _surface(c: CollectContext, payload: Value) -> Value:
    """Number of the surface a load or store names; -1 if the table is full."""
    wanted = payload & _SURFACE_BITS
    found: Any = const(i32, -1)
    for k in range(1, c.surface_count):
        if load(i64, c.surfaces + k * 8) == wanted:
            found = k
    if (found < 0) & (c.surface_count < cc.MAX_SURFACES):
        found = c.surface_count
        store(c.surfaces + found * 8, wanted)
        c.surface_count = found + 1
    number: Value = found
    return number


@staged
def _open_task(c: CollectContext) -> None:
    """A fresh tile buffer begins a chain of operations of its own."""
    if c.fresh != 0:
        store(c.chains + c.chain_count * 4, c.op_count)
        c.chain_count = c.chain_count + 1
        _emit(c, tj.OP_CLEAR_COLOUR, c.buffer_colour, c.buffer_colour_high)
        _emit(c, tj.OP_CLEAR_ZS, c.buffer_zs, 0)
        if c.uses_mask != 0:
            _emit(c, tj.OP_CLEAR_MASK, c.buffer_mask, 0)


@staged
def _store(c: CollectContext, address: Value, kind: Value, a: Value, b: Value, keep: Value) -> None:
    """The end of a task: draw its pieces, do operation `kind` (-1: none), clear.

    `keep`: parts of the tile buffer that are not cleared. A surface stored with `b` != 0 is that of
    a mask that the frame does not have: zeros.
    """
    _open_task(c)
    _emit(c, tj.OP_TILE, c.column * c.tile_width, c.row * c.tile_height)
    for k in range(c.load_count):
        pending = c.loads + k * (cc.LOAD_WORDS * 4)
        _emit(c, load(i32, pending), load(i32, pending + 4), load(i32, pending + 8))
    c.load_count = 0
    if c.piece_start != address:
        store(c.pieces + c.piece_count * 4, c.piece_start)
        store(c.piece_ends + c.piece_count * 4, address)
        c.piece_count = c.piece_count + 1
    if c.piece_count > c.first_piece:
        _emit(c, tj.OP_DRAW_PIECES, c.first_piece, c.piece_count - c.first_piece)
    if kind >= 0:
        if (kind == tj.OP_STORE) & (b != 0):
            _emit(c, tj.OP_CLEAR_MASK, 0, 0)
        _emit(c, kind, a, b)
        c.tasks = c.tasks + 1
        tile = (c.row & 0xFF) * 256 + (c.column & 0xFF)
        store(c.stored + tile, c.frame.trunc(i8))
    if (keep & PART_COLOUR) == 0:
        c.buffer_colour = c.colour
        c.buffer_colour_high = c.colour_high
    if (keep & PART_ZS) == 0:
        c.buffer_zs = c.zs
    if (keep & PART_MASK) == 0:
        c.buffer_mask = c.mask
    if keep == 0:
        c.fresh = 1
    else:
        if (keep & PART_COLOUR) == 0:
            _emit(c, tj.OP_CLEAR_COLOUR, c.colour, c.colour_high)
        if (keep & PART_ZS) == 0:
            _emit(c, tj.OP_CLEAR_ZS, c.zs, 0)
        if (c.uses_mask != 0) & ((keep & PART_MASK) == 0):
            _emit(c, tj.OP_CLEAR_MASK, c.mask, 0)
        c.fresh = 0
    c.first_piece = c.piece_count
    c.has_coordinates = 0


@staged
def _payload(pointer: Value) -> Value:
    """The 48 bits of a record 28 or 29."""
    low = load(i32, pointer + 1).zext(i64)
    return low | (load(i16, pointer + 5).zext(i64) << 32)


def _parts(payload: Value, colour: int, zs: int, mask: int) -> Value:
    """Parts of the tile buffer from three bits (masks) of a 32-bit payload."""
    none = const(i32, 0)
    parts = select((payload & colour) != 0, const(i32, PART_COLOUR), none)
    parts = parts | select((payload & zs) != 0, const(i32, PART_ZS), none)
    return parts | select((payload & mask) != 0, const(i32, PART_MASK), none)


@staged
def _kept(c: CollectContext, payload: Value) -> Value:
    """Parts that a record 28 does not clear; a mask that does not exist is not kept."""
    clears = (StoreGeneral.disable_colour_clear, StoreGeneral.disable_zs_clear)
    keep = _parts(payload, clears[0].mask, clears[1].mask, StoreGeneral.disable_vg_mask_clear.mask)
    if c.uses_mask == 0:
        keep = keep & (PART_COLOUR | PART_ZS)
    return keep


@staged
def _dumped(c: CollectContext, payload: Value, record: Any) -> Value:
    """Parts that a full dump or load of record 28 or 29 means."""
    disabled = _parts(
        payload, record.disable_colour.mask, record.disable_zs.mask, record.disable_vg_mask.mask
    )
    parts = disabled ^ (PART_COLOUR | PART_ZS | PART_MASK)
    if c.uses_mask == 0:
        parts = parts & (PART_COLOUR | PART_ZS)
    return parts


@staged
def execute_store(c: CollectContext, address: Value, pointer: Value, op: Value, size: Value) -> Value:
    """The tile's pieces of list are drawn and it is stored; why Python is asked, or -1."""
    reason = const(i32, -1)
    tile = (c.row & 0xFF) * 256 + (c.column & 0xFF)
    again = (load(i8, c.stored + tile).zext(i32) == c.frame) & (c.fresh != 0)
    kind, a, b = const(i32, -1), const(i32, 0), const(i32, 0)
    keep, last = const(i32, 0), const(i1, False)
    if op == STORE_GENERAL:
        payload = _payload(pointer)
        low = payload.trunc(i32)
        buffer = low & StoreGeneral.buffer.mask
        keep = _kept(c, low)
        last = (low & StoreGeneral.last_tile.mask) != 0
        known = const(i1, False)
        for stored in _STORED:
            known = known | (buffer == int(stored))
        if buffer == int(TileBuffer.FULL):
            kind, b = const(i32, tj.OP_STORE_FULL), _dumped(c, low, StoreGeneral)
            a = (payload >> 16).trunc(i32) & -16
        elif known:
            kind, a = const(i32, tj.OP_STORE), _surface(c, payload)
            b = ((buffer == int(TileBuffer.VG_MASK)) & (c.uses_mask == 0)).zext(i32)
        if (buffer > int(TileBuffer.FULL)) | (a < 0) & known:
            reason = const(i32, cc.UNKNOWN_STORE)
            c.has_coordinates = 0  # the tile is drawn nowhere
    elif op == STORE_FULL:
        word = load(i32, pointer + 1)
        kind, a = const(i32, tj.OP_STORE_FULL), word & ~15
        b = _parts(word, StoreFull.disable_colour.mask, StoreFull.disable_zs.mask, 0)
        b = b ^ (PART_COLOUR | PART_ZS)
        last = (word & StoreFull.last_tile.mask) != 0
        if (word & StoreFull.disable_clear.mask) != 0:
            keep = const(i32, PART_COLOUR | PART_ZS | PART_MASK)
    else:
        kind, a = const(i32, tj.OP_STORE), const(i32, cc.FRAME_SURFACE)
        last = op == STORE_END
    nothing = kind < 0
    if (reason < 0) & again & ~nothing:
        reason = const(i32, cc.TILE_AGAIN)
    if reason < 0:
        idle = nothing & (c.fresh != 0) & (c.load_count == 0)
        keep_both = (keep & (PART_COLOUR | PART_ZS)) == (PART_COLOUR | PART_ZS)
        if idle & (keep == 0):
            _idle_store(c, address)
        elif idle & keep_both & (c.piece_count == c.first_piece):
            c.has_coordinates = 0
        else:
            _store(c, address, kind, a, b, keep)
        c.piece_start = address + size
        if last:
            reason = const(i32, cc.FRAME_END)
    return reason


@staged
def _idle_store(c: CollectContext, address: Value) -> None:
    """A store of nothing on a fresh tile buffer: only the new clear values count."""
    if c.piece_start != address:
        store(c.pieces + c.piece_count * 4, c.piece_start)
        store(c.piece_ends + c.piece_count * 4, address)
        c.piece_count = c.piece_count + 1
    c.first_piece = c.piece_count
    c.buffer_colour = c.colour
    c.buffer_colour_high = c.colour_high
    c.buffer_zs = c.zs
    c.buffer_mask = c.mask
    c.has_coordinates = 0


@staged
def execute_load(c: CollectContext, pointer: Value, op: Value) -> Value:
    """Notes a load until the tile coordinates it belongs to are stored."""
    reason = const(i32, -1)
    kind, a, b = const(i32, tj.OP_LOAD_FULL), const(i32, 0), const(i32, 0)
    if op == LOAD_FULL:
        word = load(i32, pointer + 1)
        a = word & ~15
        b = _parts(word, StoreFull.disable_colour.mask, StoreFull.disable_zs.mask, 0)
        b = b ^ (PART_COLOUR | PART_ZS)
    else:
        payload = _payload(pointer)
        buffer = payload.trunc(i32) & StoreGeneral.buffer.mask
        if buffer == int(TileBuffer.FULL):
            b = _dumped(c, payload.trunc(i32), StoreGeneral)
            a = (payload >> 16).trunc(i32) & -16
        elif buffer == int(TileBuffer.NONE):
            kind = const(i32, -1)
        else:
            kind = const(i32, tj.OP_LOAD)
            unknown = (buffer > int(TileBuffer.FULL)) | (buffer == int(TileBuffer.Z))
            a = const(i32, -1)
            if ~unknown:
                a = _surface(c, payload)
    if (kind >= 0) & ((a == -1) | (c.load_count >= cc.MAX_LOADS)):
        reason = const(i32, cc.UNKNOWN_LOAD)
    elif kind >= 0:
        pending = c.loads + c.load_count * (cc.LOAD_WORDS * 4)
        store(pending, kind)
        store(pending + 4, a)
        store(pending + 8, b)
        c.load_count = c.load_count + 1
    return reason


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
