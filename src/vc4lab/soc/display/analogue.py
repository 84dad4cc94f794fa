"""VEC (P + 0x806000), the encoder of analogue video: composite, in PAL or NTSC.

It takes the picture of pixel valve 2, which the screen shows. The signal itself (carrier, filters,
levels of the converter) is not made; its registers are kept for the program that reads them.
Source: Linux, drivers/gpu/drm/vc4/vc4_vec.c, whose names these are.
"""

from __future__ import annotations

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.address.block import Storage

COLOUR_BARS = 1 << 16
CLOCKS_PER_PIXEL = 8


class Vec(Storage):
    """The encoder."""

    NAME = "vec"
    OFFSET = 0x806000
    SIZE = 0x400
    WSE_RESET = Register(0x0C0)
    WSE_CONTROL = Register(0x0C4, fields="7 wide screen signal")
    WSE_WSS_DATA = Register(0x0C8)
    WSE_VPS_DATA1 = Register(0x0CC)
    WSE_VPS_CONTROL = Register(0x0D0)
    REVID = Register(0x100, access="r")
    CONFIG0 = Register(0x104, fields="8 no burst, 7 no chroma, 6 pedestal, 1:0 standard")
    SCHPH = Register(0x108, doc="phase of the carrier")
    SOFT_RESET = Register(0x10C)
    CLMP0_START = Register(0x144)
    CLMP0_END = Register(0x148)
    FREQ3_2 = Register(0x180, doc="the carrier's frequency, low half")
    FREQ1_0 = Register(0x184, doc="the carrier's frequency, high half")
    CONFIG1 = Register(0x188, fields="16 colour bars, 12:10 output, 0 frequency", then="_look")
    CONFIG2 = Register(0x18C, fields="15 progressive, 14:12 sync")
    INTERRUPT_CONTROL = Register(0x190)
    INTERRUPT_STATUS = Register(0x194)
    FCW_SECAM_B = Register(0x198)
    SECAM_GAIN_VAL = Register(0x19C)
    CONFIG3 = Register(0x1A0)
    STATUS0 = Register(0x200)
    MASK0 = Register(0x204)
    CFG = Register(0x208, fields="3 encoder, 1 enable")
    DAC_TEST = Register(0x20C)
    DAC_CONFIG = Register(0x210)
    DAC_MISC = Register(0x214, fields="8 active, 6 5 2 1 power down, 0 reset")

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def _look(self) -> None:
        if self.CONFIG1 & COLOUR_BARS:
            text = "colour bars are asked for; the screen shows the picture of the pixel valve"
            self._reporter.report("SOC-096", text, block="vec")
