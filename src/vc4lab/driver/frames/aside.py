"""Frames that have only clears, and wait while others are drawn.

A program that clears its window, draws to textures, and then to the window has one frame for the
window in this way: what was cleared need not be stored, and loaded again. Nothing may look at
such a frame's surfaces, or write to them, before it is drawn.
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

    def put(self, job: FrameJob) -> bool:
        """Put a frame aside; whether it may be."""
        if not job.cleared or job.draws or len(self._jobs) >= MOST:
            return False
        job.is_aside = True
        self._jobs.append(job)
        return True

    def take(self, framebuffer: Framebuffer) -> FrameJob | None:
        """The frame that goes to these surfaces goes on."""
        for job in self._jobs:
            if job.framebuffer is framebuffer or job.framebuffer == framebuffer:
                self._jobs.remove(job)
                job.is_aside = False
                return job
        return None

    def take_those(self, resources: Collection[int] | None) -> list[FrameJob]:
        """Frames that write to any of these resources, by number (None: all), to be drawn now."""
        taken = [
            job
            for job in self._jobs
            if resources is None or any(number in resources for number in job.writes)
        ]
        if taken:
            self._jobs = [job for job in self._jobs if job not in taken]
        return taken
