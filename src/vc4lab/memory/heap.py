"""The process's own heap: what it has free goes back to the host."""

from __future__ import annotations

import ctypes
import gc

TOGETHER = 8
"""Objects that are collected at a time; a collection takes 0.1 s."""


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
