"""`vc4lab replay`: recorded driver jobs → picture, and what they take on the chip."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.captures import CaptureWatch, has_only_jobs, is_capture, replay_capture, save_picture_to
from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.exit_codes import ExitCode, failed, not_drawn, stopped
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.job_captures import print_jobs, replay_jobs
from vc4lab.cli.job_times import job_times, print_counters
from vc4lab.cli.options import FILE, ByteOrderChoice, CountersOption, FrameRange, limits
from vc4lab.cli.timing_options import TimingOptions
from vc4lab.files import why, write_text
from vc4lab.ranges import JOB

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

    from vc4lab.cli.job_times import JobTimes
    from vc4lab.diagnostics import Reporter
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.events import FrameDrawn

QUEUE, JOBS = "queue", "jobs"


@dataclass(frozen=True)
class ReplayCaptureOptions(CaptureOptions):
    """Says which frames, or jobs of a folder, are kept; a replay goes to its end."""

    frames: Annotated[
        tuple | None,  # type: ignore[type-arg]
        typer.Option(
            help="With --capture: keep only these frames, or jobs of a folder.",
            parser=FrameRange(),
            metavar="N|A:B",
        ),
    ] = None


DAMAGE = ("DRM-002", "DRM-003")
"""Parts of the recording are missing: what was drawn is not the whole."""


def replay(
    path: Annotated[
        Path,
        typer.Argument(
            help="A run directory, one jobNNNN directory, or a capture: an archive or a folder.", parser=FILE
        ),
    ],
    *,
    gpu: GpuGroup,
    timed: TimingOptions,
    captured: ReplayCaptureOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Save the last picture that a job draws.", parser=FILE),
    ] = None,
    every: Annotated[
        Path | None, typer.Option(help="Save a PNG of each job in this directory.", parser=FILE)
    ] = None,
    order: Annotated[
        ByteOrderChoice, typer.Option(help="Byte order of the surface; auto: as the shaders write it.")
    ] = ByteOrderChoice.AUTO,
    job: Annotated[
        int | None,
        typer.Option(
            "--job",
            help="Only this job of the run, or this frame of a capture, after those before it.",
            **limits(JOB),
        ),
    ] = None,
    lists: Annotated[
        bool,
        typer.Option(
            "--list",
            "--lists",
            help="Print each job's lists with tile lists, shader records, programs and uniforms; "
            "draw nothing.",
        ),
    ] = False,
    counters: CountersOption = False,
    tiles: Annotated[
        Path | None,
        typer.Option(
            help="Save what each tile takes, in V3D clocks: as a picture of the last job "
            "(.png ...) or a table of all jobs (.csv).",
            parser=FILE,
        ),
    ] = None,
    recompile: Annotated[
        bool,
        typer.Option("--recompile", help="Of a capture: compile all shaders anew, as the compiler is now."),
    ] = False,
) -> None:
    """Draw the jobs that a real driver submitted, or frames that `vc4lab gl` captured."""
    from vc4lab.diagnostics import StrictStop
    from vc4lab.viewer.pictures import is_picture

    if output is not None and not is_picture(output):
        raise failed(f"{output}: unknown picture format; use .png")
    if tiles is not None and tiles.suffix.lower() != ".csv" and not is_picture(tiles):
        raise failed(f"{tiles}: unknown format of a picture or table; use .png or .csv")
    layer = _layer_of(path)
    if layer == QUEUE:
        for_jobs = {"--job": job is not None, "--list": lists, "--tiles": tiles}
        for name, given in for_jobs.items():
            if given:
                text = f"{path} is a capture of vc4lab gl: {name} is for recorded jobs"
                raise failed(f"{text}, and captures of jobs")
    elif recompile:
        raise failed(f"{path} is no capture of vc4lab gl: --recompile is for those")
    if layer and order is not ByteOrderChoice.AUTO:
        raise failed(f"{path} is a capture, which says its order: --order is for recorded jobs")
    timed.check()
    times = job_times(timed.chip, timed.board, timed.as_json) if timed.timing else None
    if captured.frames is not None and captured.capture is None:
        raise failed("--frames says what --capture keeps; there is no --capture")
    wish = captured.wish()
    file = wish.recorder("drm" if not layer else "replay", str(path)) if wish is not None else None
    reporter = gpu.reporter()
    try:
        if layer == JOBS:
            if lists:
                print_jobs(path, job, lists=True)
                return
            drawn: list[tuple[str, FrameDrawn]] | None = [] if tiles is not None else None
            image = replay_jobs(
                path,
                gpu.options(),
                output,
                every,
                reporter,
                CaptureWatch(times, counters),
                only=job,
                tiles=drawn,
                recorder=file.recorder if file is not None else None,
            )
            if tiles is not None and drawn is not None:
                _save_tiles(drawn, tiles, image, counters, save_picture_to)
            return
        if layer == QUEUE:
            watch = CaptureWatch(times, counters)
            replay_capture(
                path,
                gpu.options(),
                output,
                every,
                reporter,
                watch,
                recompile=recompile,
                recorder=file.recorder if file is not None else None,
            )
            return
        if lists:
            print_lists(path, reporter, job)
            return
        wanted = _Wanted(path, gpu.options(), job, order, output, every, tiles, counters)
        _draw(wanted, reporter, times, file.recorder if file is not None else None)
    except StrictStop as stop:
        raise stopped(stop) from None
    finally:
        if file is not None:
            file.close()
    if file is not None and file.code(0):
        raise typer.Exit(file.code(0))


def _layer_of(path: Path) -> str:
    """Return the layer of a path: a capture's command queue or its jobs, or "" for recorded jobs."""
    if not is_capture(path):
        return ""
    return JOBS if has_only_jobs(path) else QUEUE


@dataclass(frozen=True)
class _Wanted:
    """Says what is wanted, as the command line asks; the names are those of its options."""

    path: Path
    gpu: GpuOptions
    job: int | None
    order: ByteOrderChoice
    output: Path | None
    every: Path | None
    tiles: Path | None
    counters: bool


def _draw(wanted: _Wanted, reporter: Reporter, times: JobTimes | None, recorder: JobsRecorder | None) -> None:
    from vc4lab.drm.recorded.byte_order import ByteOrder
    from vc4lab.drm.recorded.replay import replay as run

    def progress(number: int, total: int, name: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"{name} ({number + 1}/{total})", err=True)

    output, every, tiles = wanted.output, wanted.every, wanted.tiles
    auto = wanted.order == ByteOrderChoice.AUTO
    frames: list[tuple[str, FrameDrawn]] = []
    shows = print_counters if times is None else times.count
    with times.stream if times is not None else nullcontext():
        result = run(
            wanted.path,
            gpu=wanted.gpu,
            order=None if auto else ByteOrder(wanted.order.value),
            number=wanted.job,
            reporter=reporter,
            progress=progress,
            on_image=(lambda name, image: save_picture_to(image, every / f"{name}.png")) if every else None,
            on_counters=shows if wanted.counters else None,
            on_tiles=(lambda name, frame: frames.append((name, frame))) if tiles else None,
            on_work=times.take if times is not None else None,
            recorder=recorder,
        )
    if result.jobs == 0:
        raise typer.Exit(ExitCode.BAD_INPUT)
    if result.image is not None and output is not None:
        save_picture_to(result.image, output)
    if tiles is not None:
        _save_tiles(frames, tiles, result.image, wanted.counters, save_picture_to)
    size = f"{result.image.width}x{result.image.height} {result.format}" if result.image else "no picture"
    where = f", {output}" if result.image and output else ""
    if times is None or not times.as_json:
        typer.echo(f"{result.drawn} of {result.jobs} jobs drawn, {size}{where}")
    if times is not None:
        times.show({"jobs": result.jobs, "drawn": result.drawn})
    if reporter.has("DRM-016"):
        raise typer.Exit(ExitCode.GUEST_HANG)
    if result.drawn and output is not None and result.image is None:
        raise typer.Exit(ExitCode.OUTPUT)
    if result.drawn < result.jobs or any(reporter.has(code) for code in DAMAGE):
        raise typer.Exit(ExitCode.BAD_INPUT)
    if result.undrawn:
        typer.echo(not_drawn(result.undrawn))
        raise typer.Exit(ExitCode.NOT_DRAWN)


def _save_tiles(
    frames: list[tuple[str, FrameDrawn]],
    target: Path,
    image: Image | None,
    counters: bool,
    save: Callable[[Image, Path], None],
) -> None:
    """`--tiles`: a table of all jobs or a picture of the last one, over the run's picture."""
    from vc4lab.v3d.state.tile_context import COUNTERS, DETAILED_COUNTERS
    from vc4lab.viewer.heat_map import heat_map, table

    if target.suffix.lower() == ".csv":
        names = [name for name in COUNTERS if counters or name not in DETAILED_COUNTERS]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, table(frames, names))
        except OSError as error:
            raise failed(f"{target}: {why(error)}", ExitCode.OUTPUT) from None
    elif frames:
        last = frames[-1][0]
        save(heat_map(last, [frame for name, frame in frames if name == last], image), target)
    else:
        raise failed(f"{target}: no tile was drawn", ExitCode.OUTPUT)


def print_lists(path: Path, reporter: Reporter, job: int | None) -> None:
    """The lists of recorded jobs, or of one. Raises typer.Exit."""
    from vc4lab.diagnostics import Severity
    from vc4lab.drm.recorded.listing import list_run

    for line in list_run(path, reporter, job):
        typer.echo(line)
    if any(item.severity >= Severity.ERROR and item.block == "DRM" for item in reporter.items):
        raise typer.Exit(ExitCode.BAD_INPUT)
