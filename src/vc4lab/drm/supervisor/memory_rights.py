"""Programs' memory by calls that look at the rights of its mappings, which /proc/…/mem does not."""

from __future__ import annotations

import ctypes
import errno
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


class _Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


def write_memory(tid: int, address: int, data: bytes) -> int | None:
    """process_vm_writev: the bytes that were stored; 0: none, None: it is not possible here."""
    held = ctypes.create_string_buffer(data, len(data))
    return _transfer("process_vm_writev", tid, address, held)


def read_memory(tid: int, address: int, size: int) -> bytes | None:
    """process_vm_readv: the bytes as far as they can be read; None: it is not possible here."""
    held = ctypes.create_string_buffer(size)
    count = _transfer("process_vm_readv", tid, address, held)
    return held.raw[:count] if count is not None else None


def _transfer(call: str, tid: int, address: int, held: ctypes.Array[ctypes.c_char]) -> int | None:
    if not 0 <= address < 1 << 64:
        return 0
    mine = _Vector(ctypes.addressof(held), len(held))
    other = _Vector(address, len(held))
    count: int = _function(call)(tid, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0)
    if count < 0:
        return 0 if ctypes.get_errno() in (errno.EFAULT, errno.EINVAL, errno.ESRCH) else None
    return count


@cache
def _function(name: str) -> Any:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_ssize_t
    function.argtypes = (
        *(ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong),
        *(ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong),
    )
    return function
