"""Thread 1: what the records of a rendering list do.

Nearly all records are executed natively by `../tiles/collector.py`, which notes for each tile which
pieces of list belong to it, and asks for what it cannot do alone. State, tile lists and primitives
in those pieces are read when the frame is drawn (`../draws/frame.py`), in the same order. A frame
is drawn when its end-of-frame store is met or the thread stops. Source: hardware reference 3.3,
3.6, 7.10.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.records.codes import (
    FrameFormat,
    ListData,
    ListPrimitive,
    PrimitiveMode,
    TileBuffer,
    TileFormat,
    VgPrimitive,
)
from vc4lab.records.control import records_of
from vc4lab.records.declarations import (
    Branch,
    IndexedPrimitives,
    LoadFull,
    LoadGeneral,
    Return,
    StoreGeneral,
    TileRenderingMode,
    VertexArrayPrimitives,
    VgCoordinateArray,
    VgInline,
    WaitSemaphore,
)
from vc4lab.records.payload import RENDERING, Compressed
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.cle.executor import executes
from vc4lab.v3d.state.frame_mode import FrameMode
from vc4lab.v3d.tile_lists.list_end import list_end
from vc4lab.v3d.tiles import collector as cc
from vc4lab.v3d.tiles.collector import Collector

if TYPE_CHECKING:
    from vc4lab.v3d.cle.executor import ControlListExecutor
    from vc4lab.v3d.cle.thread import ListThread

_FRAME_FORMATS = {
    FrameFormat.BGR565_DITHERED: TileFormat.BGR565_DITHERED,
    FrameFormat.RGBA8888: TileFormat.RGBA8888,
    FrameFormat.BGR565: TileFormat.BGR565,
}
"""Record 113 and records 28/29 number the same formats differently."""


@lru_cache(maxsize=256)
def _frame_mode(payload: bytes) -> tuple[TileRenderingMode, FrameMode]:
    """Cached: frames share a few modes."""
    record = TileRenderingMode.from_bytes(payload)
    return record, FrameMode(
        address=record.address,
        width=record.width,
        height=record.height,
        multisample=bool(record.multisample),
        wide_colour=bool(record.colour64),
        format=_FRAME_FORMATS.get(record.format, TileFormat.RGBA8888),
        tiling=record.tiling,
        decimate=record.decimate,
        vg_mask=bool(record.vg_mask),
        double_buffer=bool(record.double_buffer),
    )


class RenderingStage:
    """Collects frames from the rendering list and hands them to ``draw``.

    ``draw(mode, collector)`` renders what the collector holds; ``finished()`` is called when the
    last store of a frame is in memory.
    """

    def __init__(
        self,
        executor: ControlListExecutor,
        thread: ListThread,
        lint: Lint,
        draw: Callable[[FrameMode, Collector], None],
        finished: Callable[[], None],
    ) -> None:
        self.executor = executor
        self.thread = thread
        self.reporter = executor.reporter
        self.draw = draw
        self.unknowns = executor.services.unknowns
        self.lint = lint
        self.finished = finished
        self.mode = FrameMode()
        self._tile_list = 0
        """The branch to a tile's list that was looked at last."""
        self._may_hold = True
        """Whether the collector may have something that was not drawn."""
        self._told_misplaced = False
        """Whether a store of this list without coordinates was reported."""
        self._binning, self._notes = executor.threads[0], executor.notes
        self._used = lint.addresses.used
        self.collector = Collector(executor.memory.base)
        self._system = executor.install(1, self)
        self._serve: dict[int, Callable[[int], None]] = {
            cc.EXHAUSTED: lambda _: executor.stall_endless_list(thread),
            cc.FULL: lambda _: self.collector.grow(),
            cc.TILE_AGAIN: lambda _: self._draw(),
            cc.MISPLACED: self._on_misplaced_store,
            cc.NEW_MODE: self._on_mode,
            cc.CALL: self._on_jump,
            cc.STALL: self._system[WaitSemaphore.id],
            cc.UNKNOWN_LOAD: self._on_unknown_load,
            cc.UNKNOWN_STORE: self._on_unknown_store,
        }
        """By why the collector stopped; each is called with the address of the record."""

    def begin(self) -> None:
        """The thread starts at its current address: a new piece of list begins there."""
        self.collector.begin(self.thread.current)
        self._told_misplaced = False

    def stopped(self) -> None:
        """The thread stopped: what is collected is drawn although no frame ended."""
        if not self._may_hold or self.thread.running:
            return
        self._may_hold = False
        if not self.collector.context.tasks:
            return
        self._draw()
        self.reporter.report(
            "CLE-020",
            "the rendering list ends after tile stores, but none of them carries the end of frame;"
            " RFC does not count it",
            address=self.thread.current,
        )

    @executes(*records_of(native=RENDERING))
    def _collect(self, address: int) -> None:
        """Executes the record at `address` and those after it, up to one of another kind."""
        self._may_hold = True
        thread, collector, serve = self.thread, self.collector, self._serve
        context, binning, notes = collector.context, self._binning, self._notes
        if self._used.subscriptions:  # listeners get every mode
            context.mode_known = 0
        thread.current = address
        while thread.current != thread.end and thread.running and thread.stalled is None:
            context.increments = binning.increments
            reason = collector.run(thread.current, thread.end, notes)
            thread.current = context.here & 0xFFFFFFFF
            if binning.increments != context.increments:
                binning.increments = context.increments
                self.executor.waited(1)
            if reason == cc.FRAME_END:
                self._frame_ends()
            elif reason == cc.OTHER:
                return
            else:
                serve[reason](context.record_at & 0xFFFFFFFF)

    @executes(Branch, Return)
    def _on_jump(self, address: int) -> None:
        """The piece of list ends, and another begins."""
        self.collector.close_piece(address)
        self._system[self.executor.byte(address)](address)
        self.collector.begin(self.thread.current)

    @executes(IndexedPrimitives, VertexArrayPrimitives)
    def _on_primitives(self, address: int) -> None:
        """Drawn by the scan of the frame's pieces; here only the format that it leaves counts."""
        mode = self.executor.byte(address + 1) & 0xF
        if mode in PrimitiveMode._value2member_map_:
            form = ListData.INDEX16.of(PrimitiveMode(mode).list_primitive)
            self.collector.context.list_format = form

    @executes(VgCoordinateArray, VgInline)
    def _on_vector_primitives(self, address: int) -> None:
        kind = self.executor.byte(address + 1) & 0xF
        is_known = kind in VgPrimitive._value2member_map_
        primitive = VgPrimitive(kind).list_primitive if is_known else ListPrimitive.TRIANGLES
        self.collector.context.list_format = ListData.XY.of(primitive)
        if self.executor.byte(address) == VgInline.id:
            self.executor.pass_vg_list(self.thread, address, kind)

    @executes(*records_of(Compressed))
    def _on_compressed(self, address: int) -> None:
        after = list_end(self.executor.memory, address, self.collector.context.list_format)
        if after is None:
            self.reporter.report(
                "CLE-017", "a compressed list in the rendering list does not end", address=address
            )
            self.thread.stop_with_error()
        else:
            self.executor.jump(self.thread, address, after)

    # -- requests of the collector -------------------------------------------------------------

    def _on_mode(self, address: int) -> None:
        data = self.executor.memory.read(address + 1, TileRenderingMode.size - 1)
        record, mode = _frame_mode(data)
        quiet = self.lint.rendering_mode(address, record)
        if mode is not self.mode and mode != self.mode and self.collector.context.tasks:
            self._draw()
        self.mode = mode
        self.collector.set_mode(data, mode.tile(self.unknowns), uses_mask=mode.vg_mask, quiet=quiet)

    def _on_misplaced_store(self, address: int) -> None:
        if not self._told_misplaced:
            self._told_misplaced = True
            text = "a tile is stored, but no tile coordinates (115) precede it since the store before"
            self.reporter.report("CLE-019", text, address=address)
        self.collector.context.has_coordinates = 1

    def _on_unknown_load(self, address: int) -> None:
        buffer = self.executor.payload(address, LoadGeneral).buffer
        is_full = self.executor.byte(address) == LoadFull.id
        self._not_yet(address, f"a load of tile buffer {TileBuffer.FULL if is_full else buffer}")

    def _on_unknown_store(self, address: int) -> None:
        record = self.executor.payload(address, StoreGeneral)
        self._not_yet(address, f"a store of tile buffer {record.buffer}")
        if record.last_tile:
            self._frame_ends()

    def _not_yet(self, address: int, what: str) -> None:
        self.reporter.report("CLE-004", f"{what}: not simulated yet, skipped", address=address)

    # -- frames --------------------------------------------------------------------------------

    def _frame_ends(self) -> None:
        self._draw()
        self.finished()

    def _draw(self) -> None:
        context, addresses = self.collector.context, self.lint.addresses
        place = context.tile_list
        if place and (place != self._tile_list or addresses.used.subscriptions):
            self._tile_list = place
            addresses.tile_list(place & 0xFFFFFFFF, context.tile_list_at & 0xFFFFFFFF)
        try:
            self.draw(self.mode, self.collector)
        finally:  # also of a frame that was given up, or the next one would draw it again
            self.collector.reset()
