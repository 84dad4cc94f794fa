"""`vc4lab unpack`: a capture as a folder that people edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.job_captures import opened_jobs
from vc4lab.cli.options import FILE
from vc4lab.cli.outputs import say
from vc4lab.files import why


def unpack(
    capture: Annotated[Path, typer.Argument(help="A capture, or recorded jobs.", parser=FILE)],
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", parser=FILE)],
    as_jobs: Annotated[
        bool, typer.Option("--as-jobs", help="Of a capture of drm: write a folder of recorded jobs.")
    ] = False,
) -> None:
    """Write a capture as text, CSV and PNG, to edit and to draw with vc4lab replay FOLDER."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.folder import unpack as write

    try:
        if not is_capture(capture):
            frames = _unpack_run(capture, folder)
        elif has_only_jobs(capture):
            frames = _unpack_jobs(capture, folder, as_jobs)
        elif as_jobs:
            raise failed(f"{capture}: its frames are of the command queue: --as-jobs is for captures of drm")
        else:
            found = opened(capture)
            write(found, folder)
            frames = len(found.frames)
    except CaptureError as error:
        raise bad(error) from None
    except OSError as error:
        name = error.filename or folder
        raise failed(f"CLI-001: {name}: {why(error)}", ExitCode.OUTPUT) from None
    if as_jobs:
        typer.echo(f"{folder}: {frames} jobs recorded")
        return
    typer.echo(f"{folder}: {frames} frame{'s' * (frames != 1)}; see {folder / 'README.txt'}")


def _unpack_jobs(capture: Path, folder: Path, as_jobs: bool) -> int:
    """Captured jobs as text, or as a folder of recorded jobs. Raises CaptureError, OSError."""
    from vc4lab.jobs.unpack import unpack_jobs

    found = opened_jobs(capture)
    if as_jobs:
        from vc4lab.drm.recorded.captured import write_folder

        return write_folder(found, folder, say)
    unpack_jobs(found, folder)
    return len(found.frames)


def _unpack_run(run: Path, folder: Path) -> int:
    """Recorded jobs as text. Raises CaptureError, OSError."""
    from vc4lab.cli.messages import reporter_of
    from vc4lab.drm.recorded.replay import replay
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.jobs.unpack import unpack_jobs

    recorder = JobsRecorder(JobsCapture("drm", run.name), tell=say)
    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    result = replay(run, recorder=recorder, reporter=reporter)
    recorder.close()
    if not result.drawn:
        raise typer.Exit(ExitCode.BAD_INPUT)
    unpack_jobs(recorder.capture, folder)
    return len(recorder.capture.frames)
