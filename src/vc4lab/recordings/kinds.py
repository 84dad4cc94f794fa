"""Tells kinds of recordings apart, and opens each as captured jobs.

A recording is an archive or folder of captured jobs, one of the command queue of `vc4lab gl`, or a
folder of recorded jobs of a Linux driver.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.files import SUFFIX, open_files
from vc4lab.capture.table import NAME, read_table
from vc4lab.diagnostics import Reporter
from vc4lab.jobs.dumps.opened import is_dump

if TYPE_CHECKING:
    from vc4lab.driver.capture.player import Player
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder

MOST_FOUND = 100_000
"""Files and folders that are looked at to find recordings."""
_JOB = re.compile(r"job[0-9]+")
SUBMIT = "submit.json"


class Kind(Enum):
    """Kinds of recordings."""

    JOBS = "captured jobs"
    QUEUE = "a captured command queue"
    RUN = "recorded jobs"


class NotDrawn(Exception):  # noqa: N818 - an answer, in words
    """Recorded jobs of a folder cannot be drawn; the text says which and why."""


def is_capture(path: Path) -> bool:
    """Whether it is a capture rather than a folder of jobs."""
    # Unlike those of Path, these answer for names that no file can have.
    return path.suffix == SUFFIX or os.path.isfile(path) or os.path.exists(path / NAME)


def kind_of(path: Path) -> Kind:
    """The kind of a recording. Raises CaptureError."""
    if not is_capture(path):
        return Kind.RUN
    return Kind.JOBS if _layers_of(path) == {"jobs"} else Kind.QUEUE


def _layers_of(path: Path) -> set[str]:
    """Which of `queue` and `jobs` a capture has. Raises CaptureError."""
    if is_dump(path):
        return {"jobs"}
    table = read_table(open_files(path))
    return {name for name in ("queue", "jobs") if table.get(name) is not None}


def jobs_of(
    path: Path, *, tell: Callable[[str], object] = lambda _text: None, reporter: Reporter | None = None
) -> JobsCapture:
    """The jobs of a capture; of recorded jobs, and of a command queue without them, as they run.

    tell: called with a sentence when there is no room for all. reporter: of recorded jobs.
    Raises CaptureError, NotDrawn.
    """
    if is_capture(path) and "jobs" in _layers_of(path):
        from vc4lab.jobs.load import open_jobs

        return open_jobs(path)
    if is_capture(path):
        return play_queue(path, tell=tell)[0]
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder

    recorder = JobsRecorder(JobsCapture("drm", path.name), tell=tell)
    _record_run(path, recorder, reporter or Reporter())
    recorder.close()
    return recorder.capture


def play_queue(
    path: Path, *, tell: Callable[[str], object] = lambda _text: None
) -> tuple[JobsCapture, Player]:
    """The jobs that the frames of a captured command queue become, and what drew them.

    tell: called with a sentence when there is no room for all. Raises CaptureError.
    """
    from vc4lab.driver.capture.load import open_capture
    from vc4lab.driver.capture.player import Player
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder

    recorder = JobsRecorder(JobsCapture("gl", path.name), tell=tell)
    player = Player(open_capture(path))
    recorder.attach(player.screen.runner.v3d)
    for frame, picture in player.play():
        image = picture.image() if picture is not None else None
        recorder.frame(frame.number, partial(lambda found: found, image))
    recorder.close()
    return recorder.capture, player


def _record_run(path: Path, recorder: JobsRecorder, reporter: Reporter) -> None:
    """Draws recorded jobs. Raises NotDrawn."""
    from vc4lab.drm.recorded.replay import replay

    if not replay(path, recorder=recorder, reporter=reporter).drawn:
        raise NotDrawn(f"{path}: none of its jobs can be drawn")


def recordings_in(folder: Path) -> Iterator[Path]:
    """The recordings in a folder and those below, in the order of their names.

    A path that is a recording is the only one. Links to folders are not followed. Raises OSError if
    the folder cannot be read.
    """
    if is_capture(folder) or _is_run(folder):
        yield folder
        return
    os.scandir(folder).close()
    looked_at = 0
    for place, folders, files in os.walk(folder):
        folders.sort()
        inner = [Path(place) / name for name in folders]
        found = [one for one in inner if (one / NAME).is_file() or _is_run(one)]
        folders[:] = [one.name for one in inner if one not in found]
        found += [Path(place) / name for name in files if name.endswith(SUFFIX)]
        yield from sorted(found)
        looked_at += len(folders) + len(files)
        if looked_at > MOST_FOUND:
            return


def _is_run(folder: Path) -> bool:
    """Whether a folder has recorded jobs."""
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in entries if _JOB.fullmatch(one.name)]
    except OSError:
        return False
    return any((folder / name / SUBMIT).exists() for name in names)
