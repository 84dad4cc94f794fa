"""The system timer (P + 0x3000) and the ARM timer (P + 0xB400), both on virtual time."""

from __future__ import annotations

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Rate, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.interrupts import BASIC, BASIC_ARM_TIMER, SYSTEM_TIMER, InterruptController

MICROSECOND = 1_000
OF_THE_FIRMWARE = (0, 2)
"""Channels of the system timer."""
LOW, HIGH = Rate(1, MICROSECOND), Rate(1, MICROSECOND, 32)
SHORTEST_PERIOD = 5_000
"""Nanoseconds between two ARM timer interrupts at least, so that time can pass for the guest."""


class SystemTimer(Block):
    """A free-running 1 MHz counter with four compare registers."""

    NAME = "timer"
    OFFSET = 0x3000
    CS = Register(0x00, poll=Poll.EVENT, doc="bits 3:0 match, write 1 clears")
    CLO = Register(0x04, access="r", poll=Poll.TIME, rate=LOW, doc="microseconds, low word")
    CHI = Register(0x08, access="r", poll=Poll.TIME, rate=HIGH, doc="high word")
    COMPARE = Register(0x0C, count=4)

    def __init__(self, clock: Clock, interrupts: InterruptController, reporter: Reporter) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self._reporter = reporter
        self._events: list[Event | None] = [None] * 4

    def on_read_CLO(self) -> int:
        return LOW.at(self._clock.now)

    def on_read_CHI(self) -> int:
        return HIGH.at(self._clock.now)

    def on_write_CS(self, value: int) -> None:
        self.CS &= ~value
        for channel in range(4):
            if value >> channel & 1:
                self._interrupts.set_line(SYSTEM_TIMER + channel, False)

    def on_write_COMPARE(self, channel: int, value: int) -> None:
        if channel in OF_THE_FIRMWARE:
            self._reporter.report(
                "SOC-132",
                f"compare register {channel} of the system timer is written, which the firmware "
                "uses for itself; 1 and 3 are the program's",
                block=self.NAME,
            )
        self.values[self.registers["COMPARE"].offsets()[channel]] = value
        event = self._events[channel]
        if event is not None:
            event.cancel()
        now = self._clock.now // MICROSECOND
        wait = (value - now) & 0xFFFFFFFF or 1 << 32
        self._schedule(channel, (now + wait) * MICROSECOND)

    def _schedule(self, channel: int, moment: int) -> None:
        self._events[channel] = self._clock.at(
            moment, lambda: self._match(channel), lambda: not self._interrupts.listens(SYSTEM_TIMER + channel)
        )

    def _match(self, channel: int) -> None:
        self.CS |= 1 << channel
        self._interrupts.set_line(SYSTEM_TIMER + channel, True)
        self._schedule(channel, self._clock.now + (1 << 32) * MICROSECOND)


class ArmTimer(Block):
    """The SP804-like down counter with its free-running companion."""

    NAME = "arm_timer"
    OFFSET = 0xB400
    SIZE = 0x100
    LOAD = Register(0x00)
    VALUE = Register(0x04, access="r", poll=Poll.TIME)
    CONTROL = Register(0x08, reset=0x003E0020)
    CLEAR = Register(0x0C, access="w")
    RAW = Register(0x10, access="r", poll=Poll.EVENT, steady=True)
    MASKED = Register(0x14, access="r", poll=Poll.EVENT, steady=True)
    RELOAD = Register(0x18)
    PREDIVIDER = Register(0x1C, reset=0x7D)
    FREE_RUNNING = Register(0x20, access="r", poll=Poll.TIME)

    WIDE, ENABLE, INTERRUPT, FREE_ENABLE = 1 << 1, 1 << 7, 1 << 5, 1 << 9

    def __init__(self, clock: Clock, interrupts: InterruptController, apb_clock: int) -> None:
        super().__init__()
        self._clock = clock
        self._interrupts = interrupts
        self._apb_clock = apb_clock
        self._started = 0
        self._first = 0
        self._raw = False
        self._event: Event | None = None

    def _tick(self) -> float:
        """Nanoseconds of one count."""
        prescale = (1, 16, 256, 1)[self.CONTROL >> 2 & 3]
        return 1e9 * ((self.PREDIVIDER & 0x3FF) + 1) * prescale / self._apb_clock

    def _begin(self, value: int) -> None:
        if not self.CONTROL & self.WIDE:
            value &= 0xFFFF
        self._started = self._clock.now
        self._first = value
        if self._event is not None:
            self._event.cancel()
            self._event = None
        if self.CONTROL & self.ENABLE:
            wait = max(int((value + 1) * self._tick()), SHORTEST_PERIOD)
            self._event = self._clock.after(wait, self._expired, self._is_unheard)

    def _is_unheard(self) -> bool:
        """Whether no core is interrupted when the counter expires."""
        return not (self.CONTROL & self.INTERRUPT and self._interrupts.listens(BASIC + BASIC_ARM_TIMER))

    def _expired(self) -> None:
        self._event = None
        self._raw = True
        self._update()
        self._begin(self.RELOAD)

    def _update(self) -> None:
        level = self._raw and bool(self.CONTROL & self.INTERRUPT)
        self._interrupts.set_basic(BASIC_ARM_TIMER, level)

    def on_write_LOAD(self, value: int) -> None:
        self.LOAD = self.RELOAD = value
        self._begin(value)

    def on_write_CONTROL(self, value: int) -> None:
        was = self.CONTROL & self.ENABLE
        self.CONTROL = value
        if bool(was) != bool(value & self.ENABLE):
            self._begin(self.LOAD)
        self._update()

    def on_read_VALUE(self) -> int:
        if not self.CONTROL & self.ENABLE:
            return self._first
        return max(0, self._first - int((self._clock.now - self._started) / self._tick()))

    def on_read_FREE_RUNNING(self) -> int:
        if not self.CONTROL & self.FREE_ENABLE:
            return 0
        divider = (self.CONTROL >> 16 & 0xFF) + 1
        return int(self._clock.now * self._apb_clock / (1e9 * divider)) & 0xFFFFFFFF

    def on_write_CLEAR(self, value: int) -> None:
        self._raw = False
        self._update()

    def on_read_RAW(self) -> int:
        return int(self._raw)

    def on_read_MASKED(self) -> int:
        return int(self._raw and bool(self.CONTROL & self.INTERRUPT))
