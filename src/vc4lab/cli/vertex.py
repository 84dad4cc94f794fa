"""`vc4lab vertex`: what was fetched for a vertex of a captured draw, what its programs made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.inside import looked_into
from vc4lab.cli.options import FILE, limits
from vc4lab.ranges import PICTURES, VERTEX_INDEX


def vertex(
    capture: Annotated[
        Path, typer.Argument(help="A capture, an archive or a folder; or recorded jobs.", parser=FILE)
    ],
    draw: Annotated[
        int, typer.Argument(help="The draw, by its number: see vc4lab show --draws.", **limits(PICTURES))
    ],
    index: Annotated[int, typer.Argument(help="The vertex, as indices name it.", **limits(VERTEX_INDEX))],
    frame: Annotated[
        int | None, typer.Option(help="The frame, by its number; else the last one.", **limits(PICTURES))
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="Print each run of a program, instruction by instruction.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what happened to a vertex of a captured frame: arrays, programs, clipping, place."""
    from vc4lab.debug.frame.vertex import vertex_dict, vertex_lines

    with looked_into(capture) as found:
        history = found.frame(frame).vertex(draw, index)
    if as_json:
        typer.echo(json.dumps(vertex_dict(history), indent=1))
        return
    for line in vertex_lines(history, program=program):
        typer.echo(line)
