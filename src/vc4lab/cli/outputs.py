"""Where a command's pictures go at its end: a screenshot, a recording, the terminal.

The options mean the same for every command that has a screen.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.files import why

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from PIL.Image import Image


def say(text: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(text, err=True)


class Outputs:
    """The pictures that a command line asks for.

    Attributes
    ----------
    recorder
        Takes the frames of `--record`; None without it.
    """

    def __init__(
        self, screenshot: Path | None, record: Path | None, *, headless: bool = False
    ) -> None:
        from vc4lab.viewer.recorder import SUFFIXES, Recorder

        self._screenshot = screenshot
        self._record = record
        self._headless = headless
        self.recorder: Recorder | None = None
        if record is not None and record.suffix.lower() in SUFFIXES:
            self.recorder = Recorder(record)

    def problem(self, others: Iterable[Path | None] = ()) -> tuple[str, ExitCode] | None:
        """A sentence and a code if a file to write cannot work out, before a long run."""
        for path in (self._screenshot, self._record, *others):
            if path is not None and not path.parent.is_dir():
                text = f"CLI-001: there is no folder {path.parent} to write {path.name} to"
                return text, ExitCode.OUTPUT
            if path is not None and path.is_dir():
                return f"CLI-001: {path} is a folder", ExitCode.OUTPUT
        if self._record is not None and self.recorder is None:
            from vc4lab.viewer.recorder import SUFFIXES

            text = f"{self._record}: a recording ends in {', '.join(SUFFIXES)}"
            return text, ExitCode.BAD_INPUT
        if self._screenshot is not None:
            from vc4lab.viewer.pictures import is_picture

            if not is_picture(self._screenshot):
                text = f"{self._screenshot}: no picture format has this ending; take .png"
                return text, ExitCode.BAD_INPUT
        return None

    def save(
        self,
        code: ExitCode | int,
        image: Image | None,
        *,
        shot: Image | None = None,
        late: int | None = None,
    ) -> ExitCode | int:
        """Write the pictures and show the preview; gives the final exit code.

        image: the last picture. shot: what the screenshot shows instead. late: the time (ns) at
        which the last picture, left out of the recording for its time, belongs to its end.
        """
        from vc4lab.viewer.pictures import save_picture

        if self._screenshot is not None:
            try:
                if image is None:
                    say("CLI-002: there is no picture to save, the screen stayed black")
                    code = code or ExitCode.OUTPUT
                else:
                    save_picture(shot or image, self._screenshot)
                    say(f"picture: {self._screenshot}")
            except OSError as error:
                code = code or _lost(self._screenshot, error)
        if self.recorder is not None:
            try:
                if image is not None and late is not None:
                    self.recorder.add_last(image, late)
                if self.recorder.save():
                    say(f"recording: {self._record}")
            except OSError as error:
                code = code or _lost(self._record, error)
        if image is not None and not self._headless and sys.stdout.isatty():
            from vc4lab.viewer.preview import preview

            columns, _rows = shutil.get_terminal_size()
            typer.echo(preview(image, min(columns, 100)))
        return code


def _lost(path: Path | None, error: OSError) -> ExitCode:
    say(f"vc4lab: CLI-001: {path}: {why(error)}")
    return ExitCode.OUTPUT
