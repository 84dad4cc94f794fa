"""Draws a frame: tile lists → draws → pipelines and shaded vertices → tiles on worker threads.

Python touches each task (tile) and each distinct render state once; records inside tile lists,
primitives, vertices and pixels are native. Source: hardware reference 1.2, 3.3, 7.10.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING

from vc4lab.records.codes import TileBuffer
from vc4lab.v3d.fragment.stores import Surface
from vc4lab.v3d.fragment.tile_job import FrameWork
from vc4lab.v3d.fragment.tiles import TileScheduler
from vc4lab.v3d.geometry.tile_lists import ScanResult, scan_tile_lists
from vc4lab.v3d.lists.draws import DrawPreparer
from vc4lab.v3d.lists.render_state import default_state
from vc4lab.v3d.lists.rendering import ClearValues, Frame, TileTask, Transfer

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns


def zs_word(clear: ClearValues) -> int:
    """Z and stencil as the tile buffer holds them: Z in bits 31:8, stencil in 7:0."""
    return clear.z << 8 | clear.stencil


class FrameRenderer:
    """The rendering half of the V3D below its control list; keeps state from frame to frame."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        *,
        unknowns: Unknowns,
        engine: str,
        threads: int | None,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.threads = threads
        self.state = default_state()
        self.preparer = DrawPreparer(memory, reporter, unknowns=unknowns, engine=engine)

    @cached_property
    def scheduler(self) -> TileScheduler:
        """The worker threads; made at the first frame, because that compiles the tile loop."""
        return TileScheduler(self.threads, self.unknowns)

    def draw(self, frame: Frame) -> None:
        """Renders a frame completely: when this returns, its stores are in guest memory."""
        ranges = [piece for task in frame.tasks for piece in task.ranges]
        scan = scan_tile_lists(self.memory, ranges, self.state, depth=0)
        self.state = scan.final_state
        self._report_errors(frame, scan)
        if frame.mode.multisample or frame.mode.wide_colour:
            self.reporter.report(
                "CLE-031",
                "4x multisample and 64-bit colour frames are not drawn yet; the frame is left out",
            )
            return
        _Assembly(self, frame, scan).run()

    def _report_errors(self, frame: Frame, scan: ScanResult) -> None:
        if not scan.errors:
            return
        owners = [task for task in frame.tasks for _ in task.ranges]
        for error in scan.errors:
            task = owners[error.tile]
            self.reporter.report(
                "CLE-034",
                f"the list of tile ({task.column}, {task.row}) has {error.text}"
                f" (byte 0x{error.byte:02x}); the rest of this tile's list is left out",
                address=error.address,
            )


class _Assembly:
    """Turns the tasks of one frame into chains of tile operations and runs them."""

    def __init__(self, renderer: FrameRenderer, frame: Frame, scan: ScanResult) -> None:
        self.renderer = renderer
        self.frame = frame
        self.scan = scan
        self.draws = [renderer.preparer.prepare(use) for use in scan.draws]
        self.buffer = frame.initial
        self.work = self._new_work()
        self.stored: set[tuple[int, int, int]] = set()
        count = sum(len(task.ranges) for task in frame.tasks) + 1
        self.first_segment = (ctypes.c_int32 * count).from_address(scan.tile_offsets)

    def _new_work(self) -> FrameWork:
        mode = self.frame.mode
        return FrameWork(
            self.renderer.memory,
            mode.width,
            mode.height,
            draws=self.draws,
            segments=self.scan.segments,
        )

    def run(self) -> None:
        """Assembles all tasks; a chain ends where a store leaves nothing in the tile buffer."""
        place = 0
        fresh = True
        for task in self.frame.tasks:
            first, last = self.first_segment[place], self.first_segment[place + len(task.ranges)]
            place += len(task.ranges)
            cleared = task.clear_colour and task.clear_zs
            if fresh and cleared and task.store.buffer == TileBuffer.NONE:
                self.buffer = task.clear  # a store of nothing: only the clear counts
                continue
            self._task(task, fresh, first, last)
            fresh = cleared
            if cleared:
                self.buffer = task.clear
        self._flush()

    def _task(self, task: TileTask, fresh: bool, first: int, last: int) -> None:
        target = (task.column, task.row, task.store.address)
        if fresh:
            if target in self.stored:
                self._flush()  # the same pixels again: not side by side with the first time
            self.work.begin_chain()
            self.work.clear(self.buffer.colour, zs_word(self.buffer))
        self.stored.add(target)
        self.work.tile(task.column, task.row)
        for load in task.loads:
            self.work.load(self._surface(load))
        self.work.draw(first, last - first)
        if task.store.buffer != TileBuffer.NONE:
            self.work.store(self._surface(task.store))
        if not (task.clear_colour and task.clear_zs):
            self.work.clear(
                task.clear.colour if task.clear_colour else None,
                zs_word(task.clear) if task.clear_zs else None,
            )

    def _surface(self, transfer: Transfer) -> Surface:
        mode = self.frame.mode
        return Surface(
            transfer.address,
            mode.width,
            mode.height,
            int(transfer.tiling),
            int(transfer.format),
            int(transfer.buffer),
        )

    def _flush(self) -> None:
        if self.work.ops:
            result = self.renderer.scheduler.run(self.work)
            for number in result.bad_lists:
                self.renderer.reporter.report(
                    "CLE-017", f"a compressed primitive list of draw {number} does not end"
                )
            for number in result.unsupported:
                self.renderer.preparer.report_unsupported(self.draws[number])
        self.work = self._new_work()
        self.stored.clear()
