"""Reads the regular part of a rendering list natively: tiles become operations for the workers.

Nearly all of a rendering list is "coordinates, sub-list, store", hundreds of times. This kernel
turns those records into the operation arrays of `fragment.tile_job` and stops at everything else,
which `rendering.py` then executes in Python. State records and sub-lists are only stepped over
here: the pieces of list they lie in are walked when the frame is drawn.

Source: hardware reference 3.3.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import TileBuffer
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import StoreGeneral
from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    build,
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
from vc4lab.v3d.fragment.tile_context import TILE_SIZE
from vc4lab.v3d.fragment.tile_job import (
    OP_CLEAR_COLOUR,
    OP_CLEAR_ZS,
    OP_DRAW_PIECES,
    OP_LOAD,
    OP_STORE,
    OP_TILE,
    TileOp,
)
from vc4lab.v3d.lists.render_state import STATE_RECORD_BYTES

OTHER, FULL, FRAME_END, TILE_AGAIN, MISPLACED, EXHAUSTED = range(6)
"""Why the kernel stopped: a record for Python (or the end address) · an array is full · the last
store of a frame was executed · a tile comes a second time · a store without tile coordinates ·
the budget ran out."""

BUDGET = 1 << 22
"""Records one call may read."""

OPS_PER_RECORD = 8
"""Room that must be left in the operation array before a record is executed."""

FRAME_SURFACE = 0
"""Number of the surface of record 113; others are numbered as they are met."""

MAX_SURFACES = 64
MAX_TILES = 1 << 16

COORDINATES, SUB_LIST, STORE, STORE_END, STORE_GENERAL, LOAD_GENERAL = 115, 17, 24, 25, 28, 29

_STORED = (TileBuffer.COLOUR, TileBuffer.ZS, TileBuffer.Z)
_SURFACE_BITS = (
    StoreGeneral.buffer.mask
    | StoreGeneral.tiling.mask
    | StoreGeneral.format.mask
    | StoreGeneral.address.mask
)
"""The bits of records 28 and 29 that say which surface is meant."""


class CollectContext(Struct):
    """Where the kernel reads, what it knows of the tile buffer, and the arrays it fills."""

    memory = ptr
    here = i32  # guest address of the next record
    end = i32
    tile_width = i32
    tile_height = i32
    piece_start = i32
    has_coordinates = i32
    column = i32
    row = i32
    # record 114 as it stands, and what the tile buffer was cleared to by the last store
    colour = i32
    zs = i32
    buffer_colour = i32
    buffer_zs = i32
    fresh = i32  # the tile buffer holds just the clear values
    chain_open = i32  # operations of the current task were emitted
    first_piece = i32  # of the current task
    load_count = i32
    loads = ptr  # i64 payloads of pending loads
    ops = ptr
    op_count = i32
    op_capacity = i32
    chains = ptr
    chain_count = i32
    pieces = ptr  # i32 start addresses
    piece_ends = ptr
    piece_count = i32
    piece_capacity = i32
    surfaces = ptr  # i64 masked payload each
    surface_count = i32
    stored = ptr  # one byte a tile: stored in this frame
    tasks = i32  # stores of anything since the arrays were emptied


MAX_LOADS = 8


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
    found = const(i32, -1)
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


@lru_cache(maxsize=1)
def _native() -> NativeFunction:
    return build("collector", {"collect": collect}, float_mode="default", key="collector")[
        "collect"
    ]


class Collector:
    """The native arrays of the frame being collected, and the kernel that fills them."""

    def __init__(self, memory_base: int) -> None:
        context: Any = CollectContext()
        self.context = context
        context.memory = memory_base
        self._stored = (ctypes.c_char * MAX_TILES)()
        self._surfaces = (ctypes.c_uint64 * MAX_SURFACES)()
        self._loads = (ctypes.c_int32 * MAX_LOADS)()
        context.stored = ctypes.addressof(self._stored)
        context.surfaces = ctypes.addressof(self._surfaces)
        context.loads = ctypes.addressof(self._loads)
        context.fresh = 1
        context.tile_width = context.tile_height = TILE_SIZE
        context.surface_count = 1
        self._ops: Any = None
        self._chains: Any = None
        self._pieces: Any = None
        self._ends: Any = None
        self._grow_ops(1024)
        self._grow_pieces(256)

    def begin(self, address: int) -> None:
        """A list starts at `address`: a new piece begins there."""
        self.context.piece_start = _signed(address)

    def run(self, address: int, end: int) -> int:
        """Executes records from `address`; returns the reason it stopped at `self.address`."""
        context = self.context
        context.here, context.end = _signed(address), _signed(end)
        native = _native()
        while (reason := native(context.address)) == FULL:
            self._grow_ops(2 * context.op_capacity)
            self._grow_pieces(2 * context.piece_capacity)
        return int(reason)

    @property
    def address(self) -> int:
        """Guest address of the next record."""
        return int(self.context.here) & 0xFFFFFFFF

    def close_piece(self, end: int) -> None:
        """The list jumps: the piece up to `end` belongs to the current task, too."""
        context = self.context
        if context.piece_start == _signed(end):
            return
        if context.piece_count + 2 > context.piece_capacity:
            self._grow_pieces(2 * context.piece_capacity)
        self._pieces[context.piece_count] = context.piece_start
        self._ends[context.piece_count] = _signed(end)
        context.piece_count += 1

    def set_clear(self, colour: int, zs: int) -> None:
        """Record 114: RGBA8888, and Z << 8 | stencil."""
        self.context.colour, self.context.zs = _signed(colour), _signed(zs)

    def set_tile_size(self, width: int, height: int) -> None:
        """Record 113: pixels of a tile."""
        self.context.tile_width, self.context.tile_height = width, height

    def arrays(self) -> tuple[Any, Any, int]:
        """The operations, the first operation of each chain (and their number), the chains."""
        count = self.context.chain_count
        self._chains[count] = self.context.op_count
        return self._ops, self._chains, count

    @property
    def surfaces(self) -> list[int]:
        """Masked payloads of the surfaces; number 0 stands for that of record 113."""
        return list(self._surfaces[: self.context.surface_count])

    def pieces(self) -> list[tuple[int, int]]:
        """(start, end) of every piece of list, in order."""
        count = self.context.piece_count
        return list(zip(self._pieces[:count], self._ends[:count], strict=True))

    def reset(self) -> None:
        """The frame was drawn; the arrays are empty again, the tile buffer stays as it is."""
        context = self.context
        context.op_count = context.chain_count = context.piece_count = context.tasks = 0
        context.first_piece = 0
        context.surface_count = 1
        ctypes.memset(self._stored, 0, MAX_TILES)
        if not context.fresh:
            context.chain_open = 0
            self._chains[0] = 0
            context.chain_count = 1

    def _grow_ops(self, capacity: int) -> None:
        old, chains = self._ops, self._chains
        self._ops = (ctypes.c_char * (capacity * TileOp.size))()
        self._chains = (ctypes.c_int32 * (capacity + 1))()
        if old is not None:
            ctypes.memmove(self._ops, old, ctypes.sizeof(old))
            ctypes.memmove(self._chains, chains, ctypes.sizeof(chains))
        self.context.ops = ctypes.addressof(self._ops)
        self.context.chains = ctypes.addressof(self._chains)
        self.context.op_capacity = capacity

    def _grow_pieces(self, capacity: int) -> None:
        old, ends = self._pieces, self._ends
        self._pieces = (ctypes.c_int32 * capacity)()
        self._ends = (ctypes.c_int32 * capacity)()
        if old is not None:
            ctypes.memmove(self._pieces, old, ctypes.sizeof(old))
            ctypes.memmove(self._ends, ends, ctypes.sizeof(ends))
        self.context.pieces = ctypes.addressof(self._pieces)
        self.context.piece_ends = ctypes.addressof(self._ends)
        self.context.piece_capacity = capacity


def _signed(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
