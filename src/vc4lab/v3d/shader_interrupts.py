"""Which shaders have interrupted the host (HOST_INT): one word that native code sets.

Each stage has a byte in it, so that stages on different threads never write the same one, and a
single read shows that nothing happened, as in nearly every list.
"""

from __future__ import annotations

import ctypes

COORDINATES, VERTICES, FRAGMENTS = range(3)
"""Stages; the first one belongs to list thread 0, the others to thread 1."""


class ShaderInterrupts:
    """The word of one V3D.

    Attributes
    ----------
    word
        Its `value` is not 0 when a shader has interrupted the host.
    """

    def __init__(self) -> None:
        self.word = ctypes.c_uint32()

    def place(self, stage: int) -> int:
        """Host address of a stage's byte."""
        return ctypes.addressof(self.word) + stage

    def take(self) -> list[int]:
        """The list threads whose shaders have interrupted the host since the last call."""
        value, self.word.value = self.word.value, 0
        first = value >> 8 * COORDINATES & 0xFF
        second = value >> 8 * VERTICES & 0xFFFF
        return [thread for thread, found in enumerate((first, second)) if found]
