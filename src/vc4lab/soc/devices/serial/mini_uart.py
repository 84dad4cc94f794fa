"""The AUX block (P + 0x215000): the mini UART, and what its two SPIs (`absent.py`) share with it.

What is sent is shown at once. What was typed waits outside until the program reads it, so the
receiver never overruns.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.interrupts import MINI_UART, InterruptController
from vc4lab.soc.devices.serial.line_speed import SendQueue
from vc4lab.soc.devices.serial.serial import Header, SerialPort

AUX_IDENTITY = 0x61757830
"""Reads "aux0" at offset 0x10: a common start-up code finds the peripheral base by it."""
FIFO = 8
RX_ENABLE, TX_ENABLE = 1, 2
RX_INTERRUPT, TX_INTERRUPT = 1, 2
BAUD_ACCESS = 0x80


class Auxiliary(Block):
    """The AUX block; the registers' names are those of the datasheet without AUX_MU."""

    NAME = "aux"
    OFFSET = 0x215000
    IRQ = Register(0x00, access="r", poll=Poll.INPUT, steady=True, fields="0 mini UART, 1 SPI1, 2 SPI2")
    ENABLES = Register(0x04, bits=7, fields="0 mini UART, 1 SPI1, 2 SPI2", then="update")
    IDENTITY = Register(0x10, access="r", reset=AUX_IDENTITY)
    IO = Register(0x40, poll=Poll.INPUT, doc="data; with LCR bit 7 the low byte of BAUD")
    IER = Register(0x44, fields="0 receive", doc="1 transmit; with LCR bit 7 the high byte of BAUD")
    IIR = Register(0x48, poll=Poll.INPUT, fields="1 clear receive FIFO, 2 clear transmit FIFO")
    LCR = Register(0x4C, bits=0xFF)
    MCR = Register(0x50)
    LSR = Register(
        0x54, access="r", poll=Poll.INPUT, steady=True, timed=True, fields="0 data ready, 5 TX empty, 6 idle"
    )
    MSR = Register(0x58, access="r")
    SCRATCH = Register(0x5C, bits=0xFF)
    CNTL = Register(0x60, reset=3, fields="0 receiver, 1 transmitter enabled")
    STAT = Register(0x64, access="r", poll=Poll.INPUT, steady=True, timed=True)
    BAUD = Register(0x68, bits=0xFFFF)

    def __init__(
        self,
        port: SerialPort,
        interrupts: InterruptController,
        gpio: Gpio,
        reporter: Reporter,
        clock: Clock,
        clock_rate: Callable[[], int],
        takes_time: bool = True,
        enabled: bool = False,
    ) -> None:
        super().__init__()
        self._clock_rate = clock_rate
        self._queue = SendQueue("the mini UART", reporter, clock, takes_time, self.update)
        self.port = port
        self._interrupts = interrupts
        self._reporter = reporter
        self._header = Header(gpio, reporter, "the mini UART", "alt5")
        self._held: list[int] = [0] * FIFO
        self._held_count = 0
        """Bytes written while the transmitter is off."""
        self.sources: dict[int, Callable[[], bool]] = {}
        """Who else of the block may ask for its interrupt, by the bit in IRQ."""
        if enabled:
            self.ENABLES = 1

    def is_enabled(self, number: int) -> bool:
        """Whether a unit (0 mini UART, 1 SPI1, 2 SPI2) is switched on."""
        return bool(self.ENABLES >> number & 1)

    # -- the line ----------------------------------------------------------------------------------

    @property
    def _has_data(self) -> bool:
        return bool(self.CNTL & RX_ENABLE) and self.port.waiting

    @property
    def _receives(self) -> bool:
        return bool(self.IER & RX_INTERRUPT) and self._has_data

    @property
    def _wants_more(self) -> bool:
        if not self.IER & TX_INTERRUPT or self._held_count:
            return False
        if not self._queue.level:
            return True
        self._queue.wake_at(self._queue.moment_of(0))
        return False

    def on_write_IO(self, value: int) -> None:
        if self.LCR & BAUD_ACCESS:
            self.BAUD = self.BAUD & 0xFF00 | value & 0xFF
            return
        if not self.ENABLES & 1:
            self._reporter.report(
                "SOC-054", "a byte is written to the mini UART while it is disabled, and is lost", block="aux"
            )
            return
        if self.CNTL & TX_ENABLE:
            self._send(value)
            if self.IER & TX_INTERRUPT:
                self.update()
            return
        if self._held_count < FIFO:
            self._held[self._held_count] = value & 0xFF
            self._held_count += 1
        self.update()

    def _send(self, byte: int) -> None:
        self._header.sends()
        self._queue.put(self._clock_rate() / 8 / (self.BAUD + 1), FIFO)
        self.port.send(byte)

    def on_read_IO(self) -> int:
        if self.LCR & BAUD_ACCESS:
            return self.BAUD & 0xFF
        value = self.port.receive() if self.CNTL & RX_ENABLE else 0
        self.update()
        return value

    def on_write_CNTL(self, value: int) -> None:
        self.CNTL = value & 0xFF
        if value & TX_ENABLE:
            for byte in self._held[: self._held_count]:
                self._send(byte)
            self._held_count = 0
        self.update()

    # -- interrupts --------------------------------------------------------------------------------

    def on_read_IRQ(self) -> int:
        others = sum(asks() << bit for bit, asks in self.sources.items())
        return int(self._receives or self._wants_more) | others

    def on_write_IER(self, value: int) -> None:
        if self.LCR & BAUD_ACCESS:
            self.BAUD = self.BAUD & 0xFF | (value & 0xFF) << 8
            return
        self.IER = value & 0xFF
        self.update()

    def on_read_IER(self) -> int:
        return self.BAUD >> 8 if self.LCR & BAUD_ACCESS else self.IER

    def on_read_IIR(self) -> int:
        if self._receives:
            return 0xC4
        return 0xC2 if self._wants_more else 0xC1

    def on_write_IIR(self, value: int) -> None:
        if value & 2:
            for _ in range(FIFO):
                self.port.receive()
        if value & 4:
            self._held_count = 0
        self.update()

    def update(self) -> None:
        """Raise or lower the interrupt line of the block."""
        self._interrupts.set_line(MINI_UART, bool(self.on_read_IRQ()))

    @property
    def awaits_input(self) -> bool:
        """Whether the program uses the receive interrupt."""
        return bool(self.IER & RX_INTERRUPT)

    def poll_input(self) -> None:
        """Look for typed bytes on behalf of a program that uses the receive interrupt."""
        if self.awaits_input:
            self.update()

    # -- status ------------------------------------------------------------------------------------

    def on_read_LSR(self) -> int:
        idle, level = self._left()
        empty = 0x40 if idle else 0
        space = 0x20 if level < FIFO else 0
        return empty | space | int(self._has_data)

    def _left(self) -> tuple[bool, int]:
        """Whether nothing is left to be sent, not on the line either; how much is in the FIFO."""
        held = self._held_count
        level, self.changes_at = self._queue.look(FIFO)
        if level < 0:
            return not held, held
        return False, min(level + held, FIFO)

    def on_read_STAT(self) -> int:
        idle, held = self._left()
        level = min(self.port.pending, FIFO) if self._has_data else 0
        value = level << 16 | held << 24 | bool(level) | (0 if level else 1 << 2)
        value |= (held < FIFO) << 1 | (held == FIFO) << 5 | 1 << 3
        return value | (0 if held else 1 << 8) | (1 << 9 if idle else 0)
