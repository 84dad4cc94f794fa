"""`vc4lab drm`: what is done with every job and frame besides drawing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.outputs import say
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.cli.live_timing import LiveTiming
    from vc4lab.drm.cpu_memory.accounts import Frame
    from vc4lab.drm.cpu_memory.profiles import Profile
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.events import JobCounted
    from vc4lab.drm.recorded.writer import JobRecorder


def record_to(device: DrmDevice, folder: Path, jobs: int, mib: int) -> JobRecorder:
    """Record the jobs of a device. Raises typer.Exit for a folder that cannot be used."""
    from vc4lab.drm.recorded.writer import JobRecorder

    try:
        recorder = JobRecorder(folder, device.memory.guest, max_jobs=jobs, max_bytes=mib << 20, on_stop=say)
    except OSError as error:
        raise failed(f"{folder}: {why(error)}", ExitCode.OUTPUT) from None
    device.gpu.recorder = recorder
    return recorder


def recorded(recorder: JobRecorder, code: int) -> int:
    """Say what was recorded; the exit code."""
    if recorder.failed:  # said when it happened
        return code or ExitCode.OUTPUT
    if not recorder.stopped:
        say(f"{recorder.folder}: {recorder.jobs} jobs recorded")
    return code


def print_counters(device: DrmDevice, live: LiveTiming | None) -> None:
    """Print each job's performance counters, as replay does."""

    def show(event: JobCounted) -> None:
        say_counters(event.name, event.counters, live)

    device.v3d.counters.everything = True
    device.gpu.job_counted.subscribe(show)


def time_jobs(device: DrmDevice, live: LiveTiming) -> None:
    """Time the jobs of a device, whose programs wait as long as they would for the chip."""
    live.attach(device.v3d)
    device.frame_listeners.append(live.picture_shown)
    clock = live.clock
    if clock is not None:
        device.gpu.job_done.subscribe(lambda event: clock.finish(event.ready))


def say_counters(name: str, counted: Mapping[int, int], live: LiveTiming | None) -> None:
    """Print a job's counters; with those that only the model knows as soon as it has timed it."""
    from vc4lab.v3d.counters import table

    def write(more: Mapping[int, int]) -> None:
        say("\n".join([f"{name}: performance counters", *table({**counted, **more})]))

    if live is None:
        write({})
    else:
        live.when_timed(write)


def profile_of(name: str) -> Profile:
    """The profile of that name, or a file. Raises typer.Exit, with a sentence."""
    from vc4lab.drm.cpu_memory.profiles import NAMES, BadProfile, load_profile

    try:
        return load_profile(name)
    except BadProfile as error:
        text = f"--cpu-memory {error}"
    except OSError as error:
        text = f"--cpu-memory {name}: {why(error)}; the profiles are {', '.join(NAMES)}"
    raise failed(text)


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
            say(line)
