"""Which physical pages are cached, according to the ARM's translation tables.

A page that is mapped twice, cached and uncached, counts as uncached. AArch32 tables are the short
descriptors (ARM ARM ARMv7-A B3.5), or long ones (B3.6), which have the form of AArch64's tables with
4 KiB granules (ARM ARM D5.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vc4lab.memory import GuestMemory
from vc4lab.soc.caches.cache_lines import PAGE_ENTRIES, READ_ALLOCATE, UNCACHED, WRITE_BACK, WRITE_THROUGH
from vc4lab.soc.cores.engine.memory_types import first_table

M, C = 1 << 0, 1 << 2
TRE = 1 << 28
SHARED_SECTION, SHARED_PAGE = 1 << 16, 1 << 10
SUPERSECTION = 1 << 18
MAX_TABLES = 2048
"""Different tables of the second and third level that are followed."""
KINDS = {0: UNCACHED, 1: WRITE_BACK, 2: WRITE_THROUGH, 3: WRITE_BACK}
"""The two bits C, B or IRn of an inner policy."""


@dataclass
class Mapping32:
    """Walks AArch32 short descriptors.

    Parameters
    ----------
    registers
        "SCTLR", "TTBR0", "TTBR1", "TTBCR", "PRRR", "NMRR".
    old_core
        ARM1176: it knows write-through (others do not cache such pages), does not cache shared
        pages, and allocates lines only for loads.
    """

    memory: GuestMemory
    registers: Mapping[str, int]
    old_core: bool
    tables: list[tuple[int, int]] = field(default_factory=list)
    """Address and size of the tables that were followed."""

    @property
    def walks_past_cache(self) -> bool:
        """Whether table walks do not look into the data cache: TTBR0's inner attribute decides (bits
        0 and 6), and an ARM1176 never does.
        """
        return self.old_core or not self.registers["TTBR0"] & (1 << 6 | 1)

    def fill(self, attributes: np.ndarray) -> None:
        """Set the attribute of each physical page of 4 GiB."""
        attributes[:] = 0
        control = self.registers["SCTLR"]
        if control & (M | C) != M | C:
            return
        kinds = np.full(PAGE_ENTRIES, 255, np.uint8)
        split = self.registers["TTBCR"] & 7
        low = self._words(self.registers["TTBR0"] & ~((1 << 14 - split) - 1), 4096 >> split)
        tables = [low]
        if split:
            high = self._words(self.registers["TTBR1"] & ~0x3FFF, 4096)
            tables.append(high[4096 >> split :])
        left = MAX_TABLES
        for words in tables:
            for word in np.unique(words).tolist():
                if word & 3 == 2:
                    kind = self._kind(word >> 12 & 7, word >> 2 & 3, bool(word & SHARED_SECTION))
                    if word & SUPERSECTION:
                        _merge(kinds, word >> 24 << 12, 4096, kind)
                    else:
                        _merge(kinds, word >> 20 << 8, 256, kind)
                elif word & 3 == 1 and left:
                    left -= 1
                    self._pages(kinds, word & ~0x3FF)
        attributes[kinds != 255] = kinds[kinds != 255]

    def _pages(self, kinds: np.ndarray, table: int) -> None:
        for word in self._words(table, 256).tolist():
            shared = bool(word & SHARED_PAGE)
            if word & 3 == 1:
                kind = self._kind(word >> 12 & 7, word >> 2 & 3, shared)
                _merge(kinds, word >> 16 << 4, 16, kind)
            elif word & 2:
                _merge(kinds, word >> 12, 1, self._kind(word >> 6 & 7, word >> 2 & 3, shared))

    def _kind(self, tex: int, cb: int, shared: bool) -> int:
        if self.registers["SCTLR"] & TRE:
            index = (tex & 1) << 2 | cb
            normal = self.registers["PRRR"] >> 2 * index & 3 == 2
            policy = self.registers["NMRR"] >> 2 * index & 3
            kind = (UNCACHED, WRITE_BACK, WRITE_THROUGH, WRITE_BACK)[policy] if normal else UNCACHED
        elif tex & 4:
            kind = KINDS[cb]
        elif tex == 0:
            kind = UNCACHED if cb < 2 else (WRITE_THROUGH, WRITE_BACK)[cb & 1]
        else:
            kind = WRITE_BACK if tex == 1 and cb == 3 else UNCACHED
        if not self.old_core:
            return UNCACHED if kind == WRITE_THROUGH else kind
        if shared:
            return UNCACHED
        return READ_ALLOCATE if kind == WRITE_BACK else kind

    def _words(self, address: int, count: int) -> Any:
        self.tables.append((address, 4 * count))
        return self.memory.array(address, count, "<u4")


@dataclass
class Mapping64:
    """Walks long descriptors; `registers`: "SCTLR", "TTBR0", "TTBR1", "TCR", "MAIR" of one level."""

    memory: GuestMemory
    registers: Mapping[str, int]
    two_halves: bool
    tables: list[tuple[int, int]] = field(default_factory=list)
    """Address and size of the tables that were followed."""
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def fill(self, attributes: np.ndarray) -> None:
        """Set the attribute of each physical page of 4 GiB; other granules count as uncached."""
        attributes[:] = 0
        if self.registers["SCTLR"] & (M | C) != M | C:
            return
        tcr = self.registers["TCR"]
        kinds = np.full(PAGE_ENTRIES, 255, np.uint8)
        self._seen.clear()
        if tcr >> 14 & 3 == 0:
            self._half(kinds, self.registers["TTBR0"], tcr & 63)
        if self.two_halves and tcr >> 30 & 3 == 2 and not tcr >> 23 & 1:
            self._half(kinds, self.registers["TTBR1"], tcr >> 16 & 63)
        attributes[kinds != 255] = kinds[kinds != 255]

    @property
    def walks_past_cache(self) -> bool:
        """Whether table walks do not look into the data cache: TCR's inner attribute decides."""
        return not self.registers["TCR"] >> 8 & 3

    def _half(self, kinds: np.ndarray, base: int, size: int) -> None:
        first = first_table(base, size)
        if first is not None:
            self._table(kinds, *first)

    def _table(self, kinds: np.ndarray, address: int, level: int, entries: int) -> None:
        if (address, level) in self._seen or len(self._seen) >= MAX_TABLES:
            return
        self._seen.add((address, level))
        self.tables.append((address, 8 * min(entries, 512)))
        words = self.memory.array(address, min(entries, 512), "<u8")
        for word in words[words & 1 != 0].tolist():
            if level < 3 and word & 2:
                self._table(kinds, word & 0xFFFFFFFFF000, level + 1, 512)
            elif (level == 3 and word & 2) or 0 < level < 3:
                pages = 1 << 9 * (3 - level)
                start = (word & 0xFFFFFFFFF000) >> 12 & ~(pages - 1)
                _merge(kinds, start, pages, self._kind(word >> 2 & 7))

    def _kind(self, index: int) -> int:
        """Inner write-back is cached; these cores do not cache write-through."""
        attribute = self.registers["MAIR"] >> 8 * index & 0xFF
        inner = attribute & 15
        return WRITE_BACK if attribute >> 4 and inner & 4 and inner != 4 else UNCACHED


def _merge(kinds: np.ndarray, first: int, count: int, kind: int) -> None:
    """A mapping of pages: uncached wins over cached. Pages beyond 4 GiB do not exist."""
    if first < PAGE_ENTRIES:
        place = kinds[first : first + count]
        np.minimum(place, kind, out=place)
