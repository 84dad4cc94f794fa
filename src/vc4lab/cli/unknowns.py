"""`vc4lab unknowns`: the table of undocumented hardware behaviour and the choices made."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict
from typing import Annotated

import typer

from vc4lab.cli.exit_codes import failed


def unknowns(
    name: Annotated[str | None, typer.Argument(help="Show only this one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An array of objects, for programs.")] = False,
) -> None:
    """Show what no document says about the hardware, and what is assumed."""
    import vc4lab.drm.cpu_memory.cpu_memory_unknowns
    import vc4lab.scanout.display_unknowns
    import vc4lab.soc.board_unknowns  # noqa: F401 – importing adds its rows
    from vc4lab.diagnostics.flips import by_row, sentences
    from vc4lab.diagnostics.unknown import table as registered

    table = registered()
    if name is not None and name not in table:
        near = difflib.get_close_matches(name, table, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise failed(f"no unknown is called {name[:60]!r}; {hint}`vc4lab unknowns` lists all")
    rows = list(table.values()) if name is None else [table[name]]
    if as_json:
        flipped = {row.name: [asdict(one) for one in by_row().get(row.name, ())] for row in rows}
        typer.echo(json.dumps([asdict(row) | {"flipped": flipped[row.name]} for row in rows], indent=2))
        return
    for row in rows:
        typer.echo(f"{row.name}: {row.question}")
        for choice, meaning in row.choices.items():
            mark = "*" if choice == row.default else " "
            typer.echo(f"  {mark} {choice}: {meaning}")
        if row.settled:
            typer.echo(f"    settled by: {row.settled}")
        else:
            typer.echo(f"    decided by: {row.decided_by}")
        for sentence in sentences(by_row().get(row.name, ())):
            typer.echo(f"    flipped: {sentence}")
        typer.echo(f"    reference: {row.reference}\n")
