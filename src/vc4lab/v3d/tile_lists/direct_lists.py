"""Primitive records that no binner saw: 32, 33, 41, 42 in rendering lists become compressed lists.

They are met by the scan of a frame's lists, made a list once each, and drawn like any other list;
only the place differs: not guest memory, but a buffer of the simulator. Source: hardware reference
3.4; AG100-R table 38 allows these records in rendering lists.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.records.codes import IndexType, ListData, PrimitiveMode, VgPrimitive
from vc4lab.records.declarations import (
    CompressedList,
    IndexedPrimitives,
    VertexArrayPrimitives,
    VgCoordinateArray,
    VgInline,
)
from vc4lab.records.primitives import ESCAPE_ABSOLUTE, ESCAPE_END
from vc4lab.v3d.state.draw_input import closes_from_first
from vc4lab.v3d.tile_lists.scan_context import FNV_PRIME, Expansion, ScanContext
from vc4lab.v3d.tile_lists.vg_list import inline_length, vg_primitives
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

_TABLE = 2 * MAX_RECORDS
_NOTHING = (ctypes.c_char * 64)()
_NO_RECORDS = (ctypes.c_char * (2 * Expansion.size))()
"""What a frame without such records has."""


class DirectLists:
    """The lists of one frame, and the hash table by which the scan finds them.

    ``index_error`` says whether an index above its record's maximum was met (ERRSTAT.VCMRE).
    """

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter | None,
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.index_error = False
        self.count = self.work = 0
        self._table: Any = None
        self._data = bytearray()
        self._buffer: Any = None
        self._fan: tuple[int, int] | None = None  # hub and last vertex of the VG fan before

    @property
    def address(self) -> int:
        """Host address of the lists; valid until the next `expand`."""
        if not self._data:
            return ctypes.addressof(_NOTHING)
        if self._buffer is None:
            padded = bytes(self._data) + bytes(64)
            self._buffer = (ctypes.c_char * len(padded)).from_buffer_copy(padded)
        return ctypes.addressof(self._buffer)

    def fill(self, context: ScanContext) -> None:
        """Tells the native scan where everything is."""
        table = self._table if self.count else _NO_RECORDS
        context.expansion_mask = _TABLE - 1 if self.count else 0
        context.expansions = ctypes.addressof(table)
        context.expanded = self.address
        context.expansions_full = int(
            self.count >= MAX_RECORDS or len(self._data) >= MAX_BYTES or self.work >= MAX_WORK
        )

    def expand(self, address: int) -> None:
        """Makes a list of the record at a guest address."""
        address &= 0xFFFFFFFF
        self.count += 1
        form, data, after = self._list(address)
        offset = -1
        if data:
            offset = len(self._data)
            self._data += data
            self._buffer = None
        self._enter(address, offset, form, after)

    def _enter(self, address: int, offset: int, form: int, after: int) -> None:
        if self._table is None:
            self._table = (ctypes.c_char * ((_TABLE + 1) * Expansion.size))()
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
        if identity == IndexedPrimitives.id:
            return self._indexed(address)
        if identity == VertexArrayPrimitives.id:
            return self._array(address)
        return self._vector(address, identity)

    def _indexed(self, address: int) -> tuple[int, bytes, int]:
        record = self._payload(IndexedPrimitives, address)
        after = address + IndexedPrimitives.size
        mode = int(record.mode)
        if not self._known(mode, address) or not isinstance(record.index_type, IndexType):
            return 0, b"", after
        import numpy as np

        length = self._limited(record.length, address)
        size = record.index_type.bits // 8
        data = self.memory.read(record.address, length * size)
        indices = np.frombuffer(data, f"<u{size}").astype(np.uint32)
        above = np.flatnonzero(indices > record.maximum_index)
        if above.size:
            self.index_error = True
            self._report(
                "CLE-014",
                f"index {indices[above[0]]} in a draw whose maximum is {record.maximum_index}",
                address,
            )
            indices = indices[: above[0]]
        return *self._encoded(mode, indices), after

    def _array(self, address: int) -> tuple[int, bytes, int]:
        record = self._payload(VertexArrayPrimitives, address)
        after = address + VertexArrayPrimitives.size
        mode = int(record.mode)
        if not self._known(mode, address):
            return 0, b"", after
        import numpy as np

        length = self._limited(record.length, address)
        indices = record.first + np.arange(length, dtype=np.uint64)
        return *self._encoded(mode, indices.astype(np.uint32)), after

    def _encoded(self, mode: int, indices: NDArray[Any]) -> tuple[int, bytes]:
        import numpy as np

        places = primitive_vertices(mode, len(indices), self.unknowns)
        form = ListData.INDEX16.of(PrimitiveMode(mode).list_primitive)
        if not len(places):
            return form, b""
        words = indices[places].astype("<u2").view(np.uint8)
        return form, _absolute(words.reshape(len(places), -1))

    def _vector(self, address: int, identity: int) -> tuple[int, bytes, int]:
        import numpy as np

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
                self._report("CLE-039", "no end code in a VG list", address)
                whole, self.work = 0, MAX_WORK  # the rest of the list is nothing but coordinates
            after = start + 4 * whole
            length = self._limited(whole, address)
        if kind not in VgPrimitive._value2member_map_:
            self._report("CLE-016", f"VG primitive type {kind}", address)
            return 0, b"", after
        words = np.frombuffer(self.memory.read(start, 4 * length), "<u4").tolist()
        found, self._fan = vg_primitives(
            kind, words, self._fan if continues else None, self.unknowns
        )
        form = ListData.XY.of(VgPrimitive(kind).list_primitive)
        if not found:
            return form, b"", after
        return form, _absolute(np.array(found, "<u4").view(np.uint8)), after

    # -- small helpers ---------------------------------------------------------------------------

    def _payload(self, kind: Any, address: int) -> Any:
        return kind.from_bytes(self.memory.read(address + 1, kind.size - 1))

    def _known(self, mode: int, address: int) -> bool:
        if mode in PrimitiveMode._value2member_map_:
            return True
        self._report("CLE-016", f"primitive mode {mode}", address)
        return False

    def _limited(self, length: int, address: int) -> int:
        if length > MAX_VERTICES:
            self._report("VTX-001", f"a draw of {length} vertices", address)
        length = min(length, MAX_VERTICES)
        self.work += length
        return length

    def _report(self, code: str, text: str, address: int) -> None:
        if self.reporter is not None:
            self.reporter.report(code, text, address=address)


def _absolute(words: NDArray[Any]) -> bytes:
    """A list of primitives (bytes of their vertices, one row each), all in coding 3."""
    import numpy as np

    codes = np.full((len(words), 1), ESCAPE_ABSOLUTE, np.uint8)
    return bytes([CompressedList.id]) + np.hstack([codes, words]).tobytes() + bytes([ESCAPE_END])


def primitive_vertices(mode: int, length: int, unknowns: Unknowns) -> NDArray[Any]:
    """Positions of each primitive's vertices in a draw of `length`, one row a primitive."""
    import numpy as np

    places = np.arange(length)
    if mode == PrimitiveMode.POINTS:
        return places[:, None]
    if mode == PrimitiveMode.LINES:
        return places[: length // 2 * 2].reshape(-1, 2)
    if mode in (PrimitiveMode.LINE_STRIP, PrimitiveMode.LINE_LOOP):
        rows = np.stack([places[:-1], places[1:]], 1)
        if mode == PrimitiveMode.LINE_LOOP and length > 1:
            closing = [length - 1, 0]
            if closes_from_first(unknowns):
                closing.reverse()
            rows = np.vstack([rows, [closing]])
        return rows
    if mode == PrimitiveMode.TRIANGLES:
        return places[: length // 3 * 3].reshape(-1, 3)
    first = places[: max(0, length - 2)]
    if mode == PrimitiveMode.TRIANGLE_FAN:
        return np.stack([np.zeros_like(first), first + 1, first + 2], 1)
    odd = first & 1
    return np.stack([first + odd, first + 1 - odd, first + 2], 1)
