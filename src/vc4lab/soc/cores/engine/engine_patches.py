"""Functions of the CPU engine replaced by ours, where the engine calls them by way of a table.

A shared library calls its exported functions through a table of addresses (ELF's global offset
table), which the loader fills in; the engine exports all it has. Each entry that holds a function's
address, there or in the engine's own tables, gets the address of ours, for all engines of the
process. Nothing is changed on other systems, or where a function is not found.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO

PAGE = 4096
READ, WRITE = 1, 2
"""Rights of mprotect(2)."""
TABLES = (".got", ".got.plt", ".data.rel.ro")
_HEADER = struct.Struct("<40xQ10xHHH")
"""Fields of an ELF file: where its sections' headers are, their size, their number, whose names are the
last one's."""
_SECTION = struct.Struct("<IIQQQQIIQQ")


@cache
def library() -> ctypes.CDLL:
    """The engine's."""
    from unicorn.unicorn_py3 import unicorn as binding

    return ctypes.CDLL(binding.uclib._name)


@cache
def address_of(name: str) -> int:
    """Host address of a function of the engine; 0 if there is none of that name."""
    function = getattr(library(), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _sections(file: BinaryIO) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of an ELF file's sections."""

    def read(at: int, size: int) -> bytes:
        file.seek(at)
        return file.read(size)

    at, size, count, names = _HEADER.unpack(read(0, _HEADER.size))
    data = read(at, size * count)
    rows = [_SECTION.unpack_from(data, size * number) for number in range(count)]
    text = read(rows[names][4], rows[names][5])
    for row in rows:
        yield text[row[0] : text.index(b"\0", row[0])].decode("ascii"), row[3], row[5]


@cache
def _tables() -> tuple[tuple[int, int], ...]:
    """Host addresses and sizes of the engine's tables; none where it is not understood."""
    if sys.platform != "linux":
        return ()
    path = Path(library()._name)
    try:
        with path.open("rb") as file:
            places = [(at, size) for name, at, size in _sections(file) if name in TABLES and at]
    except (OSError, ValueError, struct.error, UnicodeDecodeError):
        return ()
    base = _base(path)
    return tuple((base + at, size) for at, size in places) if base else ()


def _base(path: Path) -> int:
    """The address of the library's first page."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[2].strip("0") == "" and Path(fields[5]) == path.resolve():
            return int(fields[0].partition("-")[0], 16)
    return 0


def replace(functions: Mapping[int, int]) -> bool:
    """Let the engine call the second function of each pair instead of the first (addresses).

    Returns whether each of them was found; if not, nothing has changed.
    """
    found: dict[int, list[int]] = {old: [] for old in functions}
    for start, size in _tables():
        data = ctypes.string_at(start, size)
        for old, places in found.items():
            places += [start + at for at in _places(data, old.to_bytes(8, sys.byteorder))]
    if not all(found.values()) or 0 in functions:
        return False
    pages = {place & -PAGE for places in found.values() for place in places}
    closed = [page for page in pages if not _is_writable(page)]
    if any(_protect(page, READ | WRITE) for page in closed):
        return False
    for old, places in found.items():
        for place in places:
            ctypes.c_uint64.from_address(place).value = functions[old]
    for page in closed:
        _protect(page, READ)
    return True


def _places(data: bytes, word: bytes) -> Iterator[int]:
    """The places of a word of 64 bits, at multiples of 8."""
    at = data.find(word)
    while at >= 0:
        if at % 8 == 0:
            yield at
        at = data.find(word, at + 1)


def _is_writable(page: int) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _rest = line.split(maxsplit=2)
        first, last = (int(one, 16) for one in span.split("-"))
        if first <= page < last:
            return "w" in rights
    return False


def _protect(page: int, rights: int) -> int:
    """mprotect(2); 0 if it worked."""
    function = ctypes.CDLL(None).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return int(function(page, PAGE, rights))
