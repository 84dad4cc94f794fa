"""The PL011 UART at P + 0x201000; the other one is in `mini_uart.py`."""

from __future__ import annotations

from vc4lab.soc.block import Block, Poll, Register
from vc4lab.soc.interrupts import UART0, InterruptController
from vc4lab.soc.serial import SerialPort

RX, TX = 1 << 4, 1 << 5
RX_EMPTY, TX_EMPTY, RX_FULL_LATER = 1 << 4, 1 << 7, 1 << 6
RX_TIMEOUT = 1 << 6


class Uart(Block):
    """The PL011. Transmission takes no time; the receive FIFO is what was typed."""

    NAME = "uart0"
    OFFSET = 0x201000
    DR = Register(0x00, poll=Poll.INPUT, doc="data")
    RSRECR = Register(0x04, access="r")
    FR = Register(
        0x18, access="r", poll=Poll.INPUT, steady=True, doc="7 TXFE, 5 TXFF, 4 RXFE, 3 BUSY"
    )
    IBRD = Register(0x24)
    FBRD = Register(0x28)
    LCRH = Register(0x2C)
    CR = Register(0x30, reset=0x300, doc="9 RX, 8 TX, 0 enable")
    IFLS = Register(0x34, reset=0x12)
    IMSC = Register(0x38)
    RIS = Register(0x3C, access="r", poll=Poll.INPUT, steady=True)
    MIS = Register(0x40, access="r", poll=Poll.INPUT, steady=True)
    ICR = Register(0x44, access="w")
    DMACR = Register(0x48)
    PERIPHERAL_ID = Register(0xFE0, access="r", count=4)
    CELL_ID = Register(0xFF0, access="r", count=4)

    def __init__(self, port: SerialPort, interrupts: InterruptController) -> None:
        super().__init__()
        self.port = port
        self._interrupts = interrupts
        self._sent = 0
        for index, value in enumerate((0x11, 0x10, 0x34, 0x00)):
            self.values[0xFE0 + 4 * index] = value
        for index, value in enumerate((0x0D, 0xF0, 0x05, 0xB1)):
            self.values[0xFF0 + 4 * index] = value

    @property
    def text(self) -> str:
        """Everything the program printed on the serial line."""
        return self.port.text

    def on_write_DR(self, value: int) -> None:
        self.port.send(value)
        self._sent = TX
        self._update()

    def on_read_DR(self) -> int:
        value = self.port.receive()
        self._update()
        return value

    def on_read_FR(self) -> int:
        return TX_EMPTY | (0 if self.port.waiting else RX_EMPTY)

    def on_read_RIS(self) -> int:
        return self._sent | (RX if self.port.waiting else 0)

    def on_read_MIS(self) -> int:
        return self.on_read_RIS() & self.IMSC

    def on_write_IMSC(self, value: int) -> None:
        self.IMSC = value
        self._update()

    def on_write_ICR(self, value: int) -> None:
        self._sent &= ~value
        self._update()

    def _update(self) -> None:
        if self.IMSC or self._interrupts.lines >> UART0 & 1:
            self._interrupts.set_line(UART0, bool(self.on_read_MIS()))

    def poll_input(self) -> None:
        """Look for typed bytes on behalf of a program that uses the receive interrupt."""
        if self.IMSC & (RX | RX_TIMEOUT):
            self._update()
