"""The setup words of VPM and DMA that programs write to vr_setup and vw_setup, declared once.

Source: AG100-R tables 31 to 37; hardware reference 5.3 to 5.5.
"""

from __future__ import annotations

from vc4lab.bits import Bits, Layout


class GenericSetup(Layout, width=32):
    """A generic VPM read or write setup (AG100-R Table 31 and 33)."""

    address = Bits(7, 0)
    size = Bits(9, 8, doc="0: 8 bit, 1: 16 bit, 2: 32 bit")
    laned = Bits(10)
    horizontal = Bits(11)
    stride = Bits(17, 12, doc="0 = 64")
    number = Bits(23, 20, doc="vectors to read, 0 = 16")
    kind = Bits(31, 30, doc="0: generic block access")


class StoreSetup(Layout, width=32):
    """VDW basic: VPM to memory (AG100-R table 34)."""

    kind = Bits(31, 30, doc="2")
    units = Bits(29, 23, doc="rows in memory, 0 = 128")
    depth = Bits(22, 16, doc="elements in a row, 0 = 128")
    laned = Bits(15)
    horizontal = Bits(14)
    y = Bits(13, 7)
    x = Bits(6, 3)
    mode = Bits(2, 0, doc="0: 32 bit; 2, 3: 16 bit, half; 4-7: 8 bit, byte")


class StoreStride(Layout, width=32):
    """VDW stride (table 35; the width of the stride is vc4asm's measurement)."""

    kind = Bits(31, 30, doc="3")
    block_mode = Bits(16, doc="1: rows packed in the VPM, says the guide; see is_packed")
    stride = Bits(15, 0, doc="bytes between the end of a row and the start of the next")


class LoadSetup(Layout, width=32):
    """VDR basic: memory to VPM (table 36)."""

    is_load = Bits(31, doc="1")
    mode = Bits(30, 28, doc="0: 32 bit; 2, 3: 16 bit, half; 4-7: 8 bit, byte; 1: LoadStride")
    memory_pitch = Bits(27, 24, doc="8 * 2**n bytes; 0: as LoadStride says")
    row_length = Bits(23, 20, doc="0 = 16")
    rows = Bits(19, 16, doc="0 = 16")
    vpm_pitch = Bits(15, 12, doc="0 = 16")
    vertical = Bits(11)
    y = Bits(10, 4)
    x = Bits(3, 0)


class LoadStride(Layout, width=32):
    """VDR extended stride (table 37; boards have a bit more than its 12:0)."""

    kind = Bits(31, 28, doc="9")
    pitch = Bits(13, 0, doc="bytes from the start of a row to the start of the next")


STORE_KIND, STORE_STRIDE_KIND = 2, 3
LOAD_STRIDE_KIND = 9
