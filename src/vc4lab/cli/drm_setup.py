"""`vc4lab drm --setup`, and what `--check` reports about it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

from vc4lab.cli.exit_codes import ExitCode


class _Display:
    """Lines on standard error, and on a terminal what is being done."""

    def __init__(self) -> None:
        self._status: Any = None

    def __enter__(self) -> _Display:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("", spinner="dots")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._status is not None:
            self._status.update("")
            self._status.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            typer.echo(line, err=True)

    def show(self, text: str) -> None:
        """What is being done at the moment."""
        if self._status is not None:
            self._status.update(text)


def set_up(suite: str | None, packages: Sequence[str]) -> int:
    """Do it; the exit code."""
    from vc4lab.drm.setup.places import SUITES, SetupFailed, brought
    from vc4lab.drm.setup.steps import set_up as bring

    if suite is not None and suite not in SUITES:
        typer.echo(f"--suite {suite}: {' or '.join(SUITES)}", err=True)
        return ExitCode.BAD_INPUT
    try:
        with _Display() as display:
            bring(brought(suite or SUITES[0]), packages, display)
    except SetupFailed as reason:
        typer.echo(f"vc4lab drm --setup: {reason}", err=True)
        return ExitCode.OUTPUT if reason.output else ExitCode.BAD_INPUT
    except KeyboardInterrupt:
        typer.echo("interrupted; vc4lab drm --setup will resume", err=True)
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def describe(suite: str | None) -> list[str]:
    """Lines for --check: what is there, what is missing, what to type."""
    from vc4lab.drm.setup.places import SUITES, SetupFailed, brought, find_brought
    from vc4lab.drm.setup.steps import check_possible

    found = find_brought(suite)
    if found is not None:
        names = sorted(path.name for path in (found.folder / "programs").iterdir())
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        return [
            f"arm64        Debian {found.suite}'s Mesa with vc4, run under qemu: {found.folder}",
            f"programs     {shown}",
        ]
    try:
        check_possible()
        begun = brought(suite or SUITES[0]).is_begun
    except SetupFailed as reason:
        return [f"arm64        cannot be installed: {reason}"]
    if begun:
        return ["arm64        incomplete: vc4lab drm --setup resumes"]
    return ["arm64        not installed: vc4lab drm --setup downloads Mesa, programs and qemu"]
