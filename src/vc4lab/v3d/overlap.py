"""List threads that do not wait for each other, or are started while they run.

Lists are executed at once, but take guest time (`progress.py`): here each thread's moments are
compared. A frame that begins before the binner's time is over is drawn from what lay in tile
memory before (`ptb/overwritten.py`). Threads that wait, by records 7 and 8 or because the program
looked at BFC, RFC or an interrupt, never meet this. Source: hardware reference 1.2, 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.draws.frame import FrameRenderer
    from vc4lab.v3d.progress import Progress
    from vc4lab.v3d.ptb.binner import Binner
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tiles.collector import CollectContext, Collector

_WORD = 0xFFFFFFFF


class Overlap:
    """Compares the moments of both list threads, where there is guest time (`progress`)."""

    def __init__(self, reporter: Reporter, binner: Binner, frames: FrameRenderer) -> None:
        self._reporter = reporter
        self._binner = binner
        self._frames = frames
        self._progress: Progress | None = None
        self._collected: CollectContext | None = None
        """The tiles of the frame before, as long as no other begins."""

    def watch(self, progress: Progress) -> None:
        """There is guest time from now on."""
        self._progress = progress
        self._binner.keep_overwritten()

    def runs_still(self, thread: ListThread, what: str) -> None:
        """A list thread is started or reset (`what`) before its time is over."""
        if self._progress is not None:
            self._reporter.report(
                "CLE-044", f"the {thread.name} thread is {what} while it still runs", address=thread.first
            )

    def draw(self, mode: FrameMode, collector: Collector) -> None:
        """Draws a frame: from the tile lists that are in memory when it begins."""
        progress, self._collected = self._progress, collector.context
        if progress is not None:
            binning, rendering = progress.threads
            if rendering < binning and self._is_early(collector.context):
                with self._binner.before_writing():
                    self._frames.draw(mode, collector)
                return
        self._frames.draw(mode, collector)

    def _is_early(self, context: CollectContext) -> bool:
        """Whether the lists of a frame, which begins before binning is over, are those binned."""
        place = context.tile_list & _WORD
        if not place or not self._binner.writes_list(place):
            return False
        self._reporter.report(
            "CLE-042",
            f"the frame's tile lists, from 0x{place:08x} on, are still being written by the "
            "binner, and the frame did not wait",
            address=context.tile_list_at & _WORD,
        )
        return True

    def flushed(self, thread: ListThread, progress: Progress) -> None:
        """Binning has flushed; its time was not added yet."""
        binning, rendering = progress.threads
        if binning < rendering and self._collected is not None and self._progress is not None:
            place = self._collected.tile_list & _WORD
            if place and self._binner.writes_list(place):
                self._reporter.report(
                    "CLE-043",
                    f"the binner writes tile lists from 0x{place:08x} on, from which a frame is "
                    "still being drawn",
                    address=thread.first,
                )
