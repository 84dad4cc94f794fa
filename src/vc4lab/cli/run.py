"""`vc4lab run`: a QPU program on some QPUs, with memory and uniforms from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.exit_codes import ExitCode, failed, stopped
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.programs import ProgramArgument, ProgramOptions, add_memories, read_program, show
from vc4lab.cli.timing_options import TimingOptions, timer_of
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
    *,
    options: ProgramOptions,
    gpu: GpuGroup,
    captured: Annotated[CaptureOptions, Without("frames", "capture_on")],
    timed: TimingOptions,
    dump: Annotated[
        list[str] | None,
        typer.Option("-d", "--dump", help="NAME[:hex|int|float[:WORDS]] to print afterwards."),
    ] = None,
    save: Annotated[
        list[str] | None, typer.Option("-o", "--output", help="NAME=FILE to write afterwards.")
    ] = None,
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
    from vc4lab.v3d.user_programs.experiment import Experiment

    reporter = reporter_of(gpu.strict)
    timed.check((("--lines", lines), ("--hints", hints)))
    timer = _timer(timed)
    source = read_program(program, options)
    reporter.listeners.append(lambda item: show(source, item))
    try:
        experiment = Experiment(
            source.code,
            entry=source.entry,
            gpu=gpu.options(budget=options.budget),
            reporter=reporter,
            check=options.check,
            raw=source.raw,
        )
        add_memories(experiment, options.memory)
        kept = _captured(experiment, program, captured)
        if timer is None:
            report = experiment.run(options.qpus, options.uniforms or ())
        else:
            with timer.listen(experiment.programs.listeners):
                report = experiment.run(options.qpus, options.uniforms or ())
        dumps = [experiment.dump(text) for text in dump or ()]
        if timer is not None and timed.as_json:
            _print_json(report, timer.result(), dumps)
        else:
            _print(report, gpu.engine.value)
            if timer is not None:
                typer.echo(timer.result().text(where=source.line_text))
                _print_uses(timer, source, lines, hints)
            for text in dumps:
                typer.echo(text)
    except ValueError as error:
        raise failed(str(error)) from None
    except Full:
        text = f"the memory of the program does not fit in {captured.capture_size} MiB"
        raise failed(f"{captured.capture}: CAP-009: the capture is full: {text}", ExitCode.OUTPUT) from None
    except StrictStop as stop:
        raise stopped(stop) from None
    for text in save or ():
        _save(experiment, text)
    if kept is not None and captured.capture is not None:
        _save_capture(kept, captured.capture)
    if report.completed < report.started:
        raise typer.Exit(ExitCode.GUEST_HANG)


def _captured(experiment: Experiment, program: Path, wanted: CaptureOptions) -> ExperimentCapture | None:
    """Return the capture that keeps the run; None: that is not asked for."""
    if wanted.capture is None:
        return None
    from vc4lab.jobs.experiment import ExperimentCapture

    return ExperimentCapture(experiment, program.name, wanted.capture_size << 20)


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


def _timer(timed: TimingOptions) -> ProgramTiming | None:
    """Return the timing of the run; None: that is not asked for."""
    if not timed.timing:
        return None
    from vc4lab.timing.user_programs import ProgramTiming

    return timer_of(ProgramTiming, timed.chip, timed.board)


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
