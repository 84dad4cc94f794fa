"""The registers of the list threads (CTn…), of the pipelines' state and of the binner's memory.

Source: hardware reference 2.5, 2.6.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from vc4lab.bits import Bits, Layout
from vc4lab.registers import Block, Register
from vc4lab.v3d.cle.thread import ThreadControl
from vc4lab.v3d.memory_uses import Use

if TYPE_CHECKING:
    from vc4lab.v3d.checks.hints import Lint
    from vc4lab.v3d.cle.binning import BinningStage
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.draws.frame import FrameRenderer
    from vc4lab.v3d.events import V3DListeners
    from vc4lab.v3d.progress import Progress
    from vc4lab.v3d.unknowns import Unknowns
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
    """Of a row of two, the first register is that of the binning thread."""

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
