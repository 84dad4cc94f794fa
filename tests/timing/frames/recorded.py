"""Recorded runs, drawn with or without a feed of frames."""

from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import Frame
from vc4lab.v3d.core import V3D

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"


class Drawn:
    """A run, of which each lap is drawn with the feed or without.

    Attributes
    ----------
    bytes
        What the buffers held after each job.
    frames
        Of each lap.
    counts
        Of each lap, what the core counted meanwhile.
    """

    def __init__(self, name: str, *laps: bool, threads: int = 1, engine: str = "jit") -> None:
        self.run = RecordedRun(JOBS / name, Reporter())
        self.reporter = Reporter()
        self.v3d = V3D(self.run.memory, self.reporter, threads=threads, engine=engine)
        self.bytes: list[bytes] = []
        self.frames: list[list[Frame]] = []
        self.counts: list[dict[str, int]] = []
        for fed in laps:
            self.lap(fed)

    def lap(self, fed: bool) -> None:
        """Draws all jobs."""
        before = self.v3d.events()
        feed = FrameFeed(self.v3d)
        if fed:
            with feed:
                self._jobs()
        else:
            self._jobs()
        self.frames.append(feed.take())
        after = self.v3d.events()
        self.counts.append({name: after[name] - before.get(name, 0) for name in after})

    def _jobs(self) -> None:
        for job in self.run.jobs:
            assert run_job(self.v3d, job.build(self.run.memory))
            for buffer in job.submit.buffers:
                self.bytes.append(bytes(self.run.memory.read(buffer.address, buffer.size)))
