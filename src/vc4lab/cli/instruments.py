"""Attaches to the machine of `boot` what looks at it: the debugger's port and so on."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from typing import TYPE_CHECKING

from vc4lab import interruption
from vc4lab.cli.exit_codes import ExitCode, interrupted_code
from vc4lab.files import why

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vc4lab.cli.settings import Settings
    from vc4lab.soc.events import Vsync
    from vc4lab.soc.machine import Machine
    from vc4lab.viewer.window import Window


class InstrumentError(Exception):
    """An instrument cannot be had; the text is for the person."""

    def __init__(self, text: str, code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(text)
        self.code = code


class Instruments:
    """The instruments of one run; `close()` takes them off again."""

    def __init__(self, settings: Settings, machine: Machine, tell: Callable[[str], None]) -> None:
        self._options = settings.instruments
        self._wish = settings.capture
        self._has_window = settings.pictures.window
        self._front = settings.front
        self._machine = machine
        self._report = tell
        self._stack = ExitStack()
        self.outcome = ExitCode.OK
        """Whether all that was to be recorded has been written."""
        self._opened: Window | None = None

    def attach(self) -> None:
        """Hang on what the settings ask for. Raises InstrumentError."""
        try:
            self._symbols()
            self._card()
            self._load_state()
            self._trace()
            self._audio()
            self._capture()
            self._lists()
            self._window()
            self._debugger()
        except BaseException:
            self.close()
            raise

    def stay(self) -> bool:
        """The program has ended by itself: its picture stays until the window is closed.

        False if a signal closed it.
        """
        window = self._opened
        if window is not None and window.is_open:
            self._report("the window stays open until you close it")
            try:
                window.stay()
            except KeyboardInterrupt:
                return False
        return True

    def close(self) -> None:
        """Take everything off."""
        self._stack.close()

    def _lose(self, path: Path, error: OSError, more: str = "") -> None:
        """Report that what was to be written into a file is lost; the exit code says so, too."""
        self.outcome = ExitCode.OUTPUT
        self._report(f"vc4lab: CLI-001: {path}: {why(error)}{more}")

    def _card(self) -> None:
        """Whether there is an image to write to, if that is wanted."""
        if not self._options.write_image:
            return
        slot = self._machine.card_slot
        if slot.image is None:
            what = f"{slot.path} is a folder" if slot.path else "no card is inserted"
            raise InstrumentError(f"vc4lab: CLI-006: --write-image needs a card image, but {what}")

    def _symbols(self) -> None:
        """Names from the file that was given; it has said why it cannot be used."""
        path = self._options.symbols
        if path is not None and not self._machine.places.use(path, self._machine.plan):
            raise InstrumentError(f"vc4lab: --symbols {path} cannot be used")

    def _load_state(self) -> None:
        path = self._options.load_state
        if path is None:
            return
        from vc4lab.soc.states.state import StateError, load_state

        try:
            load_state(self._machine, path, in_place=self._options.state_in_place)
        except (StateError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            text = f"vc4lab: CLI-005: {path}: {reason}"
            if self._options.state_in_place and isinstance(error, StateError):
                with contextlib.suppress(OSError):
                    path.unlink()
                    text = f"vc4lab: {path}: {reason}; it is removed, and made again"
            raise InstrumentError(text) from None

    def write_card(self) -> ExitCode:
        """After the run, however it ended: write what `--write-image` asks for."""
        slot = self._machine.card_slot
        if not self._options.write_image or slot.image is None:
            return ExitCode.OK
        try:
            with interruption.protected():
                count = slot.save()
        except OSError as error:
            self._report(f"vc4lab: CLI-001: {slot.image}: {why(error)}")
            return ExitCode.OUTPUT
        if count:
            self._report(f"card: {count} blocks written to {slot.image}")
        return ExitCode.OK

    def save_state(self) -> ExitCode:
        """After the run: write what `--save-state` asks for."""
        path = self._options.save_state
        if path is None:
            return ExitCode.OK
        from vc4lab.soc.states.state import StateError, save_state

        try:
            save_state(self._machine, path)
        except StateError as error:
            self._report(f"vc4lab: CLI-005: {path}: the state is not saved: {error}")
            return ExitCode.OUTPUT
        except OSError as error:
            self._report(f"vc4lab: CLI-001: {path}: the state is not saved: {why(error)}")
            return ExitCode.OUTPUT
        except KeyboardInterrupt:
            self._report(f"{path}: the state is not saved: interrupted while it was written")
            return interrupted_code()
        self._report(f"state: {path}")
        return ExitCode.OK

    def _trace(self) -> None:
        options = self._options
        if options.trace is None:
            return
        from vc4lab.soc.debug.trace import Tracer, UnknownCategory, parse_categories

        try:
            categories = parse_categories(options.trace)
        except UnknownCategory as error:
            raise InstrumentError(f"vc4lab: {error}") from None
        write = self._report if options.trace_to is None else self._line_writer(options.trace_to)
        tracer = Tracer(self._machine, categories, write)
        self._stack.callback(tracer.close)

    def _line_writer(self, path: Path) -> Callable[[str], None]:
        """Writes lines into a file; when the disk is full the rest is dropped, and that is said."""
        try:
            file = path.open("w", encoding="utf-8")
        except OSError as error:
            text = f"vc4lab: CLI-001: {path}: {why(error)}"
            raise InstrumentError(text, ExitCode.OUTPUT) from None
        full = False

        def fail(error: OSError) -> None:
            nonlocal full
            if not full:
                full = True
                self._lose(path, error, "; the trace ends there")

        def write(line: str) -> None:
            if full:
                return
            try:
                file.write(f"{line}\n")
            except OSError as error:
                fail(error)

        def close() -> None:
            try:
                file.close()
            except OSError as error:
                fail(error)

        self._stack.callback(close)
        return write

    def _audio(self) -> None:
        path = self._options.audio
        if path is None:
            return
        from vc4lab.soc.devices.sound.audio import AudioRecorder

        try:
            recorder = AudioRecorder(path, self._machine.pwm)
        except OSError as error:
            text = f"vc4lab: CLI-001: {path}: {why(error)}"
            raise InstrumentError(text, ExitCode.OUTPUT) from None

        def close() -> None:
            recorder.close()
            if recorder.error is not None:
                self._lose(path, recorder.error)
            elif recorder.samples:
                seconds = recorder.samples / recorder.rate
                self._report(f"sound: {path}, {seconds:.2f} s at {recorder.rate} Hz")
            else:
                self._report(f"sound: the program played nothing, {path} is empty")

        self._stack.callback(close)

    def _capture(self) -> None:
        wish = self._wish
        if wish is None:
            return
        from vc4lab.soc.debug.captured import capture

        file = wish.recorder(self._front, self._machine.plan.name)
        file.tell = self._report
        capture(self._machine, file.recorder)

        def close() -> None:
            file.close()
            self.outcome = ExitCode(file.code(self.outcome))

        self._stack.callback(close)

    def _lists(self) -> None:
        """Print what reaches the V3D."""
        if not self._options.lists:
            return
        from vc4lab.jobs.listing import listen

        machine, write = self._machine, self._report
        machine.listeners.v3d_made.subscribe(lambda event: listen(event.v3d, write))
        if machine.v3d is not None:
            listen(machine.v3d, write)

    def _window(self) -> None:
        if not self._has_window:
            return
        from vc4lab.viewer.fresh import FreshPictures
        from vc4lab.viewer.window import LOOK_SECONDS, NoWindow, Window

        machine = self._machine
        try:
            window = Window(f"vc4lab: {machine.plan.name}")
        except NoWindow as error:
            self._report(f"vc4lab: {error}")
            return
        self._stack.callback(window.close)

        pictures = FreshPictures(machine)
        self._opened = window

        def on_frame(_count: int) -> None:
            image = pictures.take()
            if image is not None:
                window.show(image)

        def on_vsync(_event: Vsync) -> None:
            typed = window.keys()
            if typed:
                machine.serial.type(typed)
            if window.closed:
                machine.end("the window was closed")

        machine.frames.listeners.insert(0, on_frame)
        machine.listeners.vsync.subscribe(on_vsync, first=True)
        machine.serial.attended = True
        if machine.pace is not None:
            machine.pace.longest = LOOK_SECONDS

    def _debugger(self) -> None:
        options = self._options
        if options.gdb is None:
            return
        from vc4lab.soc.debug.gdb_server import GdbServer

        try:
            server = GdbServer(self._machine, options.gdb, wait=options.gdb_wait, tell=self._report)
        except OSError as error:
            raise InstrumentError(f"vc4lab: CLI-004: port {options.gdb}: {why(error)}") from None
        self._stack.callback(server.close)
        if not options.gdb_wait:
            self._report(f"debugger: target remote :{server.port}")
