"""What the tile lists of a frame hold: which draws there are, where, and with which vertices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vc4lab.records.states import RenderState
from vc4lab.v3d.state.render_state import STATE_BYTES, state_from_bytes
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, DrawEntry, Expansion, Segment

REASONS = {
    sc.ILLEGAL_RECORD: "a record that is not allowed in a tile list",
    sc.TOO_DEEP: "sub-lists nested deeper than the hardware's two levels",
    sc.ENDLESS: "no end of the list",
    sc.BAD_FORMAT: "primitives in a list format that does not exist or is not supported",
    sc.HALTED: "a halt inside a tile list",
    sc.TOO_MANY: "more primitives in records of their own (32, 33, 41, 42) than can be drawn",
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
    """What the tile lists of a frame contain; valid until the next scan of the same scanner.

    `draw_entries` is the host address of `DrawEntry` structs, one for each distinct render state.
    `segments` is the host address of `Segment` structs (tile, draw, address, primitives: 4 i32);
    those of tile k are `tile_first[k] .. tile_first[k+1]-1`, where `tile_offsets` is the host
    address of that i32 array. `entries` counts the primitives of all tiles.
    """

    context: sc.ScanContext = field(repr=False)
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
        """Where the primitives of each draw begin: a list in memory, or a record made a list."""
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
