"""`vc4lab unpack`: a capture of `vc4lab gl` as a folder that people edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.captures import bad, opened
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.options import FILE
from vc4lab.files import why


def unpack(
    capture: Annotated[Path, typer.Argument(help="The archive of vc4lab gl --capture.", parser=FILE)],
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", parser=FILE)],
) -> None:
    """Write a capture as text, CSV and PNG, to edit and to draw with vc4lab replay FOLDER."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.folder import unpack as write

    found = opened(capture)
    try:
        write(found, folder)
    except CaptureError as error:
        raise bad(error) from None
    except OSError as error:
        name = error.filename or folder
        raise failed(f"CLI-001: {name}: {why(error)}", ExitCode.OUTPUT) from None
    frames = len(found.frames)
    typer.echo(f"{folder}: {frames} frame{'s' * (frames != 1)}; see {folder / 'README.txt'}")
