"""`vc4lab replay`: recorded driver jobs → picture, and what they take on the chip."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli import options as common
from vc4lab.cli.captures import is_capture, replay_capture
from vc4lab.cli.exit_codes import ExitCode, failed, not_drawn, stopped
from vc4lab.cli.options import FILE, ByteOrderChoice, Engine, limits, unknowns_of
from vc4lab.cli.outputs import say
from vc4lab.cli.timing_options import (
    BoardOption,
    ChipOption,
    JsonOption,
    frame_lines,
    only_with_timing,
    timer_of,
    total_lines,
)
from vc4lab.files import why, write_file
from vc4lab.ranges import JOB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PIL.Image import Image

    from vc4lab.diagnostics import Reporter
    from vc4lab.options import GpuOptions
    from vc4lab.timing.frame_times import FrameTimer
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.events import FrameDrawn

DAMAGE = ("DRM-002", "DRM-003")
"""Parts of the recording are missing: what was drawn is not the whole."""


def replay(
    path: Annotated[
        Path,
        typer.Argument(
            help="A run directory, one jobNNNN directory, or a capture of `vc4lab gl`: an archive "
            "or a folder.",
            parser=FILE,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Save the last picture that a job draws.", parser=FILE),
    ] = None,
    every: Annotated[
        Path | None,
        typer.Option(help="Save a PNG of each job in this directory.", parser=FILE),
    ] = None,
    engine: common.EngineOption = Engine.JIT,
    order: Annotated[
        ByteOrderChoice,
        typer.Option(help="Byte order of the surface; auto: as the shaders write it."),
    ] = ByteOrderChoice.AUTO,
    strict: common.StrictOption = False,
    job: Annotated[
        int | None,
        typer.Option(
            "--job", help="Only this job of the run, after running those before it.", **limits(JOB)
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
    counters: common.CountersOption = False,
    tiles: Annotated[
        Path | None,
        typer.Option(
            help="Save what each tile takes, in V3D clocks: as a picture of the last job "
            "(.png ...) or a table of all jobs (.csv).",
            parser=FILE,
        ),
    ] = None,
    threads: common.ThreadsOption = None,
    unknown: common.UnknownOption = None,
    timing: Annotated[
        bool, typer.Option("--timing", help="Say how long the chip takes for each job.")
    ] = False,
    chip: ChipOption = None,
    board: BoardOption = None,
    as_json: JsonOption = False,
    recompile: Annotated[
        bool,
        typer.Option(
            "--recompile", help="Of a capture: compile all shaders anew, as the compiler is now."
        ),
    ] = False,
) -> None:
    """Draw the jobs that a real driver submitted, or frames that `vc4lab gl` captured."""
    from vc4lab.diagnostics import Reporter, StrictStop
    from vc4lab.options import GpuOptions
    from vc4lab.viewer.pictures import is_picture

    if output is not None and not is_picture(output):
        raise failed(f"{output}: unknown picture format; use .png")
    if tiles is not None and tiles.suffix.lower() != ".csv" and not is_picture(tiles):
        raise failed(f"{tiles}: unknown format of a picture or table; use .png or .csv")
    if is_capture(path):
        for_jobs = {
            "--job": job is not None, "--list": lists, "--tiles": tiles, "--timing": timing,
            "--counters": counters, "--order": order is not ByteOrderChoice.AUTO,
        }  # fmt: skip
        for name, given in for_jobs.items():
            if given:
                raise failed(f"{path} is a capture: {name} is for recorded jobs")
        gpu = GpuOptions(engine.value, threads, unknowns_of(unknown))
        replay_capture(path, gpu, output, every, strict=strict, recompile=recompile)
        return
    if recompile:
        raise failed(f"{path} is no capture: --recompile is for those of vc4lab gl")
    only_with_timing(timing, (("--chip", chip), ("--board", board), ("--json", as_json)))
    times = _Times(timer_of(_frame_timer, chip, board), as_json) if timing else None
    reporter = Reporter(strict)
    reporter.listeners.append(lambda item: say(str(item)))
    try:
        if lists:
            _print_lists(path, reporter, job)
            return
        gpu = GpuOptions(engine.value, threads, unknowns_of(unknown))
        wanted = _Wanted(path, gpu, job, order, output, every, tiles, counters)
        _draw(wanted, reporter, times)
    except StrictStop as stop:
        raise stopped(stop) from None


@dataclass(frozen=True)
class _Wanted:
    """What the command line asks for; the names are those of its options."""

    path: Path
    gpu: GpuOptions
    job: int | None
    order: ByteOrderChoice
    output: Path | None
    every: Path | None
    tiles: Path | None
    counters: bool


class _Times:
    """Times jobs while they are drawn, and prints what they take when all of them are."""

    def __init__(self, timer: FrameTimer, as_json: bool) -> None:
        self.as_json = as_json
        self._timer = timer
        self._counted: dict[str, dict[int, int]] = {}
        self._names: dict[str, str] = {}
        self.stream = timer.stream()

    def take(self, name: str, frames: Sequence[Frame]) -> None:
        """A job was drawn."""
        from vc4lab.drm.recorded.replay import named

        for one, frame in named(name, frames):
            self._names[one] = name
            self.stream.put(one, frame)

    def count(self, name: str, values: dict[int, int]) -> None:
        """What the core counted in a job; the model knows the other counters later."""
        self._counted[name] = values

    def _counters(self) -> dict[str, dict[int, int]]:
        """Of each job, if they are wanted: what the core counted, and what the model knows."""
        found = {name: Counter(values) for name, values in self._counted.items()}
        for one in self.stream.times:
            job = self._names[one.name]
            if job in found:
                found[job].update(one.timing.counters)
        return {name: dict(values) for name, values in found.items()}

    def show(self, summary: dict[str, object]) -> None:
        """Print all of them. Raises typer.Exit for a chip that cannot move."""
        times, error = self.stream.times, self.stream.error
        if self.as_json:
            found = {
                **summary,
                "chip": self._timer.chip.name,
                "board": self._timer.board,
                "frames": [one.to_json() for one in times],
            }
            if self._counted:
                found["counters"] = self._counters()
            typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            for name, values in self._counters().items():
                _print_counters(name, values)
            for one in times:
                typer.echo("\n".join(frame_lines(self._timer, one)))
            for line in total_lines(times):
                typer.echo(line)
        if isinstance(error, ValueError):
            raise failed(f"not timed: {error}")
        if error is not None:
            raise error


def _frame_timer(chip: str, board: str) -> FrameTimer:
    from vc4lab.timing.frame_times import FrameTimer

    return FrameTimer(chip, board)


def _draw(wanted: _Wanted, reporter: Reporter, times: _Times | None) -> None:
    from vc4lab.drm.recorded.byte_order import ByteOrder
    from vc4lab.drm.recorded.replay import replay as run
    from vc4lab.viewer.pictures import save_picture

    def save(image: Image, target: Path) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            save_picture(image, target)
        except OSError as error:
            raise failed(f"{target}: {why(error)}", ExitCode.OUTPUT) from None

    def progress(number: int, total: int, name: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"{name} ({number + 1}/{total})", err=True)

    output, every, tiles = wanted.output, wanted.every, wanted.tiles
    auto = wanted.order == ByteOrderChoice.AUTO
    frames: list[tuple[str, FrameDrawn]] = []
    shows = _print_counters if times is None else times.count
    with times.stream if times is not None else nullcontext():
        result = run(
            wanted.path,
            gpu=wanted.gpu,
            order=None if auto else ByteOrder(wanted.order.value),
            number=wanted.job,
            reporter=reporter,
            progress=progress,
            on_image=(lambda name, image: save(image, every / f"{name}.png")) if every else None,
            on_counters=shows if wanted.counters else None,
            on_tiles=(lambda name, frame: frames.append((name, frame))) if tiles else None,
            on_work=times.take if times is not None else None,
        )
    if result.jobs == 0:
        raise typer.Exit(ExitCode.BAD_INPUT)
    if result.image is not None and output is not None:
        save(result.image, output)
    if tiles is not None:
        _save_tiles(frames, tiles, result.image, wanted.counters, save)
    size = (
        f"{result.image.width}x{result.image.height} {result.format}"
        if result.image
        else "no picture"
    )
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
            write_file(target, table(frames, names).encode())
        except OSError as error:
            raise failed(f"{target}: {why(error)}", ExitCode.OUTPUT) from None
    elif frames:
        last = frames[-1][0]
        save(heat_map(last, [frame for name, frame in frames if name == last], image), target)
    else:
        raise failed(f"{target}: no tile was drawn", ExitCode.OUTPUT)


def _print_counters(name: str, values: dict[int, int]) -> None:
    from vc4lab.v3d.counters import table

    typer.echo("\n".join([f"{name}: performance counters", *table(values)]))


def _print_lists(path: Path, reporter: Reporter, job: int | None) -> None:
    from vc4lab.diagnostics import Severity
    from vc4lab.drm.recorded.listing import list_run

    for line in list_run(path, reporter, job):
        typer.echo(line)
    if any(item.severity >= Severity.ERROR and item.block == "DRM" for item in reporter.items):
        raise typer.Exit(ExitCode.BAD_INPUT)
