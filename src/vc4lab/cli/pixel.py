"""`vc4lab pixel`: every primitive that touched a pixel of a captured frame, and what became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.inside import looked_into
from vc4lab.cli.options import FILE, limits
from vc4lab.ranges import PICTURES


class PixelPlace:
    """A parser for typer: two whole numbers, X,Y."""

    __name__ = "X,Y"

    def __call__(self, text: str | tuple[int, int]) -> tuple[int, int]:
        if not isinstance(text, str):
            return text
        parts = text.split(",")
        try:
            if len(parts) == 2:
                return int(parts[0]), int(parts[1])
        except ValueError:
            pass
        raise typer.BadParameter(f"{text[:40]!r} is not a column and a row, such as 200,150.")


def pixel(
    capture: Annotated[
        Path, typer.Argument(help="A capture, an archive or a folder; or recorded jobs.", parser=FILE)
    ],
    place: Annotated[
        tuple,  # type: ignore[type-arg]
        typer.Argument(
            help="The pixel: column and row from the picture's top left corner.",
            parser=PixelPlace(),
            metavar="X,Y",
        ),
    ],
    frame: Annotated[
        int | None, typer.Option(help="The frame, by its number; else the last one.", **limits(PICTURES))
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="Print each run of a program, instruction by instruction.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Also primitives that share a block of 4x4 pixels with it, but do not cover it."
        ),
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Also say what drew the texels that were sampled, and so on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say why a pixel of a captured frame is what it is: primitives, depth, colours, programs."""
    from vc4lab.debug.frame.texts import followed_lines, history_dict, history_lines

    with looked_into(capture) as found:
        chosen = found.frame(frame)
        history = chosen.pixel(*place, program=program)
        if as_json:
            typer.echo(json.dumps(history_dict(history, every=every), indent=1))
            return
        lines = (
            followed_lines(chosen, history, every=every) if follow else history_lines(history, every=every)
        )
        for line in lines:
            typer.echo(line)
