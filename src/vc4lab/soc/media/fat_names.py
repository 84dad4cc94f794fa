"""Folder entries of a FAT file system: short names, long names and their records.

Source: Microsoft FAT specification (2005), sections 6 and 7.
"""

from __future__ import annotations

import re
import struct
import zlib

FOLDER, VOLUME, LONG_NAME, ARCHIVE = 0x10, 0x08, 0x0F, 0x20
LAST_PART = 0x40
LOWER_BASE, LOWER_EXTENSION = 0x08, 0x10
DATE = 0x21
"""1980-01-01 for every file, so that the image does not depend on when it is made."""
LONGEST_NAME = 255
PART = 13
"""Characters in one record of a long name."""
FEW = 5
"""So many names of a folder that begin alike are numbered, the others get a checksum."""
_ALLOWED = r"[A-Z0-9!#$%&'()@^_`{}~-]"
_SHORT = re.compile(rf"({_ALLOWED}{{1,8}})(?:\.({_ALLOWED}{{1,3}}))?")
_FORBIDDEN = re.compile(r'[\x00-\x1f"*/:<>?\\|]')
_NOT_SHORT = re.compile(rf"(?!{_ALLOWED}).")


def is_possible(name: str) -> bool:
    """Whether FAT can hold the name at all."""
    try:
        length = len(name.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        return False
    return 0 < length <= LONGEST_NAME and not _FORBIDDEN.search(name) and name[-1] not in ". "


def name_records(name: str, taken: set[bytes]) -> tuple[list[bytes], bytes, int]:
    """The records of the long name (none if the short one says all), short name, case bits.

    `taken` are the folder's short names so far; the new one is added.
    """
    found = _SHORT.fullmatch(name.upper()) if name.isascii() else None
    if found is not None:
        base, extension = name.partition(".")[::2]
        short = _packed(found[1], found[2] or "")
        lower = (LOWER_BASE if base.islower() else 0) | (LOWER_EXTENSION if extension.islower() else 0)
        plain = all(part.upper() == part or part.islower() for part in (base, extension))
        if short not in taken:
            taken.add(short)
            return ([] if plain else _long(name, short)), short, lower if plain else 0
    short = _numbered(name, taken)
    taken.add(short)
    return _long(name, short), short, 0


def _packed(base: str, extension: str) -> bytes:
    return base.ljust(8).encode("ascii") + extension.ljust(3).encode("ascii")


def _numbered(name: str, taken: set[bytes]) -> bytes:
    """The first free short name of the form BASE~1.EXT."""
    base, _, extension = name.upper().strip(". ").rpartition(".")
    if not base:
        base, extension = extension, ""
    base, extension = (
        _NOT_SHORT.sub("_", part.replace(" ", "").replace(".", "")) for part in (base, extension)
    )
    extension = extension[:3]
    for number in range(1, FEW):
        short = _packed(f"{base[:6]}~{number}", extension)
        if short not in taken:
            return short
    mark = zlib.crc32(name.encode("utf-16-le"))
    while True:
        short = _packed(f"{base[:2]}{mark & 0xFFFF:04X}~1", extension)
        if short not in taken:
            return short
        mark += 1


def _long(name: str, short: bytes) -> list[bytes]:
    """The records of a long name as they stand before the short one: the last part first."""
    check = 0
    for byte in short:
        check = ((check & 1) << 7) + (check >> 1) + byte & 0xFF
    units = name.encode("utf-16-le")
    count = -(-len(units) // (2 * PART))
    if len(units) % (2 * PART):
        units = (units + b"\0\0").ljust(2 * PART * count, b"\xff")
    records = []
    for number in range(count, 0, -1):
        text = units[2 * PART * (number - 1) : 2 * PART * number]
        order = number | (LAST_PART if number == count else 0)
        head = struct.pack("<B10sBBB", order, text[:10], LONG_NAME, 0, check)
        records.append(head + text[10:22] + b"\0\0" + text[22:26])
    return records


def record(short: bytes, attributes: int, cluster: int, size: int, case: int = 0) -> bytes:
    """One 32-byte entry."""
    return struct.pack(
        "<11sBBBHHHHHHHI", short, attributes, case, 0, 0, DATE, DATE, cluster >> 16, 0, DATE,
        cluster & 0xFFFF, size,
    )  # fmt: skip
