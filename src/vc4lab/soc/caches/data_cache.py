"""The ARM's data cache towards the GPU, the DMA and the display: which reads get old bytes.

`--caches check` only reports; with `--caches stale` each gets the bytes a board could give it
in the worst case: the GPU what memory had before the CPU wrote, the CPU what it read before the GPU
wrote. Source: hardware reference 1.5; ARM ARM B2.2, D7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from vc4lab.diagnostics import Reporter
from vc4lab.memory import MEMORY_MASK, GuestMemory
from vc4lab.soc.caches.cache_lines import BEHIND_L2, DIFFERS, DIRTY, HELD, PAGE_SHIFT, STALE, Lines

DIRECT = 3
"""Bits 31:30 of the alias past the VideoCore's L2."""
CACHED_STATE = HELD | DIRTY | STALE | DIFFERS
MAX_POINTERS = 256
MAX_LINES = 1 << 19
"""More lines than this (32 MiB) are not kept: they have left any real cache long ago."""


class DataCache:
    """The data cache of all cores together, and very large.

    Parameters
    ----------
    line_size
        Bytes of a line: 32 (ARM1176) or 64.
    stale
        Whether the others really get old bytes.
    l2_between
        Whether the ARM's memory accesses go through the VideoCore's L2 (BCM2835).
    place
        Writes an address of code for messages.
    """

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        place: Callable[[int], str],
        *,
        line_size: int,
        stale: bool,
        l2_between: bool,
    ) -> None:
        self.lines = Lines(memory, line_size)
        self.memory = memory
        self.stale = stale
        self.mark = BEHIND_L2 if l2_between else 0
        self.states: list[Any] = []
        self._reporter = reporter
        self._place = place
        self._flags = memoryview(self.lines.flags.data)
        self._inside = 0
        self._told: set[tuple[object, ...]] = set()
        self._authors = ["another device"]

    # -- what the program does about it ------------------------------------------------------------

    def line(self, address: int) -> int:
        """Number of the line at a physical address."""
        return (address & MEMORY_MASK) >> self.lines.shift

    def held_among(self, lines: list[int]) -> list[int]:
        """Those of some lines that the cache has."""
        return [line for line in lines if self._flags[line] & CACHED_STATE]

    def clean(self, line: int) -> None:
        """Write a line back; the CPU's bytes win over what was written to memory meanwhile."""
        flags = self._flags[line]
        if flags & DIRTY:
            self._flags[line] = flags & ~(DIRTY | DIFFERS | STALE)

    def invalidate(self, line: int) -> None:
        """Throw a line away; what the CPU wrote is lost."""
        flags = self._flags[line]
        if not flags & CACHED_STATE:
            return
        if flags & DIRTY:
            self._report_loss(line)
        if self.stale and flags & DIFFERS:
            self.lines.ram[line] = self.lines.shadow[line]
        self._flags[line] = flags & self.mark

    def clean_all(self) -> None:
        """Write everything back."""
        if not any(state.dirtied for state in self.states):
            return
        flags = self.lines.flags
        lines = self.lines.marked(DIRTY)
        flags[lines] &= 0xFF & ~(DIRTY | DIFFERS | STALE)
        for state in self.states:
            state.dirtied = 0
            state.held = 1

    def invalidate_all(self) -> None:
        """Throw everything away."""
        if not any(state.dirtied or state.held for state in self.states):
            return
        flags, lines = self.lines.flags, self.lines.marked(CACHED_STATE)
        dirty = lines[flags[lines] & DIRTY != 0]
        if len(dirty):
            self._report_loss(int(dirty[0]), len(dirty))
        if self.stale:
            differ = lines[flags[lines] & DIFFERS != 0]
            self.lines.ram[differ] = self.lines.shadow[differ]
        flags[lines] &= self.mark
        for state in self.states:
            state.dirtied = state.held = 0

    def _report_loss(self, line: int, count: int = 1) -> None:
        lost = self.lines.ram[line].tobytes() != self.lines.shadow[line].tobytes()
        if lost and self._first("loss", self.lines.writers[line]):
            more = f" and {count - 1} more lines" if count > 1 else ""
            self._reporter.report(
                "CACHE-003",
                f"the line at 0x{line << self.lines.shift:08x}{more} is invalidated, but what the "
                f"CPU wrote there at {self._writer(line)} was not written back and is lost",
                address=line << self.lines.shift,
                block="caches",
            )

    # -- the others --------------------------------------------------------------------------------

    @contextmanager
    def foreign(self, who: str) -> Iterator[None]:
        """Others than the CPU work on RAM inside of this: they see memory, not the cache."""
        if self._inside:
            yield
            return
        self.drain()
        lines = self.lines
        held = lines.marked(CACHED_STATE)
        if len(held) > MAX_LINES:
            held = self._evict(held)
        ours = lines.ram[held]
        before = ours
        if self.stale:
            differ = held[lines.flags[held] & DIFFERS != 0]
            lines.ram[differ] = lines.shadow[differ]
            before = lines.ram[held]
        self._inside = 1
        try:
            yield
        finally:
            self._inside = 0
            self._take_back(who, held, ours, before)

    def _evict(self, held: np.ndarray) -> np.ndarray:
        """Far more lines than any cache has: clean ones go first, then all; gives what is left."""
        lines = self.lines
        clean = lines.flags[held] & (DIRTY | DIFFERS) == 0
        lines.flags[held[clean]] &= self.mark
        held = held[~clean]
        if len(held) > MAX_LINES:
            self.clean_all()
            self.invalidate_all()
            held = held[:0]
        lines.pages[:] = 0
        lines.pages[held >> PAGE_SHIFT - lines.shift] = 1
        return held

    def _take_back(self, who: str, held: np.ndarray, ours: np.ndarray, before: np.ndarray) -> None:
        """The CPU goes on: lines written by `who` are stale in its cache."""
        lines = self.lines
        after = lines.ram[held]
        changed = (after != before).any(axis=1)
        written = held[changed]
        self._look_for_overlaps(who, written)
        lines.flags[written] |= STALE
        if len(written):
            if who not in self._authors:
                self._authors.append(who)
            lines.authors[written] = self._authors.index(who)
        if self.stale:
            lines.flags[written] |= DIFFERS
            apart = lines.flags[held] & DIFFERS != 0
            lines.shadow[held[apart]] = after[apart]
            lines.ram[held[apart]] = ours[apart]

    def _look_for_overlaps(self, who: str, written: np.ndarray) -> None:
        """Lines that the CPU has written as well: one of both will be lost."""
        both = written[self.lines.flags[written] & DIRTY != 0]
        if len(both) and self._first("both", who, int(self.lines.writers[both[0]])):
            line = int(both[0])
            self._reporter.report(
                "CACHE-005",
                f"{who} writes {len(both)} lines that are dirty in the ARM's data cache; the first "
                f"was written at {self._writer(line)}. Cleaning it loses what {who} wrote",
                address=line << self.lines.shift,
                block="caches",
            )

    def reads(self, who: str, what: str, address: int, size: int) -> None:
        """Others than the CPU are about to read a range; `what` lies there, in words."""
        place = self.lines.of(address, size)
        flags = self.lines.flags[place]
        if not flags.any():
            return
        dirty = (flags & DIRTY).nonzero()[0]
        if len(dirty):
            self._report_old_bytes(who, what, address, place, int(dirty[0]), len(dirty))
        elif self.mark and address >> 30 == DIRECT and (flags & BEHIND_L2).any():
            if self._first("l2", who, what):
                self._reporter.report(
                    "CACHE-004",
                    f"{who} reads {what} at 0x{address:08x}, past the VideoCore's L2 cache, but "
                    "what the CPU wrote there may still be in that cache",
                    address=address & MEMORY_MASK,
                    block="caches",
                )

    def _report_old_bytes(
        self, who: str, what: str, address: int, place: slice, first: int, count: int
    ) -> None:
        line = place.start + first
        if not self._first("old", who, what, int(self.lines.writers[line])):
            return
        start = max(line << self.lines.shift, address & MEMORY_MASK)
        some = f"{count} of its {place.stop - place.start} lines"
        self._reporter.report(
            "CACHE-001",
            f"{who} reads {what} at 0x{address:08x}, but what the CPU wrote to {some} is only in "
            f"the ARM's data cache; the first was written at {self._writer(line)}",
            address=start,
            block="caches",
        )

    def points_to(self, who: str, words: list[int]) -> None:
        """Words that may be addresses (of the buffers of a user program)."""
        for number, word in enumerate(words[:MAX_POINTERS]):
            if word and self._flags[self.line(word)] & DIRTY:
                self.reads(who, f"memory that its uniform {number} points to,", word, 4)

    def drain(self) -> None:
        """Report old bytes that the CPU has read since the last time."""
        for state in self.states:
            for index in range(state.events):
                address, pc = state.event_address[index], state.event_pc[index]
                line = self.line(address)
                author = self._authors[self.lines.authors[line]]
                if self._first("read", author, pc):
                    self._reporter.report(
                        "CACHE-002",
                        f"the CPU at {self._place(pc & (1 << 64) - 1)} reads 0x{address:08x}, which"
                        f" {author} has written since: its data cache still has the old bytes",
                        address=address,
                        block="caches",
                    )
            state.events = 0

    def memory_view(self, address: int, size: int) -> memoryview:
        """A range as memory has it, for the display."""
        if not self.stale or self._inside:
            return self.memory.view(address, size)
        place = self.lines.of(address, size)
        differ = (self.lines.flags[place] & DIFFERS) != 0
        if not differ.any():
            return self.memory.view(address, size)
        seen = np.where(differ[:, None], self.lines.shadow[place], self.lines.ram[place])
        start = (address & MEMORY_MASK) - (place.start << self.lines.shift)
        return memoryview(seen.reshape(-1)[start : start + size].tobytes())

    def _writer(self, line: int) -> str:
        return self._place(int(self.lines.writers[line]) & (1 << 64) - 1)

    def _first(self, *key: object) -> bool:
        """Whether this is reported for the first time."""
        if key in self._told:
            return False
        self._told.add(key)
        return True
