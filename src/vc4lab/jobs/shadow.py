"""Tracks what a replay's memory holds while jobs are captured: a second guest memory.

A page is kept when the V3D is about to use it and the replay would find something else there. What
the V3D writes the replay writes as well, so it is copied here and not kept. Where that cannot be
said exactly (tile memory) a page counts as unknown, and is kept again when it is used.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from vc4lab.capture.pages import PAGE
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE, GuestMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = MEMORY_SIZE // PAGE
STRIDE = 1 << 16
"""Bytes that are compared at once where all of memory is."""


class Shadow:
    """The memory of a replay, beside the memory that is captured."""

    def __init__(self, memory: GuestMemory) -> None:
        self._memory = memory
        self._shadow = GuestMemory(memory.ram_bytes)
        if memory.noise is not None:
            self._shadow.fill_with_noise(*memory.noise)
        self._known = bytearray(b"\1" * PAGES)
        compare = ctypes.CDLL(None).memcmp
        compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self._compare = compare

    def differing(self, address: int, size: int) -> Iterator[int]:
        """The numbers of the pages of a range that a replay does not have as they are."""
        for start, end in _pieces(address, size):
            first, last = start // PAGE, -(-end // PAGE)
            if self._known.find(0, first, last) < 0 and self._same(first, last):
                continue
            for page in range(first, last):
                if not self._known[page] or not self._same(page, page + 1):
                    yield page

    def everywhere(self) -> Iterator[int]:
        """Yield the numbers of all pages of RAM that a replay does not have as they are."""
        for start in range(0, self._memory.ram_bytes, STRIDE):
            yield from self.differing(start, min(STRIDE, self._memory.ram_bytes - start))

    def _same(self, first: int, last: int) -> bool:
        at, size = first * PAGE, (last - first) * PAGE
        return not self._compare(self._memory.base + at, self._shadow.base + at, size)

    def take(self, page: int) -> bytes:
        """The bytes of a page, which a replay has from now on."""
        data = self._memory.read(page * PAGE, PAGE)
        self._shadow.write(page * PAGE, data)
        self._known[page] = 1
        return data

    def wrote(self, address: int, size: int) -> None:
        """The V3D has written a range, and so will the replay's."""
        for start, end in _pieces(address, size):
            ctypes.memmove(self._shadow.base + start, self._memory.base + start, end - start)

    def wrote_somewhere(self) -> list[tuple[int, int]]:
        """User programs have run: what has changed in memory was written by them.

        First page and count of each range that has.
        """
        found: list[tuple[int, int]] = []
        for page in self.everywhere():
            if not self._known[page]:
                continue
            self.wrote(page * PAGE, PAGE)
            if found and sum(found[-1]) == page:
                found[-1] = found[-1][0], found[-1][1] + 1
            else:
                found.append((page, 1))
        return found

    def forget(self, address: int, size: int) -> None:
        """Nothing is known any more of what lies in a range."""
        for start, end in _pieces(address, size):
            first, last = start // PAGE, -(-end // PAGE)
            self._known[first:last] = bytes(last - first)


def _pieces(address: int, size: int) -> tuple[tuple[int, int], ...]:
    """Start and end of a range of bus addresses; of one over the end of memory two."""
    start = address & MEMORY_MASK
    end = start + min(max(size, 0), MEMORY_SIZE)
    if end <= MEMORY_SIZE:
        return ((start, end),)
    return (start, MEMORY_SIZE), (0, end - MEMORY_SIZE)
