"""`vc4lab drm`: what is done with every job besides drawing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.events import JobCounted
    from vc4lab.drm.recorded.writer import JobRecorder


def record_to(device: DrmDevice, folder: Path, jobs: int, mib: int) -> JobRecorder:
    """Record the jobs of a device. Raises typer.Exit for a folder that cannot be used."""
    from vc4lab.drm.recorded.writer import JobRecorder

    try:
        recorder = JobRecorder(
            folder, device.memory.guest, max_jobs=jobs, max_bytes=mib << 20, on_stop=_say
        )
    except OSError as error:
        typer.echo(f"{folder}: {why(error)}", err=True)
        raise typer.Exit(ExitCode.OUTPUT) from None
    device.gpu.recorder = recorder
    return recorder


def recorded(recorder: JobRecorder, code: int) -> int:
    """Say what was recorded; the exit code."""
    if recorder.failed:  # said when it happened
        return code or ExitCode.OUTPUT
    if not recorder.stopped:
        typer.echo(f"{recorder.folder}: {recorder.jobs} jobs recorded", err=True)
    return code


def print_counters(device: DrmDevice) -> None:
    """Print each job's performance counters, as replay does."""
    from vc4lab.v3d.counters import table

    def show(event: JobCounted) -> None:
        lines = [f"{event.name}: performance counters", *table(event.counters)]
        typer.echo("\n".join(lines), err=True)

    device.v3d.counters.everything = True
    device.gpu.job_counted.subscribe(show)


def _say(text: str) -> None:
    typer.echo(text, err=True)
