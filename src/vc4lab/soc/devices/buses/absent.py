"""Buses of the Pi to which nothing is attached: SPI. The others: `i2c.py`, `pcm.py`, `usb.py`.

Their registers behave so that drivers find out and go on; the first use of each is said once.
Sources: BCM2835 ARM Peripherals 2.3 (SPI1 and 2, with its errata), 10 (SPI0).
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.devices.interrupts import SPI, InterruptController


class Absent(Block):
    """A bus with nothing on it."""

    TITLE = ""

    def __init__(self, reporter: Reporter, interrupts: InterruptController) -> None:
        super().__init__()
        self._reporter = reporter
        self._interrupts = interrupts

    def report_use(self) -> None:
        """Report that the program uses it."""
        self._reporter.report(
            "SOC-057", f"the program uses {self.TITLE}; nothing is attached to it", block=self.NAME
        )


class Spi(Absent):
    """SPI0: what is sent goes nowhere at once, what comes back is zeros."""

    NAME = "spi0"
    TITLE = "SPI0"
    OFFSET = 0x204000
    CS = Register(0x00, reset=0x41000, fields="7 active, 16 done, 17 RX data, 18 TX room", doc="19 RX 3/4")
    FIFO = Register(0x04, doc="a byte; four with DMAEN")
    CLK = Register(0x08)
    DLEN = Register(0x0C)
    LTOH = Register(0x10, reset=1)
    DC = Register(0x14, reset=0x30201020)
    DEPTH, THREE_QUARTERS = 64, 48
    """Bytes of a FIFO."""
    ACTIVE, DMA, DONE_INTERRUPT, READ_INTERRUPT = 1 << 7, 1 << 8, 1 << 9, 1 << 10
    DONE, DATA, ROOM, MUST_READ, FULL = 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20
    CLEAR_TX, CLEAR_RX = 1 << 4, 1 << 5
    KEPT = 0x3E0FFCF

    def __init__(self, reporter: Reporter, interrupts: InterruptController) -> None:
        super().__init__(reporter, interrupts)
        self._received = 0

    def on_write_CS(self, value: int) -> None:
        if value & self.CLEAR_RX or not value & self.ACTIVE:
            self._received = 0
        self.CS = value & self.KEPT
        self._update()

    def on_read_CS(self) -> int:
        value = self.CS & self.KEPT
        if self.CS & self.ACTIVE:
            value |= self.DONE
            if self._received >= self.THREE_QUARTERS:
                value |= self.MUST_READ
        if self._received:
            value |= self.DATA
        return value | (self.ROOM if self._received < self.DEPTH else self.FULL)

    def on_write_FIFO(self, value: int) -> None:
        self.report_use()
        if self.CS & self.ACTIVE:
            self._received = min(self._received + self._bytes, self.DEPTH)
        elif self.CS & self.DMA:
            # The first word of a DMA transfer: its length, and the low byte of CS.
            self.DLEN = value >> 16
            self.CS = self.CS & ~0xFF | value & 0xCF | self.ACTIVE
        self._update()

    def on_read_FIFO(self) -> int:
        self._received = max(self._received - self._bytes, 0)
        self._update()
        return 0

    @property
    def _bytes(self) -> int:
        """The number of bytes that an access of the FIFO carries."""
        return 4 if self.CS & self.DMA else 1

    def _update(self) -> None:
        status = self.on_read_CS()
        done = status & self.DONE_INTERRUPT and status & self.DONE
        full = status & self.READ_INTERRUPT and status & self.MUST_READ
        self._interrupts.set_line(SPI, bool(done or full))


class AuxSpi(Absent):
    """SPI1 and SPI2 of the AUX block; they answer only while their bit of AUX_ENABLES is set."""

    SIZE = 0x40
    CNTL0 = Register(0x00, fields="11 enable, 9 clear FIFOs, 5:0 bits of a word")
    CNTL1 = Register(0x04, fields="6 interrupt when idle, 7 when the TX FIFO is empty")
    STAT = Register(0x08, access="r", fields="10 TX full, 9 TX empty, 8 RX full, 7 RX empty, 6 busy")
    PEEK = Register(0x0C, access="r")
    IO = Register(0x20, count=4, doc="data; the chip select goes up afterwards")
    HOLD = Register(0x30, count=4, doc="data; the chip select stays")
    NUMBER = 0
    ENABLE, CLEAR = 1 << 11, 1 << 9
    INTERRUPTS = 3 << 6
    TX_EMPTY, RX_FULL, RX_EMPTY = 1 << 9, 1 << 8, 1 << 7
    DEPTH = 4

    def __init__(
        self,
        reporter: Reporter,
        interrupts: InterruptController,
        enabled: Callable[[], bool],
        update: Callable[[], None],
    ) -> None:
        super().__init__(reporter, interrupts)
        self._enabled = enabled
        self._changed = update
        self._received = 0

    @property
    def interrupts(self) -> bool:
        """Whether it asks for the interrupt of the AUX block: it is always idle and empty."""
        return bool(self._enabled() and self.CNTL0 & self.ENABLE and self.CNTL1 & self.INTERRUPTS)

    def on_read_CNTL0(self) -> int:
        return self.CNTL0 if self._enabled() else 0

    def on_write_CNTL0(self, value: int) -> None:
        if self._enabled():
            self.CNTL0 = value
            if value & self.CLEAR or not value & self.ENABLE:
                self._received = 0
            self._changed()

    def on_read_CNTL1(self) -> int:
        return self.CNTL1 if self._enabled() else 0

    def on_write_CNTL1(self, value: int) -> None:
        if self._enabled():
            self.CNTL1 = value & 0x7C3
            self._changed()

    def on_read_STAT(self) -> int:
        if not self._enabled():
            return 0
        count = self._received
        full, empty = count == self.DEPTH, count == 0
        value = count << 16 | self.TX_EMPTY
        return value | (self.RX_FULL if full else 0) | (self.RX_EMPTY if empty else 0)

    def on_write_IO(self, _mirror: int, value: int) -> None:
        if self._enabled():
            self.report_use()
            if self.CNTL0 & self.ENABLE:
                self._received = min(self._received + 1, self.DEPTH)

    def on_write_HOLD(self, mirror: int, value: int) -> None:
        self.on_write_IO(mirror, value)

    def on_read_IO(self, _mirror: int) -> int:
        self._received = max(self._received - 1, 0)
        return 0

    def on_read_HOLD(self, mirror: int) -> int:
        return self.on_read_IO(mirror)


class Spi1(AuxSpi):
    """SPI1."""

    NAME, TITLE, OFFSET, NUMBER = "spi1", "SPI1", 0x215080, 1


class Spi2(AuxSpi):
    """SPI2."""

    NAME, TITLE, OFFSET, NUMBER = "spi2", "SPI2", 0x2150C0, 2
