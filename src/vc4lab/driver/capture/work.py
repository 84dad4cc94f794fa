"""The pieces of work of captured frames: for `--timing`, `vc4lab profile` and `vc4lab sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player
from vc4lab.jobs.work import JobWork
from vc4lab.options import GpuOptions
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import named
from vc4lab.timing.sweep.time_frames import time_frames
from vc4lab.v3d.counters import counts

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture
    from vc4lab.driver.queue.events import JobDrawn
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.sweep.points import Outcome, Point


class JobWatch:
    """Collects the jobs that a player draws, between the beginning and the end of a `with`.

    work, counters: what is wanted of each.
    """

    def __init__(self, player: Player, *, work: bool, counters: bool) -> None:
        self._v3d = player.screen.runner.v3d
        self._feed = FrameFeed(self._v3d) if work else None
        self._counts = counters
        self._before: dict[int, int] = {}
        self._jobs: list[tuple[tuple[Frame, ...], Mapping[int, int]]] = []
        self._heard = player.screen.listeners.job
        self._stack = ExitStack()

    def __enter__(self) -> JobWatch:
        if self._counts:
            self._v3d.counters.everything = True
            self._before = counts(self._v3d.events())
        if self._feed is not None:
            self._stack.enter_context(self._feed)
        self._stack.enter_context(self._heard.subscribe(self._drawn))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _drawn(self, _event: JobDrawn) -> None:
        counted: dict[int, int] = {}
        if self._counts:
            after = counts(self._v3d.events())
            counted = {number: after[number] - self._before[number] for number in after}
            self._before = after
        self._jobs.append((tuple(self._feed.take()) if self._feed is not None else (), counted))

    def take(self, frame: int) -> list[JobWork]:
        """The jobs since the last call, which were those of a frame."""
        jobs, self._jobs = self._jobs, []
        several = len(jobs) > 1
        return [
            JobWork(f"frame {frame}" + f" job {number}" * several, frames, counted)
            for number, (frames, counted) in enumerate(jobs, 1)
        ]


def work_of(capture: Capture, *, gpu: GpuOptions, reporter: Reporter) -> Iterator[tuple[str, Frame]]:
    """Give what each job of each frame took, named by the frame's number. Raises CaptureError."""
    player = Player(capture, gpu=gpu, reporter=reporter)
    with JobWatch(player, work=True, counters=False) as watch:
        for shown, _ in player.play():
            for job in watch.take(shown.number):
                yield from named(job.name, job.frames)


@lru_cache(maxsize=2)
def _frames_of(path: str) -> tuple[tuple[str, Frame], ...]:
    """The frames of a capture, kept for the next point. Raises CaptureError."""
    gpu = GpuOptions(threads=1)
    return tuple(work_of(open_capture(path), gpu=gpu, reporter=Reporter()))


def time_point(point: Point) -> Outcome:
    """Times every frame of the point's capture on its chip."""
    return time_frames(point, _frames_of)
