"""`vc4lab drm`: unmodified Linux programs on a virtual Raspberry Pi GPU."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.drm_jobs import (
    print_counters,
    profile_of,
    record_to,
    recorded,
    say_accounts,
    time_jobs,
    trace_frames,
)
from vc4lab.cli.drm_pictures import DrmPictures
from vc4lab.cli.drm_setup import describe, set_up
from vc4lab.cli.drm_signals import RunSignals
from vc4lab.cli.exit_codes import ExitCode, ended_early, failed
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE, CountersOption, limits
from vc4lab.cli.outputs import Outputs, PictureOptions, say
from vc4lab.cli.timing_options import LiveTimingOptions
from vc4lab.drm.setup.host_driver import DRIVER, DRIVERS_PATH, asks_for_software, find_driver
from vc4lab.drm.setup.places import SUITES
from vc4lab.ranges import GPU_MEMORY, RECORD_COUNT, RECORD_SIZE

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice

TRACES = ("ioctl", "memory")
CANNOT_START = frozenset(
    (
        *(errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
        *(errno.ENAMETOOLONG, errno.E2BIG, errno.EPERM, errno.ETXTBSY, errno.ELIBBAD),
        *(errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE),
    )
)
"""Error numbers of execve and fork for a program that cannot start, or a host with no room for it."""


@dataclass(frozen=True)
class DrmCaptureOptions(CaptureOptions):
    """Says which frames are kept, in an archive or as a folder of jobs."""

    capture: Annotated[
        Path | None,
        typer.Option(
            help="Keep frames with all that they need, for vc4lab replay, show, unpack, profile and "
            "sweep: in an archive F.vc4cap, or as a folder of recorded jobs.",
            metavar="F.vc4cap|DIR",
            parser=FILE,
        ),
    ] = None


def drm(  # noqa: C901
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="The program and its arguments."),
    ] = None,
    *,
    gpu: GpuGroup,
    pictures: Annotated[PictureOptions, Without("both_orders")],
    captured: DrmCaptureOptions,
    timed: LiveTimingOptions,
    driver: Annotated[
        Path | None,
        typer.Option(help=f"Folder with Mesa's {DRIVER}, or a Mesa build tree.", metavar="DIR", parser=FILE),
    ] = None,
    device: Annotated[
        str, typer.Option(help="The display: vc4 of a Pi, or xlnx of a ZynqMP.", metavar="NAME")
    ] = "vc4",
    param: Annotated[
        list[str] | None,
        typer.Option("--param", help="A parameter of --device xlnx; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    cpu_memory: Annotated[
        str | None,
        typer.Option(
            help="Report what CPU accesses to buffers cost on a board: ultra96, pi3 or a file.",
            metavar="PROFILE",
        ),
    ] = None,
    modes: Annotated[
        str | None, typer.Option(help="Modes of the screen, the preferred one first: 1280x720,800x600@75.")
    ] = None,
    unpaced: Annotated[
        bool, typer.Option("--unpaced", help="Show pictures as soon as drawn, not at 60 Hz.")
    ] = False,
    gpu_memory: Annotated[
        int, typer.Option(help="Buffer memory for the programs, in MiB.", **limits(GPU_MEMORY))
    ] = 512,
    record_jobs: Annotated[
        Path | None,
        typer.Option(
            help="Record all jobs in a folder: the same as --capture with a folder.",
            metavar="DIR",
            parser=FILE,
        ),
    ] = None,
    record_count: Annotated[
        int, typer.Option(help="Of a folder: record at most this many jobs.", **limits(RECORD_COUNT))
    ] = 10_000,
    record_size: Annotated[
        int, typer.Option(help="Of a folder: record at most this many MiB.", **limits(RECORD_SIZE))
    ] = 1024,
    counters: CountersOption = False,
    trace: Annotated[
        str | None,
        typer.Option(help="ioctl: print every ioctl with its arguments; memory: the costs of each frame."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also follow device descriptors received over sockets; slower.")
    ] = False,
    setup: Annotated[
        bool,
        typer.Option(
            "--setup",
            help="Download Mesa's vc4 and test programs for arm64, to run under qemu; further "
            "packages may follow after --.",
        ),
    ] = False,
    suite: Annotated[
        str | None, typer.Option(help="The Debian suite for --setup: bookworm or trixie.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Report what is installed and what is missing.")
    ] = False,
) -> None:
    """Run a Linux program on a virtual Raspberry Pi GPU (/dev/dri, driver vc4)."""
    outputs = Outputs(pictures)
    record_jobs, capturing = _folder_or_archive(record_jobs, captured)
    frames_wanted, wish = capturing.count(), capturing.wish()
    problem = outputs.problem([capturing.capture])
    if problem is not None:
        raise failed(f"vc4lab: {problem[0]}", problem[1])
    if trace is not None and trace not in TRACES:
        raise failed(f"--trace {trace}: the choices are {', '.join(TRACES)}")
    folder = find_driver(os.environ, driver) if suite is None or driver is not None else None
    if driver is not None and folder is None:
        raise failed(f"--driver {driver}: no {DRIVER} in it")
    if suite is not None and suite not in SUITES:
        raise failed(f"--suite {suite}: {' or '.join(SUITES)}")
    if setup:
        raise typer.Exit(set_up(suite, program or []))
    if check:
        raise typer.Exit(_check(folder, suite))
    if not program or not program[0]:
        raise failed("no program given; for example: vc4lab drm -- kmscube")
    from vc4lab.debug.why.watch import report_pixelless_run
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.kms.modes import STANDARD, parse_modes
    from vc4lab.drm.processes.started import NotPossible

    try:
        sizes = parse_modes(modes) if modes is not None else STANDARD
    except ValueError as error:
        raise failed(f"--modes: {error}") from None
    kind = _kind(device, param)
    if cpu_memory is not None:
        kind["cpu_memory"] = profile_of(cpu_memory)
    elif trace == "memory":
        raise failed("--trace memory: needs --cpu-memory")
    live = timed.live(waits=True)
    reporter = gpu.reporter()
    try:
        made = DrmDevice(
            modes=sizes, paced=not unpaced, gpu_memory=gpu_memory << 20, gpu=gpu.options(), deep=deep,
            trace=_print_trace if trace == "ioctl" else None, input=pictures.window, reporter=reporter,
            **kind,
        )  # fmt: skip
    except NotPossible as reason:
        raise _impossible(reason) from None
    with made:
        recorder = archive = None
        if record_jobs is not None:
            recorder = record_to(made, record_jobs, record_count, record_size)
        if wish is not None:
            from vc4lab.drm.recorded.captured import capture as keep

            archive = wish.recorder("drm", " ".join(program))
            keep(made, archive.recorder)
        if counters:
            print_counters(made, live)
        if live is not None:
            time_jobs(made, live)
        if trace == "memory":
            trace_frames(made, _print_trace)
        shown = DrmPictures(made, outputs, made.input)
        signals = RunSignals(made.supervisor, made.supervisor)
        try:
            with signals:
                code = _run(made, program, frames_wanted, folder, suite)
            ended = made.strict_stop is None and not made.frames_came and not signals.came
            code = ExitCode.OK if shown.was_closed else _how_it_ended(made, code, frames_wanted)
            if ended and not shown.stay():
                code = ExitCode.INTERRUPTED
        finally:
            shown.close()
        code = shown.save(code)
        say_accounts(made)
        if not signals.came:  # else a job may have had no time to draw
            report_pixelless_run(made.v3d, reporter)
        if live is not None:
            live.end()
            for line in live.lines(made.screen.frames):
                say(line)
    if archive is not None:
        archive.close()
        code = archive.code(code)
    if recorder is not None:
        code = recorded(recorder, code)
    raise typer.Exit(code)


def _folder_or_archive(folder: Path | None, captured: CaptureOptions) -> tuple[Path | None, CaptureOptions]:
    """The folder of recorded jobs and the archive that are wanted. Raises typer.Exit."""
    from vc4lab.capture.files import SUFFIX

    capture, on = captured.capture, captured.capture_on
    if capture is None or capture.suffix == SUFFIX:
        return folder, captured
    if folder is not None:
        raise failed(f"--capture {capture} and --record-jobs {folder}: one folder of jobs is enough")
    if on is not None:
        raise failed(f"--capture {capture}: a folder has all jobs; --capture-on needs a name in {SUFFIX}")
    return capture, replace(captured, capture=None)


def _kind(device: str, params: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of DrmDevice. Raises typer.Exit, with a sentence."""
    from vc4lab.drm.device.drivers import NAMES
    from vc4lab.drm.xlnx.parameters import check_settings

    values = {}
    if device not in NAMES:
        raise failed(f"--device {device}: the devices are {', '.join(NAMES)}")
    if params and device != "xlnx":
        raise failed(f"--param: device {device} has no parameters")
    for text in params or ():
        name, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError(f"{text!r} is not NAME=VALUE")
            try:
                values[name.strip()] = int(value, 0)
            except ValueError:
                raise ValueError(f"{value!r} is not a whole number") from None
            check_settings(values)
        except ValueError as error:
            raise failed(f"--param {text}: {error}") from None
    return {"device": device, "params": values}


def _run(
    device: DrmDevice, program: Sequence[str], frames: int | None, driver: Path | None, suite: str | None
) -> int:
    """The program's exit code. Raises typer.Exit if it cannot run."""
    from vc4lab.cache.trust import Untrusted
    from vc4lab.drm.processes.started import NotPossible

    environment = dict(os.environ)
    if driver is not None:
        environment[DRIVERS_PATH] = str(driver.resolve())
    arm64 = (suite or True) if driver is None else False
    try:
        return device.run(program, frames=frames, environment=environment, arm64=arm64)
    except NotPossible as reason:
        raise _impossible(reason) from None
    except Untrusted as error:
        raise failed(f"vc4lab drm: {error}") from None
    except OSError as error:
        if error.errno not in CANNOT_START:
            raise
        hint = ""
        variable = asks_for_software(environment) if arm64 is True else ""
        if variable and error.errno == errno.ENOENT:
            hint = f"; {variable} is set, so programs of --setup are not used (--suite does)"
        raise failed(f"{program[0]}: {(error.strerror or '').lower()}{hint}") from None


def _how_it_ended(device: DrmDevice, code: int, frames: int | None) -> int:
    if device.strict_stop is not None:
        typer.echo(f"stopped (strict): {device.strict_stop.diagnostic.code}", err=True)
        return ExitCode.STRICT_STOP
    drew = device.gpu.jobs or not device.supervisor.paths.seeks_software_gl
    wanted = asks_for_software(os.environ)
    if not drew and not wanted and device.screen.frames and device.name == "vc4":
        typer.echo(
            f"vc4lab drm: no job reached the GPU: GL was drawn by the CPU. Mesa's {DRIVER} is "
            "needed; see vc4lab drm --check",
            err=True,
        )
    if frames is not None:
        if device.frames_came:
            return ExitCode.OK
        typer.echo(ended_early(device.screen.frames, frames), err=True)
        return code or ExitCode.GUEST_HANG
    return code


def _check(folder: Path | None, suite: str | None) -> int:
    """Print what works here; the exit code is 0 if programs can run."""
    from vc4lab.cache.trust import Untrusted
    from vc4lab.drm.device.host import why_not
    from vc4lab.drm.processes.machines import host_machine

    machine = host_machine()
    kernel = os.uname()
    if machine is None:
        typer.echo(f"machine      {kernel.machine}: its system calls are not known")
        return ExitCode.BAD_INPUT
    typer.echo(f"machine      {machine.name}, {kernel.sysname} {kernel.release}")
    reason = why_not()
    if reason:
        typer.echo(f"supervisor   does not work: {reason}")
    else:
        typer.echo("supervisor   works: seccomp user notification")
    if folder is not None:
        typer.echo(f"driver       {folder / DRIVER}")
    else:
        typer.echo(f"driver       the host has no {DRIVER}")
        try:
            for line in describe(suite):
                typer.echo(line)
        except Untrusted as error:
            typer.echo(f"arm64        {error}")
            reason = str(error)
        typer.echo(
            "             --driver DIR names a folder that has the driver for this machine, or a "
            "Mesa\n             build tree (meson setup -Dgallium-drivers=vc4, ninja): no qemu, "
            "so faster.\n             Without a driver programs run, but GL is drawn by the CPU "
            "(kms_swrast)"
        )
    return ExitCode.BAD_INPUT if reason else ExitCode.OK


def _print_trace(line: str) -> None:
    print(line, file=sys.stderr)


def _impossible(reason: Exception) -> typer.Exit:
    return failed(f"vc4lab drm: {reason}; see vc4lab drm --check")
