"""RAM in a saved state: `ram.bin` has the pages that were written, one after another.

Packed, the file is small. Stored as they are, and at a multiple of the host's page size, pages can
be mapped: a gigabyte is there at once, and takes memory where it is touched. Each page has a CRC-32
in the table, which is compared before anything is mapped: the 308 MB of a booted Linux take 0.12 s
of one core, and half of that with two.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from vc4lab.memory import GuestMemory
from vc4lab.memory.host import PAGE as HOST_PAGE
from vc4lab.soc.states.state_table import BadValue

PAGE = 1 << 16
NAME = "ram.bin"
LEVEL = 1
"""A level of deflate: the fastest."""
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
MAGIC = b"PK\3\4"
PADDING = 0xD935
"""The kind of extra field that aligns a member's data, as other tools use it."""
FIELD_HEADER = 4
THREADS = 4
AT_ONCE = 64
"""Pages that a thread takes in one go."""


class Damaged(Exception):  # noqa: N818 - its text goes into a sentence
    """The file is not as it was written."""


def used_pages(memory: GuestMemory) -> list[int]:
    """Numbers of the pages of RAM that do not hold what they held at power-on."""
    words = memory.array(0, memory.ram_bytes // 8, "u8").reshape(-1, PAGE // 8)
    if memory.noise is None:
        return [int(page) for page in np.flatnonzero(words.any(axis=1))]
    return [page for page in range(len(words)) if not memory.is_untouched(page * PAGE, PAGE)]


def noise_of(value: Any, memory: GuestMemory) -> tuple[int, int] | None:
    """A saved `GuestMemory.noise`. Raises BadValue."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or any(type(at) is not int for at in value):
        raise BadValue("noise")
    start, end = value
    if start % HOST_PAGE or end % HOST_PAGE or not 0 <= start < end <= memory.ram_bytes:
        raise BadValue("noise")
    return start, end


def checksums(memory: GuestMemory, pages: Sequence[int]) -> list[int]:
    """The CRC-32 of each page, for the table."""
    return _in_threads(
        len(pages), lambda part: [zlib.crc32(memory.view(pages[n] * PAGE, PAGE)) for n in part]
    )


def _in_threads(count: int, work: Callable[[range], list[int]]) -> list[int]:
    """The results for so many pages, in order; zlib works without Python's lock."""
    parts = [range(at, min(at + AT_ONCE, count)) for at in range(0, count, AT_ONCE)]
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return [value for part in pool.map(work, parts) for value in part]


def write_ram(memory: GuestMemory, pages: Sequence[int], archive: zipfile.ZipFile, *, packed: bool) -> None:
    """Add the pages to an archive that is being written."""
    entry = member(NAME) if packed else _aligned(archive, len(pages) * PAGE)
    with archive.open(entry, "w") as file:
        for page in pages:
            file.write(memory.view(page * PAGE, PAGE))
    if not packed:
        entry.extra = b""  # of no use in the table of contents, which comes last


def member(name: str, kind: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    """A member of the archive without the time of day: equal machines make equal files."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = kind
    entry.external_attr = 0o600 << 16
    entry._compresslevel = LEVEL  # type: ignore[attr-defined]
    return entry


def _aligned(archive: zipfile.ZipFile, size: int) -> zipfile.ZipInfo:
    """The next member, not packed, with its data at a multiple of the host's page size."""
    entry = member(NAME, zipfile.ZIP_STORED)
    entry.file_size = size
    assert archive.fp is not None
    start = archive.fp.tell() + LOCAL_HEADER.size + len(NAME) + FIELD_HEADER
    room = -start % HOST_PAGE
    entry.extra = struct.pack("<2H", PADDING, room) + bytes(room)
    return entry


def restore_ram(
    memory: GuestMemory,
    pages: Sequence[int],
    sums: Sequence[int],
    archive: zipfile.ZipFile,
    noise: tuple[int, int] | None,
    *,
    in_place: bool,
) -> None:
    """Set all of RAM; `sums` are the `checksums` of the pages, `noise` is where it holds noise.

    Raises BadValue and Damaged before anything is changed, or for packed data when they come up.
    """
    limit = memory.ram_bytes // PAGE
    if len(set(pages)) != len(pages) or not all(type(p) is int and 0 <= p < limit for p in pages):
        raise BadValue("pages")
    entry = archive.getinfo(NAME)
    if entry.file_size != len(pages) * PAGE or len(sums) != len(pages):
        raise BadValue("pages")
    place = None
    if in_place and entry.compress_type == zipfile.ZIP_STORED:
        place = _place(archive, entry)
    if place is not None:
        _check(pages, sums, _read_sums(len(pages), *place))
    memory.clear()
    if noise is not None:
        memory.fill_with_noise(*noise)
    if place is not None and _map(memory, pages, *place):
        return
    with archive.open(entry) as file:
        for page, wanted in zip(pages, sums, strict=True):
            data = file.read(PAGE)
            if len(data) != PAGE:
                raise Damaged("the RAM is truncated")
            _check([page], [wanted], [zlib.crc32(data)])
            memory.write(page * PAGE, data)


def _read_sums(count: int, descriptor: int, start: int) -> list[int]:
    """The checksums of so many pages in a file, which are read past the mapping to be."""

    def work(part: range) -> list[int]:
        page, sums = bytearray(PAGE), []  # one that stays in the processor's cache
        for number in part:
            if os.preadv(descriptor, [page], start + number * PAGE) != PAGE:
                raise Damaged("the RAM is truncated")
            sums.append(zlib.crc32(page))
        return sums

    return _in_threads(count, work)


def _check(pages: Sequence[int], wanted: Sequence[int], found: Sequence[int]) -> None:
    for page, sum_, other in zip(pages, wanted, found, strict=True):
        if sum_ != other:
            at = page * PAGE
            raise Damaged(f"RAM from 0x{at:08x} to 0x{at + PAGE - 1:08x} is not what was saved")


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
