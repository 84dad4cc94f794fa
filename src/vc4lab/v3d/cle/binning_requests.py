"""What Python does for native binning: requests, messages, uses of memory.

Native code stops at a record that lacks something and executes it again when the request is served;
`answers` say what was done for it: `binning_context.py`. Source: hardware reference 3.4, 3.7.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.declarations import IndexedPrimitives, TileBinningMode, VertexArrayPrimitives
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES, Lint
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.native_binning import NativeBinning
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.ptb.binner import Binner
from vc4lab.v3d.state.shader_record import ShaderRecord, read_shader_record
from vc4lab.v3d.vertex.context import COORDINATE_ROWS
from vc4lab.v3d.vertex.shading import VertexStage

if TYPE_CHECKING:
    from vc4lab.v3d.cle.executor import ControlListExecutor

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
                self._reporter.report("CLE-032", "an empty tile grid", address=address)
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
        text = f"{record.length} vertices make no primitive ({mode})"
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
            self.refuse("CLE-016", f"primitive mode {self._draw_record(address).mode}", address)
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
