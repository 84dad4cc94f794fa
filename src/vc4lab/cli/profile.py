"""`vc4lab profile`: where the clocks of recorded frames go."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import ExitCode, failed, stopped
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import say
from vc4lab.cli.timing_options import CHIP, timer_of
from vc4lab.files import why, write_text
from vc4lab.ranges import JOB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vc4lab.diagnostics import Reporter
    from vc4lab.options import GpuOptions
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.timing.profile.profiler import Profiler


def profile(
    path: Annotated[
        Path, typer.Argument(help="A run directory, one jobNNNN directory, or a capture.", parser=FILE)
    ],
    *,
    gpu: GpuGroup,
    job: Annotated[
        int | None,
        typer.Option("--job", help="Only this job of the run, after running those before it.", **limits(JOB)),
    ] = None,
    chip: Annotated[str | None, typer.Option(metavar="FILE", help=f"A chip's file; default: {CHIP}.")] = None,
    board: Annotated[str | None, typer.Option(help="The board shown in detail; default: pi3.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Print every frame in detail, not only the longest.")
    ] = False,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if/--no-what-if", help="Run the model again with each module free, and for hints."
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for programs.")] = False,
    perfetto: Annotated[
        Path | None,
        typer.Option(help="Write a trace for ui.perfetto.dev here.", metavar="F.json", parser=FILE),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report with plots here.", metavar="F.html", parser=FILE)
    ] = None,
) -> None:
    """Say where the clocks of recorded jobs go: modules, draws, instructions; and what helps."""
    from vc4lab.diagnostics import StrictStop
    from vc4lab.timing.profile.profiler import Profiler

    profiler = timer_of(
        lambda name, on: Profiler(name, on, ask=what_if, timelines=perfetto is not None or html is not None),
        chip,
        board,
    )
    reporter = gpu.reporter()
    try:
        drawn = _replay(path, job, gpu.options(), reporter, profiler)
    except StrictStop as stop:
        raise stopped(stop) from None
    found = profiler.profile(str(path))
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    elif found.frames:
        from vc4lab.viewer.profile_tables import print_profile

        print_profile(found, every)
    if perfetto is not None:
        from vc4lab.timing.profile.trace import trace_json

        _write(perfetto, lambda: trace_json(found))
    if html is not None:
        from vc4lab.viewer.profile_page import profile_page

        _write(html, lambda: profile_page(found))
    if not drawn or not found.frames:
        raise failed(f"{path}: no frame was drawn, so there is nothing to profile")


def _replay(path: Path, job: int | None, gpu: GpuOptions, reporter: Reporter, profiler: Profiler) -> int:
    """Draws the jobs, and has each of them profiled; how many were drawn."""
    from vc4lab.drm.recorded.replay import replay
    from vc4lab.timing.frames.frame import named

    if is_capture(path):
        if job is not None:
            raise failed(f"{path} is a capture: --job is for recorded jobs")
        if has_only_jobs(path):
            return _play_jobs(path, gpu, reporter, profiler)
        return _play(path, gpu, reporter, profiler)

    def work(name: str, frames: Sequence[Frame]) -> None:
        for one, frame in named(name, frames):
            _add(profiler, one, frame)

    def progress(number: int, total: int, name: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"{name} ({number + 1}/{total})", err=True)

    result = replay(path, gpu=gpu, number=job, reporter=reporter, progress=progress, on_work=work)
    return result.drawn


def _play(path: Path, gpu: GpuOptions, reporter: Reporter, profiler: Profiler) -> int:
    """Profile the frames of a capture. Return how many were drawn."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.driver.capture.work import work_of

    count = 0
    try:
        for name, frame in work_of(opened(path), gpu=gpu, reporter=reporter):
            _add(profiler, name, frame)
            count += 1
    except CaptureError as error:
        raise bad(error) from None
    return count


def _play_jobs(path: Path, gpu: GpuOptions, reporter: Reporter, profiler: Profiler) -> int:
    """Profile captured jobs. Return how many frames were drawn."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.job_captures import opened_jobs
    from vc4lab.jobs.work import work_of

    count = 0
    try:
        for name, frame in work_of(opened_jobs(path), gpu=gpu, reporter=reporter):
            _add(profiler, name, frame)
            count += 1
    except CaptureError as error:
        raise bad(error) from None
    return count


def _add(profiler: Profiler, name: str, frame: Frame) -> None:
    """Has a frame profiled. Raises typer.Exit for a model that cannot."""
    from vc4lab.timing.compute.model import NotTimed

    try:
        profiler.add(name, frame)
    except NotTimed as error:
        say(f"{name}: not timed: {error}")
    except ValueError as error:
        raise failed(str(error)) from None


def _write(path: Path, text: Callable[[], str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text())
    except OSError as error:
        raise failed(f"{path}: {why(error)}", ExitCode.OUTPUT) from None
