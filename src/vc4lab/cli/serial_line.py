"""Connects the program's serial line to the terminal, a file, a pseudo terminal or a TCP port."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from vc4lab.cli.serial_ends import Keyboard, PseudoTerminal, TcpPort
from vc4lab.ranges import PORT
from vc4lab.soc.devices.serial.serial import SerialPort


class BadSerial(ValueError):  # noqa: N818 - said to the user as it is
    """The text names no place for a serial line."""


class SerialLine:
    """Opens what `--serial` names.

    Parameters
    ----------
    where
        None: shown on standard output. "stdio": with the keyboard too. "pty": a new pseudo
        terminal. "tcp:PORT": a port on the loopback interface. "none": dropped. Anything else
        (or "file:…"): a file.
    show
        Instead of standard output, for a terminal that has a progress line.
    tell
        Called with a sentence that says how to connect.
    all_keys
        Ctrl-C and Ctrl-Z of a terminal are the program's.

    Raises
    ------
    OSError, BadSerial
    """

    def __init__(
        self,
        where: str | None,
        show: Callable[[str], None] | None = None,
        tell: Callable[[str], None] = lambda _text: None,
        *,
        all_keys: bool = False,
    ) -> None:
        self._file: IO[bytes] | None = None
        self._end: Keyboard | PseudoTerminal | TcpPort | None = None
        self._shown = False
        self._show = show
        self._line = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.port = SerialPort()
        self.error: OSError | None = None
        """Why the file could not take all of it."""
        if where in ("none", "null"):
            return
        if where is None or where == "stdio":
            self._shown = True
            self.port.listener = self._to_terminal if show else self._to_stdout
            if where == "stdio":
                self._end = Keyboard(all_keys)
                self._listen(self._end)
            return
        if where == "pty":
            terminal = PseudoTerminal()
            self._connect(terminal)
            tell(f"serial line: {terminal.name}")
        elif where.startswith("tcp:"):
            port = TcpPort(_port(where))
            self._connect(port)
            tell(f"serial line: 127.0.0.1 port {port.port}")
        else:
            self._file = Path(where.removeprefix("file:")).open("wb")  # noqa: SIM115 - see close()
            self.port.listener = self._to_file

    def leave_by(self, leaves: Callable[[], object]) -> bool:
        """Call this when Ctrl-A X is typed; whether there is a terminal, to be looked at."""
        if not isinstance(self._end, Keyboard) or not self._end.is_terminal:
            return False
        self._end.leaves = leaves
        return True

    def look(self) -> None:
        """Take what was typed, also where the program does not ask for it."""
        if self.port.source is not None:
            self.port.type(self.port.source())

    def _connect(self, end: PseudoTerminal | TcpPort) -> None:
        self._end = end
        self.port.listener = end.send
        self._listen(end)

    def _listen(self, end: Keyboard | PseudoTerminal | TcpPort) -> None:
        def receive() -> bytes:
            data = end.receive()
            if end.ended:  # nothing will ever be typed: a program that waits for it hangs
                self.port.source = None
            return data

        self.port.source = receive
        self.port.descriptors = end.descriptors

    def _to_file(self, data: bytes) -> None:
        if self._file is None or self.error is not None:
            return
        try:
            self._file.write(data)
        except OSError as error:
            self.error = error

    def _to_stdout(self, data: bytes) -> None:
        stream = sys.stdout
        text = self._decoder.decode(data)
        if not text.isascii():  # a terminal of another character set
            encoding = stream.encoding or "utf-8"
            text = text.encode(encoding, "replace").decode(encoding)
        stream.write(text)
        if data == b"\n" or self._end is not None:
            stream.flush()

    def _to_terminal(self, data: bytes) -> None:
        if data == b"\n" or len(self._line) > 1000:
            self._flush_line()
        elif data != b"\r":
            self._line += data

    def _flush_line(self) -> None:
        if self._show is not None:
            text = self._line.decode("utf-8", "replace")
            self._show("".join(c if c.isprintable() else "?" for c in text))
        self._line.clear()

    def close(self) -> None:
        """Flush what is left, give files, ports and the terminal back."""
        if self._line:
            self._flush_line()
        if self._end is not None:
            self._end.close()
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self.error = self.error or error
        if self._shown and self._show is None and self.port.sent:
            if not self.port.text.endswith("\n"):
                sys.stdout.write("\n")
        sys.stdout.flush()


def _port(where: str) -> int:
    """The port of "tcp:PORT", also as "tcp::PORT" and with QEMU's ",server". Raises BadSerial."""
    text = where.split(",")[0].removeprefix("tcp:").removeprefix("127.0.0.1").removeprefix(":")
    if not text.isdecimal() or len(text) > 5 or int(text) > PORT.most:
        raise BadSerial(f"{where}: expected tcp:PORT, a port on the loopback interface")
    return int(text)
