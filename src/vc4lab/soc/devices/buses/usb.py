"""USB: the DWC2 host controller at P + 0x980000, with an empty root port.

Programs that initialise the host stop if it is missing; one that never sees a device is enough
for them. A Pi with an Ethernet chip has that attached in reality; here it is not there.
"""

from __future__ import annotations

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.buses.absent import Absent
from vc4lab.soc.devices.interrupts import USB, InterruptController

CHANNELS = 8
ENABLE, DISABLE = 1 << 31, 1 << 30
HALTED, NO_ANSWER = 1 << 1, 1 << 7
CHANNEL_INTERRUPT = 1 << 25
CONTROL, EVENTS, MASK = 0x500, 0x508, 0x50C
"""Registers of a channel: HCCHAR, HCINT, HCINTMSK; the next channel's are 32 bytes further."""


class Usb(Absent):
    """The DWC2 host controller: it can be reset and started, no transfer is answered."""

    NAME = "usb"
    TITLE = "USB"
    OFFSET = 0x980000
    SIZE = 0x20000
    GOTGCTL = Register(0x000, reset=0x001C0000)
    GAHBCFG = Register(0x008, fields="0 interrupts", then="_update")
    GUSBCFG = Register(0x00C, reset=0x1400)
    GRSTCTL = Register(0x010, fields="31 idle, 5:4 flush, 0 reset")
    GINTSTS = Register(0x014, reset=0x04000021, fields="25 channels", doc="0 host mode; write 1 clears")
    GINTMSK = Register(0x018, then="_update")
    GRXFSIZ = Register(0x024, reset=0x1000)
    GNPTXFSIZ = Register(0x028, reset=0x1000_1000)
    GNPTXSTS = Register(0x02C, access="r", reset=0x00081000)
    GSNPSID = Register(0x040, access="r", reset=0x4F54280A)
    GHWCFG = Register(0x044, access="r", count=4)
    HPTXFSIZ = Register(0x100)
    HCFG = Register(0x400)
    HFIR = Register(0x404, reset=0x17D7)
    HFNUM = Register(0x408, access="r", poll=Poll.TIME)
    HPTXSTS = Register(0x410, access="r", reset=0x00080100)
    HAINT = Register(0x414, access="r", doc="channels with an event")
    HAINTMSK = Register(0x418, bits=0xFFFF, then="_update")
    HPRT = Register(0x440, fields="12 power, 8 reset", doc="0 connected: never")
    HCCHAR = Register(CONTROL, count=CHANNELS, stride=32, fields="31 enable, 30 disable")
    HCSPLT = Register(0x504, count=CHANNELS, stride=32)
    HCINT = Register(
        EVENTS, access="w1c", count=CHANNELS, stride=32, fields="7 no answer, 1 halted", then="_update"
    )
    HCINTMSK = Register(MASK, count=CHANNELS, stride=32, then="_update")
    HCTSIZ = Register(0x510, count=CHANNELS, stride=32)
    HCDMA = Register(0x514, count=CHANNELS, stride=32)
    PCGCTL = Register(0xE00)
    IDLE, RESET, FLUSHED_FIFO = 1 << 31, 1, 0x7C0
    HARDWARE = (0x00000000, 0x228DDD50, 0x0FF000E8, 0x1FF00020)
    KEPT = ("GUSBCFG", "HCFG", "PCGCTL")
    """Registers that a reset of the core leaves alone."""
    MICROFRAME_NS = 125_000

    def __init__(self, reporter: Reporter, interrupts: InterruptController, clock: Clock) -> None:
        super().__init__(reporter, interrupts)
        self._clock = clock

    def reset_registers(self) -> None:
        super().reset_registers()
        for index, value in enumerate(self.HARDWARE):
            self.values[0x44 + 4 * index] = value

    def on_write_GRSTCTL(self, value: int) -> None:
        self.report_use()
        if value & self.RESET:
            kept = {name: getattr(self, name) for name in self.KEPT}
            self.reset_registers()
            for name, held in kept.items():
                setattr(self, name, held)
        self.GRSTCTL = value & self.FLUSHED_FIFO
        self._update()

    def on_read_GRSTCTL(self) -> int:
        return self.GRSTCTL | self.IDLE

    # -- interrupts --------------------------------------------------------------------------------

    def on_read_HAINT(self) -> int:
        value = 0
        for channel in range(CHANNELS):
            at = 32 * channel
            value |= bool(self.values[EVENTS + at] & self.values[MASK + at]) << channel
        return value

    def on_read_GINTSTS(self) -> int:
        channels = self.on_read_HAINT() & self.HAINTMSK
        return self.GINTSTS | (CHANNEL_INTERRUPT if channels else 0)

    def on_write_GINTSTS(self, value: int) -> None:
        """Nothing that could be cleared has happened."""

    def _update(self) -> None:
        raised = self.GAHBCFG & 1 and self.on_read_GINTSTS() & self.GINTMSK
        self._interrupts.set_line(USB, bool(raised))

    # -- the root port and the channels ------------------------------------------------------------

    def on_write_HPRT(self, value: int) -> None:
        self.report_use()
        self.HPRT = value & 0x1000

    def on_read_HFNUM(self) -> int:
        return self._clock.now // self.MICROFRAME_NS & 0x3FFF

    def on_write_HCCHAR(self, channel: int, value: int) -> None:
        at = 32 * channel
        self.values[CONTROL + at] = value & ~(ENABLE | DISABLE)
        if value & ENABLE:
            self.report_use()
            self.values[EVENTS + at] |= HALTED | (0 if value & DISABLE else NO_ANSWER)
            self._update()
