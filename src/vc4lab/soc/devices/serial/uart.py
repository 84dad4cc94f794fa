"""The PL011 UART at P + 0x201000; the other one is in `mini_uart.py`.

Source: ARM PrimeCell UART (PL011) Technical Reference Manual r1p5, 2.8 (interrupts), 3.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.interrupts import UART0, InterruptController
from vc4lab.soc.devices.serial.line_speed import RateCheck, SendQueue
from vc4lab.soc.devices.serial.serial import Header, SerialPort

RX, TX, RX_TIMEOUT = 1 << 4, 1 << 5, 1 << 6
RX_EMPTY, RX_FULL, TX_EMPTY = 1 << 4, 1 << 6, 1 << 7
FIFO = 16
TX_FULL, BUSY = 1 << 5, 1 << 3
TRIGGERS = (2, 4, 8, 12, 14)
"""IFLS bits 5:3: so many received bytes raise RX; fewer raise RX_TIMEOUT, as no more come. Bits 2:0:
so many bytes that are left to be sent raise TX."""
FIFO_ENABLE = 1 << 4
ENABLE, LOOPBACK, TX_ENABLE, RX_ENABLE = 1, 1 << 7, 1 << 8, 1 << 9
TRANSMIT_DMA = 1 << 1
FUNCTION = "alt0"


class Uart(Block):
    """The PL011. What is sent is shown at once; the receive FIFO is what was typed.

    A program that has not enabled it, or has not connected it to the header, is reported; its bytes
    are shown all the same.
    """

    NAME = "uart0"
    OFFSET = 0x201000
    DR = Register(0x00, poll=Poll.INPUT, doc="data")
    RSRECR = Register(0x04, access="r")
    FR = Register(
        0x18, access="r", poll=Poll.INPUT, steady=True, timed=True, fields="7 TXFE, 5 TXFF, 4 RXFE, 3 BUSY"
    )
    IBRD = Register(0x24)
    FBRD = Register(0x28)
    LCRH = Register(0x2C, bits=0xFF, then="_update")
    CR = Register(
        0x30,
        reset=TX_ENABLE | RX_ENABLE,
        bits=0xFF87,
        fields="9 RX, 8 TX, 7 loopback, 0 enable",
        then="_update",
    )
    IFLS = Register(0x34, reset=0x12, bits=0x3F, then="_update")
    IMSC = Register(0x38, then="_update")
    RIS = Register(0x3C, access="r", poll=Poll.INPUT, steady=True)
    MIS = Register(0x40, access="r", poll=Poll.INPUT, steady=True)
    ICR = Register(0x44, access="w")
    DMACR = Register(0x48)
    PERIPHERAL_ID = Register(0xFE0, access="r", count=4)
    CELL_ID = Register(0xFF0, access="r", count=4)

    def __init__(
        self,
        port: SerialPort,
        interrupts: InterruptController,
        gpio: Gpio,
        reporter: Reporter,
        clock: Clock,
        clock_rate: Callable[[], int],
        takes_time: bool = True,
    ) -> None:
        super().__init__()
        self._clock_rate = clock_rate
        self._queue = SendQueue("the PL011", reporter, clock, takes_time, self._update)
        self._rate_check = RateCheck(reporter)
        self.port = port
        self._interrupts = interrupts
        self._header = Header(gpio, reporter, "the PL011", FUNCTION)
        self._sent = 0
        self._filled = False
        """Whether more bytes are to be sent, or were, than raise TX."""
        self._looped: deque[int] = deque(maxlen=FIFO)
        """Bytes that it has sent to itself."""
        for index, value in enumerate((0x11, 0x10, 0x34, 0x00)):
            self.values[0xFE0 + 4 * index] = value
        for index, value in enumerate((0x0D, 0xF0, 0x05, 0xB1)):
            self.values[0xFF0 + 4 * index] = value

    def __repr__(self) -> str:
        return f"<Uart {self.port!r}>"

    @property
    def text(self) -> str:
        """Everything the program printed on the serial line."""
        return self.port.text

    # -- data --------------------------------------------------------------------------------------

    @property
    def _received(self) -> int:
        """Bytes that wait to be read, as many as the FIFO holds."""
        return min(len(self._looped) or self.port.pending, FIFO)

    def on_write_DR(self, value: int) -> None:
        level = 0
        if self.CR & LOOPBACK:
            self._looped.append(value & 0xFF)
        else:
            enabled = self.CR & (ENABLE | TX_ENABLE) == ENABLE | TX_ENABLE
            self._header.sends("" if enabled else f"it is not enabled (CR is 0x{self.CR:03x})")
            level = self._enqueue()
            self.port.send(value)
        if level > self._few:
            self._filled = True
            self._sent = 0
        else:
            self._sent = TX
        self._update()

    def _enqueue(self) -> int:
        """A byte goes to the line, as fast as that is; gives how many are in the FIFO then."""
        clock, divisor = self._clock_rate(), self.IBRD + (self.FBRD & 63) / 64
        self._rate_check.sends(clock, divisor)
        if divisor < 1:
            return 0
        return self._queue.put(clock / 16 / divisor, self._depth, not self.DMACR & TRANSMIT_DMA)

    @property
    def _depth(self) -> int:
        """Bytes that the transmit FIFO holds."""
        return FIFO if self.LCRH & FIFO_ENABLE else 1

    @property
    def _few(self) -> int:
        """So many bytes in it raise TX."""
        return TRIGGERS[min(self.IFLS & 7, 4)] if self.LCRH & FIFO_ENABLE else 0

    def room(self) -> int:
        """Bytes that the transmit FIFO takes from the DMA now."""
        return self._depth - self._queue.level

    def wait(self) -> int:
        """Nanoseconds until a byte is sent."""
        return self._queue.byte

    def on_read_DR(self) -> int:
        value = self._looped.popleft() if self._looped else self.port.receive()
        self._update()
        return value

    def on_read_FR(self) -> int:
        depth, received = self._depth, self._received
        value = (0 if received else RX_EMPTY) | (RX_FULL if received >= depth else 0)
        level, self.changes_at = self._queue.look(depth)
        if level < 0:
            return value | TX_EMPTY
        return value | BUSY | (TX_FULL if level >= depth else 0) | (0 if level else TX_EMPTY)

    # -- interrupts --------------------------------------------------------------------------------

    def on_read_RIS(self) -> int:
        self._look_at_level()
        received = self._received
        trigger = TRIGGERS[min(self.IFLS >> 3 & 7, 4)] if self.LCRH & FIFO_ENABLE else 1
        value = self._sent
        if received:
            value |= RX if received >= trigger else RX_TIMEOUT
        return value

    def on_read_MIS(self) -> int:
        return self.on_read_RIS() & self.IMSC

    def _look_at_level(self) -> None:
        """Raise TX when the FIFO has emptied as far as IFLS says."""
        if not self._filled:
            return
        few = self._few
        if self._queue.level <= few:
            self._filled, self._sent = False, TX
        else:
            self._queue.wake_at(self._queue.moment_of(few))

    def on_write_ICR(self, value: int) -> None:
        self._look_at_level()
        self._sent &= ~value
        self._update()

    def _update(self) -> None:
        if self.IMSC or self._interrupts.lines >> UART0 & 1:
            self._interrupts.set_line(UART0, bool(self.on_read_MIS()))

    @property
    def awaits_input(self) -> bool:
        """Whether the program uses the receive interrupt."""
        return bool(self.IMSC & (RX | RX_TIMEOUT))

    def poll_input(self) -> None:
        """Look for typed bytes on behalf of a program that uses the receive interrupt."""
        if self.awaits_input:
            self._update()
