"""The other end of the serial cable: keeps what the program prints, holds what somebody typed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

KEEP = 1 << 20
"""Characters of output kept for `text`; a flood loses its oldest half, listeners get all of it."""
INPUT_LIMIT = 1 << 16


class SerialPort:
    """The header's serial line. Both UARTs of the board talk to it.

    Parameters
    ----------
    listener
        Called with each byte string the program sends.
    source
        Called when the program looks for input; gives bytes that came in since, never waits.
    """

    def __init__(
        self,
        listener: Callable[[bytes], None] | None = None,
        source: Callable[[], bytes] | None = None,
    ) -> None:
        self.listener = listener
        self.source = source
        self.sent = 0
        self.input_looked_for = 0
        self._output = bytearray()
        self._input: deque[int] = deque()

    @property
    def text(self) -> str:
        """What the program printed, carriage returns dropped, undecodable bytes replaced."""
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
    def waiting(self) -> bool:
        """Whether a typed byte waits to be read."""
        if not self._input:
            self.input_looked_for += 1
            if self.source is not None:
                self.type(self.source())
        return bool(self._input)

    def receive(self) -> int:
        """The next typed byte, 0 if there is none."""
        return self._input.popleft() if self._input else 0
