"""The secondary memory interface, which the firmware uses to signal vertical sync to the ARM.

With `fake_vsync_isr=1` in config.txt the firmware raises the SMI interrupt (line 48) at every
vertical sync of the display; a program acknowledges by writing 0 to SMI_CS.
"""

from __future__ import annotations

from vc4lab.registers import Poll, Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.devices.interrupts import SMI, InterruptController


class Smi(Block):
    """SMI_CS and the vsync line."""

    NAME = "smi"
    OFFSET = 0x600000
    CS = Register(0x00, poll=Poll.EVENT, doc="write 0 acknowledges the vsync")
    LENGTH = Register(0x04)
    ADDRESS = Register(0x08)
    DATA = Register(0x0C)

    def __init__(self, interrupts: InterruptController) -> None:
        super().__init__()
        self._interrupts = interrupts
        self.acknowledged = 0

    def vsync(self) -> None:
        """A vertical sync has come."""
        self._interrupts.set_line(SMI, True)

    def on_write_CS(self, value: int) -> None:
        self.CS = value & ~0xF
        self.acknowledged += 1
        self._interrupts.set_line(SMI, False)
