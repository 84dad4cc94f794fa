"""The addresses that lists, records and uniforms name: RAM, aligned, of one alias?

`AddressCheck.uses` is called once for each range a job names, not for each access. A listener
for `MemoryUse` (a model of caches) gets each range. Source: hardware reference 1.5,
8.15.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING

from vc4lab.listeners import Listeners
from vc4lab.memory import BUS_PERIPHERALS, MEMORY_MASK, MEMORY_SIZE
from vc4lab.v3d.events import MemoryUse, Use

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

UNCACHED_ALIAS = 3
"""Bits 31:30 of the alias that goes past the VideoCore's L2 cache; the others go through it."""
PAGE_SHIFT, LINE_SHIFT = 12, 6
BOTH_ALIASES = 0xFF
"""In `AddressCheck.pages`: named both ways."""
MAX_RANGES = 1 << 14
MAX_POOLS = 4
"""Pools of tile lists that are remembered."""


NEVER_AT_ZERO = (Use.LIST, Use.SHADER_RECORD, Use.CODE, Use.TILE_MEMORY)
CHECKED_TO_END = (Use.TEXTURE, Use.ATTRIBUTES, Use.INDICES)
ALIGNMENT = {Use.CODE: 8, Use.UNIFORMS: 4}
"""Bytes; what lists and records need is in `hints.py`."""


class AddressCheck:
    """Looks at each named range once, for one V3D.

    Parameters
    ----------
    ram_bytes
        Populated RAM; with the whole 1 GiB nothing can lie outside of it.
    used
        Listeners for each use.
    """

    def __init__(
        self, reporter: Reporter, ram_bytes: int = MEMORY_SIZE, used: Listeners[MemoryUse] | None = None
    ) -> None:
        self.reporter = reporter
        self.ram_bytes = ram_bytes
        self.used: Listeners[MemoryUse] = used or Listeners()
        self._pages = (ctypes.c_uint8 * (MEMORY_SIZE >> PAGE_SHIFT))()
        self._lines: dict[int, int] = {}
        self._known: set[int] = set()
        """Use, address and size in one number: thousands are kept, and tuples are large."""
        self._pools: deque[tuple[int, int]] = deque(maxlen=MAX_POOLS)
        self.has_direct_bus = False
        """Whether bus addresses of the board have the alias that goes past the L2 cache."""
        self._told_plain = False

    def forget(self) -> None:
        """Addresses mean something else from now on: another program's memory is there."""
        self._known.clear()
        self._lines.clear()
        self._pools.clear()
        ctypes.memset(self._pages, 0, ctypes.sizeof(self._pages))

    @property
    def pages(self) -> int:
        """Host address of a byte a page, for native code: its alias + 1, 0 if it was not named."""
        return ctypes.addressof(self._pages)

    def name(self, use: Use, address: int, size: int = 4, record: int | None = None) -> None:
        """Reports a use by native code, which is checked already, to listeners."""
        self.used.emit(MemoryUse(use, address, size, record))

    def uses(self, use: Use, address: int, size: int = 4, record: int | None = None) -> None:
        """A job names `size` bytes at a bus address; `record`: where it names them."""
        if self.used.subscriptions:
            self.used.emit(MemoryUse(use, address, size, record))
        key = (size << 64) + (address << 8) + use.number
        if key in self._known:
            return
        if len(self._known) >= MAX_RANGES:
            self._known.clear()
        self._known.add(key)
        if self._in_ram(use, address, record):
            self._inside(use, address, size, record)
            self._one_alias(use, address, record)
            # 0 is no address: a job that draws only depth has no frame buffer.
            if self.has_direct_bus and address and not address >> 30:
                self._plain(use, address, record)
            if use is Use.TILE_MEMORY:
                self._pools.append((address, size))
            alignment = ALIGNMENT.get(use, 1)
            if address % alignment:
                self.reporter.report(
                    "MEM-002",
                    f"{use.words} at 0x{address:08x} is not a multiple of {alignment}",
                    address=record,
                )

    def tile_list(self, address: int, record: int) -> None:
        """The rendering list branches (`record`) to the list that the binner wrote for a tile."""
        self.uses(Use.TILE_LIST, address, 1, record)
        place, alias = address & MEMORY_MASK, address >> 30
        for pool, size in list(self._pools):
            start = pool & MEMORY_MASK
            line = start >> LINE_SHIFT
            inside = start <= place < start + size and place >> LINE_SHIFT != line
            if inside and (pool >> 30 == UNCACHED_ALIAS) != (alias == UNCACHED_ALIAS):
                self._pools.remove((pool, size))
                self._report_alias(Use.TILE_LIST, address, start, pool >> 30, record)

    def about_tile_list(self, address: int) -> str:
        """Say where the binner writes its lists, for the end of a sentence about one that is elsewhere."""
        place, pools = address & MEMORY_MASK, list(self._pools)
        starts = [start & MEMORY_MASK for start, _ in pools]
        if not pools or any(at <= place < at + size for at, (_, size) in zip(starts, pools, strict=True)):
            return ""
        start, size = pools[-1]
        return (
            f"; it is not in the memory that record 112 gives to the binner for them, 0x{start:08x} to "
            f"0x{start + size - 1:08x}"
        )

    def _plain(self, use: Use, address: int, record: int | None) -> None:
        """Reports once an ARM address where bus addresses bypass the L2 cache.

        Other aliases are used on purpose.
        """
        if self._told_plain:
            return
        self._told_plain = True
        self.reporter.report(
            "CLE-041",
            f"{use.words} is given by its ARM address 0x{address:08x}; the bus address is "
            f"0x{address & MEMORY_MASK | UNCACHED_ALIAS << 30:08x}",
            address=record,
        )

    def _in_ram(self, use: Use, address: int, record: int | None) -> bool:
        if address >> 24 == BUS_PERIPHERALS:
            why = "where the device registers are"
        elif use in NEVER_AT_ZERO and not address & MEMORY_MASK:
            why = "where the exception vectors are: was the address never filled in?"
        elif address & MEMORY_MASK < self.ram_bytes:
            return True
        else:
            why = f"but the RAM ends at 0x{address & ~MEMORY_MASK | self.ram_bytes - 1:08x}"
        self.reporter.report(use.code, f"{use.words} at 0x{address:08x}, {why}", address=record)
        return False

    def _inside(self, use: Use, address: int, size: int, record: int | None) -> None:
        """Checks that arrays and textures end inside the RAM; sizes of pools may be arbitrary."""
        if use in CHECKED_TO_END and (address & MEMORY_MASK) + size > self.ram_bytes:
            text = f"{use.words} of {size} bytes at 0x{address:08x} extends past the end of the RAM"
            self.reporter.report(use.code, text, address=record)

    def _one_alias(self, use: Use, address: int, record: int | None) -> None:
        """Reports a line used both past the L2 cache and through it, which may hold other bytes.

        The table of pages only shows native code which pages need a closer look.
        """
        page, alias = (address & MEMORY_MASK) >> PAGE_SHIFT, address >> 30
        if not self._pages[page]:
            self._pages[page] = alias + 1
        elif (self._pages[page] == UNCACHED_ALIAS + 1) != (alias == UNCACHED_ALIAS):
            self._pages[page] = BOTH_ALIASES
        line = (address & MEMORY_MASK) >> LINE_SHIFT
        if len(self._lines) >= MAX_RANGES:
            self._lines.clear()
        before = self._lines.setdefault(line, alias)
        if (before == UNCACHED_ALIAS) != (alias == UNCACHED_ALIAS):
            self._lines[line] = alias
            self._report_alias(use, address, line << LINE_SHIFT, before, record)

    def _report_alias(self, use: Use, address: int, place: int, before: int, record: int | None) -> None:
        self.reporter.report(
            "CLE-023",
            f"{use.words} is given as 0x{address:08x}, but 0x{place:08x} was given "
            f"with the alias 0x{before << 30:08x} before",
            address=record,
        )
