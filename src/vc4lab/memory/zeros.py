"""Large tables of the host's memory of which little is used."""

from __future__ import annotations

import mmap


def lazy_zeros(size: int) -> mmap.mmap:
    """Bytes of 0 that take memory only where they are written; there as long as this object is.

    Raises ValueError (not at least one byte) and OSError (no address space).
    """
    if size < 1:
        raise ValueError(f"size: {size} bytes, not at least 1")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, size, flags=flags)
