"""The VideoCore's part of RAM: handles, first-fit allocation, bus-address aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ALIAS_OF_FLAGS = {0x0: 0x00000000, 0x4: 0xC0000000, 0x8: 0x80000000, 0xC: 0x40000000}
"""Memory flags 3:2 → cache alias of the address that locking gives."""
FLAG_ZERO = 1 << 4
LARGEST_ALIGNMENT = 1 << 24
GUARD = 4096
"""Least bytes of a guard zone."""


@dataclass
class Allocation:
    """A block of VideoCore memory."""

    handle: int
    address: int
    size: int
    flags: int
    locked: bool = False

    @property
    def bus_address(self) -> int:
        """The address that the program gets."""
        return self.address | ALIAS_OF_FLAGS[self.flags & 0xC]


class VideoCoreMemory:
    """First-fit allocator over `start`..`end` (physical addresses)."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.blocks: dict[int, Allocation] = {}
        self._next_handle = 1
        self.guarded = False
        """Whether a guard zone follows each block."""
        self.on_allocate: Callable[[Allocation, int], None] | None = None
        """Gets a new block and the end of its guard zone."""
        self.on_release: Callable[[Allocation], None] | None = None

    def allocate(self, size: int, alignment: int = 4096, flags: int = 4) -> Allocation | None:
        """A new block, None if there is no room or the request makes no sense."""
        alignment = alignment or 4
        if not 0 < size <= self.end - self.start or alignment > LARGEST_ALIGNMENT:
            return None
        place = -(-self.start // alignment) * alignment
        for block in sorted(self.blocks.values(), key=lambda b: b.address):
            if self._end(place + size) <= block.address:
                break
            place = max(place, -(-self._end(block.address + block.size) // alignment) * alignment)
        if self._end(place + size) > self.end:
            return None
        block = Allocation(self._next_handle, place, size, flags)
        self._next_handle += 1
        self.blocks[block.handle] = block
        if self.on_allocate is not None:
            self.on_allocate(block, self._end(place + size))
        return block

    def _end(self, end: int) -> int:
        """The address at which the next block may begin after one that ends at `end`."""
        return -(-end // GUARD) * GUARD + GUARD if self.guarded else end

    @property
    def free(self) -> int:
        """Bytes that are not handed out."""
        return self.end - self.start - sum(block.size for block in self.blocks.values())

    def release(self, handle: int) -> bool:
        """Give a block back; False if there is no such handle."""
        block = self.blocks.pop(handle, None)
        if block is not None and self.on_release is not None:
            self.on_release(block)
        return block is not None
