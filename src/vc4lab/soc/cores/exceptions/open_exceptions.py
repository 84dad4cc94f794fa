"""Exceptions from which a core has not come back.

Where a handler is missing, the first exception is the one to be mended, but what ends the program
comes after it: something executes at the vector, and faults in turn. The engine does not report
exception returns, so that the core's state has to say whether a handler still runs.
"""

from __future__ import annotations

from vc4lab.soc.cores.exceptions.exceptions import IRQ_MASKED, MODE_MASK
from vc4lab.soc.cores.exceptions.outcome import ExceptionCounts, Taken
from vc4lab.soc.native import SliceCounter

NEAR = 10_000
"""Instructions within which two exceptions belong together where the state does not say so: from
the vectors of AArch32 to a kernel at 0x8000 there are 8,192."""
VECTOR_TABLE = 0x800
"""Bytes of AArch64's table; that of AArch32 is shorter."""


NO_MODES = 0


class OpenExceptions:
    """The exceptions of a core whose handlers run, as far as can be known.

    A handler runs while the core is in a mode that was entered with one of them. Where the mode
    stays the same (HYP mode, EL2, svc), it runs while interrupts are masked, if they were not
    before; and where that says nothing either, for `NEAR` instructions.
    """

    def __init__(self, counts: ExceptionCounts, counter: SliceCounter) -> None:
        self._counts = counts
        self._counter = counter
        self._first: Taken | None = None
        self._modes = NO_MODES
        """A bit for each mode."""
        self._taken = 0
        self._at = 0

    def resume(self, count: int) -> None:
        """The core has its turn again; others have executed instructions since."""
        self._at = count

    @property
    def members(self) -> tuple[int, ...]:
        """For native code: whether there is one, its status, modes, number, count."""
        first = self._first
        known, status = (0, 0) if first is None else (1, first.status)
        return known, status, self._modes, self._taken, self._at

    def follow(self, modes: int, taken: int, at: int, first: Taken | None) -> None:
        """Native code has noted interrupts: `first` is one of them, None if it is the old one."""
        self._modes, self._taken, self._at = modes, taken, at
        if first is not None:
            self._first = first

    def note(self, taken: Taken, status: int, number: int) -> Taken | None:
        """An exception is taken, the `number`th; `status` is CPSR or PSTATE in its handler.

        Gives the first exception whose handler runs, None if this is it.
        """
        first, before = self._first, taken.status
        if first is None or number != self._taken + 1:
            runs = False
        elif self._modes:
            runs = bool(self._modes >> (before & MODE_MASK) & 1)
        elif not first.status & IRQ_MASKED:
            runs = bool(before & IRQ_MASKED)
        else:
            runs = self._counter.count - self._at <= NEAR
        self._taken = number
        if first is None or not runs:
            self._first = first = taken
            self._modes = NO_MODES
        mode = status & MODE_MASK
        if mode != first.status & MODE_MASK:
            self._modes |= 1 << mode
        if not self._modes and first.status & IRQ_MASKED:
            self._at = self._counter.count
        return first if runs else None

    def first(self, status: int, count: int) -> Taken | None:
        """The first exception whose handler runs, None if none does."""
        first = self._first
        if first is None or self._counts.taken != self._taken:
            return None  # native code has taken others since
        if self._modes:
            runs = bool(self._modes >> (status & MODE_MASK) & 1)
        elif not first.status & IRQ_MASKED:
            runs = bool(status & IRQ_MASKED)
        else:
            runs = count - self._at <= NEAR
        return first if runs else None

    def first_at(self, pc: int, status: int, count: int) -> Taken | None:
        """Give the first one of a core that has long been waiting at `pc`."""
        first = self.first(status, count)
        if first is None and self._first is not None and not self._modes:
            at_vectors = (pc ^ self._first.vector) < VECTOR_TABLE
            return self._first if at_vectors and self._counts.taken == self._taken else None
        return first
