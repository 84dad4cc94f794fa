"""GPIO: 54 pins with functions, levels, pulls and event detection, and a log of the outputs.

Source: BCM2835 ARM Peripherals 6.1 (registers), table 6-31 (pulls after reset).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from vc4lab.ranges import LEVEL, PIN
from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import NANOSECONDS, Clock
from vc4lab.soc.devices.interrupts import GPIO, InterruptController
from vc4lab.soc.pins import PINS, PULL_UP_AT_RESET, PinLevel

ALL_PINS = (1 << PINS) - 1
LOG_LENGTH = 10_000
"""Changes kept; a blinking LED must not eat the host's memory."""
FUNCTIONS = ("input", "output", "alt5", "alt4", "alt0", "alt1", "alt2", "alt3")
PULL_UP = 2
BANKS = ((GPIO, (1 << 28) - 1), (GPIO + 1, 0x3FFFF << 28), (GPIO + 2, 0xFF << 46))
"""Interrupt line → its pins; the line after them is that of all pins."""
LINE_OF_ALL = GPIO + 3


@dataclass(frozen=True)
class PinEvent:
    """An output pin changed: moment (ns of guest time), pin, new level."""

    at: int
    pin: int
    level: int


class Gpio(Block):
    """The pins. An input that is not driven reads as it is pulled.

    Attributes
    ----------
    levels
        What the program has set and cleared: outputs show it.
    log
        The changes of the outputs.
    """

    NAME = "gpio"
    OFFSET = 0x200000
    FSEL = Register(0x00, count=6, doc="3 bits a pin")
    SET = Register(0x1C, access="w", count=2)
    CLEAR = Register(0x28, access="w", count=2)
    LEVEL = Register(0x34, access="r", count=2, steady=True)
    EVENTS = Register(0x40, count=2, doc="detected, write 1 clears")
    RISING = Register(0x4C, count=2, then="_watch")
    FALLING = Register(0x58, count=2, then="_watch")
    HIGH = Register(0x64, count=2, then="_watch")
    LOW = Register(0x70, count=2, then="_watch")
    ASYNC_RISING = Register(0x7C, count=2, then="_watch")
    ASYNC_FALLING = Register(0x88, count=2, then="_watch")
    PULL = Register(0x94, doc="1 down, 2 up: for the pins clocked by PULL_CLOCK")
    PULL_CLOCK = Register(0x98, count=2)

    def __init__(self, clock: Clock, interrupts: InterruptController) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self.levels = 0
        self.log: list[PinEvent] = []
        self.changes = 0
        self._outputs = 0
        self._driven = self._drive = 0
        self._pulled_up = PULL_UP_AT_RESET
        self._rising = self._falling = self._high = self._low = 0
        self._seen = self.pins

    @property
    def pins(self) -> int:
        """The level of each pin, as a mask."""
        others = self._driven & self._drive | ~self._driven & self._pulled_up
        return (self._outputs & self.levels | ~self._outputs & others) & ALL_PINS

    def drive(self, pin: int, level: int | None) -> None:
        """Connect a pin to a level from outside, as a button does; None: leave it alone again.

        Raises ValueError for a pin that there is not, and a level that is neither 0 nor 1.
        """
        pin, level = PIN.check(pin), LEVEL.check_optional(level)
        bit = 1 << pin
        self._driven = self._driven & ~bit if level is None else self._driven | bit
        self._drive = self._drive | bit if level else self._drive & ~bit
        self._clock.something_happened()
        self._look()

    def connect(self, levels: Iterable[PinLevel]) -> None:
        """Connect pins to levels, now or at their moments."""
        for one in sorted(levels, key=lambda one: one.seconds):
            moment = round(one.seconds * NANOSECONDS)
            if moment <= self._clock.now:
                self.drive(one.pin, one.level)
            else:
                self._clock.at(moment, partial(self.drive, one.pin, one.level))

    def select(self, pin: int, function: str) -> None:
        """Give a pin a function, as the firmware does before the program begins."""
        pin = PIN.check(pin)
        at, shift = pin // 10 * 4, 3 * (pin % 10)
        value = self.values[at] & ~(7 << shift) | FUNCTIONS.index(function) << shift
        self.on_write_FSEL(pin // 10, value)

    def function(self, pin: int) -> str:
        """ "input", "output" or "alt0".. of a pin."""
        return self._function(PIN.check(pin))

    def _function(self, pin: int) -> str:
        return FUNCTIONS[self.values[pin // 10 * 4] >> 3 * (pin % 10) & 7]

    # -- levels ------------------------------------------------------------------------------------

    def on_write_FSEL(self, row: int, value: int) -> None:
        self.values[4 * row] = value
        pins = range(10 * row, min(10 * row + 10, PINS))
        for pin in pins:
            bit = 1 << pin
            output = self._function(pin) == "output"
            self._outputs = self._outputs | bit if output else self._outputs & ~bit
        self._look()

    def _apply(self, levels: int) -> None:
        changed = (levels ^ self.levels) & self._outputs & ALL_PINS
        self.levels = levels & ALL_PINS
        while changed:
            pin = (changed & -changed).bit_length() - 1
            changed &= changed - 1
            self.changes += 1
            if len(self.log) < LOG_LENGTH:
                self.log.append(PinEvent(self._clock.now, pin, levels >> pin & 1))
        self._look()

    def on_write_SET(self, bank: int, value: int) -> None:
        self._apply(self.levels | value << 32 * bank)

    def on_write_CLEAR(self, bank: int, value: int) -> None:
        self._apply(self.levels & ~(value << 32 * bank))

    def on_read_LEVEL(self, bank: int) -> int:
        return self.pins >> 32 * bank & 0xFFFFFFFF

    def on_write_PULL_CLOCK(self, bank: int, value: int) -> None:
        self.values[0x98 + 4 * bank] = value
        clocked = value << 32 * bank & ALL_PINS
        if self.PULL & 3 == PULL_UP:
            self._pulled_up |= clocked
        else:
            self._pulled_up &= ~clocked
        self._look()

    # -- events ------------------------------------------------------------------------------------

    def _look(self) -> None:
        """The pins may have changed, or what is looked for: note events, raise the lines."""
        pins = self.pins
        rose, fell = pins & ~self._seen, self._seen & ~pins
        self._seen = pins
        found = rose & self._rising | fell & self._falling | pins & self._high | ~pins & self._low
        if found:
            self._keep_events(self._pair(0x40) | found)

    def _keep_events(self, events: int) -> None:
        events &= ALL_PINS
        self.values[0x40], self.values[0x44] = events & 0xFFFFFFFF, events >> 32
        for line, pins in (*BANKS, (LINE_OF_ALL, ALL_PINS)):
            self._interrupts.set_line(line, bool(events & pins))

    def on_write_EVENTS(self, bank: int, value: int) -> None:
        self._keep_events(self._pair(0x40) & ~(value << 32 * bank))
        self._look()

    def _pair(self, offset: int) -> int:
        """Both registers of a row as one mask."""
        return (self.values[offset] | self.values[offset + 4] << 32) & ALL_PINS

    def _watch(self) -> None:
        """A register of what is looked for was written."""
        self._rising = self._pair(0x4C) | self._pair(0x7C)
        self._falling = self._pair(0x58) | self._pair(0x88)
        self._high, self._low = self._pair(0x64), self._pair(0x70)
        self._look()
