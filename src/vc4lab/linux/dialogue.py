"""The host's end of the serial line: commands go in, output and answers come out (`init.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.linux.init import END, EXIT, READY, START
from vc4lab.soc.devices.serial.serial import INPUT_LIMIT

if TYPE_CHECKING:
    from vc4lab.soc.devices.serial.serial import SerialPort

CHUNK = 500
"""Bytes of a command in one line; a terminal of Linux takes 4095."""
LITERAL = b"\x16"
"""Ctrl-V: the terminal takes the next byte as it is."""
KEYS = re.compile(rb"[\x01-\x08\x0b-\x1f\x7f]")
"""Bytes that a terminal takes as keys: the end of a file, erase, kill and others."""
LONGEST_ANSWER = 64
_START, _END = START.encode(), END.encode()


class Dialogue:
    """Splits what the guest sends into output and answers.

    Parameters
    ----------
    output
        Called with each piece of output.
    answered
        Called when `ready` or `code` has changed.

    Attributes
    ----------
    ready
        Whether the guest waits for a command.
    code
        The exit code of the last command; None while there is none.
    """

    def __init__(self, output: Callable[[bytes], None], answered: Callable[[], None] = lambda: None) -> None:
        self.output = output
        self.answered = answered
        self.ready = False
        self.code: int | None = None
        self._held = bytearray()
        """The beginning of what may be an answer."""

    def feed(self, data: bytes) -> None:
        """The guest sends this."""
        for byte in data:
            if not self._held and byte != _START[0]:
                self.output(bytes((byte,)))
                continue
            self._held.append(byte)
            held = bytes(self._held)
            if len(held) <= len(_START):
                if not _START.startswith(held):
                    self._release()
            elif held.endswith(_END):
                self._held.clear()
                self._answer(held[len(_START) : -len(_END)].decode("ascii", "replace"))
            elif len(held) > LONGEST_ANSWER:
                self._release()

    def _release(self) -> None:
        """It was none: give it out, except for a last byte that may begin one."""
        held = bytes(self._held)
        self._held.clear()
        if len(held) > 1 and held[-1] == _START[0]:
            self._held += held[-1:]
            held = held[:-1]
        self.output(held)

    def _answer(self, text: str) -> None:
        word, _, number = text.partition(" ")
        if word == READY:
            self.ready = True
        elif word == EXIT and number.isdecimal():
            self.code, self.ready = int(number), True
        else:
            return
        self.answered()

    def send(self, port: SerialPort, command: str) -> None:
        """Have the guest run a command of its shell. `code` comes later. Raises ValueError."""
        lines = lines_of(command)
        self.ready, self.code = False, None
        port.type(lines)


def lines_of(command: str) -> bytes:
    """Return the bytes that are typed for a command. Raises ValueError for one that cannot be typed."""
    raw = command.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError("the command has a zero byte in it, which no shell takes")
    typed = []
    for line in raw.split(b"\n"):
        parts = [line[at : at + CHUNK] for at in range(0, len(line), CHUNK)]
        typed.append(b"".join(b"+%s\n" % KEYS.sub(LITERAL + rb"\g<0>", part) for part in parts))
    lines = b"/\n".join(typed) + b"!\n"
    if len(lines) > INPUT_LIMIT:
        raise ValueError(
            f"the command of {len(raw)} bytes takes {len(lines)} on the serial line, which keeps "
            f"{INPUT_LIMIT}: write a file in the guest with several commands, and run that"
        )
    return lines
