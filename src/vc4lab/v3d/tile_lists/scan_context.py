"""Data shared between the native scan of the tile lists and Python: draws, where, with which vertices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vc4lab.records.states import RenderState
from vc4lab.simd import Array, Struct, i32, ptr
from vc4lab.v3d.state.render_state import STATE_BYTES, STATE_WORDS, state_from_bytes

FNV_START, FNV_PRIME = 0x811C9DC5 - (1 << 32), 0x01000193
"""Constants of the hash of 32-bit words, FNV-1a; the start as a signed word."""
MAX_VERTICES = 1 << 16
"""Vertex indices in tile lists have 16 bits; one byte per vertex marks the used ones."""

TILE_BUDGET = 1 << 23
"""Records, primitives and branches one tile may hold."""
FRAME_BUDGET = 1 << 27
"""Records, primitives and branches of all tiles of a frame together."""
BUDGET_AFTER_ENDLESS = 1 << 14
"""Limit of a tile and a list in a frame that has an endless list already: it may have many."""

DONE, NEED_DRAWS, NEED_SEGMENTS, NEED_ERRORS, NEED_EXPANSION, NEED_FORMATS, NEED_NOTES = range(7)
"""Results of the native scan; after a NEED_ the array is grown (or the primitive record at
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
    """The place where a tile list was given up."""

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


REASONS = {
    ILLEGAL_RECORD: "a record that is not allowed in a tile list",
    TOO_DEEP: "sub-lists nested deeper than the hardware's two levels",
    ENDLESS: "no end of the list",
    BAD_FORMAT: "primitives in a list format that does not exist or is not supported",
    HALTED: "a halt inside a tile list",
    TOO_MANY: "more primitives in records of their own (32, 33, 41, 42) than can be drawn",
}


@dataclass(frozen=True)
class DrawUse:
    """One distinct render state of the frame.

    `first`..`last` are the vertex indices used (first > last: none, as in x/y lists), `used` is the
    host address of 65536 bytes, non-zero where a vertex is used; valid as long as the result lives.
    """

    state: RenderState
    first: int
    last: int
    used: int
    primitives: int

    @property
    def vertices(self) -> int:
        """How many are used."""
        size = self.last - self.first + 1
        return size - ctypes.string_at(self.used + self.first, size).count(0) if size > 0 else 0


@dataclass(frozen=True)
class ScanError:
    """A tile list that was given up: position in the input, guest address, byte found, reason."""

    tile: int
    address: int
    byte: int
    reason: int

    @property
    def text(self) -> str:
        """The reason in words."""
        return REASONS.get(self.reason, "unknown")


@dataclass
class ScanResult:
    """The contents of a frame's tile lists; valid until the next scan of the same scanner.

    `draw_entries` is the host address of `DrawEntry` structs, one for each distinct render state.
    `segments` is the host address of `Segment` structs (tile, draw, address, primitives: 4 i32);
    those of tile k are `tile_first[k] .. tile_first[k+1]-1`, where `tile_offsets` is the host
    address of that i32 array. `entries` counts the primitives of all tiles.
    """

    context: ScanContext = field(repr=False)
    draw_entries: int = 0
    draw_count: int = 0
    segments: int = 0
    tile_offsets: int = 0
    entries: int = 0
    errors: Sequence[ScanError] = ()
    keep: Any = field(repr=False, default=None)

    @property
    def segment_count(self) -> int:
        """Segments in all tiles."""
        return int(self.context.segment_count)

    @property
    def draws(self) -> list[DrawUse]:
        """The distinct render states, as Python sees them."""
        return [self.draw(k) for k in range(self.draw_count)]

    def first_records(self) -> dict[int, int]:
        """List the first primitives of each draw: a list in memory, or a record made a list."""
        c, size = self.context, Expansion.size
        entries = range(c.expansions, c.expansions + size * (c.expansion_mask + 1), size)
        made = [Expansion.python.from_address(place) for place in entries]
        records = {int(one.start): one.where & 0xFFFFFFFF for one in made if one.taken}
        expanded = [draw.state.list_format & EXPANDED for draw in self.draws]
        found: dict[int, int] = {}
        for number in range(self.segment_count):
            segment = Segment.python.from_address(self.segments + number * Segment.size)
            address = segment.list_address & 0xFFFFFFFF
            if expanded[segment.draw]:
                address = records[address]
            found.setdefault(int(segment.draw), address)
        return found

    def draw(self, number: int) -> DrawUse:
        """One of `draws`."""
        place = self.draw_entries + number * DrawEntry.size
        entry = DrawEntry.python.from_address(place)
        state = state_from_bytes(ctypes.string_at(place, STATE_BYTES))
        return DrawUse(state, entry.first, entry.last, entry.used, entry.primitives)
