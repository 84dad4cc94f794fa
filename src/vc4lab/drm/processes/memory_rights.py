"""Programs' memory by calls that look at the rights of its mappings, which /proc/…/mem does not."""

from __future__ import annotations

import ctypes
import errno
import threading
import time
from functools import cache
from typing import Any

PAGE = 4096
KNOWN_FOR, KNOWN_PAGES = 0.02, 4096
"""Seconds for which a page counts as accessible after it was accessed, and how many are kept."""


class KnownPages:
    """Pages of threads that were accessed a moment ago: looking at their rights takes longer than
    the access, and each ioctl goes to the same place.
    """

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()
        self._since = 0.0

    def holds(self, tid: int, first: int, last: int) -> bool:
        """Whether all of these are known."""
        now = time.monotonic()
        if now - self._since > KNOWN_FOR or len(self._known) > KNOWN_PAGES:
            self._known.clear()
            self._since = now
            return False
        if first == last:
            return (tid, first) in self._known
        return last - first < KNOWN_PAGES and all(
            (tid, page) in self._known for page in range(first, last + 1)
        )

    def add(self, tid: int, first: int, last: int) -> None:
        """They were accessed."""
        self._known.update((tid, page) for page in range(first, last + 1)[:KNOWN_PAGES])


def write_memory(tid: int, address: int, data: bytes) -> int | None:
    """process_vm_writev: the bytes that were stored; 0: none, None: it is not possible here."""
    room = _room_for(len(data))
    room.bytes[: len(data)] = data
    return room.transfer(_functions()[1], tid, address, len(data))


def read_memory(tid: int, address: int, size: int) -> bytes | None:
    """process_vm_readv: the bytes as far as they can be read; None: it is not possible here."""
    room = _room_for(size)
    count = room.transfer(_functions()[0], tid, address, size)
    return bytes(room.bytes[:count]) if count is not None else None


class _Room:
    """Memory of this process for a transfer, and the two vectors that the call takes."""

    def __init__(self, size: int) -> None:
        self._held = ctypes.create_string_buffer(size), ctypes.create_string_buffer(4 * 8)
        mine, vectors = (memoryview(one).cast("B") for one in self._held)
        self.size = size
        self.bytes = mine
        self._vectors = vectors.cast("Q")
        """Address and size here, address and size there."""
        self._vectors[0] = ctypes.addressof(self._held[0])
        self._mine = ctypes.addressof(self._held[1])

    def transfer(self, function: Any, tid: int, address: int, size: int) -> int | None:
        """Make the transfer; its result is that of the call, as `read_memory` gives it."""
        if not 0 <= address < 1 << 64:
            return 0
        vectors = self._vectors
        vectors[1] = vectors[3] = size
        vectors[2] = address
        count: int = function(tid, self._mine, 1, self._mine + 16, 1, 0)
        if count < 0:
            return 0 if ctypes.get_errno() in (errno.EFAULT, errno.EINVAL, errno.ESRCH) else None
        return count


_kept = threading.local()


def _room_for(size: int) -> _Room:
    """One that is kept for this thread, or a larger one for once."""
    if size > PAGE:
        return _Room(size)
    room: _Room | None = getattr(_kept, "room", None)
    if room is None:
        room = _kept.room = _Room(PAGE)
    return room


@cache
def _functions() -> tuple[Any, Any]:
    """process_vm_readv and process_vm_writev."""
    kind = ctypes.CFUNCTYPE(
        *(ctypes.c_ssize_t, ctypes.c_int),
        *(ctypes.c_size_t, ctypes.c_ulong, ctypes.c_size_t, ctypes.c_ulong, ctypes.c_ulong),
        use_errno=True,
    )  # fmt: skip
    library = ctypes.CDLL(None)
    return kind(("process_vm_readv", library)), kind(("process_vm_writev", library))
