"""The host's memory: files in the place of what was mapped, large tables of which little is used, the heap.

What the process's own heap has free goes back to the host, and what is large lies elsewhere. glibc takes
large pieces from the kernel one by one, but after the first one is freed it puts those of its size among
the small ones (mallopt(3), M_MMAP_THRESHOLD). Pictures do harm there: each one that is let go leaves a hole
of 8 MiB, where small pieces that live long settle; and as numpy asks for huge pages in what is large, one
of those takes 2 MiB then.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from functools import cache
from typing import Any

PAGE = 4096
MAPS_OVER = sys.platform == "linux"
"""Whether `share`, `copy` and `clear` work here."""
FIXED, NO_RESERVE = 0x10, 0x4000
_ACCESS = mmap.PROT_READ | mmap.PROT_WRITE


def share(address: int, size: int, descriptor: int, offset: int) -> None:
    """A piece of a file; what is written goes to the file. Raises OSError."""
    _map(address, size, mmap.MAP_SHARED | NO_RESERVE, descriptor, offset)


def copy(address: int, size: int, descriptor: int, offset: int) -> None:
    """A piece of a file, read page by page when it is touched; the file stays. Raises OSError.

    Access to what is beyond the file's end kills the process, so the file must not shrink.
    """
    _map(address, size, mmap.MAP_PRIVATE | NO_RESERVE, descriptor, offset)


def clear(address: int, size: int) -> None:
    """Whole pages that read as zero and take no memory. Raises OSError."""
    _map(address, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE, -1, 0)


def large_pages(address: int, size: int) -> None:
    """Ask for large pages in the whole ones of a range; without them nothing changes."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    start = -(-address // PAGE) * PAGE
    size = (address + size - start) // PAGE * PAGE
    if MAPS_OVER and advice is not None and size > 0:
        libc().madvise(start, size, advice)


def _map(address: int, size: int, flags: int, descriptor: int, offset: int) -> None:
    found = libc().mmap(address, size, _ACCESS, flags | FIXED, descriptor, offset)
    if found != address:
        raise OSError(ctypes.get_errno(), "guest memory cannot be mapped")


@cache
def libc() -> Any:
    """The C library with the types of what maps memory."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_size_t
    library.mmap.argtypes = (
        *(ctypes.c_size_t, ctypes.c_size_t),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    )
    library.madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
    library.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    return library


def lazy_zeros(size: int) -> mmap.mmap:
    """Bytes of 0 that take memory only where they are written; there as long as this object is.

    Raises ValueError (not at least one byte) and OSError (no address space).
    """
    if size < 1:
        raise ValueError(f"size: {size} bytes, not at least 1")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, size, flags=flags)


LARGE = 4 << 20
"""Bytes from which on pieces lie apart: those for which numpy asks for huge pages."""
KEPT = 2 * LARGE
"""Bytes that may be free at the heap's end, as glibc has it: twice `LARGE`."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
TOGETHER = 8
"""Objects that are collected at a time; a collection takes 0.1 s."""


@cache
def keep_large_apart() -> None:
    """Large pieces go back to the host when they are freed, from now on (glibc)."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, LARGE)
        set_option(M_TRIM_THRESHOLD, KEPT)


def give_back() -> None:
    """Give free memory of the heap back, where the C library can (glibc); 0.1 ms if there is none.

    It keeps that otherwise, for good: after a compilation tens of MiB.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Circles:
    """Large objects that are let go and refer to themselves in circles, with what they hold.

    Python looks for circles after so and so many small objects. Eight V3Ds, each with compiled
    code, are 50 MiB and hardly any objects.
    """

    def __init__(self) -> None:
        self._count = 0

    def let_go(self) -> None:
        """Another one was; it is still there, or goes now, with those before it."""
        self._count += 1
        if self._count >= TOGETHER:
            self._count = 0
            gc.collect()
            give_back()
