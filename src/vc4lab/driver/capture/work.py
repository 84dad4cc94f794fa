"""The pieces of work of captured frames: for `--timing`, `vc4lab profile` and `vc4lab sweep`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player
from vc4lab.jobs.work import JobsWatch
from vc4lab.options import GpuOptions
from vc4lab.timing.frames.frame import named
from vc4lab.timing.sweep.time_frames import time_frames

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.sweep.points import Outcome, Point


def watched(player: Player, *, work: bool, counters: bool) -> JobsWatch:
    """Collect the jobs that a player draws until the end of a `with`: their work, what was counted."""
    watch = JobsWatch(work=work, counters=counters)
    watch.listen(player.screen.runner.v3d, player.screen.listeners.job)
    return watch


def work_of(capture: Capture, *, gpu: GpuOptions, reporter: Reporter) -> Iterator[tuple[str, Frame]]:
    """Give what each job of each frame took, named by the frame's number. Raises CaptureError."""
    player = Player(capture, gpu=gpu, reporter=reporter)
    with watched(player, work=True, counters=False) as watch:
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
