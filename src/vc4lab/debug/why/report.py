"""Writes what the draws of each frame come to, stage by stage, as lines: for `vc4lab why`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.debug.why.evidence import Evidence
from vc4lab.debug.why.explain import cause_of
from vc4lab.debug.why.rerun import Lists, run_again

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobEnded

_WORD = 0xFFFFFFFF


class FrameReports:
    """Runs each frame of a V3D again when it has ended, and prints its stages and what is wrong.

    show: takes each line. `wanted` says whether the frames at hand are to be looked at.
    """

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._started = 0
        self.wanted = True
        self.empty = self.frames = 0
        """Frames without a picture, and all that were looked at."""

    def listen(self, v3d: V3D) -> None:
        """This V3D is used from now on."""
        self._started = v3d.threads[0].started
        v3d.listeners.job_ended.subscribe(lambda event: self._ended(v3d, event))

    def _ended(self, v3d: V3D, event: JobEnded) -> None:
        if not event.thread:
            return
        binning, rendering = v3d.threads
        binned, self._started = binning.started != self._started, binning.started
        if not self.wanted:
            return
        lists = Lists((binning.first, binning.end) if binned else None, (rendering.first, rendering.end))
        self.frames += 1
        self._show(f"  rendering list 0x{rendering.first:08x}" + (
            f", binning list 0x{binning.first:08x}" if binned else ", without a binning list"))  # fmt: skip
        found = run_again(v3d, lists)
        if found is None:
            self._show("    it writes too much memory to be run again")
            return
        evidence = Evidence(v3d, lists, found)
        for group in evidence.groups:
            count = len(group.binned)
            where = f" at 0x{int(group.binned[0]['record']) & _WORD:08x}" if count else ""
            more = f" and {count - 1} more with the same state" if count > 1 else ""
            self._show(f"    {group.kind}s{where}{more}")
            self._show(f"    {group.text()}")
        cause = cause_of(evidence)
        if cause is not None:
            self.empty += 1
            place = f" at 0x{cause.address:08x}" if cause.address is not None else ""
            self._show(f"    {cause.code}{place}: {cause.text}")
