"""One of the two control-list threads: its registers, its stack and why it is stopped.

Source: hardware reference 2.5 (CLE thread registers) and 3.2 (system records).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.bits import Bits, Layout

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

#: A thread's semaphore is a three-bit counter.
SEMAPHORE_MAX = 7

SEMAPHORE_STALL = "record 8 (wait on semaphore): an increment by the other list thread"


class ThreadControl(Layout):
    """CTnCS: control and status of a list thread."""

    CTRSTA = Bits(15, 15, doc="reset the thread")
    CTSEMA = Bits(14, 12, doc="semaphore count")
    CTRTSD = Bits(9, 8, doc="sub-list nesting depth")
    CTRUN = Bits(5, 5, doc="running")
    CTSUBS = Bits(4, 4, doc="stopped at halt, or stalled while running")
    CTERR = Bits(3, 3, doc="stopped by an error")
    CTMODE = Bits(0, 0, doc="prefixing: no tile list started yet")


@lru_cache(maxsize=64)  # programs poll it
def _control(semaphore: int, depth: int, running: bool, substate: bool, error: bool, prefixing: bool) -> int:
    return ThreadControl.make(
        CTSEMA=semaphore, CTRTSD=depth, CTRUN=running, CTSUBS=substate, CTERR=error, CTMODE=prefixing
    ).value


@dataclass
class ListThread:
    """State of list thread 0 (binning) or 1 (rendering).

    ``stalled`` holds the reason in words while the thread waits for something; ``increments``
    counts the semaphore increments this thread made that the other has not consumed.
    """

    number: int
    current: int = 0
    end: int = 0
    running: bool = False
    halted: bool = False
    error: bool = False
    stalled: str | None = None
    prefixing: bool = True
    increments: int = 0
    increment_armed: bool = False
    flushes: int = 0
    returns: int = 0
    primitives: int = 0
    first: int = 0
    """The beginning of the list that was started last."""
    started: int = 0
    """How often a list was started."""
    signals: bool = False
    """Whether the list started last had a record 7."""
    closed: bool = False
    """Whether the list started last has flushed (or ended a frame)."""
    stack: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The thread's name in messages."""
        return "rendering" if self.number else "binning"

    def status(self, semaphore: int) -> int:
        """The value of CTnCS; which count CTSEMA shows is for the caller to say."""
        substate = self.stalled is not None if self.running else self.halted
        prefixing = self.number == 0 and self.prefixing
        depth = len(self.stack)
        return _control(semaphore, depth, self.running, substate, self.error, prefixing)

    def list_counters(self) -> int:
        """The value of CTnLC."""
        return (self.flushes & 0xFFFF) << 16 | self.returns & 0xFFFF

    def clear_counters(self, value: int) -> None:
        """A write of CTnLC: bit 16 clears the flush count, bit 0 the return count."""
        if value & 1 << 16:
            self.flushes = 0
        if value & 1:
            self.returns = 0

    def reset(self) -> None:
        """CTRSTA: stop, and clear semaphore, nesting and errors; the addresses stay."""
        self.running = self.halted = self.error = self.increment_armed = False
        self.stalled = None
        self.increments = 0
        self.prefixing = True
        self.stack.clear()

    def set_current(self, address: int) -> None:
        """A write of CTnCA: only a stopped thread takes it; it is then stopped at end."""
        if not self.running:
            self.current = address
            self.halted = self.error = False
            self.stack.clear()

    def set_end(self, address: int) -> bool:
        """A write of CTnEA; returns True when the thread starts."""
        self.end = address
        if self.running or self.halted or self.error:
            return False
        current = self.current
        if current == address:
            return False
        self.running = True
        self.started += 1
        self.first = current
        self.signals = self.closed = False
        return True

    def write_control(self, value: int) -> bool:
        """A write of CTnCS; returns True when the thread starts."""
        written = ThreadControl(value)
        if written.CTRSTA:
            self.reset()
            return False
        if written.CTRUN and self.running:
            self.running, self.halted, self.stalled = False, True, None
        elif written.CTSUBS and not self.running and self.halted:
            self.halted = False
            self.running = self.current != self.end
            return self.running
        return False

    def stop_with_error(self) -> None:
        """An illegal record: sets CTERR and stops the thread."""
        self.running, self.error, self.stalled = False, True, None

    @property
    def in_words(self) -> str:
        """Say what the thread does or did."""
        name = f"the {self.name} list"
        if not self.started:
            return f"no {self.name} list was started (CT{self.number}CA, CT{self.number}EA)"
        if self.running:
            return f"{name} waits for {self.stalled}" if self.stalled else f"{name} runs"
        how = "stopped with an error" if self.error else "is halted"
        if not self.error and not self.halted:
            how = "has ended"
        return f"{name} {how} at 0x{self.current:08x}"


def waits_forever(thread: ListThread, other: ListThread) -> bool:
    """Whether a thread is stalled at record 8 and the other has ended without a record 7."""
    stalled = thread.running and thread.stalled == SEMAPHORE_STALL
    through = other.closed and not other.running
    return stalled and through and not other.signals and not other.increments


def report_endless_waits(threads: Sequence[ListThread], reporter: Reporter) -> None:
    """Reports threads that wait for a record 7 that never comes."""
    for thread in threads:
        other = threads[1 - thread.number]
        if waits_forever(thread, other):
            reporter.report(
                "CLE-022",
                f"the {thread.name} thread waits for a semaphore (record 8), but the "
                f"{other.name} list has ended without a record 7",
                address=thread.current - 1,
            )


def waiting_reasons(threads: Sequence[ListThread]) -> list[str]:
    """Say what the threads wait for and which stopped with an error.

    A halt is no wait, so it is only named where the other thread may wait because of it.
    """
    stalled = [
        f"the {thread.name} thread (CT{thread.number}CA = 0x{thread.current:08x}) waits for {thread.stalled}"
        for thread in threads
        if thread.running and thread.stalled
    ]
    errors = [
        f"the {thread.name} thread stopped with an error at 0x{thread.current:08x}"
        for thread in threads
        if thread.error
    ]
    halts = [
        f"the {thread.name} thread is halted (CT{thread.number}CA = 0x{thread.current:08x})"
        for thread in threads
        if thread.halted
    ]
    reasons = stalled + errors
    return reasons + halts if reasons else []
