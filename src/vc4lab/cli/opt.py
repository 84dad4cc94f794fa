"""`vc4lab opt`: a QPU program rearranged, so that it takes less time and does the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.asm import DialectOption, Format, IncludeOption, formatted, source_text
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.lint import WORDS, assembly_of
from vc4lab.cli.options import FILE
from vc4lab.cli.programs import EntryOption, MemoryOption, QpusOption, SymbolOption, UniformsOption
from vc4lab.cli.timing_options import CHIP
from vc4lab.files import why, write_file

if TYPE_CHECKING:
    from vc4lab.kernels.trial import Trial
    from vc4lab.qpu.optimise.optimise import Optimised
    from vc4lab.qpu.text.assembly import Assembly

TEXT = (".qasm", ".asm", ".txt", "")
"""Names of outputs that get text."""
MOST_NOTES = 8


def opt(
    file: Annotated[
        str, typer.Argument(help="Assembly source; .bin, .hex or ELF file. - for standard input.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            parser=FILE,
            help="File to write: assembly (.qasm), or as asm by its name; standard output if none.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the array or symbol; default: the output's name.")
    ] = None,
    dialect: DialectOption = None,
    include: IncludeOption = None,
    symbol: SymbolOption = None,
    entry: EntryOption = None,
    qpus: QpusOption = 1,
    uniforms: UniformsOption = None,
    memory: MemoryOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Run both programs on random inputs, and write nothing if they differ."
        ),
    ] = True,
    chip: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"The chip to time for; default: {CHIP}.")
    ] = None,
    board: Annotated[str | None, typer.Option(help="The board to time for; default: pi3.")] = None,
) -> None:
    """Rearrange a QPU program: pairs, delay slots, latencies, registers.

    Both programs are run on random inputs, where they must do the same. With -u and -m as for run,
    or an interface in the source, they are timed as well, and the quicker one is written.
    """
    from vc4lab.kernels.trial import Trial
    from vc4lab.qpu.optimise.optimise import TooLarge, optimise

    shown = "<stdin>" if file == "-" else file
    assembly = assembly_of(file, dialect, include, symbol)
    start = _start(assembly, entry, shown)
    labels = {address // 8 for address in assembly.labels.values() if not address % 8}
    exported = {assembly.labels[label] // 8 for label in assembly.exported if label in assembly.labels}
    try:
        found = optimise(assembly.words, {start, *exported}, labels, assembly.raw)
    except TooLarge as error:
        raise failed(f"{shown}: {error}") from None
    for index, text in found.notes[:MOST_NOTES]:
        typer.echo(f"{shown}: {_place(assembly, index)}{text}", err=True)
    if len(found.notes) > MOST_NOTES:
        typer.echo(f"{shown}: … and {len(found.notes) - MOST_NOTES} more blocks left", err=True)
    text = "" if symbol or file == "-" or _is_words(file) else source_text(file)
    trial = Trial(memory or (), uniforms or (), qpus, text, chip or CHIP, board or "")
    if _is_kept(assembly, found, start, shown, trial, check):
        moved = {index: index for index in {*labels, start, *exported}}
        result = assembly
    else:
        moved = found.moved
        result = _assembly(assembly, found)
    _write(result, moved, output, name, shown, text)


def _start(assembly: Assembly, entry: str | None, shown: str) -> int:
    if entry is None:
        return 0
    if entry not in assembly.labels:
        known = ", ".join(assembly.labels) or "none"
        raise failed(f"{shown}: there is no label {entry!r} (known: {known})")
    return assembly.labels[entry] // 8


def _is_words(file: str) -> bool:
    return Path(file).suffix.lower() in WORDS


def _place(assembly: Assembly, index: int) -> str:
    """Where a note is about: the source's line, or the instruction."""
    if not index:
        return ""
    line = assembly.lines[index][0] if index < len(assembly.lines) else 0
    return f"line {line}: " if line else f"instruction {index}: "


def _is_kept(assembly: Assembly, found: Optimised, start: int, shown: str, trial: Trial, check: bool) -> bool:
    """Whether the old program is as good. Ends the command if the new one does something else."""
    before, after = len(assembly.words), len(found.words)
    summary = f"{shown}: {before} instructions before, {after} after"
    if tuple(assembly.words) == tuple(found.words):
        typer.echo(f"{shown}: nothing to gain in its {before} instructions", err=True)
        return True
    clocks = executed = None
    if check:
        executed = _checked(assembly, found, start, shown)
        clocks = _measured(assembly, found, start, shown, trial)
    if executed is not None and executed[0]:
        summary += f"; executed on random inputs: {executed[0]} before, {executed[1]} after"
    typer.echo(summary, err=True)
    if clocks is not None:
        typer.echo(f"{shown}: {clocks[0]} clocks before, {clocks[1]} after ({trial.chip})", err=True)
    slower = clocks[1] > clocks[0] if clocks is not None else bool(executed and executed[1] > executed[0])
    if slower:
        typer.echo(f"{shown}: the program as it was is quicker, and is kept", err=True)
    return slower


def _checked(assembly: Assembly, found: Optimised, start: int, shown: str) -> tuple[int, int] | None:
    """Instructions that both executed on random inputs; None if it cannot be run on such."""
    from vc4lab.qpu.optimise.checking import check
    from vc4lab.qpu.run.environment import Unsupported

    try:
        checked = check(assembly.words, found.words, start, found.moved[start])
    except Unsupported as error:
        raise failed(f"{shown}: not checked, so nothing is written (--no-check would): {error}") from None
    if checked.difference is not None:
        raise failed(
            f"{shown}: the new program would not do the same, so nothing is written: {checked.difference}",
            ExitCode.ERRORS,
        )
    typer.echo(
        f"{shown}: the same accesses in the same order on {checked.runs} random inputs"
        f" ({checked.ended} to the program's end)",
        err=True,
    )
    return checked.before, checked.after


def _measured(
    assembly: Assembly, found: Optimised, start: int, shown: str, trial: Trial
) -> tuple[int, int] | None:
    """Clocks of both; None if there are no inputs to time them with."""
    from vc4lab.kernels.trial import NoTrial

    if not trial.is_possible:
        typer.echo(f"{shown}: not timed: give its memory and uniforms with -m and -u as for run", err=True)
        return None
    try:
        before = trial.run(assembly.words, start, assembly.raw)
    except NoTrial as error:
        typer.echo(f"{shown}: not timed: {error}", err=True)
        return None
    except OSError as error:
        raise failed(f"{error.filename}: {why(error)}") from None
    except ValueError as error:
        raise failed(str(error)) from None
    raw = {found.moved[index] for index in assembly.raw}
    try:
        after = trial.run(found.words, found.moved[start], raw)
    except NoTrial as error:
        raise failed(
            f"{shown}: the new program does not end well, so nothing is written: {error}", ExitCode.ERRORS
        ) from None
    if before.memory != after.memory:
        raise failed(f"{shown}: the new program leaves other memory, so nothing is written", ExitCode.ERRORS)
    return before.clocks, after.clocks


def _assembly(old: Assembly, found: Optimised) -> Assembly:
    """The new program as what an assembler gives: labels, and where each word came from."""
    from vc4lab.qpu.text.assembly import Assembly

    lines = [_line(old, sources) for sources in found.sources]
    labels = {
        name: 8 * found.moved[address // 8]
        for name, address in old.labels.items()
        if address % 8 == 0 and address // 8 in found.moved
    }
    return Assembly(
        found.words,
        labels,
        exported=tuple(name for name in old.exported if name in labels),
        symbols=old.symbols,
        lines=tuple(lines),
        raw=frozenset(found.moved[index] for index in old.raw),
        dialect=old.dialect,
    )


def _line(old: Assembly, sources: Sequence[int]) -> tuple[int, str]:
    if not sources or not old.lines:
        return 0, ""
    texts = dict.fromkeys(old.lines[index][1] for index in sources)
    return old.lines[sources[0]][0], " | ".join(texts)


def _write(
    assembly: Assembly, moved: dict[int, int], output: Path | None, name: str | None, shown: str, text: str
) -> None:
    from vc4lab.kernels.trial import interface_of
    from vc4lab.qpu.dialects.blocks import program_text

    suffix = output.suffix.lower() if output else ""
    if suffix in TEXT:
        starts = set(moved.values())
        labels: dict[int, str] = {}
        for label, address in assembly.labels.items():
            if address // 8 in starts and address // 8 < len(assembly.words) and not address % 8:
                labels.setdefault(address // 8, label)
        written = "vc4asm" if assembly.dialect == "vc4asm" else "qpuasm"
        made = f"made by vc4lab opt of {Path(shown).name}"
        data = program_text(assembly.words, written, labels=labels, made=made)
        interface = interface_of(text)
        result = (interface.comments + data if interface else data).encode()
    else:
        result = formatted(assembly, Format.of(suffix), name or (output.stem if output else "qpu"), shown)
    if output is None:
        sys.stdout.buffer.write(result)
        sys.stdout.flush()
        return
    try:
        write_file(output, result)
    except OSError as error:
        raise failed(f"{output}: {why(error)}", ExitCode.OUTPUT) from None
