"""The V3D's own caches: programs, uniforms and textures that changed in memory meanwhile.

The slices cache instructions, uniforms and texels, and all of them stand in front of the V3D's L2
cache. Nothing is written through them: a program that changes memory clears them by SLCACTL and
L2CACTL before the next job. Here nothing is cached; the watch only reports. Source: hardware
reference 1.5, 2.3.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.bounded import Bounded
from vc4lab.memory import MEMORY_MASK
from vc4lab.v3d.events import Use

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.event_listeners import V3DListeners
    from vc4lab.v3d.events import CachesCleared, MemoryUse

CLEAR_L2, DISABLE_L2, ENABLE_L2 = 1 << 2, 1 << 1, 1 << 0
SLICES = 0x7
"""Bits of the three slices that exist."""
FIELDS = {Use.CODE: (0,), Use.UNIFORMS: (8,), Use.TEXTURE: (16, 24)}
"""First bits of a cache in SLCACTL."""
MAX_RANGES = 4096
LARGEST_RANGE = 16 << 20
MAX_COPY = 4096
"""Bytes of a range that are kept to say where it differs; of a longer one there is a checksum."""


@dataclass
class _Fill:
    """The words that a cache read last at an address."""

    total: int
    data: bytes
    slice_clears: int
    l2_clears: int


class CacheWatch:
    """Compares what a job reads through the caches with what was there when it was read last."""

    def __init__(self, memory: GuestMemory, reporter: Reporter, *, l2_enabled: bool = True) -> None:
        self._memory = memory
        self._l2_enabled = l2_enabled
        self._reporter = reporter
        self._fills: Bounded[tuple[Use, int, int], _Fill] = Bounded(MAX_RANGES)
        self._clears = dict.fromkeys(FIELDS, 0)
        self._l2_clears = 0
        self._last = 0
        self._looked_at: set[tuple[Use, int, int]] = set()

    def listen(self, listeners: V3DListeners) -> None:
        """Watch a V3D from now on."""
        listeners.job_started.subscribe(lambda _event: self.job())
        listeners.program_started.subscribe(lambda _event: self.job())
        listeners.memory_used.subscribe(self._used)
        listeners.caches_cleared.subscribe(self._cleared)

    def _used(self, event: MemoryUse) -> None:
        self.reads(event.use, event.address, event.size)

    def _cleared(self, event: CachesCleared) -> None:
        if event.register == "SLCACTL":
            self.slices_cleared(event.value)
        else:
            self.l2_cleared(event.value)

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

    def job(self) -> None:
        """A list or a user program is started."""
        self._looked_at.clear()

    def reads(self, use: Use, address: int, size: int) -> None:
        """A job is about to read a range. One range is looked at once in a job."""
        key = use, address & MEMORY_MASK, size
        if use not in FIELDS or key in self._looked_at:
            return
        self._looked_at.add(key)
        view = self._memory.view(address, min(size, LARGEST_RANGE))
        total = zlib.crc32(view)
        data = bytes(view) if size <= MAX_COPY else b""
        known = self._fills.get(key)
        if known is not None and total != known.total:
            self._report(use, address, key[1] + _first_difference(data, known.data), known)
        self._fills[key] = _Fill(total, data, self._clears[use], self._l2_clears)

    def _report(self, use: Use, address: int, place: int, known: _Fill) -> None:
        what = f"{use.words} at 0x{address:08x} has changed since it was last read"
        if known.slice_clears == self._clears[use]:
            wanted = sum(0xF << at for at in FIELDS[use])
            why = (
                f"but the slices' caches were not cleared (SLCACTL needs 0x{wanted:08x}, "
                f"last written 0x{self._last:08x})"
            )
        elif known.l2_clears == self._l2_clears and self._l2_enabled:
            why = "but the V3D's L2 cache was not cleared (L2CACTL = 4)"
        else:
            return
        self._reporter.report("CACHE-006", f"{what}, {why}", address=place)


def _first_difference(one: bytes, other: bytes) -> int:
    size = min(len(one), len(other))
    return next((at for at in range(size) if one[at] != other[at]), 0)
