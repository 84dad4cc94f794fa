"""Translations that are changed while the MMU is on, without the TLB being emptied.

A core may keep a valid entry of its tables for as long as it likes; programs that change one must
invalidate it, and then the new one counts. The engine forgets translations at each vsync at the
latest, so that the mistake would seldom show. The tables are compared with what they were when the
TLB was last emptied: at each vsync, when the MMU is switched on, and where a program ends. Source:
ARM ARM (ARMv7-A) B3.10.1 and B3.10.2, (ARMv8-A) D5.10.1.

Entries that were invalid are not kept by cores, and rights that grow end in a fault at most, which
systems serve: neither is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.engine.memory_types import FirstTable
from vc4lab.soc.hardware import Hardware

MOST_TABLES = 256
"""Programs with more are systems, and would cost time."""
SUPERSECTION = 1 << 18
SECTION, LARGE_SECTION, TABLE, LARGE_PAGE, SMALL_PAGE = 0xFFF1700C, 0xFF01700C, ~0x3FF, 0xFFFF740C, 0xFFFFF5CC
"""Bits of short descriptors that say what an address is: the place, TEX, C, B, S."""
LONG, LONG_TABLE = 0xFFFFFFFFF31E, 0xFFFFFFFFF002
"""Those bits of long ones: the place, the attributes' index, shareability, whether it is a page."""
ACCESSED = 1 << 10
"""Without it a long descriptor is not kept."""


def short_meaning(word: int, level: int) -> int:
    """Return what a core may keep of a short descriptor; 0: nothing."""
    kind = word & 3
    if not kind:
        return 0
    if level == 2:
        return word & (SMALL_PAGE if kind & 2 else LARGE_PAGE) | kind & 2 | 1
    if kind == 1:
        return word & TABLE | 1
    return word & (LARGE_SECTION | SUPERSECTION if word & SUPERSECTION else SECTION) | 2


def long_meaning(word: int, level: int) -> int:
    """Return what a core may keep of a long descriptor; 0: nothing."""
    if not word & 1 or (level == 3 and not word & 2):
        return 0
    if level < 3 and word & 2:
        return word & LONG_TABLE | 1
    return word & LONG | 1 if word & ACCESSED else 0


class Table(NamedTuple):
    """A table as it was: where it is, its level, its first virtual address, its words."""

    address: int
    level: int
    start: int
    words: Any
    is_long: bool

    @property
    def meaning(self) -> Callable[[int, int], int]:
        """The function that says what an entry means."""
        return long_meaning if self.is_long else short_meaning

    @property
    def span(self) -> int:
        """Bytes of virtual addresses that an entry has."""
        if self.is_long:
            return 1 << 12 + 9 * (3 - self.level)
        return 1 << (20 if self.level == 1 else 12)

    def below(self) -> Iterator[FirstTable]:
        """The tables that its entries point to."""
        import numpy as np

        for number in np.flatnonzero(self.words & 3 == (3 if self.is_long else 1)).tolist():
            start, word = self.start + number * self.span, int(self.words[number])
            if self.is_long:
                yield FirstTable(word & 0xFFFFFFFFF000, self.level + 1, 512, start, is_long=True)
            else:
                yield FirstTable(word & ~0x3FF, 2, 256, start, is_long=False)


class Change(NamedTuple):
    """An entry that means something else now."""

    entry: int
    start: int
    old: int
    new: int


@dataclass
class _CoreTables:
    """The tables of a core as they were when its TLB was last emptied."""

    first: tuple[FirstTable, ...] = ()
    flushes: int = -1
    tables: list[Table] = field(default_factory=list)
    suspect: Change | None = None
    are_used: bool = False
    """Whether the MMU was on, at any level, when SCTLR was last written: reading it costs 3 µs."""


class OldTranslations:
    """Watches the tables of a machine's cores, from before they have run."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._memory = hardware.memory
        self._cores = [_CoreTables() for _ in hardware.cores]
        self._is_reported = False
        self._works = all(cpu.alignment.works for cpu in hardware.cores)
        """Whether the engine counts what empties a TLB."""
        for cpu in hardware.cores:
            cpu.links.control_followed = self._switched

    def _switched(self, number: int) -> None:
        self._cores[number].are_used = self._hardware.cores[number].may_translate
        if self._works and not self._is_reported:
            self._look_at(self._hardware.cores[number], self._cores[number], ended=False)

    def look(self, *, ended: bool = False) -> None:
        """Compare the tables of all cores; `ended`: nothing can follow a change any more."""
        for core in self._hardware.processors.running:
            if self._is_reported or not self._works:
                return
            known = self._cores[core.cpu.number]
            if known.are_used:
                self._look_at(core.cpu, known, ended)

    def _look_at(self, cpu: Cpu, known: _CoreTables, ended: bool) -> None:
        first, flushes = cpu.first_tables, cpu.alignment.flushes
        if (first, flushes) != (known.first, known.flushes):
            known.first, known.flushes, known.suspect = first, flushes, None
            known.tables = self._read(first)
            return
        change = self._change(known.tables)
        if change is not None and (ended or change == known.suspect):
            self._report(cpu, change)
        known.suspect = change

    def _read(self, first: tuple[FirstTable, ...]) -> list[Table]:
        """All tables that are reached, copied; none where they are too many."""
        found: list[Table] = []
        left, seen = list(first), set()
        while left:
            at = left.pop()
            if at.address in seen:
                continue
            seen.add(at.address)
            if len(found) == MOST_TABLES:
                return []
            words = self._words(at.address, at.entries, at.is_long)
            found.append(Table(at.address, at.level, at.start, words.copy(), at.is_long))
            if at.level < (3 if at.is_long else 2):
                left += found[-1].below()
        return found

    def _words(self, address: int, entries: int, is_long: bool) -> Any:
        return self._memory.array(address, entries, "<u8" if is_long else "<u4")

    def _change(self, tables: list[Table]) -> Change | None:
        if not tables:
            return None
        import numpy as np  # programs without tables do not need it

        for table in tables:
            now = self._words(table.address, len(table.words), table.is_long)
            for number in np.flatnonzero(now != table.words).tolist():
                old, new = int(table.words[number]), int(now[number])
                before, after = (table.meaning(word, table.level) for word in (old, new))
                if before and after and before != after:
                    place = table.address + number * table.words.itemsize
                    return Change(place, table.start + number * table.span, old, new)
        return None

    def _report(self, cpu: Cpu, change: Change) -> None:
        self._is_reported = True
        self._hardware.reporter.report(
            "SOC-115",
            f"the translation of 0x{change.start:08x} was changed (the entry at 0x{change.entry:08x} from "
            f"0x{change.old:x} to 0x{change.new:x}) with the MMU of core {cpu.number} on, and its TLB has "
            "not been invalidated since: the core may go on with the old one",
            address=change.entry,
            block="cpu",
        )
