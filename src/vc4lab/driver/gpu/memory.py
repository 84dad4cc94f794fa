"""GPU memory as the driver divides it: resources for long, lists and queue for one frame."""

from __future__ import annotations

from vc4lab.images.tiling import round_up
from vc4lab.memory import MEMORY_SIZE, GuestMemory

MEBIBYTE = 1 << 20
TILE_MEMORY = MEBIBYTE
"""Where tile state and tile lists of a frame are; it must not cross a boundary of 256 MiB."""
TILE_MEMORY_BYTES = 64 * MEBIBYTE
ARENA = TILE_MEMORY + TILE_MEMORY_BYTES
ARENA_BYTES = 144 * MEBIBYTE
STATES = ARENA + ARENA_BYTES
STATES_BYTES = 16 * MEBIBYTE
"""For blocks of state, which stay from frame to frame."""
HEAP = STATES + STATES_BYTES
ALIGNMENT = 64
"""Bytes; of allocations of a page and more, a page."""
PAGE = 4096
READ_AHEAD = 256
"""Bytes after each allocation that no other one has: fetches round up to words and utiles."""


class OutOfMemory(Exception):  # noqa: N818 - a fact about the memory
    """There is no room; the text says for how many bytes."""


class Heap:
    """Allocations that last until they are freed. Freed ranges are used again by their size."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._next = start
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Bytes that are allocated."""
        return sum(self._sizes.values())

    def allocate(self, size: int) -> int:
        """The address of so many bytes, aligned to a page if it is one or more.

        Raises OutOfMemory.
        """
        unit = PAGE if size >= PAGE else ALIGNMENT
        size = round_up(max(size, 1) + READ_AHEAD, unit)
        kept = self._free.get(size)
        if kept:
            address = kept.pop()
        else:
            address = self._fresh(size, unit)
        self._sizes[address] = size
        return address

    def free(self, address: int) -> None:
        """Give an allocation back."""
        self._free.setdefault(self._sizes.pop(address), []).append(address)

    def _fresh(self, size: int, unit: int) -> int:
        address = round_up(self._next, unit)
        if address + size <= self.end:
            self._next = address + size
            return address
        return self._joined(size, unit)

    def _joined(self, size: int, unit: int) -> int:
        """From the first gap between allocations that is large enough; all free ranges anew."""
        end = self.start
        found = -1
        self._free.clear()
        for address, length in sorted([*self._sizes.items(), (self.end, 0)]):
            place = round_up(end, unit)
            if found < 0 and place + size <= address:
                found, place = place, place + size
            # What is left of a gap is used for allocations of its size only; the next search
            # finds it as a whole again.
            end = address + length
        if found < 0:
            raise OutOfMemory(f"no room for {size} bytes of GPU memory; {self.used} are used")
        return found


class Arena:
    """Allocations that all end together, when the work that uses them is done.

    Attributes
    ----------
    turn
        How often it was emptied.
    """

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.end = start + size
        self.next = start
        self.turn = 0

    @property
    def left(self) -> int:
        """Bytes."""
        return self.end - self.next

    def allocate(self, size: int, alignment: int = 16) -> int:
        """The address of so many bytes. Raises OutOfMemory."""
        address = round_up(self.next, alignment)
        if address + size > self.end:
            raise OutOfMemory(f"a frame's lists and data need more than {self.end - self.start}")
        self.next = address + size
        return address

    def reset(self) -> None:
        """All of it is free again."""
        self.next = self.start
        self.turn += 1


class GpuMemory:
    """Guest memory of the V3D: its heap, the arena of a frame, and that of blocks of state."""

    def __init__(self) -> None:
        self.guest = GuestMemory()
        self.heap = Heap(HEAP, MEMORY_SIZE)
        self.arena = Arena(ARENA, ARENA_BYTES)
        self.states = Arena(STATES, STATES_BYTES)

    def keep(self, data: bytes, alignment: int = 16) -> int:
        """Bytes in the arena; their address. Raises OutOfMemory."""
        address = self.arena.allocate(len(data), alignment)
        self.guest.write(address, data)
        return address

    def keep_state(self, data: bytes) -> int:
        """Bytes of a block of state; their address. Raises OutOfMemory."""
        address = self.states.allocate(len(data))
        self.guest.write(address, data)
        return address

    def store(self, data: bytes) -> int:
        """Bytes in the heap; their address. Raises OutOfMemory."""
        address = self.heap.allocate(len(data))
        self.guest.write(address, data)
        return address

    def host(self, address: int) -> int:
        """The host's address of a place."""
        return self.guest.base + address
