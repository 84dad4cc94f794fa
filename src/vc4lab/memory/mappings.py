"""What lies at an address of the host's memory: a file in the place of what was mapped there."""

from __future__ import annotations

import ctypes
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
