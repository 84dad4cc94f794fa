"""Reads the tile lists of a frame: which draws there are, where, and with which vertices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.simd import Function, NativeFunction, Value, build, i32, ptr
from vc4lab.v3d.geometry import scan_context as sc
from vc4lab.v3d.geometry.direct_lists import DirectLists
from vc4lab.v3d.geometry.scan_context import DrawEntry, ErrorEntry, ScanContext, Segment
from vc4lab.v3d.lists.render_state import (
    STATE_BYTES,
    TRIANGLES_16_BIT,
    RenderState,
    state_bytes,
    state_from_bytes,
)

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

REASONS = {
    sc.ILLEGAL_RECORD: "a record that is not allowed in a tile list",
    sc.TOO_DEEP: "sub-lists nested deeper than the hardware's two levels",
    sc.ENDLESS: "no end of the list",
    sc.BAD_FORMAT: "primitives in a list format that does not exist or is not supported",
    sc.HALTED: "a halt inside a tile list",
    sc.TOO_MANY: "more primitives in records of their own (32, 33, 41, 42) than can be drawn",
}


@dataclass(frozen=True)
class Pieces:
    """Host addresses of two i32 arrays: where each piece of list starts and ends."""

    starts: int
    ends: int
    count: int
    keep: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, tiles: Sequence[int | tuple[int, int]]) -> Pieces:
        """Arrays of their own; a tile list (one address) ends with its Return."""
        pairs = [(tile, sc.NO_END) if isinstance(tile, int) else tile for tile in tiles]
        columns = [[pair[side] & 0xFFFFFFFF for pair in pairs] for side in (0, 1)]
        starts, ends = ((ctypes.c_uint32 * max(len(c), 1))(*c) for c in columns)
        places = ctypes.addressof(starts), ctypes.addressof(ends)
        return cls(*places, len(pairs), (starts, ends))


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
    """What the tile lists of a frame contain.

    `draw_entries` is the host address of `DrawEntry` structs, one for each distinct render state.
    `segments` is the host address of `Segment` structs (tile, draw, address, primitives: 4 i32);
    those of tile k are `tile_first[k] .. tile_first[k+1]-1`, where `tile_offsets` is the host
    address of that i32 array. `final_bytes` is the state behind the last tile.
    """

    draw_entries: int
    draw_count: int
    segments: int
    segment_count: int
    tile_offsets: int
    errors: list[ScanError]
    entries: int
    final_bytes: bytes
    keep: Any = field(repr=False, default=None)

    @property
    def final_state(self) -> RenderState:
        """The state behind the last tile."""
        return state_from_bytes(self.final_bytes)

    @cached_property
    def draws(self) -> list[DrawUse]:
        """The distinct render states, as Python sees them."""
        return [self.draw(k) for k in range(self.draw_count)]

    def draw(self, number: int) -> DrawUse:
        """One of `draws`."""
        place = self.draw_entries + number * DrawEntry.size
        entry: Any = DrawEntry.python.from_address(place)
        state = state_from_bytes(ctypes.string_at(place, STATE_BYTES))
        return DrawUse(state, entry.first, entry.last, entry.used, entry.primitives)

    def segment_list(self) -> list[tuple[int, int, int, int]]:
        """The segments as (tile, draw, address, primitives) tuples, for tests and listings."""
        words = (ctypes.c_uint32 * (self.segment_count * 4)).from_address(self.segments)
        return [tuple(words[i : i + 4]) for i in range(0, len(words), 4)]  # type: ignore[misc]


@lru_cache(maxsize=2)
def _native_scan(all_formats: bool) -> NativeFunction:
    """The scan; nearly every frame has only indexed triangles, which compile much faster."""

    def body(context: Value) -> Any:
        from vc4lab.v3d.geometry.scan_kernel import WALKERS, make_scan

        return make_scan(tuple(WALKERS) if all_formats else (TRIANGLES_16_BIT,))(context)

    scan = Function(args=(ptr,), returns=i32, body=body)
    key = f"tile_lists {all_formats}"
    return build("tile_lists", {"scan": scan}, float_mode="default", key=key)["scan"]


_met_all_formats = False
"""Some frame had other lists than triangles with indices; the next may have them, too."""

_KEPT = 4
"""Sets of arrays that are kept for the scans to come."""


class _Arrays:
    """The growing output arrays of one scan."""

    def __init__(self, draws: int, segments: int, errors: int) -> None:
        self.context: Any = ScanContext()
        self.draws: Any = None
        self.maps: list[Any] = []
        self._pieces = 0
        self._offsets: Any = None
        self.grow_draws(draws)
        self.grow_segments(segments)
        self.grow_errors(errors)

    def empty(self) -> None:
        """Ready for another scan."""
        c = self.context
        c.tile = c.draw_count = c.segment_count = c.error_count = c.entries = 0
        ctypes.memset(self.table, 0, ctypes.sizeof(self.table))

    def offsets_for(self, pieces: int) -> int:
        """Address of room for the first segment of each piece, and of what is behind."""
        if pieces >= self._pieces:
            self._pieces = 2 * pieces + 64
            self._offsets = (ctypes.c_int32 * (self._pieces + 1))()
        return ctypes.addressof(self._offsets)

    def _grow(self, old: Any, size: int) -> Any:
        new = (ctypes.c_char * (size + 64))()
        if old is not None:
            ctypes.memmove(new, old, min(ctypes.sizeof(old), size))
        return new

    def grow_draws(self, count: int) -> None:
        """Room for `count` draws; used maps of existing draws stay where they are."""
        c = self.context
        more = count - c.draw_capacity
        self.draws = self._grow(self.draws, count * DrawEntry.size)
        maps = (ctypes.c_char * (more * sc.MAX_VERTICES + 64))()
        self.maps.append(maps)
        start = (ctypes.addressof(maps) + 63) & ~63
        for k in range(more):
            place = (c.draw_capacity + k) * DrawEntry.size + DrawEntry.offset("used")
            ctypes.c_uint64.from_buffer(self.draws, place).value = start + k * sc.MAX_VERTICES
        c.draws, c.draw_capacity = ctypes.addressof(self.draws), count
        size = 1 << (count * 2 - 1).bit_length()
        self.table = (ctypes.c_int32 * size)()
        mask = size - 1
        for k in range(c.draw_count):
            place = k * DrawEntry.size + DrawEntry.offset("hash")
            slot = ctypes.c_uint32.from_buffer(self.draws, place).value & mask
            while self.table[slot]:
                slot = (slot + 1) & mask
            self.table[slot] = k + 1
        c.table, c.table_mask = ctypes.addressof(self.table), mask

    def grow_segments(self, count: int) -> None:
        """Room for `count` segments."""
        self.segments = self._grow(getattr(self, "segments", None), count * Segment.size)
        self.context.segments = ctypes.addressof(self.segments)
        self.context.segment_capacity = count

    def grow_errors(self, count: int) -> None:
        """Room for `count` errors."""
        self.errors = self._grow(getattr(self, "errors", None), count * ErrorEntry.size)
        self.context.errors = ctypes.addressof(self.errors)
        self.context.error_capacity = count


_free: list[_Arrays] = []
_STATE_AT = ScanContext.offset("state")


class _Lease:
    """Arrays for one scan; they go back when nobody needs its result any more."""

    def __init__(self) -> None:
        try:
            self.arrays = _free.pop()
        except IndexError:
            self.arrays = _Arrays(draws=32, segments=1024, errors=16)
        self.arrays.empty()

    def __del__(self) -> None:
        if len(_free) < _KEPT:
            _free.append(self.arrays)


def scan_tile_lists(
    memory: GuestMemory,
    tiles: Sequence[int | tuple[int, int]] | Pieces,
    initial_state: RenderState | bytes,
    depth: int = 1,
    direct: DirectLists | None = None,
) -> ScanResult:
    """Walk the tile lists at the guest addresses `tiles`, in order.

    Parameters
    ----------
    tiles
        Guest address of each tile's list, or (start, end) of a piece of rendering list, in which
        system records are skipped; results refer to positions in this sequence. Or such pieces as
        native arrays.
    initial_state
        State in force before the first list (or its bytes); it carries over from list to list.
    depth
        Sub-list levels already in use (1: the tile list was entered by record 17); pieces of
        rendering list want 0.
    direct
        Makes lists of primitive records (32, 33, 41, 42) met there; without it they are errors.

    Returns
    -------
    ScanResult
        Broken lists become entries in `errors`; what came before the error stays valid.
    """
    lease = _Lease()
    arrays = lease.arrays
    context = arrays.context
    pieces = tiles if isinstance(tiles, Pieces) else Pieces.of(tiles)
    offsets = arrays.offsets_for(pieces.count)
    context.memory = memory.base
    context.tiles, context.ends, context.tile_count = pieces.starts, pieces.ends, pieces.count
    context.tile_first = offsets
    initial = initial_state if isinstance(initial_state, bytes) else state_bytes(initial_state)
    ctypes.memmove(context.address + _STATE_AT, initial, STATE_BYTES)
    global _met_all_formats
    context.sub_depth = max(0, 2 - depth)
    context.budget = sc.FRAME_BUDGET
    context.list_base = memory.base
    direct = direct or DirectLists(memory, None)
    direct.fill(context)
    native = _native_scan(_met_all_formats)
    while (status := native(context.address)) != sc.DONE:
        if status == sc.NEED_DRAWS:
            arrays.grow_draws(context.draw_capacity * 2)
        elif status == sc.NEED_SEGMENTS:
            arrays.grow_segments(context.segment_capacity * 2)
        elif status == sc.NEED_EXPANSION:
            direct.expand(int(context.walk_end))
            direct.fill(context)
        elif status == sc.NEED_FORMATS:
            native = _native_scan(True)
            _met_all_formats = True
        else:
            arrays.grow_errors(context.error_capacity * 4)
    final = ctypes.string_at(context.address + _STATE_AT, STATE_BYTES)
    return ScanResult(
        draw_entries=context.draws,
        draw_count=context.draw_count,
        segments=context.segments,
        segment_count=context.segment_count,
        tile_offsets=offsets,
        errors=[_error(arrays.errors, k) for k in range(context.error_count)],
        entries=context.entries,
        final_bytes=final,
        keep=(lease, direct, pieces),
    )


def _words(array: Any, place: int, count: int) -> list[int]:
    return list((ctypes.c_int32 * count).from_buffer(array, place))


def _error(array: Any, number: int) -> ScanError:
    tile, address, byte, reason = _words(array, number * ErrorEntry.size, 4)
    return ScanError(tile, address & 0xFFFFFFFF, byte, reason)
