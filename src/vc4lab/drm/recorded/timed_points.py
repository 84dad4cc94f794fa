"""A point of a sweep: recorded jobs on a chip. Run by the processes of `vc4lab sweep`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.drm.recorded.jobs import MAX_FILE, RecordedRun
from vc4lab.drm.recorded.replay import replay
from vc4lab.files import read_file
from vc4lab.options import GpuOptions
from vc4lab.timing.frames.frame import named
from vc4lab.timing.sweep.time_frames import time_frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.sweep.points import Outcome, Point


def digest_of(path: str, reporter: Reporter) -> str:
    """A digest of the jobs of a run, "" if it has none; blobs are known by their names.

    What is wrong with the run's files goes to the reporter.
    """
    run = RecordedRun(path, reporter)
    if not run.jobs:
        return ""
    sha = hashlib.sha256(",".join(job.name for job in run.wanted).encode())
    for job in run.jobs:
        for name in sorted(one.name for one in job.path.iterdir()):
            file = job.path / name
            if file.is_file() and file.suffix in (".json", ".bin"):
                sha.update(name.encode() + b"\0" + read_file(file, MAX_FILE))
    return sha.hexdigest()


@lru_cache(maxsize=2)
def frames_of(path: str) -> tuple[tuple[str, Frame], ...]:
    """The frames of a run with the names of their jobs, kept for the next point."""
    found: list[tuple[str, Frame]] = []

    def work(name: str, frames: Sequence[Frame]) -> None:
        found.extend(named(name, frames))

    replay(Path(path), gpu=GpuOptions(threads=1), on_work=work, reporter=Reporter())
    return tuple(found)


def time_point(point: Point) -> Outcome:
    """Times every job of the point's run on its chip; what goes wrong is in the outcome."""
    return time_frames(point, frames_of)
