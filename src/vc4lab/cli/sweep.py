"""`vc4lab sweep`: recorded frames on many chips, every point of a grid."""

from __future__ import annotations

import json
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.captures import bad, has_only_jobs, is_capture
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.options import FILE, ProcessesOption, SchedulerOption
from vc4lab.cli.outputs import counted, save_text, say
from vc4lab.cli.timing_options import CHIP, timer_of
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.timing.sweep.points import Outcome, Point

PLOTS = "a plot of each figure that changes"


def sweep(
    runs: Annotated[
        list[Path], typer.Argument(help="Run directories, jobNNNN directories, or captures.", parser=FILE)
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A figure and its values: slices.count=1..4, l2.bytes=64k,128k, "
            "sdram.latency=10..40:10; repeat it for a grid.",
            metavar="FIGURE=VALUES",
        ),
    ] = None,
    chip: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"The chip to change; default: {CHIP}.")
    ] = None,
    board: Annotated[str | None, typer.Option(help="The board; default: pi3.")] = None,
    results: Annotated[
        Path,
        typer.Option(
            help="File of the points that are done, a line each: what is in it is not run again.",
            metavar="F.jsonl",
            parser=FILE,
        ),
    ] = Path("sweep.jsonl"),
    processes: ProcessesOption = None,
    scheduler: SchedulerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the table here.", metavar="F.csv", parser=FILE)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the table and plots here.", metavar="F.html", parser=FILE)
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help=f"Write {PLOTS} into this directory.", metavar="DIR", parser=FILE)
    ] = None,
) -> None:
    """Time recorded jobs on every chip of a grid of figures: what would a change bring?

    The chip as it is comes first. Interrupted sweeps go on where they were.
    """
    from vc4lab.timing.boards import board_of
    from vc4lab.timing.changes import grid, read_setting
    from vc4lab.timing.chip import load_chip
    from vc4lab.timing.sweep.points import points_of
    from vc4lab.timing.sweep.table import rows_of, table_csv, table_json
    from vc4lab.viewer import sweep_report

    base = timer_of(lambda name, _: load_chip(name), chip, board)
    try:
        shown = board_of(base, board or "")
        settings = [read_setting(text, base) for text in set_ or ()]
        if not settings:
            raise failed("--set: nothing to change; such as --set slices.count=1..4")
        points = points_of(_digests(runs), base, grid(settings), shown)
    except ValueError as error:
        raise failed(str(error)) from None
    outcomes = _run(points, results, processes, scheduler)
    rows = rows_of(points, outcomes)
    if as_json:
        typer.echo(json.dumps(table_json(rows), indent=2, ensure_ascii=False))
    else:
        sweep_report.print_rows(rows)
    if csv is not None:
        save_text(csv, table_csv(rows))
    if html is not None:
        save_text(html, sweep_report.sweep_page(rows, base.name, shown))
    if svg is not None:
        from vc4lab.viewer.svg_plots import alone

        _make_folder(svg)
        for name, plot in sweep_report.plots(rows):
            save_text(svg / f"{name}.svg", alone(plot))
    wrong = [row for row in rows if row.error]
    if wrong:
        raise failed(f"{len(wrong)} of {len(points)} points failed: {wrong[0].error}")


def _digests(runs: list[Path]) -> list[tuple[str, str]]:
    """Paths and digests of runs. Raises typer.Exit for one without jobs."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.messages import reporter_of
    from vc4lab.drm.recorded.timed_points import digest_of
    from vc4lab.jobs import work

    found = []
    for run in dict.fromkeys(runs):
        if is_capture(run):
            try:
                found.append((str(run.resolve()), work.digest_of(str(run))))
            except CaptureError as error:
                raise bad(error) from None
            continue
        reporter = reporter_of()
        reporter.listeners.append(lambda item: say(str(item)))
        try:
            digest = digest_of(str(run), reporter)
        except OSError as error:
            raise failed(f"{run}: {why(error)}") from None
        if not digest:
            raise typer.Exit(ExitCode.BAD_INPUT)
        found.append((str(run.resolve()), digest))
    return found


def time_point(point: Point) -> Outcome:
    """Times a point: of recorded jobs, or of a capture. What the processes of a sweep call."""
    from vc4lab.driver.capture import work
    from vc4lab.drm.recorded import timed_points
    from vc4lab.jobs import work as jobs_work

    path = Path(point.run)
    module: Any = timed_points
    if is_capture(path):
        module = jobs_work if has_only_jobs(path) else work
    found: Outcome = module.time_point(point)
    return found


def _run(
    points: list[Point], results: Path, processes: int | None, scheduler: str | None
) -> dict[str, Outcome]:
    """The outcomes of all points by key: what the file has, and what is run now."""
    from vc4lab.timing.sweep.points import broken, read_outcomes
    from vc4lab.timing.sweep.runner import NoScheduler, run_points

    try:
        done = read_outcomes(results)
    except OSError as error:
        raise failed(f"{results}: {why(error)}", ExitCode.OUTPUT) from None
    left = [one for one in {p.key: p for p in points}.values() if one.key not in done]
    known = len({p.key for p in points}) - len(left)
    if known:
        say(f"{known} points are in {results} already")
    if not left:
        return done
    try:
        results.parent.mkdir(parents=True, exist_ok=True)
        file = results.open("ab", buffering=0)  # what failed is not tried again at its end
    except OSError as error:
        raise failed(f"{results}: {why(error)}", ExitCode.OUTPUT) from None
    with file:
        _start_line(file, results)
        try:
            with counted("points", len(left)) as step:
                for one in run_points(time_point, left, broken, processes=processes, scheduler=scheduler):
                    done[one.key] = one
                    _append(file, one.to_line() + "\n")
                    step()
        except NoScheduler as error:
            raise failed(str(error)) from None
        except OSError as error:
            raise failed(f"{results}: {why(error)}", ExitCode.OUTPUT) from None
    return done


def _append(file: FileIO, text: str) -> None:
    """Write all of a line. Raises OSError."""
    data = text.encode()
    while data:
        data = data[file.write(data) :]


def _start_line(file: FileIO, path: Path) -> None:
    """A line that was cut off when a sweep was interrupted must not swallow the next one."""
    with path.open("rb") as old:
        old.seek(0, 2)
        if old.tell():
            old.seek(-1, 2)
            if old.read(1) != b"\n":
                _append(file, "\n")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise failed(f"{path}: {why(error)}", ExitCode.OUTPUT) from None
