"""The V3D's own caches: programs, uniforms and textures that changed behind their back.

The slices cache instructions, uniforms and texels, and all of them stand in front of the V3D's L2
cache. Nothing is written through them: a program that changes memory clears them by SLCACTL and
L2CACTL before the next job. Here nothing is cached; the watch only tells. Source: hardware
reference 1.5, 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.v3d.lists.addresses import Use

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory

CLEAR_L2, DISABLE_L2, ENABLE_L2 = 1 << 2, 1 << 1, 1 << 0
SLICES = 0x7
"""Bits of the three slices that exist."""
FIELDS = {Use.CODE: (0,), Use.UNIFORMS: (8,), Use.TEXTURE: (16, 24)}
"""Where SLCACTL has the bits of a cache."""
MOST_RANGES = 4096
LARGEST_RANGE = 16 << 20


@dataclass
class _Fill:
    """What a cache read last at an address."""

    data: bytes
    slice_clears: int
    l2_clears: int


class CacheWatch:
    """Compares what a job reads through the caches with what was there when it was read last."""

    def __init__(self, memory: GuestMemory, reporter: Reporter, *, l2_enabled: bool = True) -> None:
        self._memory = memory
        self._l2_enabled = l2_enabled
        self._reporter = reporter
        self._fills: dict[tuple[Use, int], _Fill] = {}
        self._clears = dict.fromkeys(FIELDS, 0)
        self._l2_clears = 0
        self._last = 0

    def slices_cleared(self, value: int) -> None:
        """A write of SLCACTL."""
        self._last = value
        for use, fields in FIELDS.items():
            if all(value >> at & SLICES == SLICES for at in fields):
                self._clears[use] += 1

    def l2_cleared(self, value: int) -> None:
        """A write of L2CACTL."""
        if value & CLEAR_L2:
            self._l2_clears += 1
        if value & DISABLE_L2:
            self._l2_enabled = False
            self._l2_clears += 1
        elif value & ENABLE_L2:
            self._l2_enabled = True

    def reads(self, use: Use, address: int, size: int) -> None:
        """A job is about to read a range."""
        if use not in FIELDS:
            return
        data = self._memory.read(address, min(size, LARGEST_RANGE))
        key = use, address & 0x3FFFFFFF
        known = self._fills.get(key)
        slices, l2 = self._clears[use], self._l2_clears
        if known is not None and data[: len(known.data)] != known.data[: len(data)]:
            what = f"{use.words} at 0x{address:08x} has changed since it was read last"
            if known.slice_clears == slices:
                wanted = sum(0xF << at for at in FIELDS[use])
                self._reporter.report(
                    "CACHE-006",
                    f"{what}, but the slices' caches were not cleared of it (SLCACTL needs "
                    f"0x{wanted:08x}, last written 0x{self._last:08x})",
                    address=key[1] + _first_difference(data, known.data),
                )
            elif known.l2_clears == l2 and self._l2_enabled:
                self._reporter.report(
                    "CACHE-006",
                    f"{what}, but the V3D's L2 cache was not cleared (L2CACTL = 4)",
                    address=key[1] + _first_difference(data, known.data),
                )
        if len(self._fills) >= MOST_RANGES:
            self._fills.clear()
        self._fills[key] = _Fill(data, slices, l2)


def _first_difference(one: bytes, other: bytes) -> int:
    size = min(len(one), len(other))
    return next((at for at in range(size) if one[at] != other[at]), 0)
