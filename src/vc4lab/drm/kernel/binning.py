"""The driver's binning list made into the one that the hardware reads.

Buffer indices become addresses, the tile memory is filled in, shader records and uniforms get their
places. What the kernel would refuse is refused here with a sentence instead of EINVAL.
Source: Linux vc4_validate.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NoReturn

from vc4lab.diagnostics import Reporter
from vc4lab.drm.uapi.submit import Buffer, Submit, refuse
from vc4lab.records import declarations as d
from vc4lab.records.codes import BlockSize, IndexType
from vc4lab.records.control import RECORDS, build, bytes_reader, parse_record
from vc4lab.records.shader import ALIGNMENT, MAX_ATTRIBUTES, gl_record_size
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES

HALT, FLUSH, SEMAPHORE = d.Halt.id, d.Flush.id, d.IncrementSemaphore.id
INDEXED, ARRAYS = d.IndexedPrimitives.id, d.VertexArrayPrimitives.id
HANDLES, SHADER_STATE = d.GemHandles.id, d.GlShaderState.id
SPECIAL = frozenset(
    [
        FLUSH,
        SEMAPHORE,
        INDEXED,
        ARRAYS,
        HANDLES,
        SHADER_STATE,
        d.TileBinningMode.id,
        d.StartTileBinning.id,
    ]
)
"""Records that are checked or changed."""
COPIED = frozenset(
    [
        *(HALT, d.Nop.id, d.FlushAllState.id, d.PrimitiveListFormat.id),
        *range(d.ConfigurationBits.id, d.ViewportOffset.id + 1),
        *(d.ClipperXyScaling.id, d.ClipperZScale.id),
    ]
)
"""Records that are copied as they stand."""
ALLOWED = SPECIAL | COPIED
SIZES = {number: RECORDS[number].size for number in ALLOWED}
_INDEXED = struct.Struct("<BIII")
_INDEXED_RECORD = struct.Struct("<BBIII")
_ARRAYS = struct.Struct("<BII")
INITIAL_BLOCK = BlockSize.B32
BLOCK = BlockSize.B128


@dataclass
class ShaderUse:
    """One GL shader state record of the list and how the draws after it use it."""

    attributes: int
    extended: bool
    address: int
    """Where the hardware's record goes."""
    place: int = 0
    """Byte of the binning list where the record stands."""
    maximum_index: int = 0


@dataclass
class BinningList:
    """The result: bytes for the hardware, and what the rest of the job needs to know."""

    data: bytearray = field(default_factory=bytearray)
    tiles_x: int = 0
    tiles_y: int = 0
    multisample: bool = False
    shaders: list[ShaderUse] = field(default_factory=list)
    tile_lists: int = 0
    """Address of the first tile's list."""


class BinningBuilder:
    """Walks one job's binning list.

    Parameters
    ----------
    tile_memory, tile_memory_size
        Memory for tile state and tile lists.
    shader_records
        Where the hardware's shader records go, 16-byte aligned.
    """

    def __init__(
        self,
        submit: Submit,
        reporter: Reporter,
        *,
        tile_memory: int,
        tile_memory_size: int,
        shader_records: int,
    ) -> None:
        self.submit = submit
        self.reporter = reporter
        self.tile_memory = tile_memory
        self.tile_memory_size = tile_memory_size
        self.next_record = shader_records
        self.result = BinningList()
        self.handle = 0
        self.started = False
        self.place = 0
        """Byte of the list where the record at hand begins."""

    def run(self) -> BinningList:
        """Build the list. Raises JobError."""
        data = self.submit.bin_cl
        out = self.result.data
        end = len(data)
        last, before = -1, -1
        place = copied = begin = 0
        while place < end:
            begin = place
            number = data[place]
            size = SIZES.get(number, 0)
            if not size or place + size > end:
                self.place = place
                self.refuse_record(place)
            if number in SPECIAL:
                self.place = place
                out += data[copied:place]
                out += self.special(number, data[place + 1 : place + size])
                copied = place + size
            place += size
            last, before = number, last
            if number == HALT:
                break
        out += data[copied:place]
        self.place = begin
        if not self.started:
            self.refuse("DRM-007", "the list never starts tile binning")
        if (before, last) != (SEMAPHORE, FLUSH):
            self.refuse("DRM-007", "the list does not end with 7 and 4")
        return self.result

    def refuse_record(self, place: int) -> NoReturn:
        """Give up the job because of a record that is damaged or not accepted. Raises JobError."""
        data = self.submit.bin_cl
        record = parse_record(bytes_reader(data), place, len(data))
        if record.problem is not None:
            self.refuse("DRM-006", f"{record.problem}")
        self.refuse("DRM-006", f"{record.name} ({record.id}) is not accepted")

    def refuse(self, code: str, text: str) -> NoReturn:
        """Give up the job because of the record at `place`. Raises JobError."""
        refuse(self.reporter, code, f"{self.where}{text} (rule 9.2)")

    @property
    def where(self) -> str:
        """The record at hand, in front of a finding about it."""
        return place_in_list(self.place)

    def special(self, number: int, payload: bytes) -> bytes:
        """The hardware's bytes of a record that is more than copied. Raises JobError."""
        if number == INDEXED:
            return self.indexed(payload)
        if number == ARRAYS:
            _, length, first = _ARRAYS.unpack(payload)
            if first + length > 0xFFFFFFFF:
                self.refuse("DRM-012", f"{length} vertices from {first} on")
            self.draw(first + length - 1 if length else 0)
        elif number == HANDLES:
            self.handle = int.from_bytes(payload[:4], "little")
            return b""
        elif number == SHADER_STATE:
            return self.shader_state(d.GlShaderState.from_bytes(payload))
        elif number == d.TileBinningMode.id:
            return self.mode(d.TileBinningMode.from_bytes(payload))
        elif number == d.StartTileBinning.id:
            if self.started or not self.result.tiles_x:
                self.refuse("DRM-007", "record 6 twice, or before record 112")
            self.started = True
        elif self.place != len(self.submit.bin_cl) - (2 if number == SEMAPHORE else 1):
            name = RECORDS[number].title
            self.refuse("DRM-007", f"{name} ({number}) is not at the list's end")
        return bytes([number]) + payload

    def mode(self, payload: d.TileBinningMode) -> bytes:
        """Record 112 with the kernel's tile memory."""
        result = self.result
        if result.tiles_x:
            self.refuse("DRM-007", "record 112 twice")
        if payload.tiles_x == 0 or payload.tiles_y == 0:
            self.refuse("DRM-007", "a tile grid of no tiles")
        if payload.double_buffer or payload.colour64:
            self.refuse("DRM-006", "double buffer or 64-bit colour in record 112")
        result.tiles_x, result.tiles_y = payload.tiles_x, payload.tiles_y
        result.multisample = bool(payload.multisample)
        state = round_up(result.tiles_x * result.tiles_y * TILE_STATE_BYTES, 4096)
        result.tile_lists = self.tile_memory + state
        return build(
            d.TileBinningMode,
            address=result.tile_lists,
            memory_size=self.tile_memory_size - state,
            state_address=self.tile_memory,
            tiles_x=result.tiles_x,
            tiles_y=result.tiles_y,
            multisample=payload.multisample,
            auto_initialise=1,
            initial_block=INITIAL_BLOCK,
            block=BLOCK,
        )

    def draw(self, maximum_index: int) -> None:
        """Notes a draw with the current shader state."""
        if not self.result.shaders:
            self.refuse("DRM-007", "a draw before any shader state")
        use = self.result.shaders[-1]
        use.maximum_index = max(use.maximum_index, maximum_index)
        if maximum_index > 0xFFFF:
            self.reporter.report(
                "CLE-015",
                f"{self.where}vertex number {maximum_index} does not fit in 16 bits",
                block="DRM",
            )

    def indexed(self, payload: bytes) -> bytes:
        """Record 32 with the index buffer's address."""
        kind, length, offset, maximum = _INDEXED.unpack(payload)
        self.draw(maximum)
        buffers = self.submit.buffers
        if self.handle >= len(buffers):
            buffer_at(self.submit, self.handle, self.reporter, f"{self.where}index buffer", "9.2")
        buffer = buffers[self.handle]
        size = 1 if kind >> 4 == IndexType.BYTE else 2
        if offset + length * size > buffer.size:
            self.refuse(
                "DRM-012",
                f"{length} indices of {size} bytes at offset {offset} of a buffer of "
                f"{buffer.size} bytes",
            )
        address = (buffer.address + offset) & 0xFFFFFFFF
        return _INDEXED_RECORD.pack(INDEXED, kind, length, address, maximum)

    def shader_state(self, payload: d.GlShaderState) -> bytes:
        """Record 64 with the address of its record."""
        if len(self.result.shaders) >= self.submit.shader_rec_count:
            self.refuse(
                "DRM-008",
                f"more shader states than the {self.submit.shader_rec_count} announced",
            )
        if payload.address:
            self.refuse("DRM-008", f"record 64 carries an address 0x{payload.address:x}")
        count = int(payload.attributes) or MAX_ATTRIBUTES  # the kernel's view, extended or not
        extended = bool(payload.extended)
        address = self.next_record
        self.next_record = round_up(address + gl_record_size(count, extended), ALIGNMENT)
        self.result.shaders.append(ShaderUse(count, extended, address, self.place))
        return bytes([payload.id]) + payload.replace(address=address).to_bytes()


def round_up(value: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return -(-value // unit) * unit


def place_in_list(place: int) -> str:
    """How findings about a record of the binning list begin."""
    return f"binning list, byte {place}: "


def buffer_at(submit: Submit, index: int, reporter: Reporter, what: str, rule: str) -> Buffer:
    """The buffer with that index in the job's list. Raises JobError, naming the kernel's rule."""
    if index >= len(submit.buffers):
        refuse(
            reporter,
            "DRM-005",
            f"{what}: buffer index {index} of a list of {len(submit.buffers)} (rule {rule})",
        )
    return submit.buffers[index]
