"""Makes for `run` and `debug` a QPU program, its memory and uniforms, as arguments say them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.asm import SourceOptions
from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import FILE, limits
from vc4lab.files import why
from vc4lab.ranges import BUDGET, QPU_COUNT

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.v3d.user_programs.experiment import Experiment

PROGRAM: Any = typer.Argument(
    help="Assembly text, or .bin: binary words, .hex: one word per line; with --symbol a C or assembly "
    "source, or an ELF file.",
    parser=FILE,
)
ProgramArgument = Annotated[Path, PROGRAM]


@dataclass(frozen=True)
class ProgramOptions(SourceOptions):
    """Says with what a program starts, and where."""

    symbol: Annotated[
        str | None,
        typer.Option(
            help="The program is an ELF symbol, a C array, or the .word lines after a label.", metavar="NAME"
        ),
    ] = None
    entry: Annotated[str | None, typer.Option(help="Label to start at; default: the top.")] = None
    qpus: Annotated[int, typer.Option(help="QPUs to start it on.", **limits(QPU_COUNT))] = 1
    uniforms: Annotated[
        list[str] | None,
        typer.Option(
            "-u",
            "--uniforms",
            help="Words for one QPU, such as 'c + 256*qpu, 16, 1.5'; repeat it for the next QPU; "
            "the last list is for all that follow.",
        ),
    ] = None
    memory: Annotated[
        list[str] | None,
        typer.Option("-m", "--memory", help="NAME=BYTES or NAME=@FILE; the name is its address."),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(help="Instructions after which a program counts as endless.", **limits(BUDGET)),
    ] = None
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Check the program before and during the run: restrictions, uniforms, memory, waits.",
        ),
    ] = True


def read_program(path: Path, options: ProgramOptions) -> Source:
    """The program of a file, or the end of the command with what is wrong with it."""
    from vc4lab.debug.launch import LaunchError, read_program

    try:
        source, notes = read_program(
            path, options.entry, options.symbol, options.dialect, options.include or ()
        )
    except LaunchError as error:
        raise failed(str(error)) from None
    for note in notes:
        typer.echo(note, err=True)
    return source


def add_memories(experiment: Experiment, texts: Iterable[str] | None) -> None:
    """The named memories, or the end of the command. Raises ValueError."""
    for text in texts or ():
        try:
            experiment.add_area(text)
        except OSError as error:
            raise failed(f"{error.filename}: {why(error)}") from None


def show(source: Source, item: Diagnostic) -> None:
    """Print a message, with the line of the source it is about."""
    typer.echo(str(item), err=True)
    line = source.line(item.address) if item.address is not None else None
    if line is not None:
        typer.echo(f"    {source.path}:{line[0]}: {line[1]}", err=True)
