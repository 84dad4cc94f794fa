"""`vc4lab explain`: what a diagnostic code means and how to cure it."""

from __future__ import annotations

from typing import Annotated

import typer

from vc4lab.cli.exit_codes import failed


def explain(
    code: Annotated[
        str | None, typer.Argument(help="A code such as CLE-001; without one, list all.")
    ] = None,
) -> None:
    """Explain a diagnostic: its meaning, the hardware reference, the usual cure."""
    from vc4lab.diagnostics import catalogue
    from vc4lab.diagnostics import explain as explanation

    if code is None:
        for entry in catalogue().values():
            typer.echo(f"{entry.code:9} {entry.severity.name.lower():8} {entry.title}")
        return
    try:
        typer.echo(explanation(code), nl=False)
    except KeyError as error:
        raise failed(error.args[0]) from None
