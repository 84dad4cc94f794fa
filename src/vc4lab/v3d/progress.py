"""When the guest sees what the V3D has done: work is done at once, and shows when its time is over.

Lists run inside the write that starts them, programs soon after; their bytes are in memory from
then on. What registers and interrupts show of it (BFC, RFC, CTnCS, SRQCS ...) follows at the moment
that `job_time` gives, or a timing model (`V3D.list_clocks`). Each list thread, each QPU and the
VPM's DMA has a moment until which it is taken; a job begins when what it needs is free. Where there
is no guest time (the virtual DRM device, tests) nothing of this exists, and everything shows at
once.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Protocol

from vc4lab.v3d.job_time import QPUS, JobCounts, dma_clocks, job_clocks

FLUSH, FRAME, BINNING_END, RENDERING_END, PROGRAM, INTERRUPT = range(6)
"""Kinds of what becomes visible; `INTERRUPT` has the QPUs' bits as detail."""

ENDS = (BINNING_END, RENDERING_END)

_KIND_BITS, _DETAIL_BITS = 4, 12
_LOW_BITS = _KIND_BITS + _DETAIL_BITS
NANOSECONDS = 1_000_000_000
LONGEST_JOB = 3600 * NANOSECONDS
"""A job does not take longer than this, however slow the guest makes the clock."""
LOWEST_CLOCK = 1_000_000


class GuestTime(Protocol):
    """The source of guest time (nanoseconds)."""

    def now(self) -> int:
        """The present moment."""

    def wake(self, moment: int | None) -> None:
        """Call `Progress.show_due` at this moment, in place of an earlier request; None: never."""

    def skip(self, nanoseconds: int) -> None:
        """Let time go on: the CPU's access waits."""

    def clock(self) -> int:
        """Hertz of the V3D now."""


class Progress:
    """Keeps what is done and not yet visible.

    Attributes
    ----------
    show
        Called with a kind and its detail when something becomes visible.
    pending
        Moment, detail and kind of each, packed into a number, in order of time.
    threads, qpus, dma
        Until when they are taken.
    """

    def __init__(self, time: GuestTime) -> None:
        self.time = time
        self.show: Callable[[int, int], None] = lambda _kind, _detail: None
        self.pending: deque[int] = deque()
        self.threads = [0, 0]
        self.qpus = [0] * QPUS
        self.dma = 0
        self._signals = [0, 0]

    def clear(self) -> None:
        """The V3D has lost its power."""
        self.pending.clear()
        self.time.wake(None)
        self.threads[:] = self._signals[:] = [0, 0]
        self.qpus[:] = [0] * QPUS
        self.dma = 0

    # -- list threads ------------------------------------------------------------------------

    def begin(self, thread: int) -> None:
        """A list thread starts or goes on now."""
        self.threads[thread] = max(self.threads[thread], self.time.now())

    def spend(self, thread: int, counts: JobCounts) -> None:
        """A list thread has done so much."""
        self.spend_clocks(thread, job_clocks(counts))

    def spend_clocks(self, thread: int, clocks: int) -> None:
        """A list thread has taken so long."""
        self.threads[thread] += self._nanoseconds(clocks)

    def signal(self, thread: int) -> None:
        """A thread increments its semaphore."""
        self._signals[thread] = self.threads[thread]

    def wait(self, thread: int) -> None:
        """A thread takes an increment of the other one."""
        self.threads[thread] = max(self.threads[thread], self._signals[1 - thread])

    def ends(self, thread: int, kind: int) -> None:
        """This is visible when the thread has done what it has done so far."""
        self._add(self.threads[thread], kind)

    def is_busy(self, thread: int) -> bool:
        """Whether a list thread that is done still runs in the guest's view."""
        return self._last(ENDS[thread]) is not None

    def finish(self, thread: int) -> None:
        """Let time go on until a thread is through: it is started again without waiting for it."""
        self._skip_to(self._last(ENDS[thread]))

    # -- user programs -----------------------------------------------------------------------

    @property
    def programs(self) -> int:
        """User programs that have ended and do not show it yet."""
        return sum(item & ((1 << _KIND_BITS) - 1) == PROGRAM for item in self.pending)

    def program(self, requested: int, counts: JobCounts) -> int:
        """A user program requested at a moment has ended; the moment its end shows."""
        number = min(range(QPUS), key=self.qpus.__getitem__)
        start = max(requested, self.qpus[number])
        end = start + self._nanoseconds(job_clocks(counts))
        transfers = dma_clocks(counts)
        if transfers:
            self.dma = max(self.dma, start) + self._nanoseconds(transfers)
            end = max(end, self.dma)
        self.qpus[number] = end
        self._add(end, PROGRAM)
        return end

    def interrupt(self, moment: int, qpus: int) -> None:
        """User programs interrupt the host; a bit for each QPU."""
        self._add(moment, INTERRUPT, qpus)

    def finish_programs(self) -> None:
        """Let time go on until all user programs are through."""
        self._skip_to(self._last(PROGRAM))

    def make_room(self, most: int) -> None:
        """Let time go on until at most so many programs have not shown their end."""
        waiting = [item for item in self.pending if item & ((1 << _KIND_BITS) - 1) == PROGRAM]
        if len(waiting) > most:
            self._skip_to(waiting[len(waiting) - most - 1] >> _LOW_BITS)

    # -- time --------------------------------------------------------------------------------

    def show_due(self) -> None:
        """Show what is over by now."""
        now = self.time.now()
        while self.pending and self.pending[0] >> _LOW_BITS <= now:
            item = self.pending.popleft()
            kind = item & ((1 << _KIND_BITS) - 1)
            self.show(kind, item >> _KIND_BITS & ((1 << _DETAIL_BITS) - 1))
        self._rearm()

    def restored(self) -> None:
        """Everything was read from a file, which is not trusted."""
        latest = self.time.now() + LONGEST_JOB
        low = (1 << _LOW_BITS) - 1
        moments = [(min(max(item >> _LOW_BITS, 0), latest), item & low) for item in self.pending]
        self.pending = deque(moment << _LOW_BITS | rest for moment, rest in sorted(moments))
        for taken in (self.threads, self._signals, self.qpus):
            taken[:] = [min(moment, latest) for moment in taken]
        self.dma = min(self.dma, latest)
        self._rearm()

    def _rearm(self) -> None:
        """Ask to be woken for what comes next."""
        self.time.wake(self.pending[0] >> _LOW_BITS if self.pending else None)

    def _add(self, moment: int, kind: int, detail: int = 0) -> None:
        item = (moment << _DETAIL_BITS | detail) << _KIND_BITS | kind
        insort(self.pending, item)
        if self.pending[0] == item:
            self._rearm()

    def _last(self, kind: int) -> int | None:
        """The last moment at which something of a kind shows."""
        for item in reversed(self.pending):
            if item & ((1 << _KIND_BITS) - 1) == kind:
                return item >> _LOW_BITS
        return None

    def _skip_to(self, moment: int | None) -> None:
        if moment is not None:
            self.time.skip(max(moment - self.time.now(), 0))
            self.show_due()

    def _nanoseconds(self, clocks: int) -> int:
        return min(clocks * NANOSECONDS // max(self.time.clock(), LOWEST_CLOCK), LONGEST_JOB)
