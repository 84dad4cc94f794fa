"""Writes a command's pictures at its end: a screenshot, a recording, the terminal.

The options mean the same for every command that has a screen.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.groups import Group
from vc4lab.cli.options import FILE, limits
from vc4lab.files import why, write_text
from vc4lab.ranges import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from PIL.Image import Image


def say(text: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(text, err=True)


@dataclass(frozen=True)
class PictureOptions(Group):
    """Says what is shown and kept of a screen."""

    screenshot: Annotated[
        Path | None, typer.Option(help="Save the last picture here.", metavar="F.png", parser=FILE)
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(help="Record the frames here (.gif, .webp, .png).", metavar="F.gif", parser=FILE),
    ] = None
    every: Annotated[
        int, typer.Option(help="Record every N-th frame only.", metavar="N", **limits(EVERY))
    ] = 1
    both_orders: Annotated[
        bool,
        typer.Option(
            "--both-orders", help="Save the screenshot twice: as it is, and with red and blue exchanged."
        ),
    ] = False
    window: Annotated[
        bool, typer.Option("--window", help="Show the screen in a window (needs pygame-ce).")
    ] = False
    headless: Annotated[
        bool, typer.Option("--headless", help="No preview and no progress line in the terminal.")
    ] = False


class Outputs:
    """The pictures that a command line asks for.

    Attributes
    ----------
    options
        What it asks for.
    recorder
        Takes the frames of `--record`; None without it.
    """

    def __init__(self, options: PictureOptions) -> None:
        from vc4lab.viewer.recorder import SUFFIXES, Recorder

        self.options = options
        self.recorder: Recorder | None = None
        record = options.record
        if record is not None and record.suffix.lower() in SUFFIXES:
            self.recorder = Recorder(record)

    def problem(self, others: Iterable[Path | None] = ()) -> tuple[str, ExitCode] | None:
        """A sentence and a code if a file to write cannot work out, before a long run."""
        screenshot, record = self.options.screenshot, self.options.record
        for path in (screenshot, record, *others):
            text = path and _cannot_be_written(path)
            if text:
                return f"CLI-001: {text}", ExitCode.OUTPUT
        if record is not None and self.recorder is None:
            from vc4lab.viewer.recorder import SUFFIXES

            text = f"{record}: the name of a recording ends in {', '.join(SUFFIXES)}"
            return text, ExitCode.BAD_INPUT
        if screenshot is not None:
            from vc4lab.viewer.pictures import is_picture

            if not is_picture(screenshot):
                text = f"{screenshot}: unknown picture format; use .png"
                return text, ExitCode.BAD_INPUT
        return None

    def save(
        self, code: ExitCode | int, image: Image | None, *, shot: Image | None = None, late: int | None = None
    ) -> ExitCode | int:
        """Write the pictures and show the preview; gives the final exit code.

        image: the last picture. shot: what the screenshot shows instead. late: the time (ns) at
        which the last picture, left out of the recording for its time, belongs to its end.
        """
        from vc4lab.viewer.pictures import save_picture

        screenshot, record = self.options.screenshot, self.options.record
        if screenshot is not None:
            try:
                if image is None:
                    say("CLI-002: there is no picture to save, as the screen stayed black")
                    code = code or ExitCode.OUTPUT
                else:
                    save_picture(shot or image, screenshot)
                    say(f"picture: {screenshot}")
            except OSError as error:
                code = code or _lost(screenshot, error)
        if self.recorder is not None:
            try:
                if image is not None and late is not None:
                    self.recorder.add_last(image, late)
                if self.recorder.save():
                    say(f"recording: {record}")
            except OSError as error:
                code = code or _lost(record, error)
        if image is not None and not self.options.headless and sys.stdout.isatty():
            from vc4lab.viewer.preview import preview

            columns, _rows = shutil.get_terminal_size()
            typer.echo(preview(image, min(columns, 100)))
        return code


def _cannot_be_written(path: Path) -> str | None:
    """Why there cannot be such a file, as far as that shows now."""
    try:
        return f"{path} is a folder" if stat.S_ISDIR(os.stat(path).st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        if os.path.isdir(path.parent):
            return None
        return f"there is no folder {path.parent} to write {path.name} to"
    except OSError as error:  # too long a name, no right to look
        return f"{path}: {why(error)}"


def _lost(path: Path | None, error: OSError) -> ExitCode:
    say(f"vc4lab: CLI-001: {path}: {why(error)}")
    return ExitCode.OUTPUT


def save_text(path: Path, text: str) -> None:
    """Write a text, in a folder that is made. Raises typer.Exit."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise failed(f"{path}: {why(error)}", ExitCode.OUTPUT) from None


@contextmanager
def counted(what: str, count: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error where that is a terminal; a function to call after each piece of work."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=count)
        yield lambda: progress.advance(task)
