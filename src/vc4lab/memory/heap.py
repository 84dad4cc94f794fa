"""The process's own heap: what it has free goes back to the host."""

from __future__ import annotations

import ctypes
import gc
import os
from functools import cache

TOGETHER = 8
"""Objects that are collected at a time; a collection takes 0.1 s."""


_ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""


@cache
def share_heap() -> None:
    """Threads that start from now on use the heap of the first one, where the C library is glibc.

    It gives each thread a heap of its own otherwise, each with free pieces between what lives long,
    above all after compilations. Programs that say so themselves, by MALLOC_ARENA_MAX or
    GLIBC_TUNABLES, have it as they say.
    """
    if "MALLOC_ARENA_MAX" in os.environ or "GLIBC_TUNABLES" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


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
