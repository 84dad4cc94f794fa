"""`vc4lab check`: recordings drawn and compared with the pictures and bytes that they hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE, ProcessesOption, SchedulerOption, unknowns_of
from vc4lab.cli.outputs import counted, save_text
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.recordings.check import Checked, CheckPoint


def check(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders with captures or recorded jobs; or one of those.", parser=FILE),
    ],
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write what has changed here, with the pictures side by side.", metavar="F.html", parser=FILE
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(help="Write a test case for each recording here.", metavar="F.xml", parser=FILE),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Write the pictures and check sums of now into the recordings.")
    ] = False,
    processes: ProcessesOption = None,
    scheduler: SchedulerOption = None,
    *,
    gpu: Annotated[GpuGroup, Without("threads", "strict")],
) -> None:
    """Draw captures and say which pictures or bytes are not those that they hold.

    Only changes are printed. The exit code is 0 if nothing has changed, 1 if anything has, and 2 if a
    recording cannot be drawn.
    """
    from vc4lab.recordings.check import points_of
    from vc4lab.viewer.check_report import check_junit, check_page, summary

    paths = _recordings(folders)
    points = points_of(paths, gpu.engine.value, unknowns_of(gpu.unknown), accepts=accept)
    found = _run(points, {str(path.resolve()): str(path) for path in paths}, processes, scheduler)
    title = ", ".join(map(str, folders))
    if html is not None:
        save_text(html, check_page(found, f"Check of {title}"))
    if junit is not None:
        save_text(junit, check_junit(found, title))
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=1))
    else:
        for one in found:
            _print(one)
        typer.echo(summary(found))
    if any(one.error for one in found):
        raise typer.Exit(ExitCode.BAD_INPUT)
    if any(one.is_changed for one in found):
        raise typer.Exit(ExitCode.DIFFERS)


def _recordings(folders: list[Path]) -> list[Path]:
    """All recordings, each once. Raises typer.Exit."""
    from vc4lab.recordings.kinds import recordings_in

    found: list[Path] = []
    for folder in folders:
        try:
            here = list(recordings_in(folder))
        except OSError as error:
            raise failed(f"{folder}: {why(error)}") from None
        if not here:
            raise failed(f"{folder}: there are no captures, and no recorded jobs")
        found += here
    return list(dict.fromkeys(found))


def _run(
    points: list[CheckPoint], names: dict[str, str], processes: int | None, scheduler: str | None
) -> list[Checked]:
    """The results of all points, in their order, by the names of the command line. Raises typer.Exit."""
    from vc4lab.recordings.check import broken, check_point
    from vc4lab.timing.sweep.runner import NoScheduler, run_points

    done: dict[str, Checked] = {}
    try:
        with counted("recordings", len(points)) as step:
            for one in run_points(check_point, points, broken, processes=processes, scheduler=scheduler):
                done[one.path] = one
                step()
    except NoScheduler as error:
        raise failed(str(error)) from None
    lost = "the process that drew it, or one beside it, ended"
    found = [done.get(point.path) or broken(point, lost) for point in points]
    return [replace(one, path=names[one.path]) for one in found]


def _print(one: Checked) -> None:
    """Print the changes of a recording."""
    if one.error:
        typer.echo(f"{one.path}: {one.error}")
    for frame in one.of("changed"):
        typer.echo(f"{one.path}, {frame.name}: {frame.text()}{' (accepted)' * one.accepted}")
