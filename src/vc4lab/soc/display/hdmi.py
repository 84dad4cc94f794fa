"""HDMI (P + 0x902000, P + 0x808000): what a driver sets up before a picture comes.

Packets and sound go nowhere; what is plugged in is in `connector.py`.
Sources: Linux, drivers/gpu/drm/vc4/vc4_regs.h and vc4_hdmi.c.
"""

from __future__ import annotations

from vc4lab.registers import Register
from vc4lab.soc.address.block import Storage

CONNECTED = 1 << 0
RECENTER, RECENTER_DONE = 1 << 6, 1 << 14
MODE_HDMI, HDMI_ACTIVE = 1 << 0, 1 << 1
PACKETS_ENABLED, PACKETS = 1 << 16, 0xFFFF


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
