"""Memory of buffers: those that clients may map in files of their own, the GPU's private ones not.

A descriptor that a program has leads to its file, however it is opened again: so no file holds more
than one buffer. Shader code, validated lists, records, uniforms and tile memory lie in private
memory, which no client can open: what was checked cannot change.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort

from vc4lab.drm.processes.descriptors import check_spare, is_held
from vc4lab.drm.processes.started import NotPossible
from vc4lab.images.tiling import round_up
from vc4lab.memory import MEMORY_SIZE, GuestMemory, SharedFile
from vc4lab.ranges import Whole

PAGE = 4096
SHADERS = 0x0010_0000
SHADERS_SIZE = 63 << 20
TILE_MEMORY = 0x0400_0000
TILE_MEMORY_SIZE = 64 << 20
"""Tile state and tile lists of the job that runs."""
LISTS = 0x0800_0000
LISTS_SIZE = 128 << 20
"""Lists, shader records and uniforms of the jobs that wait, in a ring."""
CLIENTS = 0x1000_0000
"""From here on: buffers that clients map."""
MAX_CLIENT_BYTES = MEMORY_SIZE - CLIENTS
CLIENT_BYTES = Whole("gpu_memory", 1, MAX_CLIENT_BYTES)
DEFAULT_BYTES = 512 << 20
NAME = "vc4lab-gpu"
"""The name of the buffers' files in /proc/PID/maps."""


class OutOfMemory(Exception):  # noqa: N818 - an answer of the allocator
    """No room of that size."""


class Allocator:
    """Pages of one range of addresses, lowest place first."""

    def __init__(self, start: int, size: int) -> None:
        self.free: list[tuple[int, int]] = [(start, size)]
        self.size = size

    @property
    def used(self) -> int:
        """Bytes that are not free."""
        return self.size - sum(room for _, room in self.free)

    def take(self, size: int) -> int:
        """A place for `size` bytes. Raises OutOfMemory."""
        size = round_up(size, PAGE)
        for number, (start, room) in enumerate(self.free):
            if room >= size:
                if room == size:
                    del self.free[number]
                else:
                    self.free[number] = start + size, room - size
                return start
        raise OutOfMemory

    def give(self, start: int, size: int) -> None:
        """Take a place back."""
        size = round_up(size, PAGE)
        place = bisect_left(self.free, (start, 0))
        if place < len(self.free) and self.free[place][0] == start + size:
            size += self.free.pop(place)[1]
        if place and sum(self.free[place - 1]) == start:
            before = self.free.pop(place - 1)
            start, size = before[0], before[1] + size
        insort(self.free, (start, size))


class GpuMemory:
    """The memory of the virtual device. Raises NotPossible where the host refuses it."""

    def __init__(self, client_bytes: int = DEFAULT_BYTES) -> None:
        client_bytes = round_up(CLIENT_BYTES.check(client_bytes), PAGE)
        self.files: dict[int, SharedFile] = {}
        """The buffers that clients may map, by address."""
        self.inodes: dict[int, SharedFile] = {}
        """Those buffers by the files' numbers."""
        try:
            self.guest = GuestMemory()
            self.guest.lay_over(SharedFile(CLIENTS, MAX_CLIENT_BYTES, name=NAME))  # on trial
            self.guest.take_away(CLIENTS, MAX_CLIENT_BYTES)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "cannot allocate memory"
            raise NotPossible(
                f"memory that programs can map is not available: {reason.lower()} "
                "(memfd_create, ftruncate or mmap; a sandbox or a limit, see ulimit -a)"
            ) from None
        self.clients = Allocator(CLIENTS, client_bytes)
        self.shaders = Allocator(SHADERS, SHADERS_SIZE)

    def take(self, size: int, *, private: bool = False) -> int:
        """Zeroed pages for a buffer. Raises OutOfMemory; OSError where the host has no more files.

        A buffer's offset in its file is its address, so that programs map it there.
        """
        if private:
            return self.shaders.take(size)
        size = round_up(size, PAGE)
        address = self.clients.take(size)
        try:
            file = SharedFile(address, size, name=NAME)
            check_spare(file.descriptor)
            self.guest.lay_over(file)
        except OSError:
            self.clients.give(address, size)
            raise
        self.files[address] = self.inodes[file.inode] = file
        return address

    def give(self, address: int, size: int, *, private: bool = False) -> None:
        """Pages that nothing uses any more; the next owner reads zeros."""
        size = round_up(size, PAGE)
        if private:
            self.guest.fill(address, size)
            self.shaders.give(address, size)
        else:
            file = self.files.pop(address)
            del self.inodes[file.inode]
            self.guest.take_away(address, size)
            if is_held(file.descriptor):  # a program still has a descriptor of it
                file.release(address, size)
            self.clients.give(address, size)

    def is_held(self, address: int) -> bool:
        """Whether a program maps the buffer or has a descriptor of it."""
        return is_held(self.files[address].descriptor)

    @property
    def resident(self) -> int:
        """Bytes of the host's memory that clients' buffers take."""
        return sum(os.fstat(file.descriptor).st_blocks for file in self.files.values()) * 512
