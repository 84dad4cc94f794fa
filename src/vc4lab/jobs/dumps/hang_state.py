"""The kernel's hang states as files: registers of the V3D, and the buffers of the jobs that hung.

DRM_IOCTL_VC4_GET_HANG_STATE gives registers and buffers of the jobs at which Linux has reset the
V3D. The tool `vc4_dump_hang_state` (vc4-gpu-tools) writes them to a file, which begins with a version
of 32 bits (0); Mesa's simulator writes its jobs in the same form.

Linux bins a job while it still renders the one before: the lists of a dump may be those of two
jobs. Then the tile lists of the job that was rendered are in the dump, and it is drawn first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from vc4lab.bits import Layout
from vc4lab.capture.errors import CaptureError
from vc4lab.jobs.dumps.memory_dump import MOST_BUFFERS, MOST_BYTES, DumpBuffer, ListRange, MemoryDump
from vc4lab.jobs.model import Patched
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.control import Record, format, parse_list
from vc4lab.records.declarations import BranchToSublist, Nop, TileBinningMode, TileCoordinates, WaitSemaphore
from vc4lab.v3d.cle.thread import ThreadControl
from vc4lab.v3d.registers import FrontEndOverruns, SetupErrors
from vc4lab.v3d.vpm.errors import Errors

VERSION = struct.pack("<I", 0)
REGISTERS = (
    "CT0CA", "CT0EA", "CT1CA", "CT1EA", "CT0CS", "CT1CS", "CT00RA0", "CT01RA0", "BPCA", "BPCS",
    "BPOA", "BPOS", "VPMBASE", "DBGE", "FDBGO", "FDBGB", "FDBGR", "FDBGS", "ERRSTAT",
)  # fmt: skip
"""Registers in struct drm_vc4_get_hang_state, in its order."""
_STATE = struct.Struct(f"<QIII{len(REGISTERS)}I64x")
_BUFFER = struct.Struct("<IIII")
_FLAGS: dict[str, type[Layout]] = {
    "CT0CS": ThreadControl,
    "CT1CS": ThreadControl,
    "ERRSTAT": Errors,
    "DBGE": SetupErrors,
    "FDBGO": FrontEndOverruns,
}
"""Registers whose bits are named."""
_THREADS = ("binning", "rendering")
MOST_RECORDS = 1 << 16
"""Records of a list among which its place is looked for."""


class HangState(NamedTuple):
    """Registers and lists of a hang: all that the kernel says besides the buffers."""

    start_bin: int
    start_render: int
    registers: dict[str, int]

    @property
    def lists(self) -> list[ListRange]:
        """The lists that there are: binning, rendering."""
        ends = self.registers["CT0EA"], self.registers["CT1EA"]
        found = [ListRange(0, self.start_bin, ends[0]), ListRange(1, self.start_render, ends[1])]
        return [one for one in found if one.start and one.start != one.end]


def is_hang_state(data: bytes) -> bool:
    """Whether a file begins as a hang state does: with the version and plausible sizes."""
    if len(data) < len(VERSION) + _STATE.size or not data.startswith(VERSION):
        return False
    count: int = _STATE.unpack_from(data, len(VERSION))[1]
    return 0 < count <= MOST_BUFFERS


def read_hang_state(data: bytes, name: str) -> MemoryDump:
    """Read the file of a hang. Raises CaptureError for one that is cut off, or no such file."""
    if not is_hang_state(data):
        raise CaptureError("CAP-012", "no hang state: it does not begin with version 0 and buffers", name)
    _bo, count, start_bin, start_render, *values = _STATE.unpack_from(data, len(VERSION))
    state = HangState(start_bin, start_render, dict(zip(REGISTERS, values, strict=True)))
    place = len(VERSION) + _STATE.size
    content = place + _BUFFER.size * count
    if len(data) < content:
        raise CaptureError("CAP-012", f"cut off: it names {count} buffers, of which some are missing", name)
    view, buffers, total = memoryview(data), [], 0
    for number in range(count):
        handle, address, size, _pad = _BUFFER.unpack_from(data, place + _BUFFER.size * number)
        total += size
        if total > MOST_BYTES or len(data) < content + size:
            raise CaptureError("CAP-012", f"cut off in buffer {number + 1} of {count}, of {size} bytes", name)
        buffers.append(DumpBuffer(f"handle {handle}", address, view[content : content + size]))
        content += size
    dump = MemoryDump("hang", name, buffers)
    for one in state.lists:
        if not dump.holds(one.start):
            text = f"the {_THREADS[one.thread]} list at 0x{one.start:08x} is in none of its buffers"
            raise CaptureError("CAP-012", text, name)
    dump.lists = state.lists
    dump.notes = [*_registers_text(state), *_places_text(dump, state)]
    _put_in_order(dump)
    overspill = state.registers["BPOA"], state.registers["BPOS"]
    if dump.holds(overspill[0]) and overspill[0]:
        dump.overspill = overspill
    return dump


def hang_state_bytes(state: HangState, buffers: list[DumpBuffer]) -> bytes:
    """The file of a hang, as `vc4_dump_hang_state` writes it."""
    values = [state.registers.get(one, 0) for one in REGISTERS]
    parts = [VERSION, _STATE.pack(0, len(buffers), state.start_bin, state.start_render, *values)]
    parts += [_BUFFER.pack(number, one.address, len(one.data), 0) for number, one in enumerate(buffers, 1)]
    return b"".join([*parts, *(bytes(one.data) for one in buffers)])


# -- what it says ----------------------------------------------------------------------------------


def _registers_text(state: HangState) -> Iterator[str]:
    for name, kind in _FLAGS.items():
        value = state.registers[name]
        held = kind(value & (1 << kind.bit_width) - 1)
        said = [
            f"{field} ({bits.doc})" + (f" {bits.extract(held.value)}" if bits.width > 1 else "")
            for field, bits in held.layout_fields.items()
            if bits.extract(held.value)
        ]
        if value or name == "ERRSTAT":
            yield f"{name} 0x{value:08x}: {', '.join(said) or 'nothing is set'}"


def _places_text(dump: MemoryDump, state: HangState) -> Iterator[str]:
    """Say where each list stood."""
    for one in dump.lists:
        at = state.registers[f"CT{one.thread}CA"]
        name = f"thread {one.thread} ({_THREADS[one.thread]})"
        if at == one.end:
            yield f"{name} stood at the end of its list, 0x{at:08x}"
            continue
        if not dump.holds(at):
            yield f"{name} stood at 0x{at:08x}, which is in none of the buffers"
            continue
        record, tile = _record_at(dump, one, at)
        where = f" of tile {tile.column},{tile.row}" if tile is not None else ""
        what = (
            f": {format(record).partition(chr(10))[0]}"
            if record is not None
            else ", in no record of its list"
        )
        yield f"{name} stood at 0x{at:08x}{where}{what}"


def _record_at(dump: MemoryDump, one: ListRange, at: int) -> tuple[Record | None, TileCoordinates | None]:
    """The record at an address and the tile that it belongs to; in sub-lists as well."""
    tile: TileCoordinates | None = None
    at &= MEMORY_MASK
    for record in parse_list(dump.read, one.start, one.end, follow=True, limit=MOST_RECORDS):
        if isinstance(record.payload, TileCoordinates):
            tile = record.payload
        start = record.address & MEMORY_MASK
        if start <= at < start + max(record.size, 1):
            return record, tile
    return None, None


# -- the order -------------------------------------------------------------------------------------


def _put_in_order(dump: MemoryDump) -> None:
    """Find out whether the lists are those of one job; if not, the one that was rendered comes first."""
    kinds = {one.thread: one for one in dump.lists}
    if 1 not in kinds:
        return
    waits, branches = [], set()
    for record in parse_list(dump.read, kinds[1].start, kinds[1].end, limit=MOST_RECORDS):
        if record.id == WaitSemaphore.id:
            waits.append(record.address)
        elif isinstance(record.payload, BranchToSublist):
            branches.add(int(record.payload.address) & MEMORY_MASK)
    if 0 in kinds and _bins(dump, kinds[0], branches):
        return
    if 0 in kinds:
        dump.notes.append("the lists are those of two jobs: what was rendered comes first")
        dump.lists.reverse()
    if waits:
        dump.notes.append("the tile lists are those of the dump: the list does not wait for the binner")
        dump.patches += [Patched(address, bytes([Nop.id])) for address in waits]


def _bins(dump: MemoryDump, binning: ListRange, branches: set[int]) -> bool:
    """Whether a binning list makes what a rendering list branches to; True if nothing speaks against it."""
    for record in parse_list(dump.read, binning.start, binning.end, limit=64):
        mode = record.payload
        if isinstance(mode, TileBinningMode) and branches:
            start = int(mode.address) & MEMORY_MASK
            return any(start <= one < start + int(mode.memory_size) for one in branches)
    return True
