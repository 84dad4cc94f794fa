"""The V3D's registers, with what each does, and an index of them by address.

Blocks: list threads (CTn…), state of the pipelines and the binner's memory; user programs (queue,
reservations, VPM memory) and the errors of all blocks; identity, interrupts, finished frames, caches;
debug registers without a model. Source: hardware reference 2; the offsets of the debug block from
programs that run on boards.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from vc4lab.bits import Bits, Layout
from vc4lab.registers import Block, Register, WriteHandler
from vc4lab.v3d.cle.thread import ThreadControl
from vc4lab.v3d.counters import PerformanceCounters
from vc4lab.v3d.events import CachesCleared, Use
from vc4lab.v3d.job_time import QPUS
from vc4lab.v3d.user_programs.scheduler import RequestQueue
from vc4lab.v3d.vpm.errors import Errors

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.checks.hints import Lint
    from vc4lab.v3d.cle.binning import BinningStage
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.draws.frame import FrameRenderer
    from vc4lab.v3d.event_listeners import V3DListeners
    from vc4lab.v3d.progress import Progress
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.qpu import ProgramRequest
    from vc4lab.v3d.user_programs.scheduler import UserPrograms


class RegisterOwner(Protocol):
    """A V3D, as its registers with behaviour see it."""

    values: dict[str, int]
    unknowns: Unknowns
    listeners: V3DListeners
    lint: Lint
    threads: tuple[ListThread, ListThread]
    binning: BinningStage
    frames: FrameRenderer
    programs: UserPrograms

    @property
    def progress(self) -> Progress | None:
        """When the guest sees what is done; None: at once."""

    def seems_busy(self, thread: int) -> bool:
        """Whether the guest still sees a list thread work."""

    def finish(self, thread: int, what: str) -> None:
        """Let guest time go on until a list thread is through that is reset (`what`)."""

    def start(self, thread: int) -> None:
        """Begin a list thread's list."""

    def run(self) -> None:
        """Go on with the lists."""


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


class BinnerDebug(Layout):
    """BXCF: switches of the binner."""

    CLIPDISA = Bits(1, 1, doc="clipping disabled")
    FWDDISA = Bits(0, 0, doc="state cache forwarding disabled")


_BUSY = ThreadControl.make(CTRUN=1, CTMODE=0).value
"""CTnCS of a thread whose time is not over."""


@lru_cache(maxsize=8)  # programs poll it
def _pipelines(binning: bool, rendering: bool, out_of_memory: bool) -> int:
    return PipelineStatus.make(
        BMOOM=out_of_memory, BMACTIVE=binning, BMBUSY=binning and out_of_memory, RMACTIVE=rendering
    ).value


class ListRegisters(Block):
    """Registers of lists. In a row of two, the first one is that of the binning thread."""

    CTCS = Register(0x100, count=2, names="CT{}CS", fields=ThreadControl, doc="control and status")
    CTEA = Register(0x108, count=2, names="CT{}EA", doc="end address")
    CTCA = Register(0x110, count=2, names="CT{}CA", doc="current address")
    CTRA = Register(0x118, count=2, names="CT0{}RA0", access="r", doc="return address")
    CTLC = Register(0x120, count=2, names="CT{}LC", fields=ListCounters, doc="list counters")
    CT0PC = Register(0x128, access="r", doc="binning primitives remaining")
    CT1PC = Register(0x12C, access="r", doc="rendering primitives remaining")
    PCS = Register(0x130, access="r", fields=PipelineStatus, doc="pipeline status")
    BPCA = Register(0x300, access="r", doc="binning pool current address")
    BPCS = Register(0x304, access="r", doc="binning pool bytes left")
    BPOA = Register(0x308, doc="overspill block address")
    BPOS = Register(0x30C, doc="overspill block size")
    BXCF = Register(0x310, fields=BinnerDebug, doc="binner debug")

    def __init__(self, v3d: RegisterOwner) -> None:
        super().__init__(v3d.values)
        self._v3d = v3d
        self._binning = v3d.binning
        self._threads = v3d.threads
        self.on_write_CTCA = tuple(thread.set_current for thread in v3d.threads)

    # -- list threads ------------------------------------------------------------------------

    def on_read_CTCS(self, number: int) -> int:
        if self._v3d.seems_busy(number):
            return _BUSY
        shown = number if self._v3d.unknowns["ctsema"] == "sent" else 1 - number
        return self._threads[number].status(self._threads[shown].increments)

    def on_write_CTCS(self, number: int, value: int) -> None:
        v3d = self._v3d
        if ThreadControl(value).CTRSTA:
            v3d.finish(number, "reset")
            if v3d.unknowns["state_after_reset"] == "reset":
                (v3d.frames if number else v3d.binning.binner).reset_state()
        if self._threads[number].write_control(value):
            v3d.start(number)

    def on_read_CTEA(self, number: int) -> int:
        return self._threads[number].end

    def on_write_CTEA(self, number: int, value: int) -> None:
        if self._threads[number].set_end(value):
            self._v3d.start(number)

    def on_read_CTCA(self, number: int) -> int:
        thread = self._threads[number]
        return thread.first if self._v3d.seems_busy(number) else thread.current

    def on_read_CTRA(self, number: int) -> int:
        stack = self._threads[number].stack
        return stack[-1] if stack else 0

    def on_read_CTLC(self, number: int) -> int:
        return self._threads[number].list_counters()

    def on_write_CTLC(self, number: int, value: int) -> None:
        self._threads[number].clear_counters(value)

    def on_read_CT0PC(self) -> int:
        return self._binning.remaining

    def on_read_PCS(self) -> int:
        binning, rendering = (t.running or self._v3d.seems_busy(t.number) for t in self._threads)
        return _pipelines(binning, rendering, self._binning.out_of_memory)

    # -- binner memory -----------------------------------------------------------------------

    def on_read_BPCA(self) -> int:
        return self._binning.binner.pool_address

    def on_read_BPCS(self) -> int:
        return self._binning.binner.pool_bytes

    def on_read_BPOS(self) -> int:
        return self._binning.overspill_size

    def on_write_BPOS(self, value: int) -> None:
        self.values["BPOS"] = value
        if value:
            self._v3d.lint.addresses.uses(Use.OVERSPILL, self.values["BPOA"], 4)
            if self._v3d.progress is not None:
                self._v3d.progress.begin(0)
        self._binning.supply(self.values["BPOA"], value)
        if self._threads[0].running:
            self._v3d.run()

    def on_write_BXCF(self, value: int) -> None:
        self.values["BXCF"] = value
        self._binning.clipping_disabled = bool(BinnerDebug(value).CLIPDISA)


class ProgramRegisters(Block):
    """User programs, the VPM's shares, and ERRSTAT."""

    SQRSV = Register(0x410, count=2, names="SQRSV{}", doc="reserve QPUs 0-7, 8-15")
    SQCNTL = Register(0x418, doc="QPU scheduler control")
    SQCSTAT = Register(0x41C, access="r", doc="undocumented scheduler state")
    SRQPC = Register(0x430, access="w", doc="user program request: code address")
    SRQUA = Register(0x434, doc="user program request: uniforms address")
    SRQUL = Register(0x438, doc="user program request: uniforms length")
    SRQCS = Register(0x43C, fields=RequestQueue, doc="user program queue")
    VPACNTL = Register(0x500, doc="VPM allocator control")
    VPMBASE = Register(0x504, doc="VPM rows reserved for user programs")
    ERRSTAT = Register(0xF20, access="r", fields=Errors, doc="errors")
    REQUESTS = frozenset((SRQPC.offset, SRQUA.offset, SRQUL.offset))
    """A write to these lets programs that wait in the queue wait on, for those to come."""

    def __init__(self, v3d: RegisterOwner) -> None:
        super().__init__(v3d.values)
        self._v3d = v3d
        self._programs = v3d.programs
        v3d.programs.on_start = self._started

    def _started(self, request: ProgramRequest, program: Program) -> None:
        uses = self._v3d.lint.addresses.uses
        uses(Use.CODE, request.code, 8 * len(program.words))
        count = request.length if request.limited else len(program.uniform_sites)
        if count and request.uniforms:
            uses(Use.UNIFORMS, request.uniforms, 4 * count)

    @property
    def _lists_run(self) -> bool:
        return any(thread.running for thread in self._v3d.threads)

    def on_write_SRQPC(self, value: int) -> None:
        self._programs.request(value, self.values["SRQUA"], self.values["SRQUL"])

    def on_read_SRQCS(self) -> int:
        self._programs.look()
        return self._programs.status()

    def on_write_SRQCS(self, value: int) -> None:
        self._programs.control(value)

    def on_read_ERRSTAT(self) -> int:
        v3d = self._v3d
        idle = not self._lists_run and not self._programs.busy
        return (
            self.values["ERRSTAT"]
            | self._programs.errors
            | v3d.binning.coordinates.errors
            | v3d.frames.preparer.vertices.errors
            | Errors.make(
                VCMBE=v3d.binning.index_error,
                VCMRE=v3d.frames.index_error,
                VCDI=idle and v3d.unknowns["errstat_vcdi"] == "idle",
            ).value
        )

    def on_write_SQRSV(self, half: int, value: int) -> None:
        self.values[f"SQRSV{half}"] = value
        self._programs.reserve(8 * half, value)

    def on_write_VPMBASE(self, value: int) -> None:
        if self._programs.busy or self._lists_run:
            self.values["ERRSTAT"] |= Errors.VPAEABB.mask
        self.values["VPMBASE"] = value & 0x1F
        self._programs.reserved_rows = 4 * (value & 0x1F)


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
    """Registers of what the V3D is, what it interrupts for, what it has finished; its caches."""

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


__all__ = [
    "BLOCKS", "BY_NAME", "BY_OFFSET", "QPUS", "REGISTERS", "BinnerDebug", "Errors", "Interrupts",
    "ListCounters", "PipelineStatus", "Register", "RequestQueue", "ThreadControl",
]  # fmt: skip

BLOCKS = (StatusRegisters, ListRegisters, ProgramRegisters, PerformanceCounters, DebugRegisters)
_ROWS = (register for block in BLOCKS for register in block.registers.values())

REGISTERS: tuple[Register, ...] = tuple(
    row.single(index)
    for row in sorted(_ROWS, key=lambda register: register.offset)
    for index in range(row.count)
)
"""Each register, by offset; those of a row together."""

BY_OFFSET: dict[int, Register] = {register.offset: register for register in REGISTERS}
BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}
