"""The arrays of the frame being collected, and the calls of the kernel that fills them.

`collect_kernel.py` reads a rendering list; this is its Python side, used by `../cle/rendering.py`
for one frame after the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.records.control import ids_of
from vc4lab.records.declarations import TileRenderingMode
from vc4lab.records.payload import RENDERING
from vc4lab.records.states import TRIANGLES_16_BIT
from vc4lab.simd import Array, NativeFunction, Struct, build, i8, i32, late_kernel, ptr
from vc4lab.v3d.state.frame_mode import TILE_SIZE
from vc4lab.v3d.state.native_records import MAX_NOTES, RECORD_SLOT
from vc4lab.v3d.tiles.job import OP_LOAD, TileOp

if TYPE_CHECKING:
    from vc4lab.v3d.state.native_records import RecordNotes

OTHER, EXHAUSTED, FULL, TILE_AGAIN, MISPLACED = range(5)
"""Why the kernel stopped before a record. It is not for the kernel, cut off, or the list ends · the
budget ran out. Requests, after which the record is executed: room in the arrays · draw first, the
tile comes a second time · the message that no coordinates precede the store."""

FRAME_END, NEW_MODE, CALL, STALL, UNKNOWN_LOAD, UNKNOWN_STORE = range(5, 11)
"""Why it stopped after a record: the last store of a frame. Requests to do the rest of it: a mode
(113) that is not in force or worth a message · a sub-list that is no tile's · a wait for an
increment · a load or store that is not simulated."""

BUDGET = 1 << 22
"""Records one call may read."""

OPS_PER_RECORD = 12
"""Room that must be left in the operation array before a record is executed."""

FRAME_SURFACE = 0
"""Number of the surface of record 113; others are numbered as they are met."""

LAST_FRAME = 127
"""Frames are numbered up to here, then again from 1."""

COLLECTED = ids_of(native=RENDERING)
"""Records the kernel executes."""

MAX_SURFACES = 64
MAX_TILES = 1 << 16

LOAD_WORDS = 3
MAX_LOADS = 8
"""Loads that may wait for one Tile Coordinates record."""


MODE_BYTES = TileRenderingMode.size - 1


class CollectContext(Struct):
    """The kernel's place in the list, what it knows of the tile buffer, and the arrays it fills."""

    memory = ptr
    here = i32  # guest address of the next record
    end = i32
    record_at = i32  # the record at hand, when Python looks
    tile_width = i32
    tile_height = i32
    piece_start = i32
    has_coordinates = i32
    column = i32
    row = i32
    # record 114 as it stands, and what the tile buffer was cleared to by the last store
    colour = i32
    colour_high = i32
    zs = i32
    mask = i32
    buffer_colour = i32
    buffer_colour_high = i32
    buffer_zs = i32
    buffer_mask = i32
    uses_mask = i32  # record 113 asks for the VG mask buffer
    fresh = i32  # the tile buffer holds just the clear values
    first_piece = i32  # of the current task
    list_format = i32  # record 56
    load_count = i32
    loads = ptr  # pending loads: i32 kind, a, b of their operation each
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
    stored = ptr  # one byte a tile: the frame in which it was stored last
    frame = i32  # 1 to LAST_FRAME
    tile_list = i32  # bus address in the frame's first record 17, and where that stands
    tile_list_at = i32
    tasks = i32  # stores of anything since the arrays were emptied
    is_drawn = i32  # what the arrays hold, which are emptied before the next record
    increments = i32  # of the semaphore, by the binning thread, that no record 8 has consumed
    mode_known = i32  # record 113 as below is in force, and there is nothing to say about it
    mode = Array(i8, MODE_BYTES)
    edge = Array(i8, RECORD_SLOT)  # a record that lies across the end of memory
    executed = ptr  # where the variant that records notes the next record


assert BUDGET < MAX_NOTES, "one call notes more records than there is room for"


@cache
def _native(recording: bool) -> NativeFunction:
    where = "vc4lab.v3d.tiles.collect_kernel"
    functions = {"collect": late_kernel(where, "collect", (ptr,), i32, recording=recording)}
    key = f"collector{'-recording' * recording}"
    return build("collector", functions, float_mode="default", key=key)["collect"]


class Collector:
    """The native arrays of the frame being collected, and the kernel that fills them."""

    def __init__(self, memory_base: int) -> None:
        context = CollectContext()
        self.context = context
        self._address = context.address
        self._collect: Callable[[int], int] | None = None  # made when needed, see v3d/README.md
        context.memory = memory_base
        self._stored = (ctypes.c_char * MAX_TILES)()
        self._surfaces = (ctypes.c_uint64 * MAX_SURFACES)()
        self._loads = (ctypes.c_int32 * (LOAD_WORDS * MAX_LOADS))()
        context.stored = ctypes.addressof(self._stored)
        context.surfaces = ctypes.addressof(self._surfaces)
        context.loads = ctypes.addressof(self._loads)
        context.fresh = context.frame = 1
        context.list_format = TRIANGLES_16_BIT
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
        self.context.piece_start = address

    def run(self, address: int, end: int, notes: RecordNotes) -> int:
        """Executes records from `address` on, and notes them if that is wanted.

        Returns why it stopped (the constants above).
        """
        context = self.context
        context.here, context.end = address, end  # members take the low 32 bits
        if notes.any_listener.present:
            return notes.run(1, context, _native(True).call)
        collect = self._collect
        if collect is None:
            collect = self._collect = _native(False).call
        return collect(self._address)

    def grow(self) -> None:
        """Twice the room for operations and pieces."""
        self._grow_ops(2 * self.context.op_capacity)
        self._grow_pieces(2 * self.context.piece_capacity)

    def close_piece(self, end: int) -> None:
        """The list jumps: the piece up to `end` belongs to the current task, too."""
        context = self.context
        if context.piece_start == signed32(end):
            return
        if context.piece_count + 2 > context.piece_capacity:
            self._grow_pieces(2 * context.piece_capacity)
        self._pieces[context.piece_count] = context.piece_start
        self._ends[context.piece_count] = signed32(end)
        context.piece_count += 1

    def set_mode(self, payload: bytes, tile: tuple[int, int], *, uses_mask: bool, quiet: bool) -> None:
        """Record 113: pixels of a tile, and whether there is a VG mask.

        `quiet`: there was nothing to say about it; if it comes again, nothing has changed.
        """
        context = self.context
        context.tile_width, context.tile_height = tile
        context.uses_mask, context.mode_known = int(uses_mask), int(quiet)
        context.mode = payload

    def arrays(self) -> tuple[Any, Any, int]:
        """The operations, the first operation of each chain (and their number), the chains."""
        count = self.context.chain_count
        self._chains[count] = self.context.op_count
        return self._ops, self._chains, count

    @property
    def surfaces(self) -> list[int]:
        """Masked payloads of the surfaces from number 1 on; number 0 is that of record 113."""
        count = self.context.surface_count
        return self._surfaces[1:count] if count > 1 else []

    def forget(self) -> None:
        """Empties the arrays; the tile buffer is as after a store that clears it."""
        context = self.context
        context.load_count = context.has_coordinates = 0
        context.fresh = 1
        self.reset()

    def reset(self) -> None:
        """The frame was drawn; native code empties the arrays before it goes on."""
        context = self.context
        context.is_drawn, context.tasks = 1, 0
        context.piece_count = context.first_piece = 0  # `close_piece` may be called before that
        context.surface_count = self._pending_surfaces() if context.load_count else 1

    def _pending_surfaces(self) -> int:
        """Keeps the surfaces of loads that wait for the next tile; how many there are, and one."""
        kinds = range(0, LOAD_WORDS * self.context.load_count, LOAD_WORDS)
        waiting = [place + 1 for place in kinds if self._loads[place] == OP_LOAD]
        payloads = [self._surfaces[self._loads[place]] for place in waiting]
        for number, (place, payload) in enumerate(zip(waiting, payloads, strict=True), 1):
            self._loads[place], self._surfaces[number] = number, payload
        return 1 + len(waiting)

    def _grow_ops(self, capacity: int) -> None:
        self._ops = _longer(self._ops, ctypes.c_char, capacity * TileOp.size)
        self._chains = _longer(self._chains, ctypes.c_int32, capacity + 1)
        self.context.ops = ctypes.addressof(self._ops)
        self.context.chains = ctypes.addressof(self._chains)
        self.context.op_capacity = capacity

    def _grow_pieces(self, capacity: int) -> None:
        self._pieces = _longer(self._pieces, ctypes.c_int32, capacity)
        self._ends = _longer(self._ends, ctypes.c_int32, capacity)
        self.context.pieces = ctypes.addressof(self._pieces)
        self.context.piece_ends = ctypes.addressof(self._ends)
        self.context.piece_capacity = capacity


def _longer(old: Any, kind: Any, count: int) -> Any:
    """An array of so many elements that begins with what the old one holds, if there is one."""
    array = (kind * count)()
    if old is not None:
        ctypes.memmove(array, old, ctypes.sizeof(old))
    return array
