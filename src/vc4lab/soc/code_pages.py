"""The pages a core has executed: searched for trapped instructions, watched for foreign writes.

The engine notices when a core changes its own code; writes of other cores, the GPU and the
firmware it does not see. So each page's checksum is kept, and when the program maintains its
instruction cache (or a vsync passes) changed pages lose their translations.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vc4lab.soc.native import PAGE_MASK, SEEN, THUMB, UNSEEN
from vc4lab.soc.traps import A64_TRAPS, ARM_TRAPS, THUMB_SEV, Action, Trap

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

PAGE = 4096
LONGEST_BLOCK = 512
"""A block that begins in a page may go on in the next."""
MOST_HOOKS = 4096
"""Hooks for trapped instructions; a hostile program gets no more."""

Found = Callable[[int, Action, int], None]


class CodePages:
    """Executed pages of one core; `seen` is shared with the native block hook."""

    def __init__(self, memory: GuestMemory, wide: bool) -> None:
        self.seen = (ctypes.c_uint8 * (PAGE_MASK + 1))()
        self._memory = memory
        self._wide = wide
        self._sums: dict[int, tuple[int, int]] = {}
        self._hooked: set[int] = set()

    def meet(
        self, address: int, physical: int | None, thumb: bool = False
    ) -> list[tuple[int, Action]]:
        """Enter the page of `address`; returns the new places to hook: address and action."""
        page = address & ~(PAGE - 1)
        plain = thumb and physical == address
        self.seen[address >> 12 & PAGE_MASK] = THUMB if plain else SEEN
        if physical is None:
            return []
        start = physical & ~(PAGE - 1)
        self._sums[page] = start, self._sum(start)
        found: list[tuple[int, Action]] = []
        for offset, action in self._search(start):
            place = page + offset
            if place not in self._hooked and len(self._hooked) < MOST_HOOKS:
                self._hooked.add(place)
                found.append((place, action))
        return found

    def changed(self) -> list[int]:
        """Addresses of the pages whose memory has changed since they were met; forgets them."""
        stale = [page for page, (start, old) in self._sums.items() if self._sum(start) != old]
        for page in stale:
            del self._sums[page]
            self.seen[page >> 12 & PAGE_MASK] = UNSEEN
        return stale

    def forget(self) -> None:
        """All pages are met anew (the address space has changed)."""
        ctypes.memset(self.seen, 0, PAGE_MASK + 1)
        self._sums.clear()

    def _sum(self, start: int) -> int:
        return zlib.crc32(self._memory.view(start, PAGE))

    def _search(self, start: int) -> list[tuple[int, Action]]:
        import numpy as np

        raw = self._memory.read(start, PAGE + LONGEST_BLOCK)
        words = np.frombuffer(raw, dtype="<u4")
        traps = A64_TRAPS if self._wide else ARM_TRAPS
        found = _matches(words, traps, 0)
        if not self._wide:
            halves = np.frombuffer(raw, dtype="<u2").astype(np.uint32)
            pairs = halves[:-1] << 16 | halves[1:]
            thumb = [t for t in ARM_TRAPS if t.mask & 0x08000000 and t.match >> 24]
            found += [(at // 2, action) for at, action in _matches(pairs, thumb, 0xE0000000)]
            found += [(2 * int(i), Action.SEND_EVENT) for i in np.flatnonzero(halves == THUMB_SEV)]
        return found


def _matches(
    words: Any, traps: tuple[Trap, ...] | list[Trap], top: int
) -> list[tuple[int, Action]]:
    import numpy as np

    found: list[tuple[int, Action]] = []
    for trap in traps:
        mask = trap.mask | (0xF0000000 if top else 0)
        hits = np.flatnonzero(words & np.uint32(mask) == np.uint32(trap.match | top))
        found += [(4 * int(i), trap.action) for i in hits]
    return found
