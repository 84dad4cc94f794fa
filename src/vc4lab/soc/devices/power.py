"""Watchdog, reset and power switches (P + 0x100000), bridges (ASB), random numbers, temperature.

The clock manager has a room of its own: `clock_manager.py`.
Sources: BCM2835 ARM Peripherals; Linux, drivers/pmdomain/bcm/bcm2835-power.c and
drivers/thermal/broadcom/bcm2835_thermal.c, whose names these are.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register, WriteHandler
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock, Event
from vc4lab.soc.devices.clock_manager import is_allowed
from vc4lab.soc.devices.interrupts import RANDOM, InterruptController

TICK_NS = 1_000_000_000 // 65536
FULL_RESET, RESET_MASK = 0x20, 0x30
HALT_PARTITION = 0x555
"""Partition 63, its bits spread over the even bits of RSTS: the boot ROM halts."""


POWUP, POWOK, MEMREP, MRDONE = 1 << 0, 1 << 1, 1 << 3, 1 << 4
"""Bits of a power switch: closed, the voltage is there; repair the memories, that is done."""
STOP, STOPPED = 1 << 0, 1 << 1
BRIDGE_ID = int.from_bytes(b"brdg", "big")
TEMPERATURE = 42_236
"""Thousandths of a degree Celsius; the tags' as well."""
SENSOR = {"bcm2835": 407_000, "bcm2836": 407_000, "bcm2837": 412_000}
"""The temperature sensor: thousandths of a degree at 0, of which each step takes off `STEP`."""
STEP = 538
VALID = 1 << 10


class PowerManager(Block):
    """Reset control: a program that arms the watchdog asks for a restart. And power switches.

    The firmware's power domains work without them (`videocore/tags_power.py`).
    """

    NAME = "pm"
    OFFSET = 0x100000
    RSTC = Register(0x1C, reset=0x102)
    RSTS = Register(0x20, reset=0x1000)
    WDOG = Register(0x24)
    PADS = Register(0x28, count=6)
    CAM = Register(0x44, count=2)
    CCP2TX = Register(0x4C)
    DSI = Register(0x50, count=2)
    HDMI = Register(0x58, reset=1)
    USB = Register(0x5C, reset=1)
    IMAGE = Register(0x108, fields="4 MRDONE, 3 MEMREP, 2 ISPOW, 1 POWOK, 0 POWUP")
    GRAFX = Register(0x10C, fields="6 V3DRSTN, 5 ISFUNC, 4 MRDONE, 2 ISPOW, 1 POWOK, 0 POWUP")
    PROC = Register(0x110)
    IMAGE_AT, GRAFX_AT = 0x108, 0x10C

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
        if is_allowed(value, self, self._reporter):
            self.RSTC = value & 0xFFFFFF
            self._count()

    def on_write_RSTS(self, value: int) -> None:
        if is_allowed(value, self, self._reporter):
            self.RSTS = value & 0xFFFFFF

    def on_write_WDOG(self, value: int) -> None:
        if is_allowed(value, self, self._reporter):
            self.WDOG = value & 0xFFFFF
            if self._event is not None:
                self._count()

    def writer(self, register: Register, key: int) -> WriteHandler:
        """Switches and pads take writes with the password only."""
        switch = register.offset in (self.IMAGE_AT, self.GRAFX_AT)

        def write(value: int) -> None:
            if is_allowed(value, self, self._reporter):
                self.values[key] = _switched(value) if switch else value & 0xFFFFFF

        return write

    def on_read_WDOG(self) -> int:
        if self._event is None:
            return self.WDOG
        return max(self._event.at - self._clock.now, 0) // TICK_NS & 0xFFFFF


def _switched(value: int) -> int:
    """The word of a power switch after a write: voltage and repaired memories are there at once."""
    value &= 0xFFFFFF & ~(POWOK | MRDONE)
    if value & POWUP:
        value |= POWOK | (MRDONE if value & MEMREP else 0)
    return value


class Bridges(Block):
    """ASB: the bridges between the bus and a block that loses its power; they stop at once."""

    NAME = "asb"
    OFFSET = 0x00A000
    VERSION = Register(0x00, access="r")
    CPR_CTRL = Register(0x04)
    CTRL = Register(0x08, count=6, reset=STOP | STOPPED, fields="3 full, 2 empty, 1 stopped, 0 stop")
    BRIDGE_ID = Register(0x20, access="r", reset=BRIDGE_ID)

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def on_write_CPR_CTRL(self, value: int) -> None:
        if is_allowed(value, self, self._reporter):
            self.CPR_CTRL = value & 0xFFFFFF

    def on_write_CTRL(self, index: int, value: int) -> None:
        """V3D, ISP and H264, of each the slave's side and the master's."""
        if is_allowed(value, self, self._reporter):
            stopped = STOPPED if value & STOP else 0
            self.values[8 + 4 * index] = value & (0xFFFFFF & ~STOPPED) | stopped


class Thermometer(Block):
    """The temperature sensor; the chip always has the same temperature."""

    NAME = "tsens"
    OFFSET = 0x212000
    CONTROL = Register(
        0x00, reset=0x03FA_0006, fields="26 regulator, 17:8 threshold, 5 interrupt, 1 run, 0 off"
    )
    STATUS = Register(0x04, access="r", fields="11 interrupt, 10 valid, 9:0 data", steady=True)

    def __init__(self, chip: str) -> None:
        super().__init__()
        self.STATUS = (SENSOR[chip] - TEMPERATURE) // STEP | VALID

    def on_read_STATUS(self) -> int:
        """Valid while it is not held in reset."""
        return self.STATUS if self.CONTROL & 2 else 0


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
