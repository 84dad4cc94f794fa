"""Data shared between the native scan of the tile lists and its Python side."""

from __future__ import annotations

from vc4lab.simd import Array, Struct, i32, ptr
from vc4lab.v3d.state.render_state import STATE_WORDS

FNV_START, FNV_PRIME = 0x811C9DC5 - (1 << 32), 0x01000193
"""Of the hash of 32-bit words, FNV-1a; the start as a signed word."""
MAX_VERTICES = 1 << 16
"""Vertex indices in tile lists have 16 bits; one byte per vertex marks the used ones."""

TILE_BUDGET = 1 << 23
"""Records, primitives and branches one tile may hold."""
FRAME_BUDGET = 1 << 27
"""The same for all tiles of a frame together."""
BUDGET_AFTER_ENDLESS = 1 << 14
"""What a tile and a list may hold in a frame that has an endless list already: it may have many."""

DONE, NEED_DRAWS, NEED_SEGMENTS, NEED_ERRORS, NEED_EXPANSION, NEED_FORMATS, NEED_NOTES = range(7)
"""What the native scan returns; after a NEED_ the array is grown (or the primitive record at
`list_end` made a list, the scan built for all list formats, notes taken) and the scan called again.
"""

ILLEGAL_RECORD, TOO_DEEP, ENDLESS, BAD_FORMAT, HALTED, TOO_MANY = 1, 2, 3, 4, 5, 6
"""Reasons in `ScanError.reason`."""


NO_END = -1
"""In `ScanContext.ends`: the list ends with its Return (or wherever the budget does)."""


EXPANDED = 0x100
"""Set in a draw's `list_format`: its lists are not in guest memory but among the expanded ones."""


class Expansion(Struct):
    """A primitive record (32, 33, 41, 42) made a compressed list; layout of the hash table."""

    taken = i32
    where = i32  # guest address of the record
    start = i32  # of the list among the expanded ones; -1: nothing to draw
    form = i32  # its format, as record 56 has it
    after = i32  # guest address of the next record
    reserved0 = i32
    reserved1 = i32
    reserved2 = i32


class DrawEntry(Struct):
    """One distinct render state of a frame and what it uses; layout of the draws array."""

    state = Array(i32, STATE_WORDS)
    hash = i32
    first = i32  # lowest and highest vertex index used; first > last: none
    last = i32
    primitives = i32
    reserved = i32
    last_tile = i32
    used = ptr  # one byte per vertex, non-zero = used; all zero outside of first … last


class Segment(Struct):
    """One compressed list in one tile; layout of the segments array, in tile and list order."""

    tile = i32  # position in the input array, not the tile number
    draw = i32
    list_address = i32  # of the 48 or 49 record
    primitives = i32


class ErrorEntry(Struct):
    """Where a tile list was given up."""

    tile = i32
    where = i32
    byte = i32
    reason = i32


class ScanContext(Struct):
    """Inputs, outputs and resume point of the native scan."""

    memory = ptr
    tiles = ptr  # i32 list addresses
    ends = ptr  # i32 address after each piece of list; NO_END: a tile list, up to its Return
    tile_count = i32
    tile = i32  # resume point
    state = Array(i32, STATE_WORDS)
    saved_state = Array(i32, STATE_WORDS)
    draws = ptr
    draw_count = i32
    draw_capacity = i32
    table = ptr  # i32 hash table of draw number + 1
    table_mask = i32
    segments = ptr
    segment_count = i32
    segment_capacity = i32
    tile_first = ptr  # i32[tile_count + 1]: first segment of each tile
    errors = ptr
    error_count = i32
    error_capacity = i32
    sub_depth = i32  # sub-list levels still free (each tile list starts with this many)
    fresh = i32  # a new scan: the counts, the hash table and the budget are set up first
    budget = i32
    tile_budget = i32  # what one tile may hold, and one list
    list_budget = i32
    separate_format = i32  # tile lists do not see record 56 of the rendering list
    tile_format = i32  # what record 56 said last in a tile list
    entries = i32  # primitives decoded, for the counters
    list_first = i32  # vertices that the draw had used before the list scanned last
    list_last = i32
    list_end = i32  # address after the list scanned last
    list_count = i32  # its primitives
    list_status = i32  # how it ended, -1 = format unknown
    list_base = ptr  # what list addresses are relative to: guest memory, or the expanded lists
    expanded = ptr
    expansions = ptr
    expansion_mask = i32
    expansions_full = i32  # no more can be made
    executed = ptr  # where the variant that records notes the next record of a tile list
    executed_last = ptr  # no tile begins if notes go beyond
    executed_first = ptr  # i64 each: where the notes of each tile begin
