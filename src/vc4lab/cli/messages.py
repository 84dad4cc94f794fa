"""Commands report through this; a message of error severity keeps a command from exit code 0.

This is the only place that decides it, for all commands: each has its reporter from here, and what
prints messages without one (the lint of `asm`) notes their severity. A code that says more stays:
that of a hang, of `--strict`, or of the program that `drm`, `gl` and `linux` have run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from vc4lab.diagnostics import Diagnostic, Reporter, Severity

_found: list[Severity] = []
"""The severities of error, one for each such message of this command."""


def reporter_of(strict: bool = False) -> Reporter:
    """The reporter of a command; who prints its messages is added by the command."""
    from vc4lab.diagnostics import Reporter

    made = Reporter(strict)
    made.listeners.append(_note_item)
    return made


def note(severity: Severity) -> None:
    """A message of this severity was printed."""
    from vc4lab.diagnostics import Severity as Levels

    if severity >= Levels.ERROR:
        _found.append(severity)


def _note_item(item: Diagnostic) -> None:
    note(item.severity)


@contextlib.contextmanager
def never_0_after_errors() -> Iterator[None]:
    """Around a command: its exit code 0 becomes `ExitCode.ERRORS` where it has reported errors."""
    _found.clear()
    try:
        yield
    except typer.Exit as end:
        if end.exit_code or not _found:
            raise
    if _found:
        raise typer.Exit(ExitCode.ERRORS)
