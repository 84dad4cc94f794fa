"""Memory that a client and the server share for transfers: a file without a name, mapped twice."""

from __future__ import annotations

import fcntl
import mmap
import os
from functools import cached_property

MOST_SPARE = 256
"""Mesa keeps buffers for a second before it gives them back, mostly one for each frame then."""
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class Staging:
    """`size` bytes, zero at first. Raises OSError if the host has no room.

    The file is sealed: a client that shrinks it would make the server's next access a bus error.

    Attributes
    ----------
    is_kept
        Whether it is used again (`SpareStagings`), and so remains the owner of its descriptor.
    """

    def __init__(self, size: int, *, is_kept: bool = False) -> None:
        self.size = size
        self.is_kept = is_kept
        self.descriptor = os.memfd_create("vtest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
            if not is_kept:
                self.memory = self._mapped()
        except BaseException:
            os.close(self.take_descriptor())
            raise

    @cached_property
    def memory(self) -> mmap.mmap:
        """The bytes. Of what is kept they are seldom needed, and a mapping has a descriptor, too.

        Raises OSError.
        """
        return self._mapped()

    @cached_property
    def view(self) -> memoryview:
        """The same, of which parts are no copies."""
        return memoryview(self.memory)

    def _mapped(self) -> mmap.mmap:
        return mmap.mmap(self.descriptor, self.size)

    def take_descriptor(self) -> int:
        """The file's descriptor, which is then the caller's."""
        taken, self.descriptor = self.descriptor, -1
        return taken

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)


class SpareStagings:
    """Memory of one size that a client's resources have given back, for its next ones.

    Only where a program makes and drops such resources all the time: each keeps a descriptor. It
    stays with the client, whose program may still have it mapped.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._spare: list[Staging] = []

    def take(self) -> Staging:
        """One that is zero. Raises OSError."""
        if not self._spare:
            return Staging(self.size, is_kept=True)
        taken = self._spare.pop()
        os.pwrite(taken.descriptor, bytes(self.size), 0)
        return taken

    def give_back(self, staging: Staging) -> None:
        """No resource has it any more."""
        if staging.is_kept and len(self._spare) < MOST_SPARE:
            self._spare.append(staging)
