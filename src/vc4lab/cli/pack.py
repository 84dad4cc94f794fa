"""`vc4lab pack`: an unpacked and edited capture, or recorded jobs, as an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.inside import jobs_of
from vc4lab.cli.options import FILE
from vc4lab.files import why


def pack(
    folder: Annotated[Path, typer.Argument(help="What vc4lab unpack wrote, or recorded jobs.", parser=FILE)],
    output: Annotated[Path, typer.Argument(help="The archive to write.", metavar="F.vc4cap", parser=FILE)],
) -> None:
    """Write an edited capture as one file again; recorded jobs become a capture."""
    from vc4lab.capture.errors import CaptureError

    try:
        if is_capture(folder) and not has_only_jobs(folder):
            from vc4lab.driver.capture.store import save_capture

            save_capture(opened(folder), output)
        else:
            from vc4lab.jobs.store import save_jobs

            save_jobs(jobs_of(folder), output)
    except CaptureError as error:
        raise bad(error) from None
    except OSError as error:
        raise failed(f"CLI-001: {output}: {why(error)}", ExitCode.OUTPUT) from None
    typer.echo(str(output))
