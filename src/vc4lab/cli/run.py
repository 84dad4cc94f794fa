"""`vc4lab run`: a QPU program on some QPUs, with memory and uniforms from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli import options as common
from vc4lab.cli.asm import DialectOption, IncludeOption
from vc4lab.cli.capturing import DEFAULT_SIZE, CaptureOption, CaptureSizeOption
from vc4lab.cli.exit_codes import ExitCode, failed, stopped
from vc4lab.cli.options import Engine, unknowns_of
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
    show,
)
from vc4lab.cli.timing_options import BoardOption, ChipOption, JsonOption, only_with_timing, timer_of
from vc4lab.files import why, write_file

MOST_HINTS = 20

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.debug.source import Source
    from vc4lab.jobs.experiment import ExperimentCapture
    from vc4lab.timing.result import Timing
    from vc4lab.timing.user_programs import ProgramTiming
    from vc4lab.v3d.user_programs.experiment import Experiment, Report


def run(
    program: ProgramArgument,
    qpus: QpusOption = 1,
    uniforms: UniformsOption = None,
    memory: MemoryOption = None,
    dump: Annotated[
        list[str] | None,
        typer.Option("-d", "--dump", help="NAME[:hex|int|float[:WORDS]] to print afterwards."),
    ] = None,
    save: Annotated[
        list[str] | None, typer.Option("-o", "--output", help="NAME=FILE to write afterwards.")
    ] = None,
    entry: EntryOption = None,
    symbol: SymbolOption = None,
    engine: common.EngineOption = Engine.JIT,
    threads: common.ThreadsOption = None,
    budget: BudgetOption = None,
    strict: common.StrictOption = False,
    check: CheckOption = True,
    unknown: common.UnknownOption = None,
    dialect: DialectOption = None,
    include: IncludeOption = None,
    capture: CaptureOption = None,
    capture_size: CaptureSizeOption = DEFAULT_SIZE,
    timing: Annotated[
        bool, typer.Option("--timing", help="Say how long the chip takes for it, and why.")
    ] = False,
    chip: ChipOption = None,
    board: BoardOption = None,
    as_json: JsonOption = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="With --timing: each line, with its clocks, ALUs and waits.")
    ] = False,
    hints: Annotated[
        bool,
        typer.Option(
            "--hints",
            help="With --timing: pairs that one instruction could hold, and latencies without work.",
        ),
    ] = False,
) -> None:
    """Run a QPU program without a Pi: print what it executed and what memory holds afterwards.

    What is wrong with it is reported; --strict stops at the first error.
    """
    from vc4lab.capture.pages import Full
    from vc4lab.cli.messages import reporter_of
    from vc4lab.diagnostics import StrictStop
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.user_programs.experiment import Experiment

    reporter = reporter_of(strict)
    only_with_timing(timing, (("--lines", lines), ("--hints", hints)))
    timer = _timer(timing, chip, board, as_json)
    source = read_program(program, entry, symbol, dialect, include)
    reporter.listeners.append(lambda item: show(source, item))
    try:
        experiment = Experiment(
            source.code,
            entry=source.entry,
            gpu=GpuOptions(engine.value, threads, unknowns_of(unknown), budget),
            reporter=reporter,
            check=check,
            raw=source.raw,
        )
        add_memories(experiment, memory)
        kept = _captured(experiment, program, capture, capture_size)
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
                typer.echo(timer.result().text(where=source.line_text))
                _print_uses(timer, source, lines, hints)
            for text in dumps:
                typer.echo(text)
    except ValueError as error:
        raise failed(str(error)) from None
    except Full:
        text = f"CAP-009: the capture is full: the memory of the program does not fit in {capture_size} MiB"
        raise failed(f"{capture}: {text}", ExitCode.OUTPUT) from None
    except StrictStop as stop:
        raise stopped(stop) from None
    for text in save or ():
        _save(experiment, text)
    if kept is not None and capture is not None:
        _save_capture(kept, capture)
    if report.completed < report.started:
        raise typer.Exit(ExitCode.GUEST_HANG)


def _captured(experiment: Experiment, program: Path, path: Path | None, mib: int) -> ExperimentCapture | None:
    """Return the capture that keeps the run; None: that is not asked for."""
    if path is None:
        return None
    from vc4lab.jobs.experiment import ExperimentCapture

    return ExperimentCapture(experiment, program.name, mib << 20)


def _save_capture(kept: ExperimentCapture, path: Path) -> None:
    """Write what was kept. Raises typer.Exit."""
    from vc4lab.capture.errors import CaptureError
    from vc4lab.jobs.store import save_jobs

    try:
        save_jobs(kept.capture, path)
    except OSError as error:
        raise failed(f"CLI-001: {path}: {why(error)}", ExitCode.OUTPUT) from None
    except CaptureError as error:
        raise failed(f"{path}: {error}", ExitCode.OUTPUT) from None


def _timer(timing: bool, chip: str | None, board: str | None, as_json: bool) -> ProgramTiming | None:
    """Return the timing of the run; None: that is not asked for."""
    only_with_timing(timing, (("--chip", chip), ("--board", board), ("--json", as_json)))
    if not timing:
        return None
    from vc4lab.timing.user_programs import ProgramTiming

    return timer_of(ProgramTiming, chip, board)


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


def _print_uses(timer: ProgramTiming, source: Source, lines: bool, hints: bool) -> None:
    """Print what each line takes, and what could be quicker."""
    from vc4lab.timing.program_use import listing

    for use in timer.programs if lines else ():
        typer.echo("\n".join(listing(use, source.line)))
    if hints:
        found = timer.hints()
        typer.echo("hints:" if found else "hints: none")
        for hint in found[:MOST_HINTS]:
            place = f"{source.line_text(hint.address)}0x{hint.address:08x}"
            typer.echo(f"  {hint.clocks:>10} clocks, {place}: {hint.text}")


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
