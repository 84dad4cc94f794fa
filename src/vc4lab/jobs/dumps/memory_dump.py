"""Buffers with their places, and the lists that ran there: a dump holds nothing else.

A dump becomes a capture of one frame, so that everything that takes captures takes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.pages import PAGE, PageKeeper
from vc4lab.jobs.events_text import label
from vc4lab.jobs.model import BufferNamed, Event, JobBegun, JobsCapture, JobsFrame, Noted, Patched, Written
from vc4lab.jobs.used_memory import BLANK, ZEROS, page_events
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE

MOST_BUFFERS = 1 << 16
MOST_BYTES = 1 << 28
"""Bytes of all buffers together, at most."""


class DumpBuffer(NamedTuple):
    """A buffer: name, bus address and content."""

    name: str
    address: int
    data: bytes | bytearray | memoryview


class ListRange(NamedTuple):
    """A control list that was started: thread 0 (binning) or 1 (rendering), first and end address."""

    thread: int
    start: int
    end: int


@dataclass
class MemoryDump:
    """The memory and the lists of a job.

    Attributes
    ----------
    front
        Which kind of dump it was: `hang` or `clif`.
    lists
        In the order in which they start.
    overspill
        Address and bytes of the memory that the binner gets besides; (0, 0): none.
    patches
        Bytes that are changed before the lists start: what cannot be as it was.
    notes
        What is known of it besides, in sentences.
    """

    front: str
    program: str
    buffers: list[DumpBuffer] = field(default_factory=list)
    lists: list[ListRange] = field(default_factory=list)
    overspill: tuple[int, int] = (0, 0)
    patches: list[Patched] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """First address and place of each buffer; it is looked at when all of them are there."""
        return sorted((one.address & MEMORY_MASK, place) for place, one in enumerate(self.buffers))

    def _at(self, address: int) -> tuple[DumpBuffer, int] | None:
        """The buffer that an address lies in, and the place there."""
        address &= MEMORY_MASK
        place = bisect_right(self._starts, (address, MOST_BUFFERS)) - 1
        if place < 0:
            return None
        start, number = self._starts[place]
        found = self.buffers[number]
        return (found, address - start) if address - start < len(found.data) else None

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address, fewer at the end of a buffer; none where there is no buffer."""
        found = self._at(address)
        return bytes(found[0].data[found[1] : found[1] + size]) if found is not None else b""

    def holds(self, address: int) -> str:
        """The name of the buffer that an address lies in; "" for none."""
        found = self._at(address)
        return found[0].name if found is not None else ""

    def capture(self) -> JobsCapture:
        """Return it as captured jobs. Raises CaptureError for buffers that memory has no room for."""
        keeper = PageKeeper(MEMORY_SIZE)
        events: list[Event] = [Noted(one) for one in self.notes]
        events.append(JobBegun(self.program))
        events += [BufferNamed(one.address, len(one.data), label(one.name)) for one in self.buffers]
        events += page_events(self._pages(keeper))
        events += self.patches
        address, size = self.overspill
        if size:
            events += [Written("BPOA", address), Written("BPOS", size)]
        for thread, start, end in self.lists:
            events += [Written(f"CT{thread}CA", start), Written(f"CT{thread}EA", end)]
        found = JobsCapture(self.front, self.program, frames=[JobsFrame(1, events, start={})])
        found.pages = keeper
        return found

    def _pages(self, keeper: PageKeeper) -> dict[int, int]:
        parts: dict[int, bytearray] = {}
        for one in self.buffers:
            start = one.address & MEMORY_MASK
            if start + len(one.data) > MEMORY_SIZE:
                text = f"buffer {one.name} of {len(one.data)} bytes at 0x{start:08x} leaves memory"
                raise CaptureError("CAP-012", text)
            for page, at, data in _pieces(start, one.data):
                held = parts.get(page)
                if held is None:
                    held = parts[page] = bytearray(PAGE)
                held[at : at + len(data)] = data
        return {page: BLANK if held == ZEROS else keeper.add(bytes(held)) for page, held in parts.items()}


def _pieces(start: int, data: bytes | bytearray | memoryview) -> Iterable[tuple[int, int, bytes]]:
    """Page, place in it and bytes of each part of a buffer."""
    view, place = memoryview(data), 0
    while place < len(view):
        page, at = divmod(start + place, PAGE)
        size = min(PAGE - at, len(view) - place)
        yield page, at, bytes(view[place : place + size])
        place += size
