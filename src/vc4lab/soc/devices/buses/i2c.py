"""The I2C controllers. The one of the HDMI connector finds the monitor's EDID, the others nothing.

Bytes take no time; what does not fit into the FIFO waits until the program has read.
Source: BCM2835 ARM Peripherals 3 (BSC); VESA E-DDC 1.2 (the monitor).
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.devices.buses.absent import Absent
from vc4lab.soc.devices.interrupts import I2C, InterruptController

FIFO, THREE_QUARTERS = 16, 12
ENABLE, RX_INTERRUPT, TX_INTERRUPT, DONE_INTERRUPT = 1 << 15, 1 << 10, 1 << 9, 1 << 8
START, CLEAR, READ = 1 << 7, 3 << 4, 1 << 0
NO_ACKNOWLEDGE, RX_FULL, TX_EMPTY, RX_DATA, TX_ROOM = (1 << n for n in (8, 7, 6, 5, 4))
MUST_READ, MUST_WRITE, DONE, ACTIVE = (1 << n for n in (3, 2, 1, 0))
EDID_ADDRESS = 0x50


class I2cDevice(Protocol):
    """A device that answers at an address."""

    at: int

    def write(self, first: bool, byte: int) -> None:
        """A byte for it; `first`: after its address."""

    def read(self) -> int:
        """The next byte from it."""

    @property
    def connected(self) -> bool:
        """Whether it answers."""


class Monitor:
    """A monitor's EDID, read from the offset that was written; one without its plug is silent."""

    def __init__(self, edid: bytes) -> None:
        self.edid = edid
        self.connected = True
        self.at = 0

    def tell(self) -> bytes:
        """All of the EDID; nothing without the plug."""
        return self.edid if self.connected else b""

    def write(self, first: bool, byte: int) -> None:
        """The offset."""
        if first:
            self.at = byte

    def read(self) -> int:
        """The next byte."""
        byte = self.edid[self.at] if self.at < len(self.edid) else 0
        self.at = self.at + 1 & 0xFF
        return byte


class I2c(Absent):
    """A controller; no address is acknowledged but those of `devices`. All share an interrupt."""

    TITLE = "an I2C bus"
    CONTROL = Register(0x00, fields="15 enable, 10:8 interrupts, 7 start, 5:4 clear, 0 read")
    STATUS = Register(
        0x04,
        reset=TX_EMPTY | TX_ROOM,
        fields="9 timeout, 8 no acknowledge, 5 data, 3 must read, 2 must write, 1 done, 0 active",
    )
    DLEN = Register(0x08, bits=0xFFFF)
    ADDRESS = Register(0x0C, bits=0x7F)
    FIFO = Register(0x10)
    DIV = Register(0x14, reset=0x5DC)
    DEL = Register(0x18, reset=0x300030)
    CLKT = Register(0x1C, reset=0x40)

    def __init__(self, reporter: Reporter, interrupts: InterruptController, asking: set[str]) -> None:
        super().__init__(reporter, interrupts)
        self._asking = asking
        """Names of the controllers that ask for the interrupt, shared by all of them."""
        self.devices: dict[int, I2cDevice] = {}
        self._fifo: deque[int] = deque(maxlen=FIFO)
        """Bytes received, or to be sent once the transfer starts."""
        self._left = 0
        """Bytes of the transfer that were not sent or received yet."""
        self._fresh = False
        """Whether no byte has followed the address."""

    def on_write_CONTROL(self, value: int) -> None:
        if value & CLEAR:
            self._fifo.clear()
        self.CONTROL = value & 0x8701
        if value & START and value & ENABLE:
            self._begin()
        self._update()

    def _begin(self) -> None:
        self.STATUS &= ~DONE
        device = self.devices.get(self.ADDRESS)
        if device is None or not device.connected:
            if device is None:
                self.report_use()
            self._left = 0
            self.STATUS |= NO_ACKNOWLEDGE | DONE
            return
        self._left = self.DLEN
        self._fresh = True
        if self.CONTROL & READ:
            self._fifo.clear()
        self._go_on()

    def _go_on(self) -> None:
        """Send or receive what the FIFO allows."""
        device = self.devices[self.ADDRESS]
        if self.CONTROL & READ:
            while self._left and len(self._fifo) < FIFO:
                self._fifo.append(device.read())
                self._left -= 1
        else:
            while self._left and self._fifo:
                device.write(self._fresh, self._fifo.popleft())
                self._fresh = False
                self._left -= 1
        if not self._left:
            self.STATUS |= DONE

    @property
    def _is_active(self) -> bool:
        return self._left > 0

    def on_read_STATUS(self) -> int:
        value = self.STATUS & (NO_ACKNOWLEDGE | DONE)
        receives = self.CONTROL & READ
        count = len(self._fifo) if receives else 0
        value |= RX_DATA if count else 0
        value |= RX_FULL if count == FIFO else 0
        value |= TX_ROOM | TX_EMPTY
        if self._is_active:
            value |= ACTIVE
            if not receives:
                value |= MUST_WRITE
            elif count >= THREE_QUARTERS:
                value |= MUST_READ
        return value

    def on_write_STATUS(self, value: int) -> None:
        self.STATUS &= ~(value & (NO_ACKNOWLEDGE | DONE))
        self._update()

    def on_write_FIFO(self, value: int) -> None:
        if len(self._fifo) < FIFO:
            self._fifo.append(value & 0xFF)
        if self._is_active and not self.CONTROL & READ:
            self._go_on()
        self._update()

    def on_read_FIFO(self) -> int:
        value = self._fifo.popleft() if self._fifo and self.CONTROL & READ else 0
        if self._is_active and self.CONTROL & READ:
            self._go_on()
        self._update()
        return value

    def _update(self) -> None:
        status, control = self.on_read_STATUS(), self.CONTROL
        asks = bool(control & DONE_INTERRUPT and status & DONE)
        asks |= bool(control & TX_INTERRUPT and status & (MUST_WRITE | NO_ACKNOWLEDGE))
        asks |= bool(control & RX_INTERRUPT and status & (MUST_READ | NO_ACKNOWLEDGE))
        (self._asking.add if asks else self._asking.discard)(self.NAME)
        self._interrupts.set_line(I2C, bool(self._asking))


class I2c0(I2c):
    """I2C0."""

    NAME, OFFSET = "i2c0", 0x205000


class I2c1(I2c):
    """I2C1, the one on the header."""

    NAME, OFFSET = "i2c1", 0x804000


class I2c2(I2c):
    """I2C2, of the HDMI connector."""

    NAME, OFFSET = "i2c2", 0x805000
