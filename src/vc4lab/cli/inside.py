"""Commands that look into frames share this: any capture, or recorded jobs, opened as one of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.cli.captures import bad, is_capture, layers_of, opened, same_image
from vc4lab.cli.exit_codes import failed
from vc4lab.cli.job_captures import opened_jobs, recorded_jobs
from vc4lab.cli.outputs import say

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.debug.frame.capture import Capture
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.options import GpuOptions


@contextmanager
def looked_into(path: Path, gpu: GpuOptions | None = None) -> Iterator[Capture]:
    """The frames of a path. Turns what is wrong, with it or with a question, into typer.Exit.

    gpu: how its frames are drawn.
    """
    from vc4lab.capture.errors import CaptureError
    from vc4lab.debug.frame.capture import Capture
    from vc4lab.debug.frame.places import NoSuchPlace

    try:
        yield Capture(jobs_of(path), gpu=gpu)
    except CaptureError as error:
        raise bad(error) from None
    except NoSuchPlace as error:
        raise failed(f"{path}: {error}") from None


def jobs_of(path: Path) -> JobsCapture:
    """The jobs of a capture; of recorded jobs, and of commands without them, as they run.

    Raises CaptureError, typer.Exit.
    """
    if not is_capture(path):
        return recorded_jobs(path)
    if "jobs" in layers_of(path):
        return opened_jobs(path)
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder

    recorder = JobsRecorder(JobsCapture("gl", path.name), tell=say)
    _play_queue(path, recorder)
    recorder.close()
    return recorder.capture


def _play_queue(path: Path, recorder: JobsRecorder) -> None:
    """Draws the frames of a capture of the command queue. Raises CaptureError."""
    from vc4lab.driver.capture.player import Player

    player = Player(opened(path))
    recorder.attach(player.screen.runner.v3d)
    for frame, picture in player.play():
        image = picture.image() if picture is not None else None
        recorder.frame(frame.number, partial(same_image, image))
