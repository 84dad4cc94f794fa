"""Where a VG list written into a control list (record 42) ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import VgPrimitive

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

MAX_INLINE = 1 << 22
"""Vertices a list may have."""

_CHUNK = 1 << 12

_PLACES = {  # number of the vertex where the end code counts: (first, every nth behind it)
    VgPrimitive.RHT: (1, 2),
    VgPrimitive.RHT_STRIP: (1, 1),
    VgPrimitive.TRIANGLES: (2, 3),
    VgPrimitive.TRIANGLE_STRIP: (2, 1),
    VgPrimitive.TRIANGLE_FAN: (1, 1),
}


def inline_length(memory: GuestMemory, address: int, kind: int) -> int | None:
    """Words of the list at a guest address, end code included; None if it has no end."""
    import numpy as np

    from vc4lab.records.primitives import VG_TERMINATOR

    place = _PLACES.get(kind)  # type: ignore[call-overload]
    first, step = place if place is not None else (0, 1)
    for start in range(0, MAX_INLINE, _CHUNK):
        here = address + 4 * start & MEMORY_MASK
        words = np.frombuffer(memory.read(here, 4 * _CHUNK).ljust(4 * _CHUNK, b"\0"), "<u4")
        for found in np.flatnonzero(words == VG_TERMINATOR).tolist():
            number = start + found
            if number >= first and (number - first) % step == 0:
                # a fan that ends with its second vertex has three even so
                return 3 if kind == VgPrimitive.TRIANGLE_FAN and number == 1 else number + 1
    return None
