"""Which pages translation tables make Device (or Strongly-ordered) memory.

AArch32's short descriptors; its long ones (LPAE) and AArch64's tables of 4 KiB granules, which have one
form; addresses below 4 GiB. Source: ARM ARM (ARMv7-A) B3.5, B3.6 and B3.8, (ARMv8-A) D5.3 and D5.5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vc4lab.memory import GuestMemory, lazy_zeros

PAGES = 1 << 20
"""Pages in 4 GiB."""
PAGE_BITS = 12
MAX_TABLES = 2048
"""Tables of later levels that are followed."""
SUPERSECTION = 1 << 18
TEX_REMAP = 1 << 28
"""SCTLR.TRE."""
UPPER_UNUSED = 1 << 23
"""TCR.EPD1: no tables for the upper half."""
Span = tuple[int, int, int]
"""Pages with one kind of memory: the first virtual one, the first physical one, how many."""


class FirstTable(NamedTuple):
    """A table that walks begin with: its address, level, entries, and the first virtual address."""

    address: int
    level: int
    entries: int
    start: int
    is_long: bool


class DevicePages:
    """A byte for each virtual page below 4 GiB: whether it is Device memory."""

    def __init__(self) -> None:
        self._bytes = (ctypes.c_uint8 * PAGES).from_buffer(lazy_zeros(PAGES))
        self._spans: list[Span] = []

    @property
    def address(self) -> int:
        """Host address of the bytes."""
        return ctypes.addressof(self._bytes)

    def mark(self, spans: Sequence[Span]) -> None:
        """These and no others."""
        for spans_now, value in ((self._spans, 0), (spans, 1)):
            for first, _physical, count in spans_now:
                count = min(count, PAGES - first)
                ctypes.memset(self.address + first, value, max(count, 0))
        self._spans = list(spans)

    def reach_below(self, end: int) -> bool:
        """Whether one of them is before a physical address, so that RAM is Device memory."""
        return any(physical << PAGE_BITS < end for _first, physical, _count in self._spans)


def short_spans(
    memory: GuestMemory, control: int, bases: tuple[int, int], split: int, remap: int
) -> Iterator[Span]:
    """Device memory of short descriptors.

    bases, split, remap: TTBR0 and TTBR1, TTBCR, PRRR.
    """
    width = split & 7
    low = bases[0] & ~((1 << 14 - width) - 1)
    left = MAX_TABLES
    for number in range(4096):
        table = low if not width or number < 4096 >> width else bases[1] & ~0x3FFF
        word = memory.u32(table + 4 * number)
        if word & 3 == 2 and _is_device(word >> 12 & 7, word >> 2 & 3, control, remap):
            base = word >> 20
            if word & SUPERSECTION:
                base = word >> 24 << 4 | number & 15
            yield number << 8, base << 8, 256
        elif word & 3 == 1 and left:
            left -= 1
            yield from _small(memory, word & ~0x3FF, number << 8, control, remap)


def _small(memory: GuestMemory, table: int, first: int, control: int, remap: int) -> Iterator[Span]:
    for number, word in enumerate(memory.array(table, 256, "<u4").tolist()):
        if word & 3 == 1 and _is_device(word >> 12 & 7, word >> 2 & 3, control, remap):
            yield first + number, word >> 16 << 4 | number & 15, 1
        elif word & 2 and _is_device(word >> 6 & 7, word >> 2 & 3, control, remap):
            yield first + number, word >> PAGE_BITS, 1


def _is_device(tex: int, cb: int, control: int, remap: int) -> bool:
    if control & TEX_REMAP:
        return remap >> 2 * ((tex & 1) << 2 | cb) & 3 < 2
    return (tex == 0 and cb < 2) or (tex == 2 and cb == 0)


def long_control(split: int) -> int:
    """AArch64's TCR for an AArch32 TTBCR with long descriptors (EAE): the same tables, other sizes."""
    low, high = split & 7, split >> 16 & 7
    unused = 0 if low or high else UPPER_UNUSED
    kept = split & (UPPER_UNUSED | 0x3F003F00)  # EPD1, IRGNn, ORGNn, SHn
    return kept | unused | 32 + low | 32 + high << 16 | 2 << 30


def first_table(base: int, size: int) -> tuple[int, int, int] | None:
    """Address, level and number of entries of a half's first table; None if there is none.

    base, size: TTBRn, TnSZ.
    """
    bits = 64 - size
    if not PAGE_BITS < bits <= 48:
        return None
    level = 3 - (bits - 13) // 9
    entries = 1 << bits - PAGE_BITS - 9 * (3 - level)
    return base & (1 << 48) - 1 & -8 * entries, level, entries


def long_spans(memory: GuestMemory, base: int, control: int, attributes: int) -> Iterator[Span]:
    """Device memory of the lower half of long descriptors.

    base, control, attributes: TTBR0, TCR, MAIR.
    """
    first = first_table(base, control & 63)
    if first is None or control >> 14 & 3:
        return
    table, level, entries = first
    left = [MAX_TABLES]
    yield from _level(memory, table, level, 0, attributes, left, entries)


def _level(
    memory: GuestMemory, table: int, level: int, first: int, attributes: int, left: list[int], entries: int
) -> Iterator[Span]:
    pages = 1 << 9 * (3 - level)
    for number, word in enumerate(memory.array(table, entries, "<u8").tolist()):
        place = first + number * pages
        if place >= PAGES:
            return
        if level < 3 and word & 3 == 3:
            if left[0]:
                left[0] -= 1
                below = word & 0xFFFFFFFFF000
                yield from _level(memory, below, level + 1, place, attributes, left, 512)
        elif word & 1 and (level == 3) == bool(word & 2) and level > 0:
            if not attributes >> 8 * (word >> 2 & 7) & 0xF0:
                yield place, (word & 0xFFFFFFFFF000) >> PAGE_BITS & ~(pages - 1), pages


# -- one address -----------------------------------------------------------------------------------


def is_uncached_short(
    memory: GuestMemory, address: int, control: int, bases: tuple[int, int], split: int, maps: tuple[int, int]
) -> bool:
    """Whether short descriptors make an address memory that no data cache holds.

    control, bases, split, maps: SCTLR, TTBR0 and TTBR1, TTBCR, PRRR and NMRR.
    """
    width = split & 7
    low = not width or address >> 32 - width == 0
    table = bases[0] & ~((1 << 14 - width) - 1) if low else bases[1] & ~0x3FFF
    word = memory.u32(table + (address >> 20) * 4)
    if word & 3 == 2:
        return _is_uncached(word >> 12 & 7, word >> 2 & 3, control, maps)
    if word & 3 != 1:
        return False
    word = memory.u32((word & ~0x3FF) + (address >> 12 & 0xFF) * 4)
    if not word & 3:
        return False
    return _is_uncached(word >> (6 if word & 2 else 12) & 7, word >> 2 & 3, control, maps)


def _is_uncached(tex: int, cb: int, control: int, maps: tuple[int, int]) -> bool:
    if control & TEX_REMAP:
        index = 2 * ((tex & 1) << 2 | cb)
        return maps[0] >> index & 3 < 2 or not maps[1] >> index & 3
    if tex & 4:
        return not cb
    return _is_device(tex, cb, control, maps[0]) or (tex == 1 and cb == 0)


def is_uncached_long(memory: GuestMemory, address: int, base: int, size: int, attributes: int) -> bool:
    """Whether long descriptors make an address memory that no data cache holds.

    base, size, attributes: the half's TTBR and TnSZ, MAIR.
    """
    first = first_table(base, size)
    if first is None:
        return False
    table, highest, entries = first
    for level in range(highest, 4):
        index = address >> PAGE_BITS + 9 * (3 - level) & (entries if level == highest else 512) - 1
        word = int(memory.array(table + 8 * index, 1, "<u8")[0])
        if level < 3 and word & 3 == 3:
            table = word & 0xFFFFFFFFF000
            continue
        if not word & 1 or (level == 3) != bool(word & 2):
            return False
        attribute = attributes >> 8 * (word >> 2 & 7) & 0xFF
        return not attribute & 0xF0 or attribute & 15 == 4
    return False
