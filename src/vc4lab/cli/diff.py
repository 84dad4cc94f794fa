"""`vc4lab diff`: what differs between captured frames, and whose draws made the pixels that differ."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli import options as common
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.inside import looked_into
from vc4lab.cli.options import FILE, limits, unknowns_of
from vc4lab.ranges import COUNT, THREADS

if TYPE_CHECKING:
    from vc4lab.debug.compare.compare import Comparison
    from vc4lab.debug.frame.capture import Capture


def diff(
    a: Annotated[
        Path,
        typer.Argument(
            help="A capture, an archive or a folder, or recorded jobs; A@3: only its frame 3.",
            parser=FILE,
            metavar="A[@FRAME]",
        ),
    ],
    b: Annotated[
        Path | None,
        typer.Argument(
            help="What it is compared with. Without it: A again, drawn as the options say.",
            parser=FILE,
            metavar="[B[@FRAME]]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Save the picture of the first frame that differs, with its pixels that differ in red.",
            metavar="F.png",
            parser=FILE,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    rows: Annotated[
        int, typer.Option(help="Lines that are printed of each frame at most.", **limits(COUNT, 1))
    ] = 100,
    engine: Annotated[
        common.Engine | None, typer.Option(help="How QPU code of B is executed; interpreter: the reference.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Worker threads that draw B; else one.", **limits(THREADS))
    ] = None,
    unknown: common.UnknownOption = None,
) -> None:
    """Compare captured frames: draws, states, programs, lists, pictures, by what they mean.

    Where something lies in memory is no difference. --engine, --threads and --unknown say how B is drawn.
    The exit code is 0 if all is equal, and 1 if anything differs.
    """
    from vc4lab.debug.compare.compare import Comparison, compare, compare_frames
    from vc4lab.options import GpuOptions
    from vc4lab.viewer.pictures import is_picture

    changed = unknowns_of(unknown)
    if b is None and engine is None and threads is None and not changed.changed():
        raise failed("nothing to compare with: give B, or --engine, --threads or --unknown")
    if output is not None and not is_picture(output):
        raise failed(f"{output}: unknown picture format; use .png")
    path_a, number_a = framed(a)
    path_b, number_b = framed(b) if b is not None else (path_a, number_a)
    gpu = GpuOptions((engine or common.Engine.JIT).value, threads or 1, changed)
    with looked_into(path_a) as one, looked_into(path_b, gpu) as two:
        if number_a is None and number_b is None:
            found = compare(one, two)
        else:
            pair = _chosen(one, path_a, number_a), _chosen(two, path_b, number_b)
            found = Comparison([compare_frames(*pair)])
        if as_json:
            table = {"a": str(a), "b": str(b or a), **found.as_dict()}
            typer.echo(json.dumps(table, indent=1))
        else:
            for line in found.lines(rows):
                typer.echo(line)
        if output is not None:
            _save(found, output)
    if not found.is_equal:
        raise typer.Exit(ExitCode.DIFFERS)


def framed(path: Path) -> tuple[Path, int | None]:
    """A path and the frame that `@N` at its end names; a file that is called so is what is meant."""
    name, at, number = str(path).rpartition("@")
    if at and name and number.isdecimal() and len(number) < 10 and not os.path.exists(path):
        return Path(name), int(number)
    return path, None


def _chosen(capture: Capture, path: Path, number: int | None) -> Any:
    """A frame; where the other side has one and this one does not say, its last. Raises typer.Exit."""
    from vc4lab.debug.frame.places import NoSuchPlace

    try:
        return capture.frame(number)
    except NoSuchPlace as error:
        raise failed(f"{path}: {error}") from None


def _save(found: Comparison, target: Path) -> None:
    """The difference picture. Raises typer.Exit."""
    from vc4lab.cli.captures import save_picture_to

    image = found.picture()
    if image is None:
        raise failed(f"{target}: no picture differs", ExitCode.OUTPUT if not found.is_equal else ExitCode.OK)
    save_picture_to(image, target)
