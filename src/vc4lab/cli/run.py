"""`vc4lab run`: a QPU program on some QPUs, with memory and uniforms from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli import options as common
from vc4lab.cli.asm import DialectOption, IncludeOption, read_assembly
from vc4lab.cli.exit_codes import ExitCode, failed, stopped
from vc4lab.cli.options import FILE, Engine, limits, unknowns_of
from vc4lab.cli.timing_options import BoardOption, ChipOption, JsonOption, only_with_timing, timer_of
from vc4lab.files import read_file, why, write_file
from vc4lab.ranges import BUDGET, QPU_COUNT

if TYPE_CHECKING:
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.timing.result import Timing
    from vc4lab.timing.user_programs import ProgramTiming
    from vc4lab.v3d.user_programs.experiment import Experiment, Report

BINARY, HEX = ".bin", ".hex"
LARGEST_PROGRAM = 4 << 20
"""Bytes of a program's file, whatever its form."""


def run(
    program: Annotated[
        Path,
        typer.Argument(help="Assembly text, or .bin: binary words, .hex: one word per line.", parser=FILE),
    ],
    qpus: Annotated[int, typer.Option(help="QPUs to start it on.", **limits(QPU_COUNT))] = 1,
    uniforms: Annotated[
        list[str] | None,
        typer.Option(
            "-u",
            "--uniforms",
            help="Words for one QPU, such as 'c + 256*qpu, 16, 1.5'; repeat it for the next QPU; "
            "the last list is for all that follow.",
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("-m", "--memory", help="NAME=BYTES or NAME=@FILE; the name is its address."),
    ] = None,
    dump: Annotated[
        list[str] | None,
        typer.Option("-d", "--dump", help="NAME[:hex|int|float[:WORDS]] to print afterwards."),
    ] = None,
    save: Annotated[
        list[str] | None, typer.Option("-o", "--output", help="NAME=FILE to write afterwards.")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="Label to start at; default: the top.")] = None,
    engine: common.EngineOption = Engine.JIT,
    threads: common.ThreadsOption = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Instructions after which a program counts as endless.", **limits(BUDGET)),
    ] = None,
    strict: common.StrictOption = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Check the program before and during the run: restrictions, uniforms, memory, waits.",
        ),
    ] = True,
    unknown: common.UnknownOption = None,
    dialect: DialectOption = None,
    include: IncludeOption = None,
    timing: Annotated[
        bool, typer.Option("--timing", help="Say how long the chip takes for it, and why.")
    ] = False,
    chip: ChipOption = None,
    board: BoardOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a QPU program without a Pi: print what it executed and what memory holds afterwards.

    What is wrong with it is reported; --strict stops at the first error.
    """
    from vc4lab.cli.messages import reporter_of
    from vc4lab.diagnostics import StrictStop
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.user_programs.experiment import Experiment

    reporter = reporter_of(strict)
    timer = _timer(timing, chip, board, as_json)
    source = _read(program, entry, dialect, include)
    reporter.listeners.append(source.show)
    try:
        experiment = Experiment(
            source.code,
            entry=source.entry,
            gpu=GpuOptions(engine.value, threads, unknowns_of(unknown), budget),
            reporter=reporter,
            check=check,
            raw=source.raw,
        )
        for text in memory or ():
            try:
                experiment.add_area(text)
            except OSError as error:
                raise failed(f"{error.filename}: {why(error)}") from None
        if timer is None:
            report = experiment.run(qpus, uniforms or ())
        else:
            with timer.listen(experiment.programs.listeners):
                report = experiment.run(qpus, uniforms or ())
        dumps = [experiment.dump(text) for text in dump or ()]
        if timer is not None and as_json:
            _print_json(report, timer.result(), dumps)
        else:
            _print(report, engine.value)
            if timer is not None:
                typer.echo(timer.result().text(where=source.place))
            for text in dumps:
                typer.echo(text)
    except ValueError as error:
        raise failed(str(error)) from None
    except StrictStop as stop:
        raise stopped(stop) from None
    for text in save or ():
        _save(experiment, text)
    if report.completed < report.started:
        raise typer.Exit(ExitCode.GUEST_HANG)


def _timer(timing: bool, chip: str | None, board: str | None, as_json: bool) -> ProgramTiming | None:
    """What times the run, if that is asked for."""
    only_with_timing(timing, (("--chip", chip), ("--board", board), ("--json", as_json)))
    if not timing:
        return None
    from vc4lab.timing.user_programs import ProgramTiming

    return timer_of(ProgramTiming, chip, board)


@dataclass(frozen=True)
class _Source:
    """A program's file. entry: byte offset; lines: source line and text of each word, if there are
    any; raw: words that need not be instructions.
    """

    path: Path
    code: bytes
    entry: int = 0
    lines: tuple[tuple[int, str], ...] = ()
    raw: frozenset[int] = frozenset()

    def show(self, item: Diagnostic) -> None:
        """Print a message, with the line of the source it is about."""
        typer.echo(str(item), err=True)
        line = self.line(item.address) if item.address is not None else None
        if line is not None:
            typer.echo(f"    {self.path}:{line[0]}: {line[1]}", err=True)

    def line(self, address: int) -> tuple[int, str] | None:
        """The source line of an instruction, if there is one."""
        from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
        from vc4lab.v3d.user_programs.experiment import CODE

        index, rest = divmod(address - CODE, INSTRUCTION_BYTES)
        return self.lines[index] if rest == 0 and 0 <= index < len(self.lines) else None

    def place(self, address: int) -> str:
        """An instruction's place in the source, if it has one, for a line of a table."""
        line = self.line(address)
        return f"line {line[0]}, " if line is not None else ""


def _read(path: Path, entry: str | None, dialect: str | None, include: list[Path] | None) -> _Source:
    if path.suffix.lower() in (BINARY, HEX):
        if entry is not None:
            raise failed(f"{path}: words have no labels, so --entry {entry!r} is not possible")
        return _read_words(path)
    assembly = read_assembly(str(path), dialect, include, LARGEST_PROGRAM)
    if entry is not None and entry not in assembly.labels:
        known = ", ".join(assembly.labels) or "none"
        raise failed(f"{path}: there is no label {entry!r} (known: {known})")
    start = assembly.labels[entry] if entry is not None else 0
    return _Source(path, assembly.bytes, start, assembly.lines, assembly.raw)


def _read_words(path: Path) -> _Source:
    try:
        data = read_file(path, LARGEST_PROGRAM)
        if path.suffix.lower() == BINARY:
            return _Source(path, data)
        words = [int(word, 16) for word in data.decode("utf-8-sig").split()]
        return _Source(path, b"".join(word.to_bytes(8, "little") for word in words))
    except OSError as error:
        raise failed(f"{path}: {why(error)}") from None
    except UnicodeDecodeError as error:
        raise failed(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except (ValueError, OverflowError):
        raise failed(f"{path}: expected one hexadecimal 64-bit word per line") from None


def _print(report: Report, engine: str) -> None:
    rate = report.instructions / report.seconds / 1e6 if report.seconds else 0.0
    typer.echo(
        f"{report.completed} of {report.started} programs completed, "
        f"{report.instructions} instructions in {report.seconds * 1000:.1f} ms "
        f"({rate:.1f} M/s, {engine})"
    )
    for area in report.areas.values():
        typer.echo(f"{area.name}: {area.size} bytes at 0x{area.address:08x}")
    for line in report.waiting:
        typer.echo(line)


def _print_json(report: Report, timing: Timing, dumps: list[str]) -> None:
    import json

    found = {
        "started": report.started,
        "completed": report.completed,
        "instructions": report.instructions,
        "waiting": report.waiting,
        "timing": timing.to_json(),
        "dumps": dumps,
    }
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _save(experiment: Experiment, text: str) -> None:
    name, _, file = text.partition("=")
    area = experiment.areas.get(name)
    if area is None or not file:
        raise failed(f"--output {text}: expected NAME=FILE with the name of a memory")
    try:
        write_file(file, experiment.memory.read(area.address, area.size))
    except OSError as error:
        raise failed(f"{file}: {why(error)}", ExitCode.OUTPUT) from None
