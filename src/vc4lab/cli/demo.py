"""`vc4lab demo`: boot the bundled program and look at the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import PictureOptions
from vc4lab.ranges import FRAMES

DEFAULT_FRAMES = 120


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture and the GIF.", parser=FILE)] = Path(
        "out"
    ),
    frames: Annotated[int, typer.Option(help="Frames to draw.", **limits(FRAMES, 1))] = DEFAULT_FRAMES,
    *,
    shown: Annotated[PictureOptions, Without("screenshot", "record", "every", "both_orders", "window")],
    where: Annotated[
        bool, typer.Option("--where", help="Only print the folder of the example programs.")
    ] = False,
) -> None:
    """Boot the bundled naan bread: textured polygons drawn by the V3D of a Pi 2.

    The other examples are installed, too: vc4lab boot "$(vc4lab demo --where)/gears/sdcard"
    """
    if where:
        from vc4lab import examples

        typer.echo(examples())
        return
    from importlib.resources import as_file, files

    from vc4lab.cli.exit_codes import ExitCode
    from vc4lab.cli.outputs import say
    from vc4lab.cli.session import run_session
    from vc4lab.cli.settings import Settings

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        say(f"vc4lab: CLI-001: {output}: {error.strerror}")
        raise typer.Exit(ExitCode.OUTPUT) from None
    with as_file(files("vc4lab") / "data" / "demo") as card:
        pictures = PictureOptions(output / "naan.png", output / "naan.gif", headless=shown.headless)
        code = run_session(Settings(card, pictures=pictures, frames=frames))
    raise typer.Exit(code)
