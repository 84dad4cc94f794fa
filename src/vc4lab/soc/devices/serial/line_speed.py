"""A serial line's speed: how full a UART's transmit FIFO is, and rates that no terminal knows.

On a board each byte takes its time, and what is written to a full FIFO is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.soc.clock import FAR, NANOSECONDS, Clock, Event

BITS = 10
"""Bits of a byte on the line, with its start and stop bit."""
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
    """The transmit FIFO of a UART, which empties at the line's rate.

    Bytes are shown when they are written; here is what the status registers say of them, and which
    a board would lose. Those to a full FIFO are reported once.

    Parameters
    ----------
    counts
        Whether bytes take time; else they are gone at once.
    changed
        Called at the moment of `wake_at`.

    Attributes
    ----------
    done
        Guest time (ns) at which the last byte is sent.
    byte
        Nanoseconds of a byte.
    """

    def __init__(
        self, name: str, reporter: Reporter, clock: Clock, counts: bool, changed: Callable[[], None]
    ) -> None:
        self._name, self._reporter, self._clock = name, reporter, clock
        self._counts = counts
        self._changed = changed
        self._reported = False
        self._event: Event | None = None
        self.done = 0
        self.byte = 1

    @property
    def is_busy(self) -> bool:
        """Whether a byte is on the line."""
        return self.done > self._clock.now

    @property
    def level(self) -> int:
        """Bytes in the FIFO; the one on the line is no longer there."""
        rest = self.done - self._clock.now
        return (rest - 1) // self.byte if rest > 0 else 0

    def put(self, rate: float, depth: int, reports: bool = True) -> int:
        """A byte is written; gives the level. rate: in baud, 0 if it is not known; depth: of the
        FIFO.
        """
        if not self._counts or rate <= 0:
            return 0
        byte = self.byte = int(BITS * NANOSECONDS / rate) or 1
        rest = self.done - self._clock.now
        if rest <= 0:
            self.done += byte - rest
            return 0
        if rest <= depth * byte:
            self.done += byte
            return (rest - 1) // byte + 1
        if reports and not self._reported:
            self._reported = True
            holds = f"{depth} bytes" if depth > 1 else "one byte"
            self._reporter.report(
                "SOC-130",
                f"a byte is written to {self._name} while its FIFO of {holds} is full; a byte takes "
                f"{byte / 1000:.0f} us at {rate:.0f} baud: a board loses it",
                block="serial",
            )
        return depth

    def look(self, depth: int) -> tuple[int, int]:
        """The level, -1 if nothing is on the line either, and the moment at which a status changes
        that says whether the FIFO is full or empty, or the line idle.
        """
        done, byte = self.done, self.byte
        rest = done - self._clock.now
        if rest <= 0:
            return -1, FAR
        if rest <= byte:
            return 0, done
        level = (rest - 1) // byte
        return level, done - (depth if level >= depth else 1) * byte

    def moment_of(self, level: int) -> int:
        """When so many bytes are left in the FIFO."""
        return self.done - (level + 1) * self.byte

    def wake_at(self, moment: int) -> None:
        """Call `changed` at a moment, or earlier."""
        event = self._event
        if event is not None:
            if event.at <= moment:
                return
            event.cancel()
        self._event = self._clock.at(moment, self._due)

    def _due(self) -> None:
        self._event = None
        self._changed()


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
