"""`vc4lab opt`: a QPU program rearranged, so that it takes less time and does the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.asm import Format, formatted, source_text
from vc4lab.cli.exit_codes import ExitCode, failed
from vc4lab.cli.groups import Without
from vc4lab.cli.lint import WORDS, assembly_of
from vc4lab.cli.options import FILE
from vc4lab.cli.programs import ProgramOptions
from vc4lab.cli.timing_options import CHIP
from vc4lab.files import why, write_file

if TYPE_CHECKING:
    from vc4lab.kernels.trial import Measured, Trial
    from vc4lab.qpu.optimise.optimise import Optimised
    from vc4lab.qpu.text.assembly import Assembly

TEXT = (".qasm", ".asm", ".txt", "")
"""Names of outputs that get text."""
MOST_NOTES = 8
NOT_SAME = "the new program would not do the same, so nothing is written"


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
    *,
    program: Annotated[ProgramOptions, Without("budget", "check")],
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

    shown = "<stdin>" if file == "-" else file
    assembly = assembly_of(file, program, program.symbol)
    start = _start(assembly, program.entry, shown)
    text = "" if program.symbol or file == "-" or _is_words(file) else source_text(file)
    trial = Trial(program.memory or (), program.uniforms or (), program.qpus, text, chip or CHIP, board or "")
    candidates = _candidates(assembly, start, shown, several=check and trial.is_possible)
    _print_notes(assembly, candidates[0], shown)
    found = _chosen(assembly, candidates, start, shown, trial) if check else candidates[0]
    if found is None:
        _write(assembly, set(range(len(assembly.words))), output, name, shown, text)
    else:
        _write(_assembly(assembly, found), set(found.moved.values()), output, name, shown, text)


def _candidates(assembly: Assembly, start: int, shown: str, several: bool) -> list[Optimised]:
    """Rearranged programs. several: in each style, for the timing model to choose from."""
    from vc4lab.qpu.optimise.dependences import STYLES
    from vc4lab.qpu.optimise.optimise import TooLarge, optimise

    labels = {address // 8 for address in assembly.labels.values() if not address % 8}
    exported = {assembly.labels[label] // 8 for label in assembly.exported if label in assembly.labels}
    try:
        found = [
            optimise(assembly.words, {start, *exported}, labels, assembly.raw, style)
            for style in STYLES[: None if several else 1]
        ]
    except TooLarge as error:
        raise failed(f"{shown}: {error}") from None
    return list({one.words: one for one in reversed(found)}.values())[::-1]


def _print_notes(assembly: Assembly, found: Optimised, shown: str) -> None:
    for index, text in found.notes[:MOST_NOTES]:
        typer.echo(f"{shown}: {_place(assembly, index)}{text}", err=True)
    if len(found.notes) > MOST_NOTES:
        typer.echo(f"{shown}: … and {len(found.notes) - MOST_NOTES} more blocks left", err=True)


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
    """Return the place that a note is about: the source's line, or the instruction."""
    if not index:
        return ""
    line = assembly.lines[index][0] if index < len(assembly.lines) else 0
    return f"line {line}: " if line else f"instruction {index}: "


def _chosen(
    assembly: Assembly, candidates: Sequence[Optimised], start: int, shown: str, trial: Trial
) -> Optimised | None:
    """The quickest of some programs, checked; None: the old one is as good. Ends the command if one
    does something else.
    """
    found, clocks = _quickest(assembly, candidates, start, shown, trial)
    if assembly.words == found.words:
        typer.echo(f"{shown}: nothing to gain in its {len(found.words)} instructions", err=True)
        return None
    before, after = _checked(assembly, found, start, shown)
    summary = f"{shown}: {len(assembly.words)} instructions before, {len(found.words)} after"
    if before:
        summary += f"; executed on random inputs: {before} before, {after} after"
    typer.echo(summary, err=True)
    if clocks is not None:
        before, after = clocks
        typer.echo(f"{shown}: {before} clocks before, {after} after ({trial.chip})", err=True)
    if after > before:
        typer.echo(f"{shown}: the program as it was is quicker, and is kept", err=True)
        return None
    return found


def _checked(assembly: Assembly, found: Optimised, start: int, shown: str) -> tuple[int, int]:
    """Instructions that both executed on random inputs, in those runs that came to the end."""
    from vc4lab.qpu.optimise.checking import check
    from vc4lab.qpu.run.environment import Unsupported

    try:
        checked = check(assembly.words, found.words, start, found.moved[start])
    except Unsupported as error:
        raise failed(f"{shown}: not checked, so nothing is written (--no-check would): {error}") from None
    if checked.difference is not None:
        raise failed(f"{shown}: {NOT_SAME}: {checked.difference}", ExitCode.ERRORS)
    typer.echo(
        f"{shown}: the same accesses in the same order on {checked.runs} random inputs"
        f" ({checked.ended} to the program's end)",
        err=True,
    )
    return checked.before, checked.after


def _quickest(
    assembly: Assembly, candidates: Sequence[Optimised], start: int, shown: str, trial: Trial
) -> tuple[Optimised, tuple[int, int] | None]:
    """The program with the fewest clocks, and the old one's clocks and its; the first one and None if
    there is nothing to time them with.
    """
    from vc4lab.kernels.trial import NoTrial

    if not trial.is_possible:
        typer.echo(f"{shown}: not timed: give its memory and uniforms with -m and -u as for run", err=True)
        return candidates[0], None
    try:
        before = trial.run(assembly.words, start, assembly.raw)
    except NoTrial as error:
        typer.echo(f"{shown}: not timed: {error}", err=True)
        return candidates[0], None
    except OSError as error:
        raise failed(f"{error.filename}: {why(error)}") from None
    except ValueError as error:
        raise failed(str(error)) from None
    measured = [
        (_measured(assembly, found, before, start, shown, trial).clocks, number)
        for number, found in enumerate(candidates)
    ]
    clocks, number = min(measured)
    return candidates[number], (before.clocks, clocks)


def _measured(
    assembly: Assembly, found: Optimised, before: Measured, start: int, shown: str, trial: Trial
) -> Measured:
    """A new program's run, or the end of the command if it leaves something else than the old one's."""
    from vc4lab.kernels.trial import NoTrial

    raw = {found.moved[index] for index in assembly.raw}
    try:
        after = trial.run(found.words, found.moved[start], raw)
    except NoTrial as error:
        raise failed(f"{shown}: {NOT_SAME}: it does not end: {error}", ExitCode.ERRORS) from None
    if before.memory != after.memory:
        raise failed(f"{shown}: {NOT_SAME}: it leaves other memory", ExitCode.ERRORS)
    new_errors = ", ".join(sorted(after.errors - before.errors))
    if new_errors:
        raise failed(f"{shown}: {NOT_SAME}: it breaks {new_errors}", ExitCode.ERRORS)
    return after


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
    assembly: Assembly, starts: set[int], output: Path | None, name: str | None, shown: str, text: str
) -> None:
    """Write a program. starts: instructions that labels may name; text: the old one's source."""
    from vc4lab.kernels.trial import interface_of
    from vc4lab.qpu.dialects.blocks import program_text

    suffix = output.suffix.lower() if output else ""
    if suffix in TEXT:
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
