"""The interrupt controller at P + 0xB200. Which core is interrupted: `local_block.py`.

Lines are levels: a device raises its line and lowers it when the cause is gone. Pending registers
show enabled lines only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vc4lab.listeners import Listeners
from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block

BASIC_ARM_TIMER, BASIC_MAILBOX = 0, 1
BASIC = 64
"""ARM lines come after the GPU's where both are numbered together, as in FIQ_CONTROL."""
SYSTEM_TIMER = 0
MINI_UART, V3D, USB = 29, 10, 9
DMA = 16
"""Line of channel 0; 11 to 14 share one."""
SMI = 48
GPIO = 49
SDHOST = 56
I2C, SPI, PCM = 53, 54, 55
UART0 = 57
RANDOM = 61
EMMC = 62

_SHORTCUTS = tuple(zip((7, 9, 10, 18, 19, 53, 54, 55, 56, 57, 62), range(10, 21), strict=True))
"""(line, bit of BASIC_PENDING): lines that show there and do not count for bits 8 and 9."""
_SHORTCUT_MASK = sum(1 << line for line, _bit in _SHORTCUTS)


class LineChange(NamedTuple):
    """A line is about to go up or down; ARM lines have the numbers from `BASIC` on."""

    line: int
    level: bool


class InterruptController(Block):
    """Pending, enable and disable registers of the 64 GPU lines and the 8 ARM lines."""

    NAME = "irq"
    OFFSET = 0xB200
    SIZE = 0x100
    BASIC_PENDING = Register(0x00, access="r", poll=Poll.EVENT, steady=True, doc="ARM lines and a summary")
    PENDING = Register(0x04, access="r", count=2, poll=Poll.EVENT, steady=True, doc="enabled and raised")
    FIQ_CONTROL = Register(
        0x0C, bits=0xFF, fields="7 enable, 6:0 the one line that is the FIQ", then="_changed"
    )
    ENABLE = Register(0x10, count=2, doc="write 1 enables")
    ENABLE_BASIC = Register(0x18)
    DISABLE = Register(0x1C, count=2, doc="write 1 disables")
    DISABLE_BASIC = Register(0x24)

    def __init__(self, attention: Callable[[], None]) -> None:
        super().__init__()
        self.lines = 0
        self.basic_lines = 0
        self.enabled = 0
        self.basic_enabled = 0
        self.mailbox_lines = 0
        self.ever_raised = 0
        """Lines that have been up, those of the ARM from `BASIC` on."""
        self._attention = attention
        self.line_change: Listeners[LineChange] = Listeners()

    def set_line(self, line: int, level: bool) -> None:
        """GPU line 0..63 up or down."""
        bit = 1 << line
        if bool(level) is (self.lines & bit != 0):
            return
        if self.line_change.subscriptions:
            self.line_change.emit(LineChange(line, bool(level)))
        self.lines ^= bit
        if level:
            self.ever_raised |= bit
            self._changed()

    def set_basic(self, line: int, level: bool) -> None:
        """ARM line 0..7 up or down."""
        bit = 1 << line
        if self.line_change.subscriptions and bool(level) is (self.basic_lines & bit == 0):
            self.line_change.emit(LineChange(BASIC + line, bool(level)))
        if level:
            self.basic_lines |= bit
            self.ever_raised |= bit << BASIC
            self._changed()
        else:
            self.basic_lines &= ~bit

    def listens(self, line: int) -> bool:
        """Whether GPU line 0..63 would interrupt a core (`BASIC` and on: ARM line 0..7)."""
        enabled = self.basic_enabled >> line - BASIC if line >= BASIC else self.enabled >> line
        return bool(enabled & 1) or line == self._fiq_line

    def _changed(self) -> None:
        if self.pending_irq or self.pending_fiq:
            self._attention()

    @property
    def _fiq_line(self) -> int | None:
        control = self.FIQ_CONTROL
        return control & 0x7F if control & 0x80 else None

    @property
    def pending_fiq(self) -> bool:
        """Whether the line chosen as FIQ is up."""
        line = self._fiq_line
        if line is None:
            return False
        if line < 64:
            return bool(self.lines >> line & 1)
        return line < 72 and bool(self.basic_lines >> (line - 64) & 1)

    @property
    def pending_irq(self) -> bool:
        """Whether an enabled line is up."""
        return bool(self.lines & self.enabled or self.basic_lines & self.basic_enabled)

    @property
    def any_enabled(self) -> bool:
        """Whether anything could ever interrupt."""
        return bool(self.enabled or self.basic_enabled or self._fiq_line is not None)

    def on_read_PENDING(self, bank: int) -> int:
        return (self.lines & self.enabled) >> 32 * bank & 0xFFFFFFFF

    def on_read_BASIC_PENDING(self) -> int:
        raised = self.lines & self.enabled
        value = self.basic_lines & self.basic_enabled
        for line, bit in _SHORTCUTS:
            value |= (raised >> line & 1) << bit
        rest = raised & ~_SHORTCUT_MASK
        return value | bool(rest & 0xFFFFFFFF) << 8 | bool(rest >> 32) << 9

    def on_read_ENABLE(self, bank: int) -> int:
        return self.enabled >> 32 * bank & 0xFFFFFFFF

    def on_write_ENABLE(self, bank: int, value: int) -> None:
        self.enabled |= value << 32 * bank
        self._changed()

    def on_read_ENABLE_BASIC(self) -> int:
        return self.basic_enabled

    def on_write_ENABLE_BASIC(self, value: int) -> None:
        self.basic_enabled |= value & 0xFF
        self._changed()

    def on_read_DISABLE(self, bank: int) -> int:
        return self.on_read_ENABLE(bank)

    def on_write_DISABLE(self, bank: int, value: int) -> None:
        self.enabled &= ~(value << 32 * bank)

    def on_read_DISABLE_BASIC(self) -> int:
        return self.basic_enabled

    def on_write_DISABLE_BASIC(self, value: int) -> None:
        self.basic_enabled &= ~value
