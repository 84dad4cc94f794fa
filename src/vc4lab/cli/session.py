"""One run of a machine for `boot` and `demo`: serial line, progress, pictures, exit code."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from vc4lab.cli.exit_codes import ExitCode, not_drawn
from vc4lab.files import why

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vc4lab.cli.instruments import Instruments
    from vc4lab.cli.settings import Settings
    from vc4lab.soc.machine import Machine
    from vc4lab.viewer.recorder import Recorder


def say(text: str) -> None:
    """A line for the person, on standard error."""
    typer.echo(text, err=True)


def run_session(settings: Settings) -> ExitCode:
    """Boot, run, save what was asked for, say how it ended."""
    problem = _check_outputs(settings)
    if problem:
        text, wrong = problem
        say(f"vc4lab: {text}")
        return wrong
    from vc4lab.cli.progress import Progress
    from vc4lab.cli.serial_line import BadSerial, SerialLine
    from vc4lab.diagnostics import Reporter

    live = not settings.headless and settings.serial != "stdio"
    with Progress(live, settings.frames, settings.seconds) as progress:
        show = progress.show if progress.enabled and sys.stdout.isatty() else None
        try:
            line = SerialLine(settings.serial, show, say)
        except BadSerial as error:
            say(f"vc4lab: {error}")
            return ExitCode.BAD_INPUT
        except OSError as error:
            port = (settings.serial or "").startswith("tcp:")
            say(f"vc4lab: {'CLI-004' if port else 'CLI-001'}: {settings.serial}: {why(error)}")
            return ExitCode.BAD_INPUT if port else ExitCode.OUTPUT
        reporter = Reporter(settings.strict)
        reporter.listeners.append(
            lambda item: progress.show(str(item)) if progress.enabled else say(str(item))
        )
        run = _Run(settings, reporter, progress.show if progress.enabled else say)
        try:
            code = run.boot_and_run(line.port, progress)
        finally:
            line.close()
    if line.error is not None:
        say(f"vc4lab: CLI-001: {settings.serial}: {line.error.strerror}; the output ends there")
        code = code or ExitCode.OUTPUT
    for text in run.endings:
        say(text)
    return run.save(code)


def _check_outputs(settings: Settings) -> tuple[str, ExitCode] | None:
    """A sentence and a code if a file to write cannot work out, before a long run."""
    from vc4lab.viewer.recorder import SUFFIXES

    for path in (settings.screenshot, settings.record, settings.save_state, settings.audio):
        if path is not None and not path.parent.is_dir():
            text = f"CLI-001: there is no folder {path.parent} to write {path.name} to"
            return text, ExitCode.OUTPUT
        if path is not None and path.is_dir():
            return f"CLI-001: {path} is a folder", ExitCode.OUTPUT
    if settings.record is not None and settings.record.suffix.lower() not in SUFFIXES:
        text = f"{settings.record}: a recording ends in {', '.join(SUFFIXES)}"
        return text, ExitCode.BAD_INPUT
    if settings.screenshot is not None:
        from vc4lab.viewer.pictures import is_picture

        if not is_picture(settings.screenshot):
            text = f"{settings.screenshot}: no picture format has this ending; take .png"
            return text, ExitCode.BAD_INPUT
    return None


class _Run:
    """The machine of a session and what is left of it."""

    def __init__(self, settings: Settings, reporter: object, tell: Callable[[str], None]) -> None:
        self.settings = settings
        self.reporter = reporter
        self._tell = tell
        self.endings: list[str] = []
        self._machine: object = None
        self._recorder: Recorder | None = None
        self._left_out = -1
        """`FrameCounter.moves` at the last frame that came too early for the recording."""

    def boot_and_run(self, port: object, progress: object) -> ExitCode:
        """Start and run; the exit code of how it ended."""
        from vc4lab.cli.instruments import Instruments
        from vc4lab.cli.progress import INTERVAL
        from vc4lab.diagnostics import StrictStop
        from vc4lab.soc.board import UnknownBoard
        from vc4lab.soc.boot.firmware import BootError
        from vc4lab.soc.machine import Machine
        from vc4lab.soc.unknowns import DEFAULT_UNKNOWNS

        settings = self.settings
        started = time.perf_counter()
        try:
            machine = Machine(
                settings.path,
                settings.board,
                self.reporter,  # type: ignore[arg-type]
                port,  # type: ignore[arg-type]
                card=settings.card,
                engine=settings.engine,
                caches=settings.caches,
                unknowns=settings.unknowns or DEFAULT_UNKNOWNS,
                extras=settings.extras,
            )
        except UnknownBoard as error:
            self.endings.append(f"vc4lab: {error}")
            return ExitCode.BAD_INPUT
        except BootError:
            return ExitCode.BAD_INPUT
        except StrictStop as stop:
            return self._strict(stop)
        except KeyboardInterrupt:
            self.endings.append("interrupted before the program began")
            self._not_saved("the machine was not ready")
            return ExitCode.INTERRUPTED
        self._machine = machine
        if settings.realtime:
            from vc4lab.soc.pace import Pace

            machine.pace = Pace(tell=self._tell)
            if progress.enabled:  # type: ignore[attr-defined]
                machine.pace.longest = INTERVAL
        machine.on_vsync = lambda: progress.update(machine)  # type: ignore[attr-defined]
        self._start_recording()
        instruments = Instruments(settings, machine, say)
        code = self._run(machine, instruments, started)
        written = instruments.write_card()
        return code or written or instruments.outcome

    def _run(self, machine: Machine, instruments: Instruments, started: float) -> ExitCode:
        from vc4lab.cli.instruments import InstrumentError
        from vc4lab.cli.interrupts import SavedInterrupt
        from vc4lab.diagnostics import StrictStop
        from vc4lab.soc.result import Stop

        settings = self.settings
        interrupt = SavedInterrupt(machine) if settings.save_state is not None else None
        try:
            with interrupt or nullcontext():
                instruments.attach()
                result = machine.run(settings.frames, settings.seconds)
            interrupted = interrupt is not None and interrupt.asked
            if result.reason in (Stop.HALTED, Stop.HANG, Stop.CRASH):
                interrupted = not instruments.stay() or interrupted
        except InstrumentError as error:
            self.endings.append(str(error))
            return error.code
        except StrictStop as stop:
            return self._strict(stop)
        except KeyboardInterrupt:
            self.endings.append(f"interrupted after {machine.seconds:.2f} s of guest time")
            self._not_saved("it was interrupted in the middle of an instruction")
            return ExitCode.INTERRUPTED
        finally:
            instruments.close()
        spent = time.perf_counter() - started
        asked = result.reason in (Stop.FRAMES, Stop.SECONDS)
        wanted = f" of {settings.frames}" if settings.frames and not asked else ""
        self.endings.append(
            f"{'done' if asked else result.message}: {result.frames}{wanted} frames, "
            f"{result.seconds:.3f} s of guest time, in {spent:.2f} s"
        )
        if machine.pace is not None and machine.pace.lost:
            lost = machine.pace.lost / 1e9
            self.endings.append(f"--realtime: {lost:.2f} s were lost, the board would be quicker")
        undrawn = getattr(machine.v3d, "undrawn", 0)
        if undrawn:
            self.endings.append(not_drawn(undrawn))
        saved = instruments.save_state()
        if interrupted:
            return ExitCode.INTERRUPTED
        code = _code(result, settings.frames)
        return code or (ExitCode.NOT_DRAWN if undrawn else saved)

    def _not_saved(self, why: str) -> None:
        if self.settings.save_state is not None:
            self.endings.append(f"{self.settings.save_state}: the state is not saved: {why}")

    def _strict(self, stop: Exception) -> ExitCode:
        diagnostic = stop.diagnostic  # type: ignore[attr-defined]
        self.endings.append(f"stopped by --strict at {diagnostic.code}")
        self._not_saved("--strict stopped in the middle of an instruction")
        if diagnostic.code.startswith("BOOT-"):
            return ExitCode.BAD_INPUT
        return ExitCode.STRICT_STOP

    def _start_recording(self) -> None:
        if self.settings.record is None:
            return
        from vc4lab.viewer.fresh import FreshPictures
        from vc4lab.viewer.recorder import Recorder

        recorder = Recorder(self.settings.record)
        every = self.settings.every
        machine = self._machine
        pictures = FreshPictures(machine)  # type: ignore[arg-type]
        self._recorder = recorder

        def on_frame(count: int) -> None:
            if (count - 1) % every:
                return
            at = machine.clock.now  # type: ignore[attr-defined]
            if not recorder.wants(at):
                self._left_out = machine.frames.moves  # type: ignore[attr-defined]
                return
            self._left_out = -1
            image = pictures.take()
            if image is not None:
                recorder.add(image, at)
            else:
                recorder.add_again(at)

        machine.frames.listeners.insert(0, on_frame)  # type: ignore[attr-defined]

    def save(self, code: ExitCode) -> ExitCode:
        """Write the pictures and show the preview; gives the final exit code."""
        from vc4lab.viewer.pictures import save_picture

        settings, machine = self.settings, self._machine
        if machine is None:
            return code
        image = machine.screen.image  # type: ignore[attr-defined]
        try:
            if settings.screenshot is not None:
                if image is None:
                    say("CLI-002: there is no picture to save, the screen stayed black")
                    code = code or ExitCode.OUTPUT
                else:
                    screen = machine.screen  # type: ignore[attr-defined]
                    saved = screen.both_orders if settings.both_orders else image
                    save_picture(saved, settings.screenshot)
                    say(f"picture: {settings.screenshot}")
        except OSError as error:
            code = code or _lost(settings.screenshot, error)
        try:
            if self._recorder is not None:
                if image is not None and machine.frames.moves == self._left_out:  # type: ignore[attr-defined]
                    self._recorder.add_last(image, machine.clock.now)  # type: ignore[attr-defined]
                if self._recorder.save():
                    say(f"recording: {settings.record}")
        except OSError as error:
            code = code or _lost(settings.record, error)
        if image is not None and not settings.headless and sys.stdout.isatty():
            from vc4lab.viewer.preview import preview

            columns, _rows = shutil.get_terminal_size()
            typer.echo(preview(image, min(columns, 100)))
        return code


def _lost(path: Path | None, error: OSError) -> ExitCode:
    say(f"vc4lab: CLI-001: {path}: {why(error)}")
    return ExitCode.OUTPUT


def _code(result: object, frames: int | None) -> ExitCode:
    from vc4lab.soc.machine import RunResult, Stop

    assert isinstance(result, RunResult)
    if result.reason in (Stop.HANG, Stop.CRASH):
        return ExitCode.GUEST_HANG
    ended = result.reason in (Stop.HALTED, Stop.RESET)
    if ended and frames is not None and result.frames < frames:
        return ExitCode.GUEST_HANG
    return ExitCode.OK
