"""The V3D register map: every register, its access, reset value and fields, declared once.

Source: hardware reference 2.1-2.10 (the guide's map, with the offsets of the debug block from
programs that run on boards). Behaviour hangs on these names in `core.py`: a method
``on_write_CT0EA`` or ``on_read_CT0CS`` is found by the name in this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vc4lab.bits import Bits, Layout


class Access(Enum):
    """What a bus access to a register does, in the guide's terms."""

    READ = "R"
    WRITE = "W"
    READ_WRITE = "RW"
    CLEAR = "W1C"
    SET = "W1S"


@dataclass(frozen=True)
class Register:
    """One 32-bit register: byte offset from the V3D base, access, reset value, fields."""

    offset: int
    name: str
    access: Access
    reset: int
    doc: str
    layout: type[Layout] | None = None
    inert: bool = False
    """Nothing but the name is known, and that it may be written."""

    def describe(self, value: int) -> str:
        """The value with its non-zero fields by name, for traces and messages."""
        text = f"{self.name} = 0x{value:08x}"
        if self.layout is None:
            return text
        parts = [f"{name}={number}" for name, number in self.layout(value).items() if number]
        return text + (f" ({', '.join(parts)})" if parts else "")


QPUS = 12
"""QPUs of the chip."""

R, W, RW = Access.READ, Access.WRITE, Access.READ_WRITE
W1C, W1S = Access.CLEAR, Access.SET


class Interrupts(Layout):
    """INTCTL, INTENA, INTDIS: the four interrupts of the V3D."""

    FRDONE = Bits(0, 0, doc="a frame is rendered and its last tile is in memory")
    FLDONE = Bits(1, 1, doc="binning is complete, all tile lists are in memory")
    OUTOMEM = Bits(2, 2, doc="the binner needs memory")
    SPILLUSE = Bits(3, 3, doc="the binner took the overspill block")


class ThreadControl(Layout):
    """CTnCS: control and status of a list thread."""

    CTRSTA = Bits(15, 15, doc="reset the thread")
    CTSEMA = Bits(14, 12, doc="semaphore count")
    CTRTSD = Bits(9, 8, doc="sub-list nesting depth")
    CTRUN = Bits(5, 5, doc="running")
    CTSUBS = Bits(4, 4, doc="stopped at halt, or stalled while running")
    CTERR = Bits(3, 3, doc="stopped by an error")
    CTMODE = Bits(0, 0, doc="prefixing: no tile list started yet")


class ListCounters(Layout):
    """CTnLC: what a list thread has counted."""

    CTLLCM = Bits(31, 16, doc="Flush records executed")
    CTLSLCS = Bits(15, 0, doc="Return records executed")


class PipelineStatus(Layout):
    """PCS: the pipelines at a glance."""

    BMOOM = Bits(8, 8, doc="binner out of memory")
    RMBUSY = Bits(3, 3, doc="rendering operation in progress")
    RMACTIVE = Bits(2, 2, doc="rendering pipeline not empty")
    BMBUSY = Bits(1, 1, doc="binning operation in progress")
    BMACTIVE = Bits(0, 0, doc="binning pipeline not empty")


class RequestQueue(Layout):
    """SRQCS: the queue of user programs."""

    QPURQCC = Bits(23, 16, doc="programs completed")
    QPURQCM = Bits(15, 8, doc="requests made")
    QPURQERR = Bits(7, 7, doc="a request was dropped")
    QPURQL = Bits(5, 0, doc="queue length")


class BinnerDebug(Layout):
    """BXCF: switches of the binner."""

    CLIPDISA = Bits(1, 1, doc="clipping disabled")
    FWDDISA = Bits(0, 0, doc="state cache forwarding disabled")


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


class SetupErrors(Layout):
    """DBGE: errors of the primitive setup.

    Always 0 here. No source says what makes the VPM read errors a and b: the setup takes as many
    rows of a vertex as the varyings of the shader record say, and those are allocated. The other
    bits are states inside the unit, which a functional model does not have.
    """

    IPD2_FPDUSED = Bits(20, 20, doc="state of the setup's input")
    IPD2_VALID = Bits(19, 19, doc="state of the setup's input")
    MULIP2 = Bits(18, 18, doc="state of a multiplier's input")
    MULIP1 = Bits(17, 17, doc="state of a multiplier's input")
    MULIP0 = Bits(16, 16, doc="state of a multiplier's input")
    VR1_B = Bits(2, 2, doc="VPM read error b")
    VR1_A = Bits(1, 1, doc="VPM read error a")


class FrontEndOverruns(Layout):
    """FDBGO: FIFOs of the front end pipe that ran over. Always 0 here: there are no FIFOs."""

    EZREQ_FIFO = Bits(17, 17, doc="overrun")
    EZVAL_FIFO = Bits(15, 15, doc="overrun")
    DEPTHO = Bits(14, 14, doc="overrun")
    DEPTHO_FIFO = Bits(13, 13, doc="overrun")
    REFXY_FIFO = Bits(12, 12, doc="overrun")
    ZCOEFF_FIFO_FULL = Bits(11, 11, doc="full, not an error")
    XYRELW_FIFO = Bits(10, 10, doc="overrun")
    XYRELO_FIFO = Bits(7, 7, doc="overrun")
    FIXZ = Bits(6, 6, doc="overrun")
    XYFO_FIFO = Bits(5, 5, doc="overrun")
    QBSZ_FIFO = Bits(4, 4, doc="overrun")
    QBFR_FIFO = Bits(3, 3, doc="overrun")
    XYRELZ_FIFO_FULL = Bits(2, 2, doc="full, not an error")
    WCOEFF_FIFO_FULL = Bits(1, 1, doc="full, not an error")


class Ident1(Layout):
    """IDENT1: the configuration."""

    VPMSZ = Bits(31, 28, doc="VPM size in KiB")
    HDRT = Bits(27, 24, doc="64-bit colour")
    NSEM = Bits(23, 16, doc="semaphores")
    TUPS = Bits(15, 12, doc="TMUs a slice")
    QUPS = Bits(11, 8, doc="QPUs a slice")
    NSLC = Bits(7, 4, doc="slices")
    REV = Bits(3, 0, doc="revision")


REGISTERS: tuple[Register, ...] = (
    Register(0x000, "IDENT0", R, 0x02443356, "identity: version 2, 'V3D'"),
    Register(0x004, "IDENT1", R, 0xC1102431, "configuration A", Ident1),
    Register(0x008, "IDENT2", R, 0x00000121, "configuration B"),
    Register(0x00C, "IDENT3", R, 0, "undocumented"),
    Register(0x010, "SCRATCH", RW, 0, "free use"),
    Register(0x020, "L2CACTL", RW, 0, "L2 cache"),
    Register(0x024, "SLCACTL", W, 0, "slice caches"),
    Register(0x030, "INTCTL", W1C, 0, "interrupt status", Interrupts),
    Register(0x034, "INTENA", W1S, 0, "interrupt enable, set", Interrupts),
    Register(0x038, "INTDIS", W1C, 0, "interrupt enable, clear", Interrupts),
    Register(0x100, "CT0CS", RW, 0, "binning thread control and status", ThreadControl),
    Register(0x104, "CT1CS", RW, 0, "rendering thread control and status", ThreadControl),
    Register(0x108, "CT0EA", RW, 0, "binning list end address"),
    Register(0x10C, "CT1EA", RW, 0, "rendering list end address"),
    Register(0x110, "CT0CA", RW, 0, "binning list current address"),
    Register(0x114, "CT1CA", RW, 0, "rendering list current address"),
    Register(0x118, "CT00RA0", R, 0, "binning return address"),
    Register(0x11C, "CT01RA0", R, 0, "rendering return address"),
    Register(0x120, "CT0LC", RW, 0, "binning list counters", ListCounters),
    Register(0x124, "CT1LC", RW, 0, "rendering list counters", ListCounters),
    Register(0x128, "CT0PC", R, 0, "binning primitives remaining"),
    Register(0x12C, "CT1PC", R, 0, "rendering primitives remaining"),
    Register(0x130, "PCS", R, 0, "pipeline status", PipelineStatus),
    Register(0x134, "BFC", RW, 0, "binning flush count"),
    Register(0x138, "RFC", RW, 0, "rendering frame count"),
    Register(0x300, "BPCA", R, 0, "binning pool current address"),
    Register(0x304, "BPCS", R, 0, "binning pool bytes left"),
    Register(0x308, "BPOA", RW, 0, "overspill block address"),
    Register(0x30C, "BPOS", RW, 0, "overspill block size"),
    Register(0x310, "BXCF", RW, 0, "binner debug", BinnerDebug),
    Register(0x410, "SQRSV0", RW, 0, "reserve QPUs 0-7"),
    Register(0x414, "SQRSV1", RW, 0, "reserve QPUs 8-15"),
    Register(0x418, "SQCNTL", RW, 0, "QPU scheduler control"),
    Register(0x41C, "SQCSTAT", R, 0, "undocumented scheduler state"),
    Register(0x430, "SRQPC", W, 0, "user program request: code address"),
    Register(0x434, "SRQUA", RW, 0, "user program request: uniforms address"),
    Register(0x438, "SRQUL", RW, 0, "user program request: uniforms length"),
    Register(0x43C, "SRQCS", RW, 0, "user program queue", RequestQueue),
    Register(0x500, "VPACNTL", RW, 0, "VPM allocator control"),
    Register(0x504, "VPMBASE", RW, 0, "VPM rows reserved for user programs"),
    Register(0x670, "PCTRC", W, 0, "performance counter clear"),
    Register(0x674, "PCTRE", RW, 0, "performance counter enable"),
    *(Register(0x680 + 8 * n, f"PCTR{n}", RW, 0, f"performance count {n}") for n in range(16)),
    *(Register(0x684 + 8 * n, f"PCTRS{n}", RW, 0, f"source of count {n}") for n in range(16)),
    Register(0xE00, "DBCFG", RW, 0, "bit 0: QPU interrupts reach the host"),
    Register(0xE04, "DBSCS", RW, 0, "undocumented", inert=True),
    Register(0xE08, "DBSCFG", RW, 0, "undocumented", inert=True),
    Register(0xE0C, "DBSSR", RW, 0, "undocumented", inert=True),
    *(Register(0xE10 + 4 * n, f"DBSDR{n}", RW, 0, "undocumented", inert=True) for n in range(4)),
    Register(0xE20, "DBQRUN", RW, 0, "QPU run (debug)", inert=True),
    Register(0xE24, "DBQHLT", RW, 0, "QPU halt (debug)", inert=True),
    Register(0xE28, "DBQSTP", RW, 0, "QPU step (debug)", inert=True),
    Register(0xE2C, "DBQITE", RW, 0, "QPU interrupt enable"),
    Register(0xE30, "DBQITC", W1C, 0, "QPU interrupt status"),
    Register(0xE34, "DBQGHC", RW, 0, "undocumented", inert=True),
    Register(0xE38, "DBQGHG", RW, 0, "undocumented", inert=True),
    Register(0xE3C, "DBQGHH", RW, 0, "undocumented", inert=True),
    Register(0xF00, "DBGE", R, 0, "PSE errors", SetupErrors),
    Register(0xF04, "FDBGO", R, 0, "FEP overruns", FrontEndOverruns),
    Register(
        0xF08, "FDBGB", R, 0, "FEP interface and busy, always 0 here: no pipeline is modelled"
    ),
    Register(0xF0C, "FDBGR", R, 0, "FEP ready, always 0 here"),
    Register(0xF10, "FDBGS", R, 0, "FEP stall, always 0 here"),
    Register(0xF20, "ERRSTAT", R, 0, "errors", Errors),
)

INERT = frozenset(register.name for register in REGISTERS if register.inert)
"""Registers of which nothing but the name is known; see the unknown "undocumented_registers"."""

BY_OFFSET: dict[int, Register] = {register.offset: register for register in REGISTERS}
BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}
