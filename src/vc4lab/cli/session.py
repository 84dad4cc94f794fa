"""One run of a machine for `boot` and `demo`: serial line, progress, pictures, exit code."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from vc4lab import interruption
from vc4lab.cli.exit_codes import ExitCode, ended_early, interrupted_code, not_drawn
from vc4lab.cli.outputs import Outputs, say
from vc4lab.files import why

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.cli.instruments import Instruments
    from vc4lab.cli.settings import Settings
    from vc4lab.soc.devices.serial.serial import SerialPort
    from vc4lab.soc.machine import Machine


class SerialEnd(Protocol):
    """Takes the output of the serial line and gives its input."""

    port: SerialPort
    error: OSError | None
    """Why not all of the output could be written."""

    def leave_by(self, leaves: Callable[[], object]) -> bool:
        """Call this when Ctrl-A X is typed; whether there is a terminal, to be looked at."""

    def look(self) -> None:
        """Take what was typed, also where the program does not ask for it."""

    def close(self) -> None:
        """After the run."""


class Guest(SerialEnd, Protocol):
    """Talks to an operating system on the serial line; what runs there is not asked for frames."""

    @property
    def code(self) -> int | None:
        """Return the exit code of the program that was to run; None: it has not ended."""

    def begin(self, machine: Machine) -> None:
        """The machine is ready to run."""


def run_session(settings: Settings, guest: Guest | None = None) -> ExitCode | int:
    """Boot, run, save what was asked for, say how it ended.

    With a guest, its line is used instead of `settings.serial`, and nothing counts as a hang.
    """
    outputs, wish = Outputs(settings.pictures), settings.capture
    problem = outputs.problem(
        (settings.instruments.save_state, settings.instruments.audio, wish.path if wish else None)
    )
    if problem:
        text, wrong = problem
        say(f"vc4lab: {text}")
        return wrong
    from vc4lab.cli.messages import reporter_of
    from vc4lab.cli.progress import Progress
    from vc4lab.cli.serial_line import BadSerial, SerialLine

    live = not settings.pictures.headless and settings.serial != "stdio"
    with Progress(live, settings.frames, settings.seconds) as progress:
        show = progress.show if progress.enabled and sys.stdout.isatty() else None
        try:
            line: SerialEnd = guest or SerialLine(settings.serial, show, say, all_keys=settings.all_keys)
        except BadSerial as error:
            say(f"vc4lab: {error}")
            return ExitCode.BAD_INPUT
        except OSError as error:
            port = (settings.serial or "").startswith("tcp:")
            say(f"vc4lab: {'CLI-004' if port else 'CLI-001'}: {settings.serial}: {why(error)}")
            return ExitCode.BAD_INPUT if port else ExitCode.OUTPUT
        reporter = reporter_of(settings.strict)
        reporter.listeners.append(
            lambda item: progress.show(str(item)) if progress.enabled else say(str(item))
        )
        tell = progress.show if progress.enabled else say
        run = _Run(settings, outputs, reporter, tell, guest)
        try:
            code = run.boot_and_run(line, progress)
        finally:
            line.close()
    if line.error is not None:
        say(f"vc4lab: CLI-001: {settings.serial}: {line.error.strerror}; the output ends there")
        code = code or ExitCode.OUTPUT
    for text in run.endings:
        say(text)
    return run.save(code)


class _Run:
    """The machine of a session and what is left of it."""

    def __init__(
        self,
        settings: Settings,
        outputs: Outputs,
        reporter: object,
        tell: Callable[[str], None],
        guest: Guest | None = None,
    ) -> None:
        self.settings = settings
        self._guest = guest
        self._outputs = outputs
        self.reporter = reporter
        self._report = tell
        self.endings: list[str] = []
        self._machine: object = None
        self._left_out = -1
        """`FrameCounter.moves` at the last frame that came too early for the recording."""

    def boot_and_run(self, line: SerialEnd, progress: object) -> ExitCode:
        """Start and run; the exit code of how it ended."""
        from vc4lab.cli.instruments import Instruments
        from vc4lab.cli.progress import INTERVAL
        from vc4lab.diagnostics import StrictStop
        from vc4lab.soc.board import UnknownBoard
        from vc4lab.soc.boot.firmware import BootError
        from vc4lab.soc.machine import Machine

        settings = self.settings
        started = time.perf_counter()
        try:
            machine = Machine(
                settings.path,
                reporter=self.reporter,  # type: ignore[arg-type]
                serial=line.port,
                options=settings.machine,
            )
        except UnknownBoard as error:
            self.endings.append(f"vc4lab: {error}")
            return ExitCode.BAD_INPUT
        except BootError:
            return ExitCode.BAD_INPUT
        except StrictStop as stop:
            return self._strict(stop)
        except KeyboardInterrupt:
            self.endings.append("interrupted before the program started")
            self._not_saved("the machine was not ready")
            return self._interrupted()
        self._machine = machine
        if line.leave_by(lambda: machine.end("left with Ctrl-A X")):
            machine.listeners.vsync.subscribe(lambda _event: line.look())
        if settings.realtime:
            from vc4lab.soc.slices.pace import Pace

            machine.pace = Pace(tell=self._report) if settings.says_late else Pace()
            if progress.enabled:  # type: ignore[attr-defined]
                machine.pace.longest = INTERVAL
        machine.listeners.vsync.subscribe(
            lambda _event: progress.update(machine)  # type: ignore[attr-defined]
        )
        self._start_recording()
        timing = settings.timing
        if timing is not None:
            timing.show = self._report
            machine.listeners.v3d_made.subscribe(lambda event: timing.attach(event.v3d))
        instruments = Instruments(settings, machine, say)
        code = self._run(machine, instruments, started)
        if timing is not None:
            timing.end()
            self.endings += timing.lines()
        written = instruments.write_card()
        return code or written or instruments.outcome

    def _run(self, machine: Machine, instruments: Instruments, started: float) -> ExitCode:
        from vc4lab.cli.instruments import InstrumentError
        from vc4lab.cli.interrupts import SavedInterrupt
        from vc4lab.diagnostics import StrictStop
        from vc4lab.soc.result import Stop

        settings = self.settings
        save_state = settings.instruments.save_state
        interrupt = SavedInterrupt(machine) if save_state is not None else None
        try:
            with interrupt or nullcontext():
                instruments.attach()
                # of a guest only those of this command, not of its boot
                before = machine.frames.count if self._guest is not None else 0
                if self._guest is not None:
                    machine.watches_for_hangs = False
                    self._guest.begin(machine)
                result = machine.run(settings.frames, settings.seconds)
            interrupted = interrupt is not None and interrupt.asked
            code = self._interrupted() if interrupted else ExitCode.OK
            if result.reason in (Stop.HALTED, Stop.HANG, Stop.CRASH) and not instruments.stay():
                code = self._interrupted()
        except InstrumentError as error:
            self.endings.append(str(error))
            return error.code
        except StrictStop as stop:
            return self._strict(stop)
        except KeyboardInterrupt:
            self.endings.append(f"interrupted after {machine.seconds:.2f} s of guest time")
            self._not_saved("it was interrupted in the middle of an instruction")
            return self._interrupted()
        finally:
            instruments.close()
        spent = time.perf_counter() - started
        asked = result.reason in (Stop.FRAMES, Stop.SECONDS)
        wanted = f" of {settings.frames}" if settings.frames and not asked else ""
        if self._guest is None or self._guest.code is None:
            self.endings.append(
                f"{'done' if asked else result.message}: {result.frames - before}{wanted} frames, "
                f"{result.seconds:.3f} s of guest time, in {spent:.2f} s"
            )
        elif wanted:
            count = result.frames - before
            self.endings.append(ended_early(count, settings.frames or 0))
            if not self._guest.code:  # its own code goes first
                code = code or ExitCode.GUEST_HANG
        if machine.pace is not None and machine.pace.lost and settings.says_late:
            lost = machine.pace.lost / 1e9
            self.endings.append(f"--realtime: {lost:.2f} s late, so the board would be faster")
        undrawn = getattr(machine.v3d, "undrawn", 0)
        if undrawn:
            self.endings.append(not_drawn(undrawn))
        saved = instruments.save_state()
        code = code or _code(result, settings.frames if self._guest is None else None)
        return code or (ExitCode.NOT_DRAWN if undrawn else saved)

    def _interrupted(self) -> ExitCode:
        """The exit code after a signal; what follows is ended only by another one."""
        code = interrupted_code()
        interruption.dealt_with()
        return code

    def _not_saved(self, why: str) -> None:
        save_state = self.settings.instruments.save_state
        if save_state is not None:
            self.endings.append(f"{save_state}: the state is not saved: {why}")

    def _strict(self, stop: Exception) -> ExitCode:
        diagnostic = stop.diagnostic  # type: ignore[attr-defined]
        self.endings.append(f"stopped by --strict at {diagnostic.code}")
        self._not_saved("--strict stopped in the middle of an instruction")
        if diagnostic.code.startswith("BOOT-"):
            return ExitCode.BAD_INPUT
        return ExitCode.STRICT_STOP

    def _start_recording(self) -> None:
        recorder = self._outputs.recorder
        if recorder is None:
            return
        from vc4lab.viewer.fresh import FreshPictures

        every = self.settings.pictures.every
        machine = self._machine
        pictures = FreshPictures(machine)  # type: ignore[arg-type]

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

    def save(self, code: ExitCode) -> ExitCode | int:
        """Write the pictures and show the preview; gives the final exit code."""
        machine = self._machine
        if machine is None:
            return code
        screen = machine.screen  # type: ignore[attr-defined]
        image = screen.image
        both_orders = self.settings.pictures.both_orders and image is not None
        late = machine.frames.moves == self._left_out  # type: ignore[attr-defined]
        return self._outputs.save(
            code,
            image,
            shot=screen.both_orders if both_orders else None,
            late=machine.clock.now if late else None,  # type: ignore[attr-defined]
        )


def _code(result: object, frames: int | None) -> ExitCode:
    from vc4lab.soc.machine import RunResult, Stop

    assert isinstance(result, RunResult)
    if result.reason in (Stop.HANG, Stop.CRASH):
        return ExitCode.GUEST_HANG
    ended = result.reason in (Stop.HALTED, Stop.RESET)
    if ended and frames is not None and result.frames < frames:
        return ExitCode.GUEST_HANG
    return ExitCode.OK
