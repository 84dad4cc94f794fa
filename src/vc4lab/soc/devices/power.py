"""Watchdog and reset (P + 0x100000), clock manager (P + 0x101000) and the random numbers (RNG)."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.interrupts import RANDOM, InterruptController

PASSWORD = 0x5A000000
TICK_NS = 1_000_000_000 // 65536
SOURCES = {1: 19_200_000, 4: 0, 5: 1_000_000_000, 6: 500_000_000, 7: 216_000_000}
"""Hz of a clock's sources: oscillator, PLLA, PLLC, PLLD, HDMI."""
FULL_RESET, RESET_MASK = 0x20, 0x30
CM_PCM, CM_PWM = 0x98, 0xA0
"""Offsets of control registers in the clock manager."""
HALT_PARTITION = 0x555
"""Partition 63, its bits spread over the even bits of RSTS: the boot ROM halts."""


def _allowed(value: int, block: Block, reporter: Reporter) -> bool:
    """Whether a write carries the password; one without it has no effect."""
    if value & 0xFF000000 == PASSWORD:
        return True
    reporter.report(
        "SOC-055",
        f"0x{value:08x} is written to a register of {block.NAME} without the password 0x5A in its "
        "top byte; the write has no effect",
        block=block.NAME,
    )
    return False


class PowerManager(Block):
    """Reset control: a program that arms the watchdog asks for a restart."""

    NAME = "pm"
    OFFSET = 0x100000
    RSTC = Register(0x1C, reset=0x102)
    RSTS = Register(0x20, reset=0x1000)
    WDOG = Register(0x24)

    def __init__(self, clock: Clock, reporter: Reporter) -> None:
        super().__init__()
        self._clock = clock
        self._reporter = reporter
        self.on_reset: Callable[[], None] = lambda: None
        """Called when the board is reset."""
        self._event: Event | None = None

    @property
    def armed(self) -> bool:
        """Whether a restart is on its way."""
        return self._event is not None

    @property
    def halts(self) -> bool:
        """Whether the next restart ends in the boot ROM: the board is off."""
        return self.RSTS & HALT_PARTITION == HALT_PARTITION

    def _count(self) -> None:
        """Begin to count down from WDOG, or stop."""
        if self._event is not None:
            self._event.cancel()
            self._event = None
        if self.RSTC & RESET_MASK == FULL_RESET:
            wait = max(self.WDOG, 1) * TICK_NS
            self._event = self._clock.after(wait, self.on_reset)

    def on_write_RSTC(self, value: int) -> None:
        if _allowed(value, self, self._reporter):
            self.RSTC = value & 0xFFFFFF
            self._count()

    def on_write_RSTS(self, value: int) -> None:
        if _allowed(value, self, self._reporter):
            self.RSTS = value & 0xFFFFFF

    def on_write_WDOG(self, value: int) -> None:
        if _allowed(value, self, self._reporter):
            self.WDOG = value & 0xFFFFF
            if self._event is not None:
                self._count()

    def on_read_WDOG(self) -> int:
        if self._event is None:
            return self.WDOG
        return max(self._event.at - self._clock.now, 0) // TICK_NS & 0xFFFFF


class ClockManager(Block):
    """CM registers keep what is written (with the password); busy follows enable."""

    NAME = "cm"
    OFFSET = 0x101000
    WORDS = Register(0x00, count=0x200 // 4)

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def frequency(self, control: int) -> float:
        """Hz of the clock whose control register is at offset `control`, 0 if it is off."""
        value, divider = self.values[control], self.values[control + 4]
        whole = divider / 4096 if value >> 9 & 3 else divider >> 12
        if not value & 0x10 or not whole:
            return 0.0
        return SOURCES.get(value & 15, 0) / whole

    def on_write_WORDS(self, index: int, value: int) -> None:
        if not _allowed(value, self, self._reporter):
            return
        value &= 0xFFFFFF
        if not index & 1:
            value = value & ~0x80 | (value & 0x10) << 3
        self.values[4 * index] = value


class Random(Block):
    """The hardware random numbers; here always the same ones, so that runs repeat."""

    NAME = "rng"
    OFFSET = 0x104000
    CONTROL = Register(0x00, then="_update")
    STATUS = Register(0x04, bits=0xFFFFF)
    DATA = Register(0x08, access="r")
    INT_MASK = Register(0x10, then="_update", doc="bit 0: no interrupt")

    def __init__(self, interrupts: InterruptController) -> None:
        super().__init__()
        self._interrupts = interrupts
        self._state = 0x9E3779B97F4A7C15

    def _update(self) -> None:
        self._interrupts.set_line(RANDOM, bool(self.CONTROL & 1 and not self.INT_MASK & 1))

    def on_read_STATUS(self) -> int:
        return self.STATUS | (0x01000000 if self.CONTROL & 1 else 0)

    def on_read_DATA(self) -> int:
        if not self.CONTROL & 1:
            return 0
        self._state ^= self._state << 13 & 0xFFFFFFFFFFFFFFFF
        self._state ^= self._state >> 7
        self._state ^= self._state << 17 & 0xFFFFFFFFFFFFFFFF
        return self._state >> 32
