"""`vc4lab drm --cpu-memory`: accounts of reads and writes, printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.drm.cpu_memory.accounts import Frame
    from vc4lab.drm.cpu_memory.profiles import Profile
    from vc4lab.drm.device.device import DrmDevice


def profile_of(name: str) -> Profile:
    """The profile of that name, or a file. Raises typer.Exit, with a sentence."""
    from vc4lab.drm.cpu_memory.profiles import NAMES, BadProfile, load_profile

    try:
        return load_profile(name)
    except BadProfile as error:
        text = f"--cpu-memory {error}"
    except OSError as error:
        text = f"--cpu-memory {name}: {why(error)}; the profiles are {', '.join(NAMES)}"
    typer.echo(text, err=True)
    raise typer.Exit(ExitCode.BAD_INPUT)


def trace_frames(device: DrmDevice, write: Callable[[str], None]) -> None:
    """Print every frame's accounts while it runs."""
    from vc4lab.drm.cpu_memory.report import frame_lines

    def show(frame: Frame) -> None:
        for line in frame_lines(frame):
            write(line)

    if device.cpu_memory is not None:
        device.cpu_memory.frame_counted.subscribe(show)


def say_accounts(device: DrmDevice) -> None:
    """Print the accounts of all frames, if they were kept."""
    from vc4lab.drm.cpu_memory.report import report_lines

    if device.cpu_memory is not None:
        for line in report_lines(device.cpu_memory):
            typer.echo(line, err=True)
