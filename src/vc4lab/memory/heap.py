"""The process's own heap: what it has free goes back to the host, and what is large lies elsewhere.

glibc takes large pieces from the kernel one by one, but after the first one is freed it puts those
of its size among the small ones (mallopt(3), M_MMAP_THRESHOLD). Pictures do harm there: each one
that is let go leaves a hole of 8 MiB, where small pieces that live long settle; and as numpy asks
for huge pages in what is large, one of those takes 2 MiB then.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache

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
