"""The bus: finds the register behind an address, and lets time go on for programs that poll.

A read costs one dictionary look-up. A program that reads the same few registers over and over
without writing anything waits for something: then guest time skips ahead, by how much is said
by the register's `Poll`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.soc.block import Block, Poll, ReadHandler, WriteHandler
from vc4lab.soc.clock import Clock

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

ACCESS_NS = 50
"""Guest time of a device access, which is much slower than an instruction. The slice's end is not
moved for it, so events come late by what a slice's accesses add up to."""
PollState = tuple[set[int], int, int]
"""The registers a core polls, how often, and its patience."""
POLLS_BEFORE_SKIP = 4
"""So many equal reads in a row are patience, more are waiting."""
POLL_DISTANCE = 64
"""A loop that only polls reads again within so many instructions."""
FAR_POLL = 320
"""One that computes something from what it read may take so many; it is believed later."""
NEAR = 8
PATIENCE = POLLS_BEFORE_SKIP * NEAR
"""A near poll counts for this many far ones."""
POLLED_TOGETHER = 8
"""Registers a polling loop looks at, at most."""
TIME_STEP = 10_000
"""Nanoseconds a polled timer goes on per read."""
OWN_TIME = -2
"""In place of an offset: a core's own counter (generic timer, cycle counter)."""
SOON_STEP = 20_000
"""Nanoseconds per read of a polled status register of which no event is known."""


class Bus:
    """A window of physical address space with register blocks in it.

    Parameters
    ----------
    base
        Physical address of the window.
    name
        For messages.
    """

    def __init__(self, base: int, name: str, clock: Clock, reporter: Reporter) -> None:
        self.base = base
        self.name = name
        self.clock = clock
        self.reporter = reporter
        self.blocks: list[tuple[int, Block]] = []
        self._reads: dict[int, ReadHandler] = {}
        self._writes: dict[int, WriteHandler] = {}
        self._pages: dict[int, tuple[int, Block]] = {}
        self._kinds: dict[int, Poll] = {}
        self._last = -1
        self._seen: set[int] = set()
        self._last_count = 0
        self._events_seen = 0
        self._patience = 0
        self.accesses = 0
        self.polls = 0
        """Reads of the same few registers with no write between them, weighted by `NEAR`."""

    def attach(self, block: Block, offset: int | None = None) -> None:
        """Put a block at `offset` of the window (its own `OFFSET` if None)."""
        start = block.OFFSET if offset is None else offset
        self.blocks.append((start, block))
        for at, read in block.read_handlers().items():
            self._reads[start + at] = read
        for at, write in block.write_handlers().items():
            self._writes[start + at] = write
        for page in range(start >> 12, (start + block.SIZE - 1 >> 12) + 1):
            self._pages.setdefault(page, (start, block))

    def wrap(
        self,
        around_read: Callable[[int, ReadHandler], ReadHandler],
        around_write: Callable[[int, WriteHandler], WriteHandler],
    ) -> None:
        """Put something around the handlers of every declared register; for traces."""
        self._reads = {at: around_read(at, read) for at, read in self._reads.items()}
        self._writes = {at: around_write(at, write) for at, write in self._writes.items()}

    # -- the CPU's side ----------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """A read of `size` bytes at `offset` of the window."""
        if size != 4:
            return self._read_part(offset, size)
        self.accesses += 1
        self.clock.skipped += ACCESS_NS
        executed = self.clock.counter.count
        distance = executed - self._last_count
        close = distance < FAR_POLL
        self._last_count = executed
        seen = self._seen
        if close and offset in seen:
            self._last = offset
            self.polls += NEAR if distance < POLL_DISTANCE else 1
            if self.polls > PATIENCE:
                self._wait(offset)
        else:
            if not close or len(seen) == POLLED_TOGETHER:
                seen.clear()
            seen.add(offset)
            self.polls = 0
        handler = self._reads.get(offset)
        if handler is not None:
            return handler()
        return self._read_other(offset)

    def write(self, offset: int, size: int, value: int) -> None:
        """A write of `size` bytes at `offset` of the window; a part of a word zeroes the rest."""
        self.accesses += 1
        self.clock.skipped += ACCESS_NS
        self._seen.clear()
        self.polls = 0
        if size != 4:
            if size == 8:
                self.write(offset, 4, value & 0xFFFFFFFF)
                self.write(offset + 4, 4, value >> 32)
                return
            value = value << 8 * (offset & 3) & 0xFFFFFFFF
            offset &= ~3
        handler = self._writes.get(offset)
        if handler is not None:
            handler(value)
            return
        place = self._pages.get(offset >> 12)
        if place is not None:
            place[1].write_other(offset - place[0], value)
        else:
            self._nobody("write to", offset)

    def _read_part(self, offset: int, size: int) -> int:
        if size == 8:
            return self.read(offset, 4) | self.read(offset + 4, 4) << 32
        word = self.read(offset & ~3, 4) >> 8 * (offset & 3)
        return word & ((1 << 8 * size) - 1)

    def _read_other(self, offset: int) -> int:
        place = self._pages.get(offset >> 12)
        if place is not None:
            return place[1].read_other(offset - place[0])
        self._nobody("read of", offset)
        return 0

    def _nobody(self, what: str, offset: int) -> None:
        self.reporter.report(
            "SOC-001",
            f"{what} peripheral space where nothing is built yet "
            f"({self.name} + 0x{offset & ~0xFFF:06x})",
            address=self.base + (offset & ~0xFFF),
            block="bus",
        )

    def peek(self, offset: int) -> int:
        """The register's value, without side effects of polling (a read may still take data)."""
        if offset == OWN_TIME:
            return 0
        handler = self._reads.get(offset)
        return handler() if handler is not None else self._read_other(offset)

    def poke(self, offset: int, value: int) -> None:
        """A write by somebody else than the CPU: the DMA."""
        handler = self._writes.get(offset)
        if handler is not None:
            handler(value)
            return
        place = self._pages.get(offset >> 12)
        if place is not None:
            place[1].write_other(offset - place[0], value)
        else:
            self._nobody("write to", offset)

    def time_polled(self) -> None:
        """A core has read a counter of its own: the same as a read of a timer register."""
        executed = self.clock.counter.count
        distance = executed - self._last_count
        close = distance < FAR_POLL
        self._last_count = executed
        self.clock.skipped += ACCESS_NS
        if not close or OWN_TIME not in self._seen:
            if not close:
                self._seen.clear()
            self._seen.add(OWN_TIME)
            self.polls = 0
            return
        self._last = OWN_TIME
        self.polls += NEAR if distance < POLL_DISTANCE else 1
        if self.polls > PATIENCE:
            self._wait(OWN_TIME)

    def exchange_polls(self, state: PollState | None) -> PollState:
        """Another core has its turn: take up what it polls (None: nothing), give back the last."""
        old = self._seen, self.polls, self._patience
        self._seen, self.polls, self._patience = state or (set(), 0, POLLS_BEFORE_SKIP)
        self._last_count = self.clock.counter.count
        return old

    # -- waiting -----------------------------------------------------------------------------------

    def _wait(self, offset: int) -> None:
        clock = self.clock
        if clock.events_run != self._events_seen:
            self._events_seen = clock.events_run
            self._patience = POLLS_BEFORE_SKIP
        if self._patience:
            self._patience -= 1
            return
        poll = self._poll_kind(offset)
        if poll is Poll.TIME:
            clock.skip_to_event(TIME_STEP)
        elif poll is Poll.EVENT:
            clock.skip_to_event()
        else:
            clock.skip_to_event(SOON_STEP)

    def _poll_kind(self, offset: int) -> Poll:
        kind = self._kinds.get(offset)
        if kind is None:
            found = self.find(offset)
            kind = self._kinds[offset] = found[1] if found else Poll.SOON
        return kind

    @property
    def polled(self) -> tuple[str, int, Poll] | None:
        """Name, offset and kind of the register the program is polling, None if it is not."""
        recent = self.clock.counter.count - self._last_count < 2 * FAR_POLL
        if self.polls <= PATIENCE or not recent:
            return None
        found = self.find(self._last)
        name, kind = found if found else (f"0x{self.base + self._last:08x}", Poll.SOON)
        return name, self._last, kind

    def find(self, offset: int) -> tuple[str, Poll] | None:
        """ "block.REGISTER" and poll kind of the register at `offset`."""
        if offset == OWN_TIME:
            return "its own counter", Poll.TIME
        for start, block in self.blocks:
            found = block.register_at(offset - start)
            if found is not None:
                return f"{block.NAME}.{found[0]}", found[1].poll
        place = self._pages.get(offset >> 12)
        if place is not None:
            return place[1].describe(offset - place[0]), Poll.SOON
        return None
