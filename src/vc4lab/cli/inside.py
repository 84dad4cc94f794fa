"""Commands that look into frames share this: any capture, or recorded jobs, opened as one of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.captures import bad
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.outputs import say

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.debug.frame.capture import Capture
    from vc4lab.jobs.model import JobsCapture
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
    from vc4lab.cli.messages import reporter_of
    from vc4lab.recordings import kinds

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    try:
        return kinds.jobs_of(path, tell=say, reporter=reporter)
    except kinds.NotDrawn:
        raise typer.Exit(ExitCode.BAD_INPUT) from None  # messages have said why
