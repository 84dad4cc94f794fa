"""The terminal of `vc4lab linux`: one command in the guest, with the host's input and output."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.cli.serial_ends import Keyboard
from vc4lab.linux.dialogue import Dialogue, lines_of
from vc4lab.linux.running import Modes, connect
from vc4lab.soc.devices.serial.serial import SerialPort

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine

END_OF_FILE = b"\x04"


class LinuxTerminal:
    """Runs a program, or a shell without one; the run ends with it.

    Attributes
    ----------
    code
        The program's exit code; None while it runs.
    """

    def __init__(
        self, program: Sequence[str], modes: Modes | None = None, puts: Sequence[tuple[Path, str | None]] = ()
    ) -> None:
        self._modes = modes
        self._puts = puts
        self._is_shell = not program
        self._is_terminal = os.isatty(0)
        self._command = command_of(program)
        self._keyboard = Keyboard(all_keys=self._is_shell)
        self._dialogue = Dialogue(self._output, self._answered)
        self._machine: Machine | None = None
        self._line_ended = True
        self.port = SerialPort(self._dialogue.feed)
        self.port.attended = True
        self.error: OSError | None = None

    @property
    def code(self) -> int | None:
        return self._dialogue.code

    def begin(self, machine: Machine) -> None:
        """Run the command in a machine that waits for one."""
        self._machine = machine
        if self._modes is not None:
            connect(machine, self._modes)
        self._put(machine)
        self._dialogue.ready = True
        self._dialogue.send(self.port, self._command)
        self.port.source = self._receive
        self.port.descriptors = self._keyboard.descriptors

    def _put(self, machine: Machine) -> None:
        """Put the files of `--put` into the guest. Raises InstrumentError."""
        from vc4lab.cli.instruments import InstrumentError
        from vc4lab.files import why
        from vc4lab.linux.running import Linux, LinuxStopped

        for source, path in self._puts:
            try:
                Linux(machine, self.port).put(source, path)
            except OSError as error:
                raise InstrumentError(f"vc4lab linux: --put {source}: {why(error)}") from None
            except (LinuxStopped, ValueError) as error:
                raise InstrumentError(f"vc4lab linux: --put {source}: {error}") from None
        self.port.listener = self._dialogue.feed

    def leave_by(self, leaves: Callable[[], object]) -> bool:
        """Call this when Ctrl-A X is typed in a shell; whether there is a terminal."""
        if not self._is_shell or not self._keyboard.is_terminal:
            return False
        self._keyboard.leaves = leaves
        return True

    def look(self) -> None:
        """Take what was typed, also where the guest does not ask for it."""
        if self.port.source is not None:
            self.port.type(self.port.source())

    def close(self) -> None:
        """Give the terminal back."""
        self._keyboard.close()
        sys.stdout.flush()

    def _output(self, data: bytes) -> None:
        stream = sys.stdout.buffer
        stream.write(data)
        if self._is_shell or data == b"\n":
            stream.flush()

    def _answered(self) -> None:
        if self._machine is not None and self.code is not None:
            self._machine.end("the program has ended")

    def _receive(self) -> bytes:
        if self._keyboard.ended:
            return b""
        data = self._keyboard.receive()
        if self._keyboard.ended:
            self.port.descriptors = None
            return END_OF_FILE if self._line_ended else END_OF_FILE * 2
        if not self._is_terminal:
            self._line_ended = data[-1:] == b"\n" if data else self._line_ended
            return data
        return data


def command_of(program: Sequence[str]) -> str:
    """Return the line for the guest's shell: make its terminal one like the host's, run a program.

    Raises ValueError for a program and arguments that cannot be typed.
    """
    echo = "echo" if os.isatty(0) else "-echo"
    columns, rows = shutil.get_terminal_size()
    name = os.environ.get("TERM", "") or "dumb"
    setting = f"stty -onlcr {echo} rows {rows} cols {columns}; export TERM={shlex.quote(name)}"
    command = f"{setting}; exec {shlex.join(program) or 'sh -i'}"
    lines_of(command)
    return command
