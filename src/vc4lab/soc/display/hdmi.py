"""HDMI (P + 0x902000, P + 0x808000), VEC and TXP: what a driver sets up before a picture comes.

There is always a monitor. Packets and sound go nowhere.
Of VEC and TXP there are only the registers.
Sources: Linux, drivers/gpu/drm/vc4/vc4_regs.h, vc4_hdmi.c, vc4_vec.c and vc4_txp.c.
"""

from __future__ import annotations

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.address.block import Storage

CONNECTED = 1 << 0
RECENTER, RECENTER_DONE = 1 << 6, 1 << 14
MODE_HDMI, HDMI_ACTIVE = 1 << 0, 1 << 1
PACKETS_ENABLED, PACKETS = 1 << 16, 0xFFFF
GO, BUSY = 1 << 0, 1 << 1


class Hdmi(Storage):
    """The transmitter; what is written to its registers takes effect at once."""

    NAME = "hdmi"
    OFFSET = 0x902000
    SIZE = 0x600
    HOTPLUG = Register(0x00C, access="r", reset=CONNECTED)
    FIFO_CTL = Register(0x05C, fields="14 centred, 6 centre", then="_recenter")
    RAM_PACKET_CONFIG = Register(0x0A0, fields="16 enable, 15:0 packets")
    RAM_PACKET_STATUS = Register(0x0A4, access="r", steady=True)
    SCHEDULER_CONTROL = Register(0x0C0, fields="1 active, 0 HDMI", then="_change_mode")
    CPU_STATUS = Register(0x340, access="r")
    CPU_SET = Register(0x344, access="w")
    CPU_CLEAR = Register(0x348, access="w")
    CPU_MASK_STATUS = Register(0x34C, access="r", reset=0xFFFFFFFF)
    CPU_MASK_SET = Register(0x350, access="w")
    CPU_MASK_CLEAR = Register(0x354, access="w")

    def _recenter(self) -> None:
        value = self.FIFO_CTL & ~RECENTER_DONE
        self.FIFO_CTL = value | (RECENTER_DONE if value & RECENTER else 0)

    def _change_mode(self) -> None:
        value = self.SCHEDULER_CONTROL & ~HDMI_ACTIVE
        self.SCHEDULER_CONTROL = value | (HDMI_ACTIVE if value & MODE_HDMI else 0)

    def on_read_RAM_PACKET_STATUS(self) -> int:
        """The packets that are sent."""
        config = self.RAM_PACKET_CONFIG
        return config & PACKETS if config & PACKETS_ENABLED else 0

    def on_write_CPU_MASK_SET(self, value: int) -> None:
        self.CPU_MASK_STATUS |= value

    def on_write_CPU_MASK_CLEAR(self, value: int) -> None:
        self.CPU_MASK_STATUS &= ~value


class Hd(Storage):
    """HDMI's other registers: sound, and the format of the pixels."""

    NAME = "hd"
    OFFSET = 0x808000
    SIZE = 0x100


class Vec(Storage):
    """The encoder for analogue video: nothing looks at what it sends."""

    NAME = "vec"
    OFFSET = 0x806000
    SIZE = 0x400

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def write_other(self, offset: int, value: int) -> None:
        super().write_other(offset, value)
        text = "the encoder of analogue video sends no picture"
        self._reporter.report("SOC-096", text, block="vec")


class Txp(Storage):
    """The writer of composed pictures, which does not write: a picture never ends."""

    NAME = "txp"
    OFFSET = 0x004000
    SIZE = 0x20
    DST_PTR = Register(0x00)
    DST_PITCH = Register(0x04)
    DIM = Register(0x08, fields="27:16 height, 11:0 width")
    DST_CTRL = Register(0x0C, fields="2 interrupt, 1 busy, 0 go", then="_start")
    PROGRESS = Register(0x10, access="r")

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def _start(self) -> None:
        started = self.DST_CTRL & GO
        self.DST_CTRL &= ~(GO | BUSY)
        if started:
            text = (
                "the composed picture is not written to memory, and no interrupt says that it was"
            )
            self._reporter.report("SOC-096", text, block="txp")
