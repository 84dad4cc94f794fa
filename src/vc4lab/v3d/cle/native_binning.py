"""Native execution of binning lists (`binning_kernel.py`) for one V3D, and what Python does for it.

Native code stops at a record that lacks something and executes it again when the request is served;
`answers` say what was done for it: `binning_context.py`. For listeners it notes records 32 and 33,
Python those of vector graphics (`events.ListBinned`). Each note has what the binner had counted
before, so that a draw which stopped for memory needs nothing more. Source: hardware reference 3.4, 3.7.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.memory import lazy_zeros
from vc4lab.memory.native import Stream, StreamMemory
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.declarations import IndexedPrimitives, TileBinningMode, VertexArrayPrimitives
from vc4lab.simd import NativeFunction, NativeModule, build, i32, late_kernel, ptr
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES, Lint
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.binning_context import BinningContext, DrawBinned, Note
from vc4lab.v3d.events import ListBinned, Use
from vc4lab.v3d.ptb import binner as ptb
from vc4lab.v3d.ptb.binner import Binner
from vc4lab.v3d.ptb.context import DONE
from vc4lab.v3d.state.native_records import MAX_NOTES as MAX_RECORDS
from vc4lab.v3d.state.render_state import INDEX_ARRAY, ShaderRecord, read_shader_record
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import COORDINATE_ROWS, VERTEX_BATCH, NvContext
from vc4lab.v3d.vertex.fetch import copy_function, range_function
from vc4lab.v3d.vertex.shading import VertexStage
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.cle.executor import ControlListExecutor
    from vc4lab.v3d.state.native_records import RecordNotes
    from vc4lab.v3d.vertex.shader_lookup import ShaderTable

ROOM = 1 << 27
"""Bytes for the notes of one list."""


class BinnedDraws:
    """The notes of the list at hand, in a stream that native code appends to."""

    def __init__(self, stream: Stream) -> None:
        self._memory = StreamMemory(stream, ROOM)

    def add_vg(self, binner: Binner, address: int, kind: int, start: int, length: int, watched: int) -> None:
        """A list of vector graphics is to be drawn; `watched`: see `BinningContext`."""
        stream = self._memory.stream
        if stream.used + DrawBinned.size > stream.room:
            return
        made = DrawBinned.python.from_address(stream.base + stream.used)
        made.before = binner.totals.values()
        made.record, made.op = signed32(address), binner.memory.read(address, 1)[0]
        made.mode, made.length, made.index_type = kind, length, INDEX_ARRAY
        made.place, made.first, made.last = signed32(start), 0, -1
        made.shader_kind, made.shader_word = binner.state.shader_kind, binner.state.shader_word
        made.config, made.cursor = binner.state.config, binner.cursor_of(watched)
        stream.used += DrawBinned.size

    def take(self, binner: Binner) -> ListBinned:
        """The event for the draws up to a flush."""
        draws = self._memory.content
        self._memory.clear()
        shaders: dict[tuple[int, int], ShaderRecord] = {}
        kind: Any = DrawBinned.python
        for place in range(0, len(draws), DrawBinned.size):
            made = kind.from_buffer_copy(draws, place)
            named = int(made.shader_kind), int(made.shader_word) & 0xFFFFFFFF
            if named not in shaders:
                shader = read_shader_record(binner.memory, *named)
                if shader is not None:
                    shaders[named] = shader
        c = binner.context
        return ListBinned(
            draws,
            shaders,
            tuple(binner.totals.values()),
            (int(c.width), int(c.height)),
            int(c.initial_bytes),
            int(c.block_bytes),
        )


assert bc.WORK_PER_CALL < MAX_RECORDS, "one call notes more records than there is room for"
_OUTPUT_BYTES = MAX_VERTICES // VERTEX_BATCH * (COORDINATE_ROWS + 1) * ROW_BYTES


@cache
def _native(recording: bool = False, works: bool = False) -> NativeModule:
    """Variants: `recording` notes each record that it executes, `works` what each draw took."""
    kernels = {
        "execute": late_kernel(
            "vc4lab.v3d.cle.binning_kernel", "execute_list", (ptr,), i32, recording=recording, works=works
        ),
        "admit_vg": late_kernel("vc4lab.v3d.cle.draw_kernel", "admit_vg", (ptr, i32), i32),
    }
    key = f"binning_list{'-recording' * recording}{'-works' * works}"
    return build("binning_list", kernels, float_mode="default", key=key, quick=True)


@cache
def _execute(recording: bool, works: bool) -> Callable[[int], int]:
    found: Callable[[int], int] = _native(recording, works)["execute"].call
    return found


def _function(number: int) -> NativeFunction:
    """One of `BinningContext.functions`."""
    if number == bc.COPY_NV:
        return copy_function()
    if number in (bc.BYTES, bc.SHORTS):
        return range_function(8 if number == bc.BYTES else 16)
    return ptb.native((*ptb.KERNELS, "outcodes")[number])


class NativeBinning:
    """Executes the records of a binning list.

    `shaders` are the coordinate shaders it may use, `addresses` knows which need no message.
    `context` says what the list has come to; `context.indices` counts the vertices of its draws.
    """

    def __init__(
        self, memory: GuestMemory, binner: Binner, shaders: ShaderTable, addresses: AddressCheck
    ) -> None:
        self.binner = binner
        self.shaders = shaders
        context = BinningContext()
        self.context = context
        self._address = context.address
        self._execute: Callable[[int], int] | None = None  # made when needed, see v3d/README.md
        self.notes_uses = False
        """Whether draws and modes are noted, for listeners to uses of memory."""
        self.binned: BinnedDraws | None = None
        """Takes what draws took, if there is a listener for that."""
        self._nv = NvContext()
        self._nv.memory = memory.base
        shaders.attach(context, memory.base, addresses)
        context.binner, context.nv = binner.context.address, self._nv.address
        self._memory = lazy_zeros(MAX_VERTICES + _OUTPUT_BYTES + 64)
        context.used = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        context.output = context.used + MAX_VERTICES

    def run(self, here: int, end: int, notes: RecordNotes) -> tuple[int, int]:
        """Executes records from guest address `here` on, and notes them if that is wanted.

        Returns
        -------
        tuple
            The address of the next record, and what came of the last one (`binning_context`).
        """
        context = self.context
        context.here, context.end = here, end  # members take the low 32 bits
        if notes.any_listener.present:
            result = notes.run(0, context, _execute(True, self.binned is not None))
        elif self.binned is not None:
            result = _execute(False, True)(self._address)
        else:
            execute = self._execute
            if execute is None:
                execute = self._execute = _execute(False, False)
            result = execute(self._address)
        return context.here & 0xFFFFFFFF, result

    def take_notes(self) -> list[Any]:
        """The notes that were made since the last call."""
        count, self.context.note_count = self.context.note_count, 0
        start = self.context.notes
        return [Note.python.from_address(start + number * Note.size) for number in range(count)]

    def note_uses(self, wanted: bool) -> None:
        """Whether notes are made from now on."""
        context, self.notes_uses = self.context, wanted
        if wanted and not context.notes:
            self._notes = (ctypes.c_char * (Note.size * bc.MAX_NOTES))()
            context.notes = ctypes.addressof(self._notes)
        context.note_room = bc.MAX_NOTES if wanted else 0

    def record_draws(self, wanted: bool) -> None:
        """Whether what draws took is noted from now on."""
        self.binned = BinnedDraws(self.context.binned) if wanted else None

    def settle(self, result: int) -> int:
        """The rest of a draw or flush that the binner did not finish; the status, as of these."""
        context, binner = self.context, self.binner
        if result == bc.INTERRUPTED:
            return binner.settle_draw(context.status)
        if result == bc.FLUSHED:
            return binner.settle_flush(context.status, bool(context.flushed_all))
        return DONE

    def admit_vg(self, length: int) -> int:
        """The finding about a VG record of `length` words, which is counted; or 0."""
        return int(_native()["admit_vg"](self._address, length & 0xFFFFFFFF))

    def compile(self) -> None:
        """The native function that is wanted may be called from now on."""
        number = self.context.wanted
        self.context.functions[number] = _function(number).address


_FINDINGS = {
    bc.AFTER_FLUSH: ("CLE-021", "a primitive comes after the flush; nothing is drawn"),
    bc.NOT_STARTED: ("CLE-011", "a primitive comes before record 6; nothing is drawn"),
    bc.NO_GRID: ("CLE-010", "a primitive comes before any binning mode (112)"),
    bc.NO_SHADER: ("CLE-013", "a primitive comes before any shader state"),
    bc.NO_VERTICES: ("CLE-038", "records 32 and 33 name vertices, but a VG shader state has none"),
}


@dataclass
class BinningRequests:
    """Serves the requests of native code; `refused` counts primitive records that were left out."""

    executor: ControlListExecutor
    native: NativeBinning
    binner: Binner
    coordinates: VertexStage
    ranges: DrawRanges
    lint: Lint
    refused: int = 0

    def __post_init__(self) -> None:
        self._reporter = self.executor.reporter
        self._context = self.native.context
        self.serve = {
            bc.SHADE: self._shade,
            bc.NAME: self._name,
            bc.MAKE_TILES: lambda _: self.binner.make_tiles(self._context.wanted),
            bc.COMPILE: lambda _: self.native.compile(),
            bc.ASK_ARRAY: self._report_array,
            bc.ASK_WINDOW: self._report_window,
            bc.ASK_LENGTH: self._report_length,
            bc.REPORTS: self.left_out,
        }
        """By result of the native call; each is called with the address of the record."""

    def _shade(self, address: int) -> None:
        """Shades the coordinates of a draw whose program native code cannot run yet."""
        context = self._context
        shader, output = self._shader().gl, self.binner.context.vertices
        assert shader is not None
        rows = COORDINATE_ROWS + int(shader.record.point_size)
        try:
            self.coordinates.shade(shader, rows, context.first, context.last, context.marks, output)
        except Unsupported as refusal:
            place = address if refusal.address is None else refusal.address
            self.refuse(refusal.code, refusal.message, place)
            context.answers |= bc.LEFT_OUT
            return
        if not context.answers & bc.NAMED:
            self._name(address)
        context.answers |= bc.SHADED

    def _name(self, address: int) -> None:
        """Checks the memory that a record 112 or a draw uses."""
        context = self._context
        context.answers |= bc.NAMED
        if self.executor.byte(address) == TileBinningMode.id:
            mode = self.executor.payload(address, TileBinningMode)
            if not (mode.tiles_x and mode.tiles_y):
                text = f"an empty tile grid: record 112 has {mode.tiles_x} x {mode.tiles_y} tiles"
                self._reporter.report("CLE-032", text, address=address)
            self.lint.binning_mode(address, mode)
            if not mode.auto_initialise and context.checks_state:
                self._use_tile_state(mode, address)
            return
        record = self._draw_record(address)
        if isinstance(record, IndexedPrimitives):
            size = record.length * record.index_type.bits // 8
            self.lint.addresses.uses(Use.INDICES, record.address, size, address)
        kind = self.binner.state.shader_kind
        self.ranges.draw(self._shader(), kind, context.first, context.last)

    def _shader(self) -> ShaderRecord:
        """The shader state of a draw, which has one."""
        state = self.binner.state
        shader = read_shader_record(self.executor.memory, state.shader_kind, state.shader_word)
        assert shader is not None
        return shader

    def pool_is_short(self, address: int) -> None:
        """A record 112 has less memory than its tiles need."""
        mode = self.executor.payload(address, TileBinningMode)
        self._reporter.report(
            "CLE-027",
            f"{int(mode.memory_size)} bytes for {int(mode.tiles_x * mode.tiles_y)} tiles of"
            f" {self.binner.context.initial_bytes} bytes",
            address=int(mode.address),
        )

    def _use_tile_state(self, mode: TileBinningMode, address: int) -> None:
        """The binner begins with the tile state array as it is, and leaves its own there.

        No document says what an entry holds: pointers into the tile's list at least.
        """
        memory, place = self.executor.memory, int(mode.state_address)
        tiles, block = int(mode.tiles_x * mode.tiles_y), 32 << int(mode.initial_block)
        if any(memory.read(place, TILE_STATE_BYTES * tiles)):
            self._reporter.report(
                "CLE-045",
                f"the tile state array at 0x{place:08x} is not zero, and record 112 does not let "
                "the binner initialise it",
                address=address,
            )
        first, rest = int(mode.address), bytes(TILE_STATE_BYTES - 4)
        lists = (first + block * number & 0xFFFFFFFF for number in range(tiles))
        memory.write(place, b"".join(struct.pack("<I", at | 1) + rest for at in lists))

    def draws_nothing(self, address: int) -> None:
        """A draw has too few vertices for a primitive."""
        record = self._draw_record(address)
        mode = PrimitiveMode(record.mode).name.lower().replace("_", " ")
        count = "1 vertex makes" if record.length == 1 else f"{record.length} vertices make"
        text = f"{count} no primitive ({mode})"
        self._reporter.report("CLE-046", text, address=address)

    def _report_array(self, address: int) -> None:
        self._context.answers |= bc.ARRAY_REPORTED
        record = self.executor.payload(address, VertexArrayPrimitives)
        text = f"vertices {record.first} to {record.first + record.length - 1} of an array"
        self._reporter.report("CLE-015", text, address=address)

    def _report_window(self, address: int) -> None:
        self._context.answers |= bc.WINDOW_REPORTED
        self.window_is_empty(address)

    def window_is_empty(self, address: int) -> None:
        """A primitive is drawn through a clip window without pixels."""
        self.lint.clip_window(self.binner.state, self.binner.context.empty_windows, address)

    def _report_length(self, address: int) -> None:
        """The vertices are shaded."""
        self._context.answers |= bc.LENGTH_REPORTED | bc.SHADED
        record = self._draw_record(address)
        where = record.address if isinstance(record, IndexedPrimitives) else None
        self.binner.limited(record.length, where)

    def left_out(self, address: int) -> None:
        """Reports the finding about the record at `address`."""
        finding, context = self._context.finding, self._context
        if finding == bc.EARLY_START:
            text = "binning starts (6) before any binning mode (112) sets its memory"
            self._reporter.report("CLE-010", text, address=address)
        elif finding == bc.BAD_INDEX_TYPE:
            record = self.executor.payload(address, IndexedPrimitives)
            self.refuse("CLE-016", f"index type {record.index_type}", address)
        elif finding == bc.BAD_MODE:
            text = f"primitive mode {self._draw_record(address).mode} (0 to 6 exist)"
            self.refuse("CLE-016", text, address)
        elif finding == bc.TOO_MANY:
            text = f"draws of {context.indices} vertices in one binning list; this one is left out"
            self.refuse("VTX-001", text, address)
        else:
            self.refuse(*_FINDINGS[finding], address)

    def _draw_record(self, address: int) -> IndexedPrimitives | VertexArrayPrimitives:
        if self.executor.byte(address) == IndexedPrimitives.id:
            return self.executor.payload(address, IndexedPrimitives)
        return self.executor.payload(address, VertexArrayPrimitives)

    def refuse(self, code: str, text: str, address: int) -> None:
        """A primitive record that is left out."""
        self.refused += 1
        self._reporter.report(code, text, address=address)
