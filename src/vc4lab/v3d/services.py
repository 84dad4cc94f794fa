"""The tools of a V3D's blocks: made once by `core.py`, and handed to each as a whole."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions
    from vc4lab.simd.team import Team
    from vc4lab.v3d.event_listeners import V3DListeners
    from vc4lab.v3d.unknowns import Unknowns

COORDINATES, VERTICES, FRAGMENTS = range(3)
"""Stages of shaders; the first one belongs to list thread 0, the others to thread 1."""


class ShaderInterrupts:
    """Which shaders have interrupted the host (HOST_INT): one word that native code sets.

    Each stage has a byte in it, so that stages on different threads never write the same one, and a
    single read shows that nothing happened, as in nearly every list.

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


@dataclass(frozen=True)
class Services:
    """Guest memory, messages, choices, threads, and who is to hear of what."""

    memory: GuestMemory
    reporter: Reporter
    options: GpuOptions
    team: Team
    interrupts: ShaderInterrupts
    listeners: V3DListeners

    @property
    def unknowns(self) -> Unknowns:
        """The choices for undocumented behaviour."""
        return self.options.unknowns
