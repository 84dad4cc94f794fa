"""Names of a running Linux: functions of the kernel and of its modules, and who called them.

The kernel's names are its own table (`kallsyms.py`). Each module has its symbols in memory, with
addresses, and all modules are in a list. Where a configuration puts what inside of a `struct
module` is not written anywhere, and the list's head has a name in few kernels only, so both are
found by what they must look like.
Source: Linux, include/linux/module.h (struct module, struct mod_kallsyms), kernel/module/.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vc4lab.memory import GuestMemory
from vc4lab.soc.boot.boot_plan import BootPlan
from vc4lab.soc.boot.symbols import FUNCTION, Symbol, SymbolTable
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.inspect.kallsyms import BadKallsyms, Kallsyms

PAGE = 4096
SEARCHED = 96 << 20
"""Bytes from the kernel's address on among which its tables are."""
MAX_MODULES, MAX_SYMBOLS = 500, 100_000
MODULE_BYTES, ALIGNMENT = 0x800, 64
"""In which the symbols of a `struct module` are found; where it begins."""
NEAR = 8 << 20
"""A module's functions and its `struct module`, or that of another one, are not farther apart."""
MAX_SEARCHES = 8
NAME_AT, LONGEST_NAME = 2, 56
"""In a `struct module`: pointers between its list and its name."""
MAX_CALLERS = 3
FRAME_POINTER = 29
INSTRUCTION = 4


@dataclass(frozen=True)
class Layout:
    """Sizes of one kind of kernel: a pointer, a symbol, what is read of it."""

    pointer: str
    symbol: struct.Struct
    lowest: int
    """Kernel addresses begin here."""

    @property
    def unit(self) -> int:
        """Bytes of a pointer."""
        return struct.calcsize(self.pointer)


WIDE = Layout("<Q", struct.Struct("<IBBHQQ"), 1 << 63)
NARROW = Layout("<I", struct.Struct("<IIIBBH"), 0x40000000)


class KernelPlaces:
    """Names addresses of a Linux that runs in guest memory.

    Parameters
    ----------
    plan
        The kernel that was booted.
    core
        Gives the core through whose MMU modules are read.
    """

    def __init__(self, memory: GuestMemory, plan: BootPlan, core: Callable[[], Cpu]) -> None:
        self._memory, self._plan, self._core = memory, plan, core
        self._layout = WIDE if plan.wide else NARROW
        self._kernel: Kallsyms | None = None
        self._searches = 0
        self._tables: dict[int, tuple[str, int, int, SymbolTable]] = {}
        """Modules by address of the list's entry: name, first and last address, functions."""

    def name(self, address: int) -> str | None:
        """ "drm_ioctl+0x14", "vc4_submit+0x20 [vc4]", or None."""
        if address < self._layout.lowest or not self._is_there():
            return None
        assert self._kernel is not None
        return self._kernel.name(address) or self._in_module(address)

    def callers(self) -> list[str]:
        """The functions that called the one in which an AArch64 core is, innermost first."""
        core = self._core()
        if not self._plan.wide or core.engine_pc < self._layout.lowest:
            return []
        found: list[str] = []
        frame = core.register(FRAME_POINTER)
        while len(found) < MAX_CALLERS:
            record = self._read(frame, 16)
            if frame < self._layout.lowest or len(record) != 16:
                break
            after, back = struct.unpack("<QQ", record)
            name = self.name(back - INSTRUCTION)
            if name is None:
                break
            found.append(name)
            if after <= frame:
                break
            frame = after
        return found

    def _is_there(self) -> bool:
        """Whether the kernel's table has been found; a machine may get its memory later."""
        if self._kernel is None and self._searches < MAX_SEARCHES:
            self._searches += 1
            image = self._memory.read(self._plan.address & ~0xFFFFF, SEARCHED)
            with contextlib.suppress(BadKallsyms):
                self._kernel = Kallsyms(image, wide=self._plan.wide)
        return self._kernel is not None

    # -- modules -----------------------------------------------------------------------------------

    def _in_module(self, address: int) -> str | None:
        for again in (False, True):
            if again:
                self._look_for_modules(address)
            for module, first, last, table in self._tables.values():
                if first <= address <= last and (name := table.name(address)) is not None:
                    return f"{name} [{module}]"
        return None

    def _look_for_modules(self, address: int) -> None:
        """Find one near an address in a module; the list leads from it to all others."""
        first = self._module_near(address)
        there = list(self._modules(first)) if first is not None else []
        self._tables = {at: self._tables.get(at) or self._symbols(at) for at in there}

    def _module_near(self, address: int) -> int | None:
        """The list entry of a module whose memory is at or after an address."""
        start = address & -PAGE
        area = b"".join(self._read(start + at, PAGE).ljust(PAGE, b"\0") for at in range(0, NEAR, PAGE))
        for at in self._symbol_words(area):
            step = ALIGNMENT
            for entry in range(at & -step, max(at - MODULE_BYTES, 0), -step):
                place = entry + self._layout.unit  # after the state, with its padding
                if self._is_module(area[place : place + MODULE_BYTES]):
                    return start + place
        return None

    def _symbol_words(self, data: bytes) -> Iterator[int]:
        """Find each `struct mod_kallsyms`: symbols, their number, names right after, types."""
        unit, size = self._layout.unit, self._layout.symbol.size
        words = np.frombuffer(data, f"<u{unit}", len(data) // unit).astype(np.uint64)
        table, count, names, types = words[:-3], words[1:-2], words[2:-1], words[3:]
        fits = (count > 1) & (count < MAX_SYMBOLS) & (table >= self._layout.lowest)
        fits &= (names == table + count * np.uint64(size)) & (types > names)
        yield from (int(at) * unit for at in np.flatnonzero(fits))

    def _is_module(self, entry: bytes) -> bool:
        """Whether these bytes are a `struct module` from its list on: two pointers, a name."""
        unit = self._layout.unit
        after, before = struct.unpack_from(f"<2{self._layout.pointer[-1]}", entry)
        raw = entry[NAME_AT * unit : NAME_AT * unit + LONGEST_NAME]
        name = raw.rstrip(b"\0")
        linked = min(after, before) >= self._layout.lowest and not (after | before) % unit
        return linked and bool(name) and name.replace(b"_", b"").isalnum()

    def _modules(self, first: int) -> Iterator[int]:
        """Addresses of the list's entries, but for its head, which is no module."""
        at: int | None = first
        for _module in range(MAX_MODULES):
            if at is None or at < self._layout.lowest:
                return
            if self._is_module(self._read(at, MODULE_BYTES).ljust(MODULE_BYTES, b"\0")):
                yield at
            at = self._pointer(at)
            if at == first:
                return

    def _symbols(self, entry: int) -> tuple[str, int, int, SymbolTable]:
        """A module's name, first and last address of its functions, and these."""
        unit = self._layout.unit
        module = _plain(self._read(entry + NAME_AT * unit, LONGEST_NAME))
        data = self._read(entry, MODULE_BYTES).ljust(MODULE_BYTES, b"\0")
        for at in self._symbol_words(data):
            table, count, names = struct.unpack_from(f"<3{self._layout.pointer[-1]}", data, at)
            found = self._functions(table, count, names)
            if found:
                last = max(symbol.address + symbol.size for symbol in found)
                first = min(symbol.address for symbol in found)
                return module, first, last, SymbolTable(found)
        return module, 1, 0, SymbolTable([])

    def _functions(self, table: int, count: int, names: int) -> list[Symbol]:
        """Symbols of a module, the first of which is none and has no name."""
        layout = self._layout.symbol
        raw = self._read(table, count * layout.size)
        if len(raw) != count * layout.size or any(raw[: layout.size]):
            return []
        found = []
        for fields in layout.iter_unpack(raw):
            if self._plan.wide:
                text, info, _other, section, value, size = fields
            else:
                text, value, size, info, _other, section = fields
            if info & 15 == FUNCTION and section and value >= self._layout.lowest:
                name = _plain(self._read(names + text, LONGEST_NAME))
                found.append(Symbol(value, size, name, FUNCTION))
        return found

    # -- memory ------------------------------------------------------------------------------------

    def _pointer(self, address: int) -> int | None:
        raw = self._read(address, self._layout.unit)
        return int.from_bytes(raw, "little") if len(raw) == self._layout.unit else None

    def _read(self, address: int, size: int) -> bytes:
        """Bytes at a virtual address, fewer where no memory is."""
        out = bytearray()
        core = self._core()
        while len(out) < size:
            here = address + len(out)
            place = core.translate(here) if 0 <= here < 1 << 64 else None
            if place is None or not self._memory.contains(place):
                break
            out += self._memory.read(place, min(size - len(out), PAGE - here % PAGE))
        return bytes(out)


def _plain(data: bytes) -> str:
    """A text that ends with a 0."""
    name = data.partition(b"\0")[0]
    return "".join(c if c.isprintable() else "?" for c in name.decode("utf-8", "replace"))
