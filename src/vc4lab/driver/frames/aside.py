"""Frames that wait while others are drawn.

A program that clears its window and draws to it, then to textures, and then to the window again has
one frame for the window in this way: what was drawn need not be stored, and loaded again. Frames
that wait do not depend on each other: none reads or writes what another one writes. The frame at
hand may read what they write; then they are drawn before it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.driver.frames.job import FrameJob
    from vc4lab.mesa.state.pipe import Framebuffer

MOST = 8


class FramesAside:
    """Those of a queue, the oldest first."""

    def __init__(self) -> None:
        self._jobs: list[FrameJob] = []

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._jobs) >= MOST

    def put(self, job: FrameJob) -> None:
        """One more. What it depends on was drawn, and there is room for it."""
        job.put_aside()
        self._jobs.append(job)

    def take(self, framebuffer: Framebuffer) -> FrameJob | None:
        """The frame that goes to these surfaces goes on."""
        for job in self._jobs:
            if job.framebuffer is framebuffer or job.framebuffer == framebuffer:
                self._jobs.remove(job)
                return job
        return None

    def take_those(self, writes: Collection[int] | None, reads: Collection[int] = ()) -> list[FrameJob]:
        """Frames that come before what writes to these resources and reads those, by number (None:
        all frames), to be drawn now.
        """
        taken = [
            job
            for job in self._jobs
            if writes is None
            or any(number in writes or number in reads for number in job.writes)
            or any(number in writes for number in job.reads)
        ]
        if taken:
            self._jobs = [job for job in self._jobs if job not in taken]
        return taken
