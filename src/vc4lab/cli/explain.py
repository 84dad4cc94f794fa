"""`vc4lab explain`: what a diagnostic code means and its cure, or which codes fit a symptom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import failed

if TYPE_CHECKING:
    from vc4lab.diagnostics.entry import Entry


def explain(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE | WORDS]",
            help="Codes such as CLE-001, or what you see: black screen, wrong colours, flickers. "
            "Without one, list all.",
        ),
    ] = None,
) -> None:
    """Explain a diagnostic: its meaning, the hardware reference, the usual cure.

    With words, name the diagnostics that fit them, the most likely first.
    """
    from vc4lab.diagnostics import catalogue
    from vc4lab.diagnostics import explain as explanation
    from vc4lab.diagnostics.search import CODE

    if not what:
        for entry in catalogue().values():
            typer.echo(_line(entry))
        return
    if not any(CODE.fullmatch(word) for word in what):
        _search(" ".join(what))
        return
    try:
        typer.echo("\n".join(explanation(code) for code in what), nl=False)
    except KeyError as error:
        raise failed(error.args[0]) from None


def _search(question: str) -> None:
    from vc4lab.diagnostics.search import search

    answer = search(question)
    if answer.symptom:
        typer.echo(f"{answer.symptom}: look for these, the most likely first")
        for cause in answer.causes:
            typer.echo(f"  {cause}" if isinstance(cause, str) else f"  {_line(cause)}")
    if answer.entries:
        typer.echo("Entries with these words:" if answer.symptom else f"{question}:")
        for entry in answer.entries:
            typer.echo(f"  {_line(entry)}")
    if not answer.symptom and not answer.entries:
        raise failed(
            f"No diagnostic fits {question[:80]!r}. Say what you see in a few words (black screen, "
            "upside down, hangs, slow), or list all codes: vc4lab explain"
        )
    typer.echo("vc4lab explain CODE has the whole entry with the cure.")


def _line(entry: Entry) -> str:
    return f"{entry.code:9} {entry.severity.name.lower():8} {entry.title}"
