"""Guest memory on a descriptor: a file without a name that other processes can map."""

from __future__ import annotations

import ctypes
import fcntl
import os

from vc4lab.memory.guest import MEMORY_SIZE
from vc4lab.memory.mappings import PAGE, libc, share

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class SharedFile:
    """`size` bytes of the guest's address space from `address` on, zero at first.

    A byte's offset in the file is its guest address minus `start` (0 by default, so that offsets
    are addresses; what lies before `address` is then never used). The file can neither shrink nor
    grow: a process that maps it cannot make another one's access fail. Untouched pages cost
    nothing.
    """

    def __init__(self, address: int, size: int, *, start: int = 0, name: str = "guest") -> None:
        if address % PAGE or size % PAGE or start % PAGE or size <= 0:
            raise ValueError("shared memory begins and ends with a page")
        if not 0 <= start <= address or address + size > MEMORY_SIZE:
            raise ValueError("shared memory outside of the guest's address space")
        self.address = address
        self.size = size
        self.start = start
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, address + size - start)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self.inode = os.fstat(self.descriptor).st_ino
        """Its number, by which /proc names it."""

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)

    def map_over(self, host_address: int) -> None:
        """Put the file in the place of what is mapped there. Raises OSError."""
        offset = self.address - self.start
        share(host_address, self.size, self.descriptor, offset)

    def release(self, address: int, size: int) -> None:
        """Give whole pages back: they read as zero from now on, everywhere. Raises OSError."""
        if address % PAGE or size % PAGE or address < self.address:
            raise ValueError("not pages of this file")
        mode = _KEEP_SIZE | _PUNCH_HOLE
        if libc().fallocate(self.descriptor, mode, address - self.start, size):
            raise OSError(ctypes.get_errno(), "pages of guest memory cannot be released")
