"""RAM in a saved state: `ram.bin` has the pages that are not zero, one after another.

Packed, the file is small. Stored as they are, and at a multiple of the host's page size, pages can
be mapped: a gigabyte is there at once, and what is never touched is never read.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator, Sequence

import numpy as np

from vc4lab.memory import GuestMemory
from vc4lab.memory.mappings import PAGE as HOST_PAGE
from vc4lab.soc.states.state_table import BadValue

PAGE = 1 << 16
NAME = "ram.bin"
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
MAGIC = b"PK\3\4"
PADDING = 0xD935
"""The kind of extra field that aligns a member's data, as other tools use it."""
FIELD_HEADER = 4


def used_pages(memory: GuestMemory) -> list[int]:
    """Numbers of the pages of RAM that are not zero."""
    words = memory.array(0, memory.ram_bytes // 8, "u8")
    used = words.reshape(-1, PAGE // 8).any(axis=1)
    return [int(page) for page in np.flatnonzero(used)]


def write_ram(
    memory: GuestMemory, pages: Sequence[int], archive: zipfile.ZipFile, *, packed: bool
) -> None:
    """Add the pages to an archive that is being written."""
    entry = NAME if packed else _aligned(archive, len(pages) * PAGE)
    with archive.open(entry, "w") as file:
        for page in pages:
            file.write(memory.view(page * PAGE, PAGE))
    if isinstance(entry, zipfile.ZipInfo):
        entry.extra = b""  # of no use in the table of contents, which comes last


def _aligned(archive: zipfile.ZipFile, size: int) -> zipfile.ZipInfo:
    """The next member, not packed, with its data at a multiple of the host's page size."""
    entry = zipfile.ZipInfo(NAME)
    entry.file_size = size
    assert archive.fp is not None
    start = archive.fp.tell() + LOCAL_HEADER.size + len(NAME) + FIELD_HEADER
    room = -start % HOST_PAGE
    entry.extra = struct.pack("<2H", PADDING, room) + bytes(room)
    return entry


def restore_ram(
    memory: GuestMemory, pages: Sequence[int], archive: zipfile.ZipFile, *, in_place: bool
) -> None:
    """Set all of RAM. Raises BadValue before anything is changed, or if the data are cut off."""
    limit = memory.ram_bytes // PAGE
    if len(set(pages)) != len(pages) or not all(type(p) is int and 0 <= p < limit for p in pages):
        raise BadValue("pages")
    entry = archive.getinfo(NAME)
    if entry.file_size != len(pages) * PAGE:
        raise BadValue("pages")
    memory.clear()
    if in_place and entry.compress_type == zipfile.ZIP_STORED:
        place = _place(archive, entry)
        if place is not None and _map(memory, pages, *place):
            return
    with archive.open(entry) as file:
        for page in pages:
            data = file.read(PAGE)
            if len(data) != PAGE:
                raise BadValue("the RAM is truncated")
            memory.write(page * PAGE, data)


def _map(memory: GuestMemory, pages: Sequence[int], descriptor: int, start: int) -> bool:
    """Whether all pages lie where they belong; if not, some of them do."""
    at = start
    for first, count in _runs(pages):
        if not memory.map_copy(first * PAGE, count * PAGE, descriptor, at):
            return False
        at += count * PAGE
    return True


def _place(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, int] | None:
    """The file's descriptor and where the data begin; None: not as a whole in a file."""
    file = archive.fp
    if file is None:
        return None
    try:
        descriptor = file.fileno()
        header = LOCAL_HEADER.unpack(os.pread(descriptor, LOCAL_HEADER.size, entry.header_offset))
    except (OSError, struct.error):
        return None
    start = entry.header_offset + LOCAL_HEADER.size + header[-2] + header[-1]
    whole = start + entry.file_size <= os.fstat(descriptor).st_size
    return (descriptor, start) if whole and header[0] == MAGIC else None


def _runs(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pages that follow one another in RAM and in the file: the first, how many."""
    first = count = 0
    for page in pages:
        if count and page == first + count:
            count += 1
            continue
        if count:
            yield first, count
        first, count = page, 1
    if count:
        yield first, count
