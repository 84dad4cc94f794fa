"""Primitive records in rendering lists: 32, 33, 41, 42 become compressed lists without tiles.

They are met by the scan of a frame's lists, made a list once each (`vg_and_direct.py`), and drawn
like any other list; only the place differs: not guest memory, but a buffer of the simulator.
Source: hardware reference 3.4; AG100-R table 38 allows these records in rendering lists.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.records.codes import ListData, PrimitiveMode, VgPrimitive
from vc4lab.records.declarations import (
    CompressedList,
    IndexedPrimitives,
    VertexArrayPrimitives,
    VgCoordinateArray,
    VgInline,
)
from vc4lab.records.payload import Payload
from vc4lab.records.primitives import ESCAPE_END
from vc4lab.v3d.ptb.binner import begin_vg, choose_assembly, native
from vc4lab.v3d.ptb.context import DirectContext
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_16, INDEX_ARRAY
from vc4lab.v3d.tile_lists.list_end import inline_length
from vc4lab.v3d.tile_lists.scan_context import FNV_PRIME, Expansion, ScanContext
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns

MAX_RECORDS = 1 << 12
"""Primitive records of one frame."""
MAX_BYTES = 1 << 26
"""Bytes of the lists made of them."""
MAX_VERTICES = 1 << 20
"""Vertices of one record."""
MAX_WORK = 1 << 22
"""Vertices of all records of a frame that are looked at."""

LARGEST = 13
"""Bytes of a primitive, and no draw has more of them than vertices."""

_TABLE = 2 * MAX_RECORDS


class DirectLists:
    """The lists of one frame, and the hash table by which the scan finds them.

    ``index_error`` says whether an index above its record's maximum was met (ERRSTAT.VCMRE).
    """

    def __init__(
        self, memory: GuestMemory, reporter: Reporter | None, unknowns: Unknowns = DEFAULT_UNKNOWNS
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.index_error = False
        self.count = self.work = 0
        self._table = (ctypes.c_char * ((_TABLE + 1) * Expansion.size))()
        self._data = bytearray()
        self._buffer: Any = None
        self._context = DirectContext()
        self._context.memory, self._context.last_vertex = memory.base, 0xFFFF
        choose_assembly(self._context, unknowns)

    def expand(self, context: ScanContext) -> None:
        """Makes a list of the record at `list_end`, and gives the scan the places of all."""
        address = context.list_end & 0xFFFFFFFF
        form, data, after = self._list(address)
        self._enter(address, len(self._data) if data else -1, form, after)
        self._data += data
        self.count += 1
        padded = bytes(self._data) + bytes(64)
        self._buffer = (ctypes.c_char * len(padded)).from_buffer_copy(padded)
        context.expanded = ctypes.addressof(self._buffer)
        context.expansion_mask, context.expansions = _TABLE - 1, ctypes.addressof(self._table)
        context.expansions_full = int(
            self.count >= MAX_RECORDS or len(self._data) >= MAX_BYTES or self.work >= MAX_WORK
        )

    def _enter(self, address: int, offset: int, form: int, after: int) -> None:
        words = (ctypes.c_uint32 * (_TABLE * Expansion.size // 4)).from_buffer(self._table)
        slot = (address * FNV_PRIME & 0xFFFFFFFF) >> 7 & (_TABLE - 1)
        while words[slot * 8]:
            slot = (slot + 1) & (_TABLE - 1)
        place = slot * 8
        words[place : place + 5] = [1, address, offset & 0xFFFFFFFF, form, after & 0xFFFFFFFF]

    # -- the four records ----------------------------------------------------------------------

    def _list(self, address: int) -> tuple[int, bytes, int]:
        """(format, bytes of the list, guest address after the record)."""
        identity = self.memory.u8(address)
        if identity in (VgCoordinateArray.id, VgInline.id):
            return self._vector(address, identity)
        is_indexed = identity == IndexedPrimitives.id
        return self._vertices(address, IndexedPrimitives if is_indexed else VertexArrayPrimitives)

    def _vertices(self, address: int, kind: type[Payload]) -> tuple[int, bytes, int]:
        record, after, c = self._payload(kind, address), address + kind.size, self._context
        if isinstance(record, IndexedPrimitives):
            c.index_type, c.index_address = INDEX_8 + int(record.index_type), record.address
            c.max_index = record.maximum_index
        else:
            c.index_type, c.first_index, c.max_index = INDEX_ARRAY, record.first, -1
        mode = int(record.mode)
        is_known = mode in PrimitiveMode._value2member_map_
        if not is_known:
            self._report("CLE-016", f"primitive mode {mode}", address)
        if not is_known or c.index_type > INDEX_16:
            return 0, b"", after
        wanted = self._limited(record.length, address)
        c.mode, c.length = mode, wanted
        data = self._written("direct_vertices")
        if c.length < wanted:
            self.index_error = True
            text = f"index {c.bad_index} in a draw whose maximum is {c.max_index & 0xFFFFFFFF}"
            self._report("CLE-014", text, address)
        return ListData.INDEX16.of(PrimitiveMode(mode).list_primitive), data, after

    def _written(self, function: str) -> bytes:
        """The list of the primitives that a native function writes; empty, if there are none."""
        c = self._context
        room = (ctypes.c_char * (LARGEST * (c.length + 1)))()
        start = c.output = ctypes.addressof(room)
        native(function)(c.address)
        data = ctypes.string_at(start, c.output - start)
        return bytes([CompressedList.id]) + data + bytes([ESCAPE_END]) if data else b""

    def _vector(self, address: int, identity: int) -> tuple[int, bytes, int]:
        if identity == VgCoordinateArray.id:
            array = self._payload(VgCoordinateArray, address)
            kind, continues = int(array.type), bool(array.continuation)
            start, after = array.address, address + VgCoordinateArray.size
            length = self._limited(array.length, address)
        else:
            inline = self._payload(VgInline, address)
            kind, continues = int(inline.type), bool(inline.continuation)
            start = address + VgInline.size
            whole = inline_length(self.memory, start, kind)
            if whole is None:
                self._report("CLE-039", "a VG list without an end code", address)
                whole, self.work = 0, MAX_WORK  # the rest of the list is nothing but coordinates
            after = start + 4 * whole
            length = self._limited(whole, address)
        if kind not in VgPrimitive._value2member_map_:
            self._report("CLE-016", f"VG primitive type {kind}", address)
            return 0, b"", after
        self._context.work = MAX_VERTICES
        function = begin_vg(self._context, kind, start, length, continues)
        data = self._written(f"direct_{function}")
        return ListData.XY.of(VgPrimitive(kind).list_primitive), data, after

    # -- small helpers ---------------------------------------------------------------------------

    def _payload(self, kind: type[Payload], address: int) -> Any:
        return kind.from_bytes(self.memory.read(address + 1, kind.size - 1))

    def _limited(self, length: int, address: int) -> int:
        if length > MAX_VERTICES:
            self._report("VTX-001", f"a draw of {length} vertices", address)
        length = min(length, MAX_VERTICES)
        self.work += length
        return length

    def _report(self, code: str, text: str, address: int) -> None:
        if self.reporter is not None:
            self.reporter.report(code, text, address=address)
