"""GPIO: 54 pins with their functions and levels, and a log of what the program did with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vc4lab.soc.block import Block, Register

PINS = 54
LOG_LENGTH = 10_000
"""Changes kept; a blinking LED must not eat the host's memory."""
FUNCTIONS = ("input", "output", "alt5", "alt4", "alt0", "alt1", "alt2", "alt3")


@dataclass(frozen=True)
class PinEvent:
    """An output pin changed: moment (ns of guest time), pin, new level."""

    at: int
    pin: int
    level: int


class Gpio(Block):
    """Function select, set, clear and level registers; edge detection stores only."""

    NAME = "gpio"
    OFFSET = 0x200000
    FSEL = Register(0x00, count=6, doc="3 bits a pin")
    SET = Register(0x1C, access="w", count=2)
    CLEAR = Register(0x28, access="w", count=2)
    LEVEL = Register(0x34, access="r", count=2, steady=True)
    EVENTS = Register(0x40, count=2)
    RISING = Register(0x4C, count=2)
    FALLING = Register(0x58, count=2)
    HIGH = Register(0x64, count=2)
    LOW = Register(0x70, count=2)
    ASYNC_RISING = Register(0x7C, count=2)
    ASYNC_FALLING = Register(0x88, count=2)
    PULL = Register(0x94)
    PULL_CLOCK = Register(0x98, count=2)

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now
        self.levels = 0
        self.log: list[PinEvent] = []
        self.changes = 0

    def select(self, pin: int, function: str) -> None:
        """Give a pin a function, as the firmware does before the program begins."""
        at, shift = pin // 10 * 4, 3 * (pin % 10)
        self.values[at] = self.values[at] & ~(7 << shift) | FUNCTIONS.index(function) << shift

    def function(self, pin: int) -> str:
        """ "input", "output" or "alt0".. of a pin."""
        return FUNCTIONS[self.values[pin // 10 * 4] >> 3 * (pin % 10) & 7]

    def _apply(self, levels: int) -> None:
        changed = (levels ^ self.levels) & ((1 << PINS) - 1)
        self.levels = levels
        while changed:
            pin = (changed & -changed).bit_length() - 1
            changed &= changed - 1
            if self.function(pin) == "output":
                self.changes += 1
                if len(self.log) < LOG_LENGTH:
                    self.log.append(PinEvent(self._now(), pin, levels >> pin & 1))

    def on_write_SET(self, bank: int, value: int) -> None:
        self._apply(self.levels | value << 32 * bank)

    def on_write_CLEAR(self, bank: int, value: int) -> None:
        self._apply(self.levels & ~(value << 32 * bank))

    def on_read_LEVEL(self, bank: int) -> int:
        return self.levels >> 32 * bank & 0xFFFFFFFF

    def on_write_EVENTS(self, bank: int, value: int) -> None:
        self.values[0x40 + 4 * bank] &= ~value
