"""Lists of VG coordinates: where one in a control list ends (record 42), what primitives it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import VgPrimitive
from vc4lab.v3d.state.draw_input import keeps_own_second, restarts_at_dummy

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns

MAX_INLINE = 1 << 22
"""Vertices a list may have."""

_CHUNK = 1 << 12

_PLACES = {  # number of the vertex where the end code counts: (first, every nth after it)
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


def vg_primitives(
    kind: int, words: list[int], fan: tuple[int, int] | None, unknowns: Unknowns
) -> tuple[list[tuple[int, ...]], tuple[int, int] | None]:
    """The primitives of a list of packed vertices, and what a fan that goes on needs to know.

    `fan` is that of the list before, if this one continues it. The counterpart of `../ptb/vg.py`.
    """
    from vc4lab.records.primitives import VG_DUMMY, VG_TERMINATOR

    size = 2 if kind in (VgPrimitive.RHT, VgPrimitive.RHT_STRIP) else 3
    strip = kind not in (VgPrimitive.RHT, VgPrimitive.TRIANGLES)
    is_fan = kind == VgPrimitive.TRIANGLE_FAN
    restart = restarts_at_dummy(unknowns)
    held: tuple[int, ...] = ()
    last_fan: tuple[int, int] | None = fan if is_fan else None
    found: list[tuple[int, ...]] = []
    place = run = 0
    while True:
        start = place
        if not held:
            held = tuple(words[place : place + size - 1])
            place += size - 1
            if fan is not None and is_fan and start == 0 and len(held) == 2:
                second = held[1] if keeps_own_second(unknowns) else fan[1]
                ends = held[1] == VG_TERMINATOR
                held = (fan[0], second)
                if ends:
                    break
            elif is_fan and VG_TERMINATOR in held[1:]:
                break
        if place >= len(words) or words[place] == VG_TERMINATOR:
            break
        word = words[place]
        place += 1
        if word == VG_DUMMY:
            held, run = ((), 0) if restart or not strip else (held, run)
            continue
        swap = kind == VgPrimitive.TRIANGLE_STRIP and run % 2
        found.append((*(held[::-1] if swap else held), word))
        run += 1
        if is_fan:
            held = last_fan = (held[0], word)
        else:
            held = (*held[1:], word) if strip else ()
    return found, last_fan
