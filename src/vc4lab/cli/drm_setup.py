"""`vc4lab drm --setup`, and what `--check` reports about it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from vc4lab.cli.exit_codes import ExitCode, interrupted_code


class Display:
    """Lines on standard error, and on a terminal what is being done."""

    def __init__(self) -> None:
        self._status: Any = None

    def __enter__(self) -> Display:
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
        """Show what is being done at the moment."""
        if self._status is not None:
            self._status.update(text)


def set_up(
    suite: str | None, packages: Sequence[str], command: str = "drm", architecture: str = "arm64"
) -> int:
    """Do it for a command; the exit code."""
    from vc4lab.drm.setup.places import SUITES, brought
    from vc4lab.drm.setup.steps import set_up as bring

    if suite is not None and suite not in SUITES:
        typer.echo(f"--suite {suite}: {' or '.join(SUITES)}", err=True)
        return ExitCode.BAD_INPUT
    return _done(command, lambda to: bring(brought(suite or SUITES[0], architecture), packages, to))


def set_up_card(suite: str | None, architecture: str) -> int:
    """Make the card of `vc4lab linux --root full`; the exit code."""
    from vc4lab.drm.setup.places import SUITES, brought
    from vc4lab.linux.full_root import set_up_full

    return _done("linux", lambda to: set_up_full(brought(suite or SUITES[0], architecture), to))


def _done(command: str, act: Callable[[Display], None]) -> int:
    """Do it with a display; the exit code."""
    from vc4lab.drm.setup.places import SetupFailed

    try:
        with Display() as display:
            act(display)
    except SetupFailed as reason:
        typer.echo(f"vc4lab {command} --setup: {reason}", err=True)
        return ExitCode.OUTPUT if reason.output else ExitCode.BAD_INPUT
    except KeyboardInterrupt:
        typer.echo(f"interrupted; vc4lab {command} --setup will resume", err=True)
        return interrupted_code()
    return ExitCode.OK


def describe(suite: str | None, command: str = "drm") -> list[str]:
    """Lines for --check: what is there, what is missing, what to type. Raises Untrusted."""
    from vc4lab.drm.setup.places import SUITES, SetupFailed, brought, find_brought
    from vc4lab.drm.setup.steps import check_possible

    found = find_brought(suite)
    if found is not None:
        found.check_all()
        names = sorted(path.name for path in (found.folder / "programs").iterdir())
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        fault = found.fault()
        if fault:
            return [_to_make_again(found.tree, fault, command)]
        return [
            f"arm64        Debian {found.suite}'s Mesa with vc4, run under qemu: {found.folder}",
            f"programs     {shown}",
        ]
    try:
        check_possible()
        place = brought(suite or SUITES[0])
        begun, fault = place.is_begun, place.fault()
    except SetupFailed as reason:
        return [f"arm64        cannot be installed: {reason}"]
    if begun and fault:
        return [_to_make_again(place.tree, fault, command)]
    if begun:
        return [f"arm64        incomplete: vc4lab {command} --setup resumes"]
    what = "Mesa, programs and qemu" if command == "drm" else "a kernel, Mesa and programs"
    return [f"arm64        not installed: vc4lab {command} --setup downloads {what}"]


def _to_make_again(tree: Path, fault: str, command: str) -> str:
    return f"arm64        {tree}: {fault}: vc4lab {command} --setup makes it again"
