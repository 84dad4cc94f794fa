"""Identity, interrupts, finished frames, caches, and the debug registers without a model.

Source: hardware reference 2.1-2.4, 2.6, 2.10; the offsets of the debug block from programs that run
on boards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.bits import Bits, Layout
from vc4lab.registers import Block, Register, WriteHandler
from vc4lab.v3d.events import CachesCleared

if TYPE_CHECKING:
    from vc4lab.v3d.cle.binning import BinningStage
    from vc4lab.v3d.events import V3DListeners
    from vc4lab.v3d.unknowns import Unknowns


class Ident1(Layout):
    """IDENT1: the configuration."""

    VPMSZ = Bits(31, 28, doc="VPM size in KiB")
    HDRT = Bits(27, 24, doc="64-bit colour")
    NSEM = Bits(23, 16, doc="semaphores")
    TUPS = Bits(15, 12, doc="TMUs a slice")
    QUPS = Bits(11, 8, doc="QPUs a slice")
    NSLC = Bits(7, 4, doc="slices")
    REV = Bits(3, 0, doc="revision")


class Interrupts(Layout):
    """INTCTL, INTENA, INTDIS: the four interrupts of the V3D."""

    FRDONE = Bits(0, 0, doc="a frame is rendered and its last tile is in memory")
    FLDONE = Bits(1, 1, doc="binning is complete, all tile lists are in memory")
    OUTOMEM = Bits(2, 2, doc="the binner needs memory")
    SPILLUSE = Bits(3, 3, doc="the binner took the overspill block")


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


class StatusRegisters(Block):
    """What the V3D is, what it interrupts for, what it has finished; its caches."""

    IDENT0 = Register(0x000, access="r", reset=0x02443356, doc="identity: version 2, 'V3D'")
    IDENT1 = Register(0x004, access="r", reset=0xC1102431, fields=Ident1, doc="configuration A")
    IDENT2 = Register(0x008, access="r", reset=0x00000121, doc="configuration B")
    IDENT3 = Register(0x00C, access="r", doc="undocumented")
    SCRATCH = Register(0x010, doc="free use")
    L2CACTL = Register(0x020, doc="L2 cache")
    SLCACTL = Register(0x024, access="w", doc="slice caches")
    INTCTL = Register(0x030, access="w1c", fields=Interrupts, doc="interrupt status")
    INTENA = Register(0x034, access="w1s", bits=0xF, fields=Interrupts, doc="interrupt enable, set")
    INTDIS = Register(0x038, access="w1c", fields=Interrupts, doc="interrupt enable, clear")
    BFC = Register(0x134, doc="binning flush count")
    RFC = Register(0x138, doc="rendering frame count")
    DBCFG = Register(0xE00, doc="bit 0: QPU interrupts reach the host")
    DBQITE = Register(0xE2C, doc="QPU interrupt enable")
    DBQITC = Register(0xE30, access="w1c", doc="QPU interrupt status")

    def __init__(
        self, values: dict[str, int], unknowns: Unknowns, binning: BinningStage, listeners: V3DListeners
    ) -> None:
        super().__init__(values)
        self._unknowns = unknowns
        self._binning = binning
        self._listeners = listeners

    # -- interrupts --------------------------------------------------------------------------

    def on_write_INTCTL(self, value: int) -> None:
        self.values["INTCTL"] &= ~value
        if self._binning.out_of_memory:  # level triggered: stays until BPOS is written
            self.values["INTCTL"] |= Interrupts.OUTOMEM.mask

    def on_write_INTDIS(self, value: int) -> None:
        self.values["INTENA"] &= ~value

    def on_read_INTDIS(self) -> int:
        return self.values["INTENA"] if self._unknowns["intdis_reads"] == "enabled" else 0

    # -- finished frames ---------------------------------------------------------------------

    def on_write_BFC(self, value: int) -> None:
        if value & 1 or self._zero_clears(value):
            self.values["BFC"] = 0

    def on_write_RFC(self, value: int) -> None:
        if value & 1 or self._zero_clears(value):
            self.values["RFC"] = 0

    def _zero_clears(self, value: int) -> bool:
        return value == 0 and self._unknowns["count_write_zero"] == "clear"

    # -- caches: nothing is cached here, so clearing has no effect ----------------------------

    def on_write_SLCACTL(self, value: int) -> None:
        if self._listeners.caches_cleared.subscriptions:
            self._listeners.caches_cleared.emit(CachesCleared("SLCACTL", value))

    def on_write_L2CACTL(self, value: int) -> None:
        if self._listeners.caches_cleared.subscriptions:
            self._listeners.caches_cleared.emit(CachesCleared("L2CACTL", value))
        if value & 3 == 3:
            self.values["L2CACTL"] = int(self._unknowns["l2cactl_both"] == "enable")
        elif value & 3:
            self.values["L2CACTL"] = value & 1


class DebugRegisters(Block):
    """States inside of units, which a functional model does not have."""

    DBSCS = Register(0xE04, doc="undocumented")
    DBSCFG = Register(0xE08, doc="undocumented")
    DBSSR = Register(0xE0C, doc="undocumented")
    DBSDR = Register(0xE10, count=4, names="DBSDR{}", doc="undocumented")
    DBQRUN = Register(0xE20, doc="QPU run")
    DBQHLT = Register(0xE24, doc="QPU halt")
    DBQSTP = Register(0xE28, doc="QPU step")
    DBQGHC = Register(0xE34, doc="undocumented")
    DBQGHG = Register(0xE38, doc="undocumented")
    DBQGHH = Register(0xE3C, doc="undocumented")
    DBGE = Register(0xF00, access="r", fields=SetupErrors, doc="PSE errors")
    FDBGO = Register(0xF04, access="r", fields=FrontEndOverruns, doc="FEP overruns")
    FDBGB = Register(0xF08, access="r", doc="FEP interface and busy: no pipeline is modelled")
    FDBGR = Register(0xF0C, access="r", doc="FEP ready")
    FDBGS = Register(0xF10, access="r", doc="FEP stall")

    def __init__(self, values: dict[str, int], unknowns: Unknowns) -> None:
        super().__init__(values)
        self._unknowns = unknowns

    def writer(self, register: Register, key: Any) -> WriteHandler:
        if self._unknowns["undocumented_registers"] == "zero":
            return lambda _value: None
        return super().writer(register, key)
