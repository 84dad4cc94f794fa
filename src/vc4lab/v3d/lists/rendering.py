"""Thread 1: what the records of a rendering list do.

The walker in Python meets only system records, tile coordinates, loads and stores; it notes for
each tile which bytes of the list belong to it. State records, sub-lists and primitives in those
bytes are walked natively when the frame is drawn (`frame.py`), in the same order. A frame is drawn
when its end-of-frame store is met or the thread stops. Source: hardware reference 3.3, 3.6, 7.10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.records.codes import FrameFormat, TileBuffer, TileFormat, Tiling
from vc4lab.records.control import RECORDS
from vc4lab.records.declarations import (
    ClearColours,
    LoadGeneral,
    StoreFull,
    StoreGeneral,
    TileRenderingMode,
)
from vc4lab.v3d.lists.render_state import STATE_FIELDS

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.lists.cle import ControlListExecutor, Handler
    from vc4lab.v3d.lists.thread import ListThread

_FRAME_FORMATS = {
    FrameFormat.BGR565_DITHERED: TileFormat.BGR565_DITHERED,
    FrameFormat.RGBA8888: TileFormat.RGBA8888,
    FrameFormat.BGR565: TileFormat.BGR565,
}
"""Record 113 and records 28/29 number the same formats differently."""

_STORED = (TileBuffer.NONE, TileBuffer.COLOUR, TileBuffer.ZS, TileBuffer.Z)


@dataclass(frozen=True)
class Transfer:
    """A load or store of one buffer of a tile, at the address of the whole surface."""

    buffer: TileBuffer
    address: int = 0
    tiling: int = Tiling.RASTER
    format: int = TileFormat.RGBA8888


@dataclass(frozen=True)
class ClearValues:
    """Record 114: what the tile buffer holds after a store. ``colour`` is RGBA8888, R lowest."""

    colour: int = 0
    z: int = 0
    stencil: int = 0
    mask: int = 0


@dataclass(frozen=True)
class FrameMode:
    """Record 113: the surface that records 24 and 25 store to, and its geometry."""

    address: int = 0
    width: int = 0
    height: int = 0
    multisample: bool = False
    wide_colour: bool = False
    format: int = TileFormat.RGBA8888
    tiling: int = Tiling.RASTER
    decimate: int = 0


@dataclass(frozen=True)
class TileTask:
    """What happens to one tile between two stores.

    ``ranges`` are the (start, end) pieces of list to walk; ``clear_colour`` and ``clear_zs`` say
    what the store clears afterwards, to ``clear``.
    """

    column: int
    row: int
    loads: tuple[Transfer, ...]
    ranges: tuple[tuple[int, int], ...]
    store: Transfer
    clear_colour: bool
    clear_zs: bool
    clear: ClearValues


@dataclass
class Frame:
    """The tasks of one frame in list order, and what the tile buffer held before the first."""

    mode: FrameMode
    initial: ClearValues
    tasks: list[TileTask] = field(default_factory=list)


class RenderingStage:
    """Collects frames from the rendering list and hands them to ``draw``.

    ``draw(frame)`` renders; ``finished()`` is called when a frame's last store is in memory.
    """

    def __init__(
        self,
        executor: ControlListExecutor,
        thread: ListThread,
        reporter: Reporter,
        draw: Callable[[Frame], None],
        finished: Callable[[], None],
    ) -> None:
        self.executor = executor
        self.thread = thread
        self.reporter = reporter
        self.draw = draw
        self.finished = finished
        self.mode = FrameMode()
        self.clear = ClearValues()
        self.buffer = ClearValues()
        self.coordinates: tuple[int, int] | None = None
        self.loads: list[Transfer] = []
        self.ranges: list[tuple[int, int]] = []
        self.range_start = 0
        self.tasks: list[TileTask] = []
        self.initial = self.buffer
        self._jump: dict[int, Handler] = {}
        executor.install(1, self._handlers())

    def begin(self) -> None:
        """The thread starts at its current address: a new range of list begins there."""
        self.ranges.clear()
        self.range_start = self.thread.current

    def stopped(self) -> None:
        """The thread stopped or stalled; what is collected is drawn although no frame ended."""
        if self.thread.running or not self.tasks:
            return
        self._draw()
        self.reporter.report(
            "CLE-020",
            "the rendering list ends after tile stores, but none of them carries the end of frame;"
            " RFC does not count it",
            address=self.thread.current,
        )

    # -- handlers ----------------------------------------------------------------------------

    def _handlers(self) -> dict[int, Handler]:
        table: dict[int, Handler] = {
            16: self._on_branch,
            17: self._on_call,
            18: self._on_return,
            24: lambda address: self._on_store_resolved(address, False),
            25: lambda address: self._on_store_resolved(address, True),
            26: self._on_full_resolution,
            27: self._on_full_resolution,
            28: self._on_store,
            29: self._on_load,
            32: self._on_primitives,
            33: self._on_primitives,
            48: self._on_compressed,
            49: self._on_compressed,
            113: self._on_mode,
            114: self._on_clear_colours,
            115: self._on_coordinates,
        }

        def walked_later(_address: int) -> None:
            return None

        table |= dict.fromkeys(STATE_FIELDS, walked_later)
        return table | dict.fromkeys((4, 5, 6, 105, 106, 112), self._on_foreign)

    def _on_foreign(self, address: int) -> None:
        identity = self.executor.byte(address)
        self.reporter.report(
            "CLE-008",
            f"{RECORDS[identity].title} ({identity}) does nothing in the rendering list",
            address=address,
        )

    def _on_branch(self, address: int) -> None:
        self._leave_range(address)
        self.thread.current = self.range_start = self.executor.word(address + 1)

    def _on_call(self, address: int) -> None:
        if self.coordinates is not None:
            return  # a tile list: walked natively
        self._leave_range(address)
        self.executor.call(self.thread, address)
        self.range_start = self.thread.current

    def _on_return(self, address: int) -> None:
        self._leave_range(address)
        self.thread.returns += 1
        if self.thread.stack:
            self.thread.current = self.thread.stack.pop()
        self.range_start = self.thread.current

    def _leave_range(self, address: int) -> None:
        if address != self.range_start:
            self.ranges.append((self.range_start, address))

    def _on_mode(self, address: int) -> None:
        record = self.executor.payload(address, TileRenderingMode)
        mode = FrameMode(
            address=record.address,
            width=record.width,
            height=record.height,
            multisample=bool(record.multisample),
            wide_colour=bool(record.colour64),
            format=_FRAME_FORMATS.get(record.format, TileFormat.RGBA8888),
            tiling=record.tiling,
            decimate=record.decimate,
        )
        if self.tasks and mode != self.mode and self._has_effect():
            self._draw()
        self.mode = mode

    def _has_effect(self) -> bool:
        return any(task.store.buffer for task in self.tasks)

    def _on_clear_colours(self, address: int) -> None:
        record = self.executor.payload(address, ClearColours)
        self.clear = ClearValues(record.colour, record.z, record.stencil, record.vg_mask)

    def _on_coordinates(self, address: int) -> None:
        executor = self.executor
        self.coordinates = (executor.byte(address + 1), executor.byte(address + 2))

    def _on_load(self, address: int) -> None:
        record = self.executor.payload(address, LoadGeneral)
        if record.buffer in (TileBuffer.COLOUR, TileBuffer.ZS):
            self.loads.append(Transfer(record.buffer, record.address, record.tiling, record.format))
        elif record.buffer != TileBuffer.NONE:
            self._not_yet(address, f"a load of tile buffer {record.buffer}")

    def _on_store_resolved(self, address: int, last: bool) -> None:
        mode = self.mode
        store = Transfer(TileBuffer.COLOUR, mode.address, mode.tiling, mode.format)
        self._store(address, store, last, True, True)

    def _on_store(self, address: int) -> None:
        record = self.executor.payload(address, StoreGeneral)
        self._store(
            address,
            Transfer(record.buffer, record.address, record.tiling, record.format),
            bool(record.last_tile),
            not record.disable_colour_clear,
            not record.disable_zs_clear,
        )

    def _on_full_resolution(self, address: int) -> None:
        self._not_yet(address, "full-resolution tile dumps (records 26 and 27)")
        if self.executor.byte(address) == StoreFull.id:
            last = bool(self.executor.payload(address, StoreFull).last_tile)
            self._store(address, Transfer(TileBuffer.NONE), last, True, True)

    def _on_primitives(self, address: int) -> None:
        self._not_yet(address, "primitive records 32 and 33 in the rendering list")

    def _on_compressed(self, address: int) -> None:
        self.thread.current = self.executor.behind_compressed_list(address)

    def _not_yet(self, address: int, what: str) -> None:
        self.reporter.report("CLE-004", f"{what}: not simulated yet, skipped", address=address)

    def _store(
        self, address: int, store: Transfer, last: bool, clear_colour: bool, clear_zs: bool
    ) -> None:
        if self.coordinates is None:
            self.reporter.report(
                "CLE-019", "a tile is stored, but no tile coordinates precede it", address=address
            )
        if store.buffer not in _STORED:
            self._not_yet(address, f"a store of tile buffer {store.buffer}")
            store = Transfer(TileBuffer.NONE)
        column, row = self.coordinates or (0, 0)
        self._leave_range(address)
        if not self.tasks:
            self.initial = self.buffer
        self.tasks.append(
            TileTask(
                column,
                row,
                tuple(self.loads),
                tuple(self.ranges),
                store,
                clear_colour,
                clear_zs,
                self.clear,
            )
        )
        if clear_colour or clear_zs:
            self.buffer = self.clear
        self.loads.clear()
        self.ranges.clear()
        self.range_start = self.thread.current
        self.coordinates = None
        if last:
            self._draw()
            self.finished()

    def _draw(self) -> None:
        frame = Frame(self.mode, self.initial, self.tasks)
        self.tasks = []
        self.draw(frame)
