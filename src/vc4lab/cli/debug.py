"""`vc4lab debug`: a QPU program stepped, in lines, on the whole screen, or from an editor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli import options as common
from vc4lab.cli.asm import DialectOption, IncludeOption
from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import FILE, unknowns_of
from vc4lab.cli.programs import (
    BudgetOption,
    CheckOption,
    EntryOption,
    MemoryOption,
    ProgramArgument,
    QpusOption,
    SymbolOption,
    UniformsOption,
    add_memories,
    read_program,
)
from vc4lab.files import why

if TYPE_CHECKING:
    from vc4lab.debug.session import Session


def debug(
    program: ProgramArgument,
    qpus: QpusOption = 1,
    uniforms: UniformsOption = None,
    memory: MemoryOption = None,
    entry: EntryOption = None,
    symbol: SymbolOption = None,
    budget: BudgetOption = None,
    check: CheckOption = True,
    unknown: common.UnknownOption = None,
    dialect: DialectOption = None,
    include: IncludeOption = None,
    commands: Annotated[
        list[Path] | None,
        typer.Option("-x", "--commands", help="Carry out the commands of this file first.", parser=FILE),
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("--ex", "--eval", help="Carry out this command first; may be repeated."),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="End after these commands.")] = False,
) -> None:
    """Step a QPU program: all QPUs, forward and backward, with breakpoints; as `vc4lab run` starts it.

    Commands are read from the terminal or a pipe; `help` lists them.
    """
    from vc4lab.debug.console import Console

    session = _session(
        program, qpus, uniforms, memory, entry, symbol, budget, check, unknown, dialect, include
    )
    console = Console(session, typer.echo)
    console.greet()
    for path in commands or ():
        try:
            console.run_file(path)
        except OSError as error:
            raise failed(f"{path}: {why(error)}") from None
    for line in execute or ():
        if not console.done:
            console.execute(line)
    if not batch and not console.done:
        if sys.stdin is not None and sys.stdin.isatty():
            console.run_terminal()
        elif sys.stdin is not None:
            console.run_stream(sys.stdin)
    if console.code:
        raise typer.Exit(console.code)


def _session(
    program: Path,
    qpus: int,
    uniforms: list[str] | None,
    memory: list[str] | None,
    entry: str | None,
    symbol: str | None,
    budget: int | None,
    check: bool,
    unknown: list[str] | None,
    dialect: str | None,
    include: list[Path] | None,
) -> Session:
    """The program where it begins, or the end of the command."""
    from vc4lab.debug.session import Session
    from vc4lab.diagnostics import Reporter
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.user_programs.experiment import Experiment

    source = read_program(program, entry, symbol, dialect, include)
    try:
        experiment = Experiment(
            source.code,
            entry=source.entry,
            gpu=GpuOptions("interpreter", 1, unknowns_of(unknown), budget),
            reporter=Reporter(),
            check=check,
            raw=source.raw,
        )
        add_memories(experiment, memory)
        return Session(experiment, source, qpus, uniforms or ())
    except ValueError as error:
        raise failed(str(error)) from None
