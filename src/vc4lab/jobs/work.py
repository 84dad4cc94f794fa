"""The pieces of work of captured jobs: for `--timing`, `--counters`, `vc4lab profile` and `sweep`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.capture.files import open_files
from vc4lab.diagnostics import Reporter
from vc4lab.jobs.dumps.opened import dump_bytes, is_dump
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer
from vc4lab.options import GpuOptions
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import named
from vc4lab.timing.sweep.time_frames import time_frames
from vc4lab.v3d.counters import counts

if TYPE_CHECKING:
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.listeners import Listeners
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.sweep.points import Outcome, Point
    from vc4lab.v3d.core import V3D


class JobWork(NamedTuple):
    """A job of a captured frame.

    Attributes
    ----------
    name
        The frame's number; with the job's where the frame has several.
    frames
        Its pieces of work: one, or more where it was drawn in parts.
    counted
        What the core's performance counters counted, by number.
    """

    name: str
    frames: tuple[Frame, ...]
    counted: Mapping[int, int]


class JobsWatch:
    """Collects what the V3Ds of a player have to do; `heard` is for `JobsPlayer.on_v3d`.

    work, counters: what is wanted of each end of a frame.
    """

    def __init__(self, *, work: bool, counters: bool) -> None:
        self._work, self._counts = work, counters
        self._v3d: V3D | None = None
        self._feed: FrameFeed | None = None
        self._before: dict[int, int] = {}
        self._jobs: list[tuple[tuple[Frame, ...], Mapping[int, int]]] = []
        self._stack = ExitStack()

    def __enter__(self) -> JobsWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def listen(self, v3d: V3D, ended: Listeners[Any] | None = None) -> None:
        """Watch this V3D from now on; `ended` says when a job ends, or else the end of a frame does."""
        self._stack.close()
        self._v3d = v3d
        if self._counts:
            # A frame that begins with a state, and power that comes back, set it to what it was then.
            self._stack.enter_context(v3d.listeners.job_started.subscribe(self._everything))
            self._before = counts(v3d.events())
        self._feed = self._stack.enter_context(FrameFeed(v3d)) if self._work else None
        heard = ended if ended is not None else v3d.listeners.frame_done
        self._stack.enter_context(heard.subscribe(self._done))

    def _everything(self, _event: Any) -> None:
        if self._v3d is not None:
            self._v3d.counters.everything = True

    def _done(self, _event: Any) -> None:
        counted: dict[int, int] = {}
        if self._counts and self._v3d is not None:
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


def work_of(capture: JobsCapture, *, gpu: GpuOptions, reporter: Reporter) -> Iterator[tuple[str, Frame]]:
    """Yield the work of each job of each frame, named by the frame's number. Raises CaptureError."""
    with JobsWatch(work=True, counters=False) as watch:
        player = JobsPlayer(capture, gpu=gpu, reporter=reporter, on_v3d=watch.listen)
        for frame, _ in player.play():
            for job in watch.take(frame.number):
                yield from named(job.name, job.frames)


def digest_of(path: str) -> str:
    """A digest of all files of a capture, or of a dump. Raises CaptureError."""
    if is_dump(path):
        return hashlib.sha256(dump_bytes(path)).hexdigest()
    files = open_files(Path(path))
    sha = hashlib.sha256()
    for name in sorted(files):
        sha.update(name.encode() + b"\0" + hashlib.sha256(files.read(name)).digest())
    return sha.hexdigest()


@lru_cache(maxsize=2)
def _frames_of(path: str) -> tuple[tuple[str, Frame], ...]:
    """The frames of a capture, kept for the next point. Raises CaptureError."""
    return tuple(work_of(open_jobs(path), gpu=GpuOptions(threads=1), reporter=Reporter()))


def time_point(point: Point) -> Outcome:
    """Times every frame of the point's capture on its chip."""
    return time_frames(point, _frames_of)
