"""The V3D as the ARM sees it, at P + 0xC00000: poison until it has power and clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from vc4lab.memory.host import Circles, give_back
from vc4lab.soc.address.block import Block
from vc4lab.soc.cores.engine.early_reads import EarlyReads, spans_of
from vc4lab.soc.devices.interrupts import V3D as V3D_LINE
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.devices.v3d_time import V3DTime

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.registers import Register
    from vc4lab.soc.clock import Clock
    from vc4lab.v3d.event_listeners import V3DListeners
    from vc4lab.v3d.events import FrameStored, ProgramStored
    from vc4lab.v3d.state.power_on import PowerOn

POISON = 0xDEADBEEF
BUS_ADDRESS = 0x7EC00000
L2CACTL, SLCACTL = 0x020, 0x024
SRQPC, SRQUA, SRQUL, SRQCS = 0x430, 0x434, 0x438, 0x43C
STARTS = frozenset((0x100, 0x104, 0x108, 0x10C, 0x30C, SRQPC))
"""Registers whose writes may let the V3D work: CTnCS, CTnEA, BPOS, SRQPC."""
RESET_QUEUE = 1 << 7 | 1 << 8 | 1 << 16
V3DFactory = Callable[[], Any]


class V3DBridge(Block):
    """Passes accesses on to the V3D once `switch` was called for one of its supplies.

    Parameters
    ----------
    factory
        Makes the V3D when it is first switched on, so that programs without graphics start fast.
    on_frame
        Called when the V3D has completed a rendered frame.
    clock, hertz
        Guest time, and how fast the V3D runs.
    """

    NAME = "v3d"
    OFFSET = 0xC00000
    TRACED = "v3d"

    def __init__(
        self,
        factory: V3DFactory,
        interrupts: InterruptController,
        reporter: Reporter,
        on_frame: Callable[[], None],
        clock: Clock,
        hertz: Callable[[], int],
    ) -> None:
        super().__init__()
        self.time = V3DTime(clock, hertz, self._show)
        self._factory = factory
        self._interrupts = interrupts
        self._reporter = reporter
        self._on_frame = on_frame
        self._supplies: set[str] = set()
        self.v3d: Any = None
        self._first: PowerOn | None = None
        """The state in which the V3D began."""
        self._circles = Circles()
        self.early: EarlyReads | None = None
        """Gets what frames write before their time is over."""
        self.foreign: Callable[[], AbstractContextManager[None]] | None = None
        """Entered while the V3D works, by a model of the ARM's caches."""
        self.writes = 0
        self.lost = ""
        """When power was taken away again, in words."""
        self._told_unpowered: tuple[str, int] | None = None

    @property
    def powered(self) -> bool:
        """Whether the registers answer."""
        return bool(self._supplies)

    def switch(self, supply: str, on: bool) -> None:
        """One of the ways to power the V3D: "enable QPU", "domain", "clock".

        Taking the power domain away resets the V3D (`v3d/state/power_on.py`).
        """
        if on:
            self._supplies.add(supply)
            self.lost = ""
            if self.v3d is None:
                self._make()
        else:
            self._supplies.discard(supply)
            if supply == "domain":
                if self.v3d is not None:
                    self._reset()
                self.time.progress.clear()
                self._supplies.clear()
                self.lost = "after its power domain was switched off"
                self._interrupts.set_line(V3D_LINE, False)

    def _make(self) -> None:
        from vc4lab.v3d.state.power_on import PowerOn

        v3d = self.v3d = self._factory()
        listeners: V3DListeners = v3d.listeners
        listeners.interrupt_line.subscribe(self._update_line)
        listeners.frame_done.subscribe(lambda _event: self._on_frame())
        if self.early is not None:
            listeners.frame_stored.subscribe(partial(self._stored, "the V3D"))
            listeners.program_stored.subscribe(partial(self._stored, "a user program"))
        v3d.progress = self.time.progress
        self._first = PowerOn(v3d) if hasattr(v3d, "threads") else None

    def _reset(self) -> None:
        """The V3D begins anew. What it has compiled serves again, if it can."""
        if self._first is not None and self._first.can_reset(self.v3d):
            self._first.reset(self.v3d)
            give_back()
        else:
            self.v3d = None
            self._circles.let_go()

    def read_other(self, offset: int) -> int:
        if not self._supplies:
            self._report_unpowered(offset, "read")
            return POISON
        if self.foreign is not None and self._programs_wait:
            self.settle()
        value: int = self.v3d.read(offset)
        return value

    def is_steady(self, offset: int) -> bool:
        """Work is done inside of writes and becomes visible by events: only then it changes."""
        return self.powered

    def write_other(self, offset: int, value: int) -> None:
        if not self._supplies:
            self._report_unpowered(offset, f"written (0x{value:08x})")
            return
        v3d = self.v3d
        self.writes += 1
        if self.foreign is not None and offset in STARTS:
            with self.foreign():
                v3d.write(offset, value)
        else:
            v3d.write(offset, value)
        self._update_line()

    def _update_line(self, *_details: object) -> None:
        self._interrupts.set_line(V3D_LINE, bool(self.v3d.interrupt_pending))

    def _report_unpowered(self, offset: int | None, what: str) -> None:
        if self._told_unpowered == (self.lost, len(self._supplies)):
            return
        self._told_unpowered = self.lost, len(self._supplies)
        name = "the V3D" if offset is None else self.describe(offset)
        when = self.lost or "before the V3D has power and clock"
        self._reporter.report(
            "SOC-030",
            f"{name} is {what} {when}; reads give 0x{POISON:08X}, writes are lost",
            address=None if offset is None else BUS_ADDRESS + offset,
            block="v3d",
        )

    @property
    def _programs_wait(self) -> bool:
        programs = getattr(self.v3d, "programs", None)
        return programs is not None and programs.waits_to_run

    @property
    def is_busy(self) -> bool:
        """Whether something is to become visible yet."""
        return bool(self.time.progress.pending)

    def _stored(self, who: str, event: FrameStored | ProgramStored) -> None:
        """Note that a job's results are in memory, while its time is not over."""
        if self.early is not None:
            self.early.begin(who, spans_of(event.ranges), self.time.now(), event.moment)

    def look_at_early_reads(self) -> None:
        """Report what the program has loaded from memory that is still being written."""
        if self.early is not None:
            self.early.look(self.time.now())

    def _show(self) -> None:
        """Something has become visible."""
        self.look_at_early_reads()
        if self.v3d is not None:
            self._update_line()
            self.v3d.listeners.raise_failure()

    @property
    def works(self) -> bool:
        """Whether lists or user programs that were started are not through."""
        v3d = self.v3d
        if v3d is None or not hasattr(v3d, "threads"):
            return False
        return v3d.programs.busy or any(thread.running for thread in v3d.threads)

    def explain(self, offset: int, value: int) -> str | None:
        """Why a register that is read again and again stays as it is, in words."""
        if self.v3d is None or not hasattr(self.v3d, "threads") or not self._supplies:
            return None
        from vc4lab.v3d.waits import describe_wait

        return describe_wait(self.v3d, offset, value)

    @property
    def waiting(self) -> str | None:
        """Who in the V3D waits for what, None if none does."""
        if self.v3d is None:
            return None
        waiting: str | None = self.v3d.waiting
        return waiting

    def register_at(self, offset: int) -> tuple[str, Register] | None:
        if not 0 <= offset < self.SIZE:
            return None
        from vc4lab.v3d.registers import BY_OFFSET

        register = BY_OFFSET.get(offset)
        return (register.name, register) if register else None

    def run_user_programs(self, programs: list[tuple[int, int]], flush: bool) -> bool:
        """The firmware's "execute QPU": run (uniforms, code) pairs to their end."""
        if self.v3d is None or not self._supplies:
            self._report_unpowered(None, "used (execute QPU)")
            return False
        v3d = self.v3d
        if flush:
            v3d.write(L2CACTL, 4)
            v3d.write(SLCACTL, 0x0F0F0F0F)
        v3d.write(SRQCS, RESET_QUEUE)
        for uniforms, code in programs:
            v3d.write(SRQUA, uniforms)
            v3d.write(SRQPC, code)
        self.settle()
        self.time.progress.finish_programs()
        completed: int = v3d.read(SRQCS) >> 16 & 0xFF
        if completed != len(programs):
            v3d.read(SRQCS)  # on the second read it reports what waits for what
        self._update_line()
        return completed == len(programs)

    def settle(self) -> None:
        """Run queued user programs; called between two slices of the CPU."""
        if self.v3d is None or not self._supplies:
            return
        if self.foreign is not None and self._programs_wait:
            with self.foreign():
                self.v3d.settle()
        else:
            self.v3d.settle()
