"""The VideoCore's part of RAM: handles, first-fit allocation, bus-address aliases."""

from __future__ import annotations

from dataclasses import dataclass

ALIAS_OF_FLAGS = {0x0: 0x00000000, 0x4: 0xC0000000, 0x8: 0x80000000, 0xC: 0x40000000}
"""Memory flags 3:2 → cache alias of the address that locking gives."""
FLAG_ZERO = 1 << 4
LARGEST_ALIGNMENT = 1 << 24


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
        """The address the program is told."""
        return self.address | ALIAS_OF_FLAGS[self.flags & 0xC]


class VideoCoreMemory:
    """First-fit allocator over `start`..`end` (physical addresses)."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.blocks: dict[int, Allocation] = {}
        self._next_handle = 1

    def allocate(self, size: int, alignment: int = 4096, flags: int = 4) -> Allocation | None:
        """A new block, None if there is no room or the request makes no sense."""
        alignment = alignment or 4
        if not 0 < size <= self.end - self.start or alignment > LARGEST_ALIGNMENT:
            return None
        place = -(-self.start // alignment) * alignment
        for block in sorted(self.blocks.values(), key=lambda b: b.address):
            if place + size <= block.address:
                break
            place = max(place, -(-(block.address + block.size) // alignment) * alignment)
        if place + size > self.end:
            return None
        block = Allocation(self._next_handle, place, size, flags)
        self._next_handle += 1
        self.blocks[block.handle] = block
        return block

    def release(self, handle: int) -> bool:
        """Give a block back; False if there is no such handle."""
        return self.blocks.pop(handle, None) is not None
