"""What a serial line's speed means for a program that does not wait for it.

Bytes are shown at once here. On a board each takes its time, and what is written to a full FIFO is
lost: `SendQueue` reckons how full it would be.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.soc.clock import NANOSECONDS

BITS = 10
"""Of a byte on the line, with its start and stop bit."""
USUAL_RATES = (
    1200, 2400, 4800, 9600, 14400, 19200, 31250, 38400, 57600, 115200, 230400, 250000, 460800,
    500000, 576000, 921600, 1000000, 1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000,
)  # fmt: skip
TOLERANCE = 0.04
"""By which two ends of a line may differ and still understand each other."""
FORMER_CLOCK = 3_000_000
"""Hz of the PL011's clock with firmware before 2016, for which many programs are written."""


def is_usual(rate: float) -> bool:
    """Whether terminals know a rate in baud."""
    return any(abs(rate - usual) <= TOLERANCE * usual for usual in USUAL_RATES)


class SendQueue:
    """The transmit FIFO of a UART as a board has it.

    now: guest time in ns. The program is reported once.
    """

    def __init__(self, name: str, reporter: Reporter, now: Callable[[], int]) -> None:
        self._name, self._reporter, self._now = name, reporter, now
        self._level = 0.0
        self._last = 0
        self._reported = False

    def looked(self) -> None:
        """The program has read a status, which shows an empty FIFO."""
        self._level = 0.0

    def sent(self, rate: float, depth: int) -> None:
        """A byte is written. rate: in baud, 0 if it is not known; depth: of the FIFO."""
        if self._reported or rate <= 0:
            return
        now, byte = self._now(), BITS * NANOSECONDS / rate
        self._level = max(self._level - (now - self._last) / byte, 0.0) + 1
        self._last = now
        if self._level > depth + 1:  # one is on the line
            self._reported = True
            holds = f"{depth} bytes" if depth > 1 else "one byte"
            self._reporter.report(
                "SOC-130",
                f"{depth + 2} bytes are written to {self._name} without a look at its status; its "
                f"FIFO holds {holds}, and a byte takes {byte / 1000:.0f} us at {rate:.0f} baud: a "
                "board loses the rest",
                block="serial",
            )


class RateCheck:
    """Reports a PL011 whose divisors make a rate that no terminal knows."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._looked_at = (0, 0.0)

    def sends(self, clock: int, divisor: float) -> None:
        """A byte is sent. clock: in Hz; divisor: IBRD and FBRD."""
        if (clock, divisor) == self._looked_at or divisor < 1:
            return
        self._looked_at = clock, divisor
        rate = clock / 16 / divisor
        if is_usual(rate):
            return
        text = f"the PL011 sends at {rate:.0f} baud: its clock has {clock / 1e6:g} MHz"
        former = FORMER_CLOCK / 16 / divisor
        if is_usual(former):
            text += (
                f", but IBRD and FBRD are for {FORMER_CLOCK / 1e6:g} MHz ({former:.0f} baud), as "
                "firmware before 2016 had it"
            )
        self._reporter.report("SOC-131", text, block="serial")
