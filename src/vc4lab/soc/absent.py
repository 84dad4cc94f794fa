"""Buses of the Pi to which nothing is attached: SPI, I2C, PCM, and USB with an empty root port.

Their registers behave so that drivers find out and go on; the first use of each is said once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.block import Block, Poll, Register
from vc4lab.soc.clock import Clock

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter


class Absent(Block):
    """A bus with nothing on it."""

    TITLE = ""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def say(self) -> None:
        """The program uses it."""
        self._reporter.report(
            "SOC-057", f"the program uses {self.TITLE}; nothing is attached to it", block=self.NAME
        )


class Spi(Absent):
    """SPI0: what is sent goes nowhere, what comes back is zeros."""

    NAME = "spi0"
    TITLE = "SPI0"
    OFFSET = 0x204000
    CS = Register(0x00, reset=0x41000, doc="7 active, 16 done, 17 RX data, 18 TX room")
    FIFO = Register(0x04)
    CLK = Register(0x08)
    DLEN = Register(0x0C)
    LTOH = Register(0x10, reset=1)
    DC = Register(0x14, reset=0x30201020)
    DEPTH, ACTIVE, DONE, RXD, TXD = 16, 1 << 7, 1 << 16, 1 << 17, 1 << 18

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter)
        self._received = 0

    def on_write_CS(self, value: int) -> None:
        if value & 0x20 or not value & self.ACTIVE:
            self._received = 0
        self.CS = value & 0x1FFFFCF

    def on_read_CS(self) -> int:
        value = self.CS & ~(self.DONE | self.RXD | self.TXD)
        if self.CS & self.ACTIVE:
            value |= self.DONE
        if self._received:
            value |= self.RXD
        return value | (self.TXD if self._received < self.DEPTH else 0)

    def on_write_FIFO(self, value: int) -> None:
        self.say()
        if self.CS & self.ACTIVE and self._received < self.DEPTH:
            self._received += 1

    def on_read_FIFO(self) -> int:
        self._received = max(self._received - 1, 0)
        return 0


class I2c(Absent):
    """An I2C controller: no address is acknowledged."""

    TITLE = "an I2C bus"
    CONTROL = Register(0x00, doc="15 enable, 7 start")
    STATUS = Register(0x04, reset=0x50, doc="9 timeout, 8 no acknowledge, 1 done")
    DLEN = Register(0x08)
    ADDRESS = Register(0x0C)
    FIFO = Register(0x10)
    DIV = Register(0x14, reset=0x5DC)
    DEL = Register(0x18, reset=0x300030)
    CLKT = Register(0x1C, reset=0x40)
    START, NO_ACKNOWLEDGE, DONE = 1 << 7, 1 << 8, 1 << 1

    def on_write_CONTROL(self, value: int) -> None:
        self.CONTROL = value & 0x8781 & ~self.START
        if value & self.START and value & 0x8000:
            self.say()
            self.STATUS |= self.NO_ACKNOWLEDGE | self.DONE

    def on_write_STATUS(self, value: int) -> None:
        self.STATUS &= ~(value & 0x302)

    def on_read_FIFO(self) -> int:
        return 0


class I2c0(I2c):
    """I2C0."""

    NAME, OFFSET = "i2c0", 0x205000


class I2c1(I2c):
    """I2C1, the one on the header."""

    NAME, OFFSET = "i2c1", 0x804000


class I2c2(I2c):
    """I2C2, of the HDMI connector."""

    NAME, OFFSET = "i2c2", 0x805000


class Pcm(Absent):
    """The I2S interface: takes every sample, hears silence."""

    NAME = "pcm"
    TITLE = "PCM (I2S)"
    OFFSET = 0x203000
    CS = Register(0x00, doc="0 enable, 13 TX sync, 19 TX room, 20 RX data, 21 TX empty")
    FIFO = Register(0x04)
    MODE = Register(0x08)
    RXC = Register(0x0C)
    TXC = Register(0x10)
    DREQ = Register(0x14)
    INTEN = Register(0x18)
    INTSTC = Register(0x1C)
    GRAY = Register(0x20)
    CLEARED, READY = 0x18, 1 << 21 | 1 << 19 | 1 << 17 | 1 << 13

    def on_write_CS(self, value: int) -> None:
        self.CS = value & 0x1FFFFFF & ~self.CLEARED

    def on_read_CS(self) -> int:
        return self.CS | (self.READY if self.CS & 1 else 0)

    def on_write_FIFO(self, value: int) -> None:
        self.say()

    def on_read_FIFO(self) -> int:
        return 0


class Usb(Absent):
    """The DWC2 host controller: it can be reset and started, its root port stays empty."""

    NAME = "usb"
    TITLE = "USB"
    OFFSET = 0x980000
    SIZE = 0x20000
    GOTGCTL = Register(0x000)
    GAHBCFG = Register(0x008)
    GUSBCFG = Register(0x00C, reset=0x1400)
    GRSTCTL = Register(0x010, doc="31 idle, 5:4 flush, 0 reset")
    GINTSTS = Register(0x014, reset=0x04000021, doc="0 host mode; write 1 clears")
    GINTMSK = Register(0x018)
    GRXFSIZ = Register(0x024, reset=0x1000)
    GNPTXFSIZ = Register(0x028, reset=0x1000_1000)
    GNPTXSTS = Register(0x02C, access="r", reset=0x00081000)
    GSNPSID = Register(0x040, access="r", reset=0x4F54280A)
    GHWCFG = Register(0x044, access="r", count=4)
    HPTXFSIZ = Register(0x100)
    HCFG = Register(0x400)
    HFIR = Register(0x404, reset=0x17D7)
    HFNUM = Register(0x408, access="r", poll=Poll.TIME)
    HAINT = Register(0x414, access="r")
    HAINTMSK = Register(0x418)
    HPRT = Register(0x440, doc="12 power, 8 reset, 0 connected: never")
    PCGCTL = Register(0xE00)
    IDLE, SELF_CLEARING = 1 << 31, 0x33
    HARDWARE = (0x00000000, 0x228DDD50, 0x0FF000E8, 0x1FF00020)
    MICROFRAME_NS = 125_000

    def __init__(self, reporter: Reporter, clock: Clock) -> None:
        super().__init__(reporter)
        self._clock = clock
        for index, value in enumerate(self.HARDWARE):
            self.values[0x44 + 4 * index] = value

    def on_write_GRSTCTL(self, value: int) -> None:
        self.say()
        self.GRSTCTL = value & 0x7C0

    def on_read_GRSTCTL(self) -> int:
        return self.GRSTCTL | self.IDLE

    def on_write_GINTSTS(self, value: int) -> None:
        """Nothing that could be cleared has happened."""

    def on_write_HPRT(self, value: int) -> None:
        self.say()
        self.HPRT = value & 0x1000

    def on_read_HFNUM(self) -> int:
        return self._clock.now // self.MICROFRAME_NS & 0x3FFF


ABSENT = (Spi, I2c0, I2c1, I2c2, Pcm)
