"""Data shared between the native reader of rendering lists and its Python side."""

from __future__ import annotations

from vc4lab.records.declarations import TileRenderingMode
from vc4lab.records.payload import RENDERING
from vc4lab.records.use import ids_of
from vc4lab.simd import Array, Struct, i8, i32, ptr
from vc4lab.v3d.state.native_records import RECORD_SLOT

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
    """Where the kernel reads, what it knows of the tile buffer, and the arrays it fills."""

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
