"""`vc4lab unpack`: a capture as a folder that people edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.inside import jobs_of
from vc4lab.cli.options import FILE
from vc4lab.cli.outputs import say
from vc4lab.files import why


def unpack(
    capture: Annotated[Path, typer.Argument(help="A capture, or recorded jobs.", parser=FILE)],
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", parser=FILE)],
    as_jobs: Annotated[
        bool, typer.Option("--as-jobs", help="Of a capture of drm: write a folder of recorded jobs.")
    ] = False,
    clif: Annotated[
        bool, typer.Option("--clif", help="Write each job as CLIF, the text of Mesa's and Broadcom's tools.")
    ] = False,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Of a capture of gl: what its commands became, not the commands.")
    ] = False,
) -> None:
    """Write a capture as text, CSV and PNG, to edit and to draw with vc4lab replay FOLDER."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.folder import unpack as write

    try:
        if clif:
            from vc4lab.capture.files import write_folder
            from vc4lab.jobs.dumps.clif_writer import clif_files

            write_folder(folder, clif_files(jobs_of(capture)))
            count = len(list(folder.iterdir()))
            typer.echo(f"{folder}: {count} job{'s' * (count != 1)}")
            return
        if jobs or not is_capture(capture) or has_only_jobs(capture):
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

    found = jobs_of(capture)
    if as_jobs:
        from vc4lab.drm.recorded.captured import write_folder

        return write_folder(found, folder, say)
    unpack_jobs(found, folder)
    return len(found.frames)
