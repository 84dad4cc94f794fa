"""`vc4lab replay`: recorded driver jobs → picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.diagnostics import Diagnostic, Reporter


def replay(
    path: Annotated[Path, typer.Argument(help="A run directory, or one jobNNNN directory.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="PNG of the last job's colour buffer."),
    ] = None,
    every: Annotated[
        Path | None, typer.Option(help="Directory for a PNG of each job, named after it.")
    ] = None,
    engine: Annotated[str, typer.Option(help="jit, or interpreter for the golden path.")] = "jit",
    order: Annotated[
        str, typer.Option(help="Byte order of the surface: rgba, bgra; auto asks the shaders.")
    ] = "auto",
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first error.")] = False,
    lists: Annotated[
        bool, typer.Option("--lists", help="Print the control lists of each job; draw nothing.")
    ] = False,
) -> None:
    """Draw the jobs that a real driver submitted."""
    from vc4lab.diagnostics import Reporter, StrictStop

    if engine not in ("jit", "interpreter"):
        raise _failed(f"--engine {engine}: jit and interpreter exist")
    if order not in ("auto", "rgba", "bgra"):
        raise _failed(f"--order {order}: auto, rgba and bgra exist")
    reporter = Reporter(strict)
    reporter.listeners.append(_show)
    try:
        if lists:
            _print_lists(path, reporter)
            return
        _draw(path, output, every, engine, order, reporter)
    except StrictStop as stop:
        typer.echo(f"stopped (strict): {stop.diagnostic.code}", err=True)
        raise typer.Exit(ExitCode.STRICT_STOP) from None


def _draw(
    path: Path, output: Path | None, every: Path | None, engine: str, order: str, reporter: Reporter
) -> None:
    from vc4lab.drm.byte_order import ByteOrder
    from vc4lab.drm.replay import replay as run

    def save(image: Image, target: Path) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            image.save(target)
        except (OSError, ValueError) as error:
            raise _failed(f"{target}: {getattr(error, 'strerror', None) or error}") from None

    def progress(number: int, total: int, name: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"{name} ({number + 1}/{total})", err=True)

    result = run(
        path,
        engine=engine,
        order=None if order == "auto" else ByteOrder(order),
        reporter=reporter,
        progress=progress,
        on_image=(lambda name, image: save(image, every / f"{name}.png")) if every else None,
    )
    if result.jobs == 0:
        raise typer.Exit(ExitCode.BAD_INPUT)
    if result.image is not None and output is not None:
        save(result.image, output)
    size = (
        f"{result.image.width}x{result.image.height} {result.order.value}"
        if result.image
        else "no picture"
    )
    where = f", {output}" if result.image and output else ""
    typer.echo(f"{result.drawn} of {result.jobs} jobs drawn, {size}{where}")
    if result.drawn < result.jobs:
        refused = reporter.counts["DRM-016"] == 0
        raise typer.Exit(ExitCode.BAD_INPUT if refused else ExitCode.GUEST_HANG)


def _print_lists(path: Path, reporter: Reporter) -> None:
    from vc4lab.drm.jobs import JobError, RecordedRun
    from vc4lab.records.control import format_list

    run = RecordedRun(path, reporter)
    if not run.jobs:
        raise typer.Exit(ExitCode.BAD_INPUT)
    for job in run.jobs:
        try:
            built = job.build()
        except JobError:
            continue  # shown by the listener
        typer.echo(f"{job.name}: binning list")
        typer.echo(format_list(run.memory, built.bin_start, built.bin_end, follow=False))
        typer.echo(f"{job.name}: rendering list")
        typer.echo(format_list(run.memory, built.render_start, built.render_end, follow=False))


def _show(item: Diagnostic) -> None:
    typer.echo(str(item), err=True)


def _failed(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(ExitCode.BAD_INPUT)
