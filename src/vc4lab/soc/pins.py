"""The pins of a board: how they are pulled at reset, and what is connected to them from outside.

Source: BCM2835 ARM Peripherals, table 6-31.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.ranges import LEVEL, PIN, SECONDS

PINS = 54
PULL_UP_AT_RESET = 0x1FF | 7 << 34 | 0xFF << 46
"""Pins 0 to 8, 34 to 36 and 46 to 53; the others are pulled down or left alone."""


@dataclass(frozen=True)
class PinLevel:
    """A pin is connected from outside from a moment on: to 0 or 1, in seconds of guest time.

    Raises ValueError for a pin, a level or a time that there is not.
    """

    pin: int
    level: int
    seconds: float = 0.0

    def __post_init__(self) -> None:
        PIN.check(self.pin)
        LEVEL.check(self.level)
        SECONDS.check(self.seconds)
