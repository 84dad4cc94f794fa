"""`vc4lab boards`: the boards that can be booted, and how they differ."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def boards(
    as_json: Annotated[bool, typer.Option("--json", help="An array of objects, for programs.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As a Markdown table, as in docs/boards.md.")
    ] = False,
) -> None:
    """Show the boards: cores, addresses, clocks, the kernel each looks for."""
    from vc4lab.soc.board import board_table

    table = board_table()
    header, rows = table[0], table[1:]
    if as_json:
        objects = [
            {"name": name, **{row[0]: row[column] for row in rows}}
            for column, name in enumerate(header[1:], 1)
        ]
        typer.echo(json.dumps(objects, indent=2, ensure_ascii=False))
        return
    if markdown:
        typer.echo("| " + " | ".join(header) + " |")
        typer.echo("|" + " --- |" * len(header))
        for row in rows:
            typer.echo("| " + " | ".join(row) + " |")
        return
    for column, name in enumerate(header[1:], 1):
        typer.echo(f"{name}: {rows[0][column]}")
        for row in rows[1:]:
            typer.echo(f"  {row[0]:<18} {row[column]}")
        typer.echo()
