"""Watchdog and reset (P + 0x100000), clock manager (P + 0x101000) and the random numbers (RNG)."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.block import Block, Register
from vc4lab.soc.clock import Clock, Event

PASSWORD = 0x5A000000
TICK_NS = 1_000_000_000 // 65536


class PowerManager(Block):
    """Reset control: a program that arms the watchdog asks for a restart."""

    NAME = "pm"
    OFFSET = 0x100000
    RSTC = Register(0x1C, reset=0x102)
    RSTS = Register(0x20, reset=0x1000)
    WDOG = Register(0x24)

    def __init__(self, clock: Clock, on_reset: Callable[[], None]) -> None:
        super().__init__()
        self._clock = clock
        self._on_reset = on_reset
        self._event: Event | None = None

    def on_write_RSTC(self, value: int) -> None:
        if value & 0xFF000000 != PASSWORD:
            return
        self.RSTC = value & 0xFFFFFF
        if self._event is not None:
            self._event.cancel()
            self._event = None
        if value & 0x30 == 0x20:
            wait = max(self.WDOG & 0xFFFFF, 1) * TICK_NS
            self._event = self._clock.after(wait, self._on_reset)

    @property
    def armed(self) -> bool:
        """Whether a restart is on its way."""
        return self._event is not None

    def on_write_RSTS(self, value: int) -> None:
        if value & 0xFF000000 == PASSWORD:
            self.RSTS = value & 0xFFFFFF

    def on_write_WDOG(self, value: int) -> None:
        if value & 0xFF000000 == PASSWORD:
            self.WDOG = value & 0xFFFFF


class ClockManager(Block):
    """CM registers keep what is written (with the password); busy follows enable."""

    NAME = "cm"
    OFFSET = 0x101000
    WORDS = Register(0x00, count=0x200 // 4)

    def on_write_WORDS(self, index: int, value: int) -> None:
        if value & 0xFF000000 != PASSWORD:
            return
        value &= 0xFFFFFF
        if not index & 1:
            value = value & ~0x80 | (value & 0x10) << 3
        self.values[4 * index] = value


class Random(Block):
    """The hardware random numbers; here always the same ones, so that runs repeat."""

    NAME = "rng"
    OFFSET = 0x104000
    CONTROL = Register(0x00)
    STATUS = Register(0x04)
    DATA = Register(0x08, access="r")
    INT_MASK = Register(0x10)

    def __init__(self) -> None:
        super().__init__()
        self._state = 0x9E3779B97F4A7C15

    def on_read_STATUS(self) -> int:
        return self.STATUS & 0xFFFFF | (0x01000000 if self.CONTROL & 1 else 0)

    def on_read_DATA(self) -> int:
        self._state ^= self._state << 13 & 0xFFFFFFFFFFFFFFFF
        self._state ^= self._state >> 7
        self._state ^= self._state << 17 & 0xFFFFFFFFFFFFFFFF
        return self._state >> 32
