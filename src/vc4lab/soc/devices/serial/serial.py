"""The other end of the serial cable: keeps what the program prints, holds what was typed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from vc4lab.diagnostics import Reporter
from vc4lab.soc.devices.gpio import Gpio

KEEP = 1 << 20
"""Characters of output kept for `text`; a flood loses its oldest half, listeners get all of it."""
SHOWN = 40
"""Characters of the output that the object shows of itself."""
INPUT_LIMIT = 1 << 16
TRANSMIT_PIN = 14
"""The header's pin that a serial cable listens to."""


class SerialPort:
    """The header's serial line. Both UARTs of the board talk to it.

    Parameters
    ----------
    listener
        Called with each byte string the program sends.
    source
        Called when the program looks for input; gives bytes that came in since, never waits.
    descriptors
        Gives the file descriptors that become readable when `source` has something.

    Attributes
    ----------
    attended
        Whether `type` may be called at any time, as a window with the keyboard does.
    """

    def __init__(
        self,
        listener: Callable[[bytes], None] | None = None,
        source: Callable[[], bytes] | None = None,
        descriptors: Callable[[], list[int]] | None = None,
    ) -> None:
        self.listener = listener
        self.source = source
        self.descriptors = descriptors
        self.attended = False
        self.sent = 0
        self.input_looked_for = 0
        self._output = bytearray()
        self._input: deque[int] = deque()

    def __repr__(self) -> str:
        last = self.text[-SHOWN:]
        return f"<SerialPort: {self.sent} bytes sent{f', last {last!r}' if last else ''}>"

    @property
    def text(self) -> str:
        """The text that the program printed, carriage returns dropped, undecodable bytes replaced."""
        return self._output.decode("utf-8", "replace").replace("\r", "")

    def send(self, byte: int) -> None:
        """The program sends one byte."""
        self.sent += 1
        self._output.append(byte & 0xFF)
        if len(self._output) > KEEP:
            del self._output[: KEEP // 2]
        if self.listener is not None:
            self.listener(bytes((byte & 0xFF,)))

    def type(self, data: bytes | str) -> None:
        """Type on the other end."""
        raw = data.encode() if isinstance(data, str) else data
        room = INPUT_LIMIT - len(self._input)
        self._input.extend(raw[: max(room, 0)])

    @property
    def may_receive(self) -> bool:
        """Whether something may be typed some day."""
        return self.attended or self.source is not None

    def watches(self) -> list[int]:
        """File descriptors that report typed bytes; none while some wait to be read."""
        return [] if self._input or self.descriptors is None else self.descriptors()

    @property
    def waiting(self) -> bool:
        """Whether a typed byte waits to be read."""
        if not self._input:
            self.input_looked_for += 1
            if self.source is not None:
                self.type(self.source())
        return bool(self._input)

    @property
    def pending(self) -> int:
        """How many typed bytes wait to be read."""
        return len(self._input) if self.waiting else 0

    def receive(self) -> int:
        """The next typed byte, 0 if there is none."""
        return self._input.popleft() if self._input else 0


@dataclass
class Header:
    """Reports a program whose UART sends what a board's header would not show."""

    gpio: Gpio
    reporter: Reporter
    name: str
    wanted: str
    """The pin's function that connects it."""
    _looked_at: tuple[str, str] | None = None

    def sends(self, fault: str = "") -> None:
        """A byte is sent; `fault` is what is wrong with the UART itself."""
        key = fault, self.gpio.function(TRANSMIT_PIN)
        if key == self._looked_at:
            return
        self._looked_at = key
        wrong = [fault] if fault else []
        if key[1] != self.wanted:
            wrong.append(f"GPIO {TRANSMIT_PIN} is {key[1]}, not {self.wanted}")
        if wrong:
            self.reporter.report(
                "SOC-058",
                f"a byte is sent by {self.name}, but {' and '.join(wrong)}: it would not reach "
                "a board's header",
                block="serial",
            )
