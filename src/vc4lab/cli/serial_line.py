"""Where the program's serial line goes: the terminal, standard input and output, a file."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from vc4lab.soc.serial import SerialPort

IDLE_LOOKS = 200
"""After so many looks without input the program is let wait, so that it costs no CPU."""
IDLE_SECONDS = 0.005


class StandardInput:
    """Non-blocking standard input; waits a little when a program looks for input in vain."""

    def __init__(self) -> None:
        self._misses = 0
        self.ended = False

    def __call__(self) -> bytes:
        if self.ended:
            return b""
        self._misses += 1
        wait = IDLE_SECONDS if self._misses > IDLE_LOOKS else 0.0
        try:
            ready = select.select([sys.stdin.fileno()], [], [], wait)[0]
            if not ready:
                return b""
            data = os.read(sys.stdin.fileno(), 4096)
        except (OSError, ValueError):
            data = b""
        if not data:
            self.ended = True
        self._misses = 0
        return data


class SerialLine:
    """Opens what `--serial` names.

    Parameters
    ----------
    where
        None: shown on standard output. "stdio": with standard input too. "none": dropped.
        Anything else: a file.
    show
        Instead of standard output, for a terminal that has a progress line.
    """

    def __init__(self, where: str | None, show: Callable[[str], None] | None = None) -> None:
        self._file: IO[bytes] | None = None
        self._show = show
        self._line = bytearray()
        self.port = SerialPort()
        if where == "none":
            return
        if where is None or where == "stdio":
            self.port.listener = self._to_terminal if show else self._to_stdout
            if where == "stdio":
                self.port.source = StandardInput()
            return
        self._file = Path(where).open("wb")  # noqa: SIM115 - closed by close()
        self.port.listener = self._file.write  # type: ignore[assignment]

    def _to_stdout(self, data: bytes) -> None:
        stream = sys.stdout
        stream.write(data.decode("latin-1") if data < b"\x80" else "?")
        if data == b"\n":
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
        """Flush what is left and close the file."""
        if self._line:
            self._flush_line()
        if self._file is not None:
            self._file.close()
        elif self._show is None and self.port.sent and not self.port.text.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()
