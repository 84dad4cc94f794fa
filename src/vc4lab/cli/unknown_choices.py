"""`--unknown NAME=CHOICE`: other choices about undocumented hardware than the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from vc4lab.diagnostics.unknown import Unknowns

METAVAR = "NAME=CHOICE"
UnknownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        help="Change a choice about undocumented hardware, see `vc4lab unknowns`; repeatable.",
        metavar=METAVAR,
    ),
]


def unknowns_of(texts: Sequence[str] | None) -> Unknowns:
    """The setting of all switches. Raises typer.Exit, with a sentence, for what is none."""
    import vc4lab.drm.cpu_memory.cpu_memory_unknowns
    import vc4lab.drm.kms.display_unknowns
    import vc4lab.soc.board_unknowns  # noqa: F401 – importing adds its rows
    from vc4lab.diagnostics.unknown import Unknowns

    changed: dict[str, str] = {}
    try:
        for text in texts or ():
            name, equals, choice = text.partition("=")
            if not equals:
                raise ValueError(f"{text!r} is not {METAVAR}")
            changed[name.strip()] = choice.strip()
        return Unknowns(changed)
    except (KeyError, ValueError) as error:
        typer.echo(f"--unknown: {error.args[0]}", err=True)
        raise typer.Exit(ExitCode.BAD_INPUT) from None
