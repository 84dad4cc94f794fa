"""Reads the tile lists of frame after frame natively, into arrays that grow as they have to."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.memory import lazy_zeros
from vc4lab.records.states import TRIANGLES_16_BIT
from vc4lab.simd import Function, NativeFunction, Value, build, i32, ptr
from vc4lab.v3d.state.native_records import MAX_NOTES, NOTE_BYTES
from vc4lab.v3d.state.render_state import STATE_BYTES, default_state, state_bytes
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scan_context import (
    DrawEntry,
    ErrorEntry,
    Expansion,
    ScanContext,
    ScanError,
    ScanResult,
    Segment,
)

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.state.native_records import RecordNotes

_HASH = struct.Struct("<I")
_STATE_AT = ScanContext.state.offset

_NO_EXPANSIONS = (ctypes.c_char * Expansion.size)()
"""The table of a frame in which no primitive record was made a list."""

MAX_BEFORE_TILE = MAX_NOTES - sc.TILE_BUDGET
"""Notes after which a tile has room for its own."""


@cache
def _native_scan(all_formats: bool, recording: bool) -> NativeFunction:
    """The scan; nearly every frame has only indexed triangles, which compile much faster."""

    def body(context: Value) -> Value:
        from vc4lab.v3d.tile_lists.primitive_decoder import LIST_SCANNERS
        from vc4lab.v3d.tile_lists.scan_kernel import make_scan

        formats = tuple(LIST_SCANNERS) if all_formats else (TRIANGLES_16_BIT,)
        return make_scan(formats, recording)(context)

    scan = Function(args=(ptr,), returns=i32, body=body)
    key = f"tile_lists {all_formats}{' recording' * recording}"
    return build("tile_lists", {"scan": scan}, float_mode="default", key=key)["scan"]


_met_all_formats = False
"""Some frame had other lists than triangles with indices; the next may have them, too."""


class ListScanner:
    """Scans tile lists, or pieces of rendering lists, for one V3D.

    The state in force after one scan is that before the next.

    Parameters
    ----------
    expand
        Makes a list of a primitive record (32, 33, 41, 42) met there; without it, one is too many.
    depth
        Sub-list levels already in use (1: a tile list was entered by record 17).
    separate_format
        Whether tile lists do not see record 56 of the rendering list.
    notes
        Takes the records of tile lists that are executed, if that is wanted.
    """

    def __init__(
        self,
        memory: GuestMemory,
        expand: Callable[[ScanContext], None] | None = None,
        *,
        depth: int = 1,
        separate_format: bool = False,
        notes: RecordNotes | None = None,
    ) -> None:
        self._notes = notes
        context = ScanContext()
        self.context = context
        self.result = ScanResult(context)
        self._address = context.address
        self._scan: Callable[[int], int] | None = None  # made when needed, see v3d/README.md
        self._maps: list[Any] = []
        self._draws: Any = None
        self._segments: Any = None
        self._errors: Any = None
        self._pieces = -1
        context.memory = memory.base
        context.separate_format = int(separate_format)
        context.tile_format = TRIANGLES_16_BIT
        context.sub_depth = max(0, 2 - depth)
        self._grow_draws(32)
        self._grow_segments(1024)
        self._grow_errors(16)
        self.set_state(state_bytes(default_state()))
        self.use(expand)

    def set_state(self, state: bytes) -> None:
        """The render state in force before the next list."""
        ctypes.memmove(self._address + _STATE_AT, state, STATE_BYTES)

    def use(self, expand: Callable[[ScanContext], None] | None) -> None:
        """Nothing is a list yet; `expand` makes them from now on."""
        context, self._expand = self.context, expand
        context.expansions, context.expansion_mask = ctypes.addressof(_NO_EXPANSIONS), 0
        context.expansions_full = int(expand is None)

    def scan(self, starts: int, ends: int, count: int) -> ScanResult:
        """Scans `count` lists, whose addresses and ends stand in two i32 arrays (host addresses).

        An end of `NO_END` is that of a tile list, its Return. Broken lists become entries in
        `errors` of the result; what came before the error stays valid.
        """
        context, result = self.context, self.result
        if count > self._pieces:
            self._grow_offsets(count)
        context.tiles, context.ends, context.tile_count = starts, ends, count
        context.fresh = 1
        notes = self._notes
        while True:
            if notes is not None and notes.any_listener.present:
                status = self._scan_noting(notes)
            else:
                scan = self._scan
                if scan is None:
                    scan = self._scan = _native_scan(_met_all_formats, False).call
                status = scan(self._address)
            if status == sc.DONE:
                break
            self._provide(status)
        result.draw_count, result.entries = context.draw_count, context.entries
        result.errors = self._found_errors() if context.error_count else ()
        return result

    def _scan_noting(self, notes: RecordNotes) -> int:
        """Goes on with the scan; notes of tiles that are through become events."""
        context = self.context
        notes.attach(context)
        context.executed_last = context.executed + NOTE_BYTES * MAX_BEFORE_TILE
        firsts = (ctypes.c_int64 * (context.tile_count + 1))()
        context.executed_first = ctypes.addressof(firsts)
        before = 0 if context.fresh else int(context.tile)
        status = int(_native_scan(_met_all_formats, True).call(self._address))

        def pieces(start: int, size: int) -> bytes:
            return _repeated(before, [*firsts[before : context.tile], start + size])

        notes.take(1, context, pieces)
        context.executed_first = 0
        return status

    def _provide(self, status: int) -> None:
        """Provide what the scan stopped for."""
        global _met_all_formats
        context = self.context
        if status == sc.NEED_DRAWS:
            self._grow_draws(context.draw_capacity * 4)
        elif status == sc.NEED_SEGMENTS:
            self._grow_segments(context.segment_capacity * 2)
        elif status == sc.NEED_EXPANSION and self._expand is not None:
            self._expand(context)
        elif status == sc.NEED_FORMATS:
            _met_all_formats = True
            self._scan = None
        elif status == sc.NEED_ERRORS:
            self._grow_errors(context.error_capacity * 4)

    def _found_errors(self) -> list[ScanError]:
        found = []
        for number in range(self.context.error_count):
            entry = ErrorEntry.python.from_buffer(self._errors, number * ErrorEntry.size)
            found.append(ScanError(entry.tile, entry.where & 0xFFFFFFFF, entry.byte, entry.reason))
        return found

    # -- arrays ----------------------------------------------------------------------------------

    def _grow_offsets(self, pieces: int) -> None:
        """Room for the first segment of each piece, and of what comes after."""
        self._pieces = 2 * pieces + 64
        self._offsets = (ctypes.c_int32 * (self._pieces + 1))()
        self.context.tile_first = self.result.tile_offsets = ctypes.addressof(self._offsets)

    def _grow_draws(self, count: int) -> None:
        """Room for `count` draws; used maps of existing draws stay where they are."""
        c = self.context
        before = c.draw_capacity
        self._draws = _grown(self._draws, count * DrawEntry.size)
        # A map is touched only where vertices are used.
        self._maps.append(lazy_zeros((count - before) * sc.MAX_VERTICES + 64))
        maps = ctypes.addressof(ctypes.c_char.from_buffer(self._maps[-1]))
        places = range(maps, maps + (count - before) * sc.MAX_VERTICES, sc.MAX_VERTICES)
        data, view = array("Q", places).tobytes(), memoryview(self._draws).cast("B")
        for byte in range(8):
            first = before * DrawEntry.size + DrawEntry.used.offset + byte
            view[first : count * DrawEntry.size : DrawEntry.size] = data[byte::8]
        c.draws = self.result.draw_entries = ctypes.addressof(self._draws)
        c.draw_capacity = count
        size = 1 << (count * 2 - 1).bit_length()
        self._table = (ctypes.c_int32 * size)()
        table, mask = self._table, size - 1
        for number in range(1, c.draw_count + 1):
            place = (number - 1) * DrawEntry.size + DrawEntry.hash.offset
            slot = _HASH.unpack_from(self._draws, place)[0] & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = number
        c.table, c.table_mask = ctypes.addressof(table), mask

    def _grow_segments(self, count: int) -> None:
        """Room for `count` segments."""
        self._segments = _grown(self._segments, count * Segment.size)
        self.context.segments = self.result.segments = ctypes.addressof(self._segments)
        self.context.segment_capacity = count

    def _grow_errors(self, count: int) -> None:
        """Room for `count` errors."""
        self._errors = _grown(self._errors, count * ErrorEntry.size)
        self.context.errors = ctypes.addressof(self._errors)
        self.context.error_capacity = count


def _repeated(first: int, places: list[int]) -> bytes:
    """Numbers from `first` on (i32), each once for every note between its place and the next."""
    import numpy as np

    ends = np.array(places, np.int64)
    counts = (ends[1:] - ends[:-1]) // NOTE_BYTES
    return np.repeat(np.arange(first, first + len(counts), dtype=np.int32), counts).tobytes()


def _grown(old: Any, size: int) -> Any:
    """An array of bytes with the content of the one before."""
    new = (ctypes.c_char * (size + 64))()
    if old is not None:
        ctypes.memmove(new, old, min(ctypes.sizeof(old), size))
    return new
