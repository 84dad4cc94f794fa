"""The exit codes of `vc4lab`, one table for all commands.

`drm`, `gl` and `linux` pass on the exit code of the program that they run, unless it is 0 and
something else went wrong.
"""

from __future__ import annotations

import os
import signal
from enum import IntEnum
from typing import TYPE_CHECKING

import typer

from vc4lab import interruption

if TYPE_CHECKING:
    from vc4lab.diagnostics import StrictStop


class ExitCode(IntEnum):
    """The exit codes, for scripts."""

    OK = 0
    INTERNAL = 1
    DIFFERS = 1
    BAD_INPUT = 2
    GUEST_HANG = 3
    STRICT_STOP = 4
    OUTPUT = 5
    NOT_DRAWN = 6
    ERRORS = 7
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "the frames or the time were reached; without --frames: the program ended",
    ExitCode.INTERNAL: "an internal error of vc4lab",
    ExitCode.BAD_INPUT: "wrong options; a file, folder, image, port or memory that cannot be used",
    ExitCode.GUEST_HANG: "the program hung or crashed, or ended before the requested frames",
    ExitCode.STRICT_STOP: "--strict stopped at an error",
    ExitCode.OUTPUT: "a picture, recording or log could not be written",
    ExitCode.NOT_DRAWN: "a frame was stored without any of its draws: all were refused",
    ExitCode.ERRORS: "errors were reported, and nothing above says more",
    ExitCode.HUNG_UP: "ended by SIGHUP: the terminal was closed",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.TERMINATED: "ended by SIGTERM",
}


def table() -> str:
    """The table as help text."""
    lines = [f"  {code.value:<4}{meaning}" for code, meaning in MEANINGS.items()]
    lines.append("  diff and check end with 1 also if something differs")
    lines.append("  drm, gl and linux pass the program's own code on if it is not 0")
    return "\b\nExit codes:\n" + "\n".join(lines)


def failed(message: str, code: ExitCode = ExitCode.BAD_INPUT) -> typer.Exit:
    """Say what went wrong; to be raised."""
    typer.echo(message, err=True)
    return typer.Exit(code)


def stopped(stop: StrictStop) -> typer.Exit:
    """Say at which message `--strict` has stopped; to be raised."""
    return failed(f"stopped (strict): {stop.diagnostic.code}", ExitCode.STRICT_STOP)


def interrupted_code() -> ExitCode:
    """Return the exit code of a command that a signal has ended."""
    return ExitCode(128 + (interruption.came() or signal.SIGINT))


def not_drawn(frames: int) -> str:
    """The summary's sentence about frames that are stored without their draws."""
    what = "1 frame was" if frames == 1 else f"{frames} frames were"
    return f"{what} stored without any draw: all were refused, see the messages above"


def ended_early(frames: int, wanted: int) -> str:
    """The sentence about a program that ended before `--frames`; and what often makes it end."""
    text = f"the program ended after {frames} of {wanted} frames"
    if _stdin_is_empty():
        text += "; standard input is empty here, and programs such as kmscube end when it has ended"
    return text


def _stdin_is_empty() -> bool:
    """Whether there was never anything to read: /dev/null, or closed."""
    try:
        return os.fstat(0).st_rdev == os.stat(os.devnull).st_rdev
    except OSError:
        return True
