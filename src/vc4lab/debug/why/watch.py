"""Notices frames without a picture, and reports why: one listener for all fronts.

What it looks at costs nothing: after each rendering list how many quads were shaded, which is counted
anyway, and in the first frames whether the picture has one colour. Only a frame without a picture is run a
second time, with recording (`explain.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.v3d.state.frame_mode import COLOUR

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobEnded

PICTURES = 4
"""Frames whose pictures are looked at."""
TINY = 600
"""So many times the quads of a frame that draws next to nothing are less than its pixels."""
MOST_RUNS = 8
"""Frames that are run again."""


BINNED = ("rejected", "degenerate", "outside", "entries")
"""The binner's counts of primitives, one for each thing that can become of them."""


def report_pixelless_run(v3d: V3D, reporter: Reporter) -> None:
    """At the end of a run of a driver's programs: none of all its draws has come to a pixel.

    Single frames of theirs may well draw nothing.
    """
    counted = v3d.events()
    drew = sum(counted.get(name, 0) for name in BINNED)
    if drew and not counted.get("quads_valid", 0):
        left_out = sum(counted.get(name, 0) for name in BINNED[:-1])
        entries = counted.get("entries", 0)
        reporter.report(
            "DRAW-015",
            f"nothing that was drawn has come to a pixel: the binner has left out {left_out} primitives, "
            f"and put others into tile lists {entries} times; --capture F.vc4cap and then `vc4lab why "
            "F.vc4cap` say which stage drops them, and what decides it",
            block="v3d",
        )


class EmptyFrames:
    """Looks at the frames of a V3D as they end; each pair of lists is explained once."""

    def __init__(self, v3d: V3D, reporter: Reporter) -> None:
        self._v3d, self._reporter = v3d, reporter
        self._quads = self._moved = 0
        self._frames = self._runs = 0
        self._started = v3d.threads[0].started
        self._binned = False
        """Whether a binning list was started since the frame before."""
        self._counts = reporter.counts.copy()
        self._known: set[tuple[int, int]] = set()
        v3d.listeners.job_ended.subscribe(self._ended)

    def _ended(self, event: JobEnded) -> None:
        """A list thread has stopped."""
        if not event.thread or self._runs >= MOST_RUNS:
            return
        v3d, counts, told = self._v3d, self._reporter.counts, []
        quads, moved = v3d.frames.work_so_far(v3d.progress is not None)
        drew, stored = quads - self._quads, moved - self._moved
        self._quads, self._moved = quads, moved
        self._frames += 1
        started = v3d.threads[0].started
        self._binned, self._started = started != self._started, started
        if counts != self._counts:
            told, self._counts = list(counts - self._counts), counts.copy()
        if event.error or (drew and (self._frames > PICTURES or not self._seems_empty(stored, drew))):
            return
        self._explain(told)

    def _seems_empty(self, stored: int, quads: int) -> bool:
        """Whether one of the first frames has one colour or next to nothing in it, or has not stored all
        of its tiles."""
        mode = self._v3d.rendering.mode
        if not (mode.width and mode.height):
            return False
        if quads * TINY < mode.width * mode.height:
            return True
        width, height = mode.tile(self._v3d.unknowns)
        if stored < -(-mode.width // width) * -(-mode.height // height):
            return True
        surface = mode.surface(self._v3d.unknowns)
        if surface.buffer != COLOUR or surface.wide or surface.bits % 8:
            return False
        size, first = surface.bits // 8, surface.address
        pixel = self._v3d.memory.read(first, size)
        row = pixel * mode.width
        if not self._v3d.memory.holds(first, row):
            return False
        return all(self._v3d.memory.holds(first + line * surface.pitch, row) for line in range(mode.height))

    def _explain(self, told: list[str]) -> None:
        from vc4lab.debug.why.explain import why_empty
        from vc4lab.debug.why.rerun import Lists

        binning, rendering = self._v3d.threads
        binned = (binning.first, binning.end) if self._binned else None
        key = binning.first if binned else 0, rendering.first
        if key in self._known:
            return
        self._known.add(key)
        self._runs += 1
        cause = why_empty(self._v3d, Lists(binned, (rendering.first, rendering.end)), told)
        if cause is not None:
            self._reporter.report(
                cause.code, cause.text, address=cause.address, block="v3d", detail=cause.detail
            )
