"""The errors that ERRSTAT reports: nearly all of them are the VPM's. Hardware reference 2.10."""

from __future__ import annotations

from vc4lab.bits import Bits, Layout


class Errors(Layout):
    """ERRSTAT: what went wrong, by block."""

    L2CARE = Bits(15, 15, doc="L2C AXI receive FIFO overrun")
    VCMBE = Bits(14, 14, doc="VCM error, binner")
    VCMRE = Bits(13, 13, doc="VCM error, renderer")
    VCDI = Bits(12, 12, doc="VCD idle")
    VCDE = Bits(11, 11, doc="VCD FIFO pointers out of sync")
    VDWE = Bits(10, 10, doc="VDW address overflow")
    VPMEAS = Bits(9, 9, doc="allocated size error")
    VPMEFNA = Bits(8, 8, doc="free of non-allocated")
    VPMEWNA = Bits(7, 7, doc="write to non-allocated")
    VPMERNA = Bits(6, 6, doc="read from non-allocated")
    VPMERR = Bits(5, 5, doc="read range")
    VPMEWR = Bits(4, 4, doc="write range")
    VPAERRGL = Bits(3, 3, doc="renderer request above limit")
    VPAEBRGL = Bits(2, 2, doc="binner request above limit")
    VPAERGS = Bits(1, 1, doc="request too big")
    VPAEABB = Bits(0, 0, doc="base allocated while busy")
