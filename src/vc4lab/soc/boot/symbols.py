"""Names for guest addresses, from the ELF file a kernel image was made of.

A small reader for little-endian ELF32 and ELF64: program headers and the symbol table, nothing
else. The file is not trusted: every offset is checked, counts and names are bounded, and whatever
is wrong ends in `BadElf` with a sentence.
Source: System V ABI, chapters 4 and 5; ELF for the Arm Architecture (mapping symbols).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path

from vc4lab.files import read_up_to

LARGEST_FILE = 256 << 20
MAX_SYMBOLS = 500_000
MAX_HEADERS = 1000
LONGEST_NAME = 120
COMPARED = 4096
"""Bytes of a segment that are compared with the image."""
FOUND_BY = 16
"""Bytes of an image by which its beginning is looked for in a segment."""
FARTHEST = 1 << 20
"""A symbol without a size names so many bytes after it."""
PT_LOAD, SHT_SYMTAB = 1, 2
NOTYPE, OBJECT, FUNCTION = 0, 1, 2


class BadElf(ValueError):  # noqa: N818 - said to the user as it is
    """The file is no ELF file, or a damaged one."""


@dataclass(frozen=True)
class Segment:
    """A part of the program: where it is loaded (physical address), its bytes, and how many the
    file should have; fewer if it is cut off.
    """

    address: int
    data: bytes
    size: int = 0


@dataclass(frozen=True)
class Symbol:
    """A name for `size` bytes at `address` (size 0: up to the next symbol)."""

    address: int
    size: int
    name: str
    kind: int


class SymbolTable:
    """The symbols of a program, looked up by address."""

    def __init__(self, symbols: list[Symbol], segments: list[Segment] | None = None) -> None:
        rank = {FUNCTION: 2, OBJECT: 1}
        best: dict[int, Symbol] = {}
        for symbol in symbols:
            known = best.get(symbol.address)
            if known is None or rank.get(symbol.kind, 0) > rank.get(known.kind, 0):
                best[symbol.address] = symbol
        self.symbols = [best[address] for address in sorted(best)]
        self.segments = segments or []
        self._addresses = [symbol.address for symbol in self.symbols]

    def __len__(self) -> int:
        return len(self.symbols)

    def name(self, address: int) -> str | None:
        """ "main+0x14" for an address, None if no symbol covers it."""
        index = bisect_right(self._addresses, address) - 1
        if index < 0:
            return None
        symbol = self.symbols[index]
        distance = address - symbol.address
        if distance >= (symbol.size or FARTHEST):
            return None
        return symbol.name + (f"+0x{distance:x}" if distance else "")

    def linked_at(self, image: bytes) -> int | None:
        """The address that the program is linked for, if an image begins like one of its parts."""
        head = image[:FOUND_BY]
        for segment in self.segments:
            at = segment.data.find(head) if len(head) == FOUND_BY else -1
            if at >= 0:
                return segment.address + at
        return None

    def moved(self, distance: int) -> SymbolTable:
        """Give the symbols of this program as they are `distance` bytes further on."""
        symbols = [replace(one, address=one.address + distance) for one in self.symbols]
        parts = [replace(part, address=part.address + distance) for part in self.segments]
        return SymbolTable(symbols, parts)

    def matches(self, image: bytes, address: int) -> bool:
        """Whether an image loaded to `address` is this program."""
        compared = 0
        for segment in self.segments:
            start = max(segment.address, address)
            end = min(segment.address + len(segment.data), address + len(image), start + COMPARED)
            if start < end:
                here = segment.data[start - segment.address : end - segment.address]
                if here != image[start - address : end - address]:
                    return False
                compared += end - start
        return compared > 0


def read_elf(data: bytes) -> SymbolTable:
    """The symbols and segments of an ELF file. Raises BadElf."""
    if data[:4] != b"\x7fELF":
        raise BadElf("no ELF file")
    if data[4:5] not in (b"\1", b"\2") or data[5:6] != b"\1":
        raise BadElf("not a little-endian ELF file")
    try:
        return _read(data, wide=data[4] == 2)
    except (struct.error, OverflowError):  # also places that no file has
        raise BadElf("a truncated ELF file") from None


def load_elf(path: Path) -> SymbolTable:
    """Read a file. Raises BadElf, OSError."""
    if path.exists() and not path.is_file():
        raise BadElf("no plain file")
    with path.open("rb") as file:
        data = read_up_to(file, LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise BadElf(f"larger than {LARGEST_FILE >> 20} MiB")
    return read_elf(data)


def _read(data: bytes, wide: bool) -> SymbolTable:
    if wide:
        segments_at, sections_at = struct.unpack_from("<QQ", data, 0x20)
        segment_size, segments, section_size, sections = struct.unpack_from("<4H", data, 0x36)
    else:
        segments_at, sections_at = struct.unpack_from("<II", data, 0x1C)
        segment_size, segments, section_size, sections = struct.unpack_from("<4H", data, 0x2A)
    if max(segments, sections) > MAX_HEADERS:
        raise BadElf("an ELF file with too many headers")
    loaded = []
    for at in range(segments_at, segments_at + segments * segment_size, max(segment_size, 1)):
        if wide:
            kind, _flags, offset, _virtual, place, size = struct.unpack_from("<IIQQQQ", data, at)
        else:
            kind, offset, _virtual, place, size = struct.unpack_from("<5I", data, at)
        if kind == PT_LOAD:
            loaded.append(Segment(place, data[offset : offset + min(size, len(data))], size))
    headers = []
    for at in range(sections_at, sections_at + sections * section_size, max(section_size, 1)):
        if wide:
            _name, kind, _flags, _address, offset, size, link = struct.unpack_from("<IIQQQQI", data, at)
        else:
            _name, kind, _flags, _address, offset, size, link = struct.unpack_from("<7I", data, at)
        headers.append((kind, offset, size, link))
    symbols: list[Symbol] = []
    for kind, offset, size, link in headers:
        if kind == SHT_SYMTAB and link < len(headers):
            names_at, names_size = headers[link][1:3]
            names = data[names_at : names_at + names_size]
            symbols += _symbols(data[offset : offset + size], names, wide)
    return SymbolTable(symbols, loaded)


def _symbols(table: bytes, names: bytes, wide: bool) -> list[Symbol]:
    size = 24 if wide else 16
    found = []
    for at in range(0, min(len(table) // size, MAX_SYMBOLS) * size, size):
        if wide:
            name_at, info, _other, section, value, length = struct.unpack_from("<IBBHQQ", table, at)
        else:
            name_at, value, length, info, _other, section = struct.unpack_from("<IIIBBH", table, at)
        kind = info & 15
        if kind not in (NOTYPE, OBJECT, FUNCTION) or section == 0:
            continue
        end = names.find(b"\0", name_at, name_at + LONGEST_NAME)
        raw = names[name_at : end if end >= 0 else name_at + LONGEST_NAME]
        name = "".join(c if c.isprintable() else "?" for c in raw.decode("utf-8", "replace"))
        if not name or name.startswith("$"):
            continue
        if kind == FUNCTION and not wide:
            value &= ~1  # bit 0 says Thumb
        found.append(Symbol(value, length, name, kind))
    return found
