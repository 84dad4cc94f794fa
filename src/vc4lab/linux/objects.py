"""Finds what a program or kernel module needs: read from the ELF file, which need not be trusted.

Sources: the ELF specification; Linux, scripts/mod/modpost.c for `.modinfo`.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC, LITTLE = b"\x7fELF", 1
NARROW, WIDE = 1, 2
LOAD, DYNAMIC, INTERPRETER = 1, 2, 3
NEEDED, STRING_TABLE = 1, 5
MAX_HEADERS, MAX_TEXT = 4096, 4096


class BadObject(ValueError):  # noqa: N818 - said to the user as it is
    """The file is none of the kind that is expected, or damaged."""


@dataclass(frozen=True)
class Needed:
    """The files that a program needs to start."""

    libraries: tuple[str, ...]
    interpreter: str
    """The path of its loader, "" without one."""


@dataclass(frozen=True)
class _Layout:
    """The places of fields in a class of ELF files: formats for `struct`, offsets in bytes, indices."""

    pointer: str
    program_headers: int
    section_headers: int
    program_header: str
    """Kind, offset, address and size in the file at `at`."""
    at: tuple[int, int, int, int]
    dynamic: str
    section_header: str
    """Name, offset and size at 0, 4 and 5."""


_LAYOUTS = {
    NARROW: _Layout("<I", 0x1C, 0x20, "<8I", (0, 1, 2, 4), "<II", "<10I"),
    WIDE: _Layout("<Q", 0x20, 0x28, "<IIQQQQQQ", (0, 2, 3, 5), "<QQ", "<IIQQQQIIQQ"),
}


def _layout(head: bytes | mmap.mmap) -> _Layout | None:
    """That of a little-endian ELF file; None for other files."""
    if head[:4] != MAGIC or head[5:6] != bytes((LITTLE,)):
        return None
    return _LAYOUTS.get(head[4])


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def needs_of(path: Path) -> Needed | None:
    """Return the files that an ELF program or library names, else None. Raises BadObject, OSError."""
    with path.open("rb") as file:
        layout = _layout(file.read(6))
        if layout is None:
            return None
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            return _needs(data, path, layout)


def _needs(data: mmap.mmap, path: Path, layout: _Layout) -> Needed:
    segments = _segments(data, path, layout)
    interpreter = ""
    entries: list[tuple[int, int]] = []
    for segment in segments:
        if segment.kind == INTERPRETER:
            interpreter = _text(data, segment.offset)
        elif segment.kind == DYNAMIC:
            content = data[segment.offset : segment.offset + segment.size]
            whole = len(content) - len(content) % struct.calcsize(layout.dynamic)
            entries = list(struct.iter_unpack(layout.dynamic, content[:whole]))
    strings = next((value for tag, value in entries if tag == STRING_TABLE), None)
    names = [value for tag, value in entries if tag == NEEDED]
    if not names:
        return Needed((), interpreter)
    table = None if strings is None else _place(segments, strings)
    if table is None:
        raise BadObject(f"{path}: its table of names is not in the file")
    return Needed(tuple(_text(data, table + name) for name in names), interpreter)


def _segments(data: mmap.mmap, path: Path, layout: _Layout) -> list[_Segment]:
    places = layout.program_headers
    sizes = layout.section_headers + struct.calcsize(layout.pointer) + 6
    try:
        (at,) = struct.unpack_from(layout.pointer, data, places)
        size, count = struct.unpack_from("<HH", data, sizes)
        if count > MAX_HEADERS:
            raise BadObject(f"{path}: has {count} program headers")
        found = []
        for number in range(count):
            row = struct.unpack_from(layout.program_header, data, at + number * size)
            found.append(_Segment(*(row[n] for n in layout.at)))
    except (struct.error, OverflowError):  # also places that no file has
        raise BadObject(f"{path}: its program headers are not in the file") from None
    return found


def _place(segments: list[_Segment], address: int) -> int | None:
    """Return the offset in the file of a program's address, or None."""
    for segment in segments:
        if segment.kind == LOAD and 0 <= address - segment.address < segment.size:
            return address - segment.address + segment.offset
    return None


def _text(data: mmap.mmap, at: int) -> str:
    end = data.find(b"\0", at, at + MAX_TEXT)
    return data[at : max(end, at)].decode("utf-8", "replace")


def module_needs(image: bytes) -> tuple[str, ...]:
    """Names of the modules that a kernel module says it depends on. Raises BadObject."""
    for field in _section(image, b".modinfo").split(b"\0"):
        if field.startswith(b"depends="):
            return tuple(name for name in field[8:].decode("ascii", "replace").split(",") if name)
    return ()


def _section(image: bytes, name: bytes) -> bytes:
    try:
        layout = _layout(image)
        if layout is None:
            raise BadObject("is no ELF file")
        (table,) = struct.unpack_from(layout.pointer, image, layout.section_headers)
        sizes = layout.section_headers + struct.calcsize(layout.pointer) + 10
        size, count, names = struct.unpack_from("<HHH", image, sizes)
        rows = []
        for number in range(count):
            row = struct.unpack_from(layout.section_header, image, table + number * size)
            rows.append((row[0], row[4], row[5]))
        texts = rows[names][1]
    except (struct.error, IndexError, OverflowError):
        raise BadObject("has section headers that are not in the file") from None
    for title, offset, length in rows:
        if image[texts + title : texts + title + len(name) + 1] == name + b"\0":
            return image[offset : offset + length]
    return b""
