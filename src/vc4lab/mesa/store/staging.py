"""Memory that a client and the server share for transfers: a file without a name, mapped twice."""

from __future__ import annotations

import fcntl
import mmap
import os

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class Staging:
    """`size` bytes, zero at first. Raises OSError if the host has no room.

    The file is sealed: a client that shrinks it would make the server's next access a bus error.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("vtest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
            self.memory = mmap.mmap(self.descriptor, size)
        except BaseException:
            os.close(self.take_descriptor())
            raise

    def take_descriptor(self) -> int:
        """The file's descriptor, which is then the caller's."""
        taken, self.descriptor = self.descriptor, -1
        return taken

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)
