"""Reads files from a FAT16 or FAT32 file system in an SD-card image; never writes.

The image is not trusted: every number is checked against the file's size, cluster chains and
folders are bounded, and damage ends in `BadCard` with a sentence.
Source: Microsoft FAT specification (2005), sections 3 to 7; the MBR's partition table.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from vc4lab.soc.media.card import split_name
from vc4lab.soc.media.fat_names import FOLDER, LONG_NAME, VOLUME
from vc4lab.soc.media.sd_medium import SECTOR

FAT_TYPES = (0x01, 0x04, 0x06, 0x0B, 0x0C, 0x0E)
GPT = 0xEE
SIGNATURE = b"\x55\xaa"
MAX_FOLDER_BYTES = 4 << 20
MIN_FAT16 = 4085


class BadCard(OSError):  # noqa: N818 - said to the user as it is
    """The image holds no readable FAT file system."""

    def __init__(self, text: str) -> None:
        super().__init__(5, text)


@dataclass(frozen=True)
class Entry:
    """A file or folder: name, first cluster, bytes."""

    name: str
    cluster: int
    size: int
    folder: bool


class FatCard:
    """The first FAT partition of an image, or an image that is a FAT file system itself."""

    def __init__(self, path: Path) -> None:
        self.title = str(path)
        self._path = path
        self._length = path.stat().st_size
        self._start = self._find_partition()
        self._read_parameters()

    # -- layout ------------------------------------------------------------------------------------

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > self._length:
            raise BadCard("the card image is shorter than its file system")
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def _find_partition(self) -> int:
        if self._length < SECTOR:
            raise BadCard("the file is shorter than one sector")
        first = self._bytes(0, SECTOR)
        if first[510:] != SIGNATURE:
            raise BadCard("no partition table and no FAT file system")
        if first[0] in (0xEB, 0xE9) and first[11:13] == b"\0\2" and first[16] in (1, 2):
            return 0
        for number in range(4):
            kind = first[446 + 16 * number + 4]
            (start,) = struct.unpack_from("<I", first, 446 + 16 * number + 8)
            if kind in FAT_TYPES and start:
                return int(start) * SECTOR
        if first[450] == GPT:
            raise BadCard("it has a GUID partition table; the firmware needs an MBR with a FAT partition")
        raise BadCard("the partition table has no FAT partition")

    def _read_parameters(self) -> None:
        boot = self._bytes(self._start, SECTOR)
        (sector, per_cluster, reserved, fats, roots, small, _media, fat16) = struct.unpack_from(
            "<HBHBHHBH", boot, 11
        )
        large, fat32 = struct.unpack_from("<2I", boot, 32)
        if boot[510:] != SIGNATURE or sector not in (512, 1024, 2048, 4096):
            raise BadCard("the partition's boot sector is damaged")
        if per_cluster == 0 or per_cluster & per_cluster - 1 or not 1 <= fats <= 2 or not reserved:
            raise BadCard("the partition's boot sector is damaged")
        fat_size = fat16 or fat32
        total = small or large
        self._cluster = sector * per_cluster
        self._fat = self._start + reserved * sector
        self._root_at = self._fat + fats * fat_size * sector
        self._root_size = roots * 32
        root_sectors = -(-roots * 32 // sector)
        self._data = self._root_at + root_sectors * sector
        clusters = (total - (self._data - self._start) // sector) // per_cluster
        self._wide = fat16 == 0
        if clusters < MIN_FAT16 and not self._wide:
            raise BadCard("the file system is FAT12, which vc4lab does not support")
        width = 4 if self._wide else 2
        self._clusters = min(clusters, fat_size * sector // width - 2, self._length // 512)
        if self._clusters <= 0 or self._data > self._length:
            raise BadCard("the partition's boot sector is damaged")
        self._root = struct.unpack_from("<I", boot, 44)[0] if self._wide else 0

    # -- chains ------------------------------------------------------------------------------------

    def _next(self, cluster: int) -> int:
        if self._wide:
            raw = self._bytes(self._fat + 4 * cluster, 4)
            value: int = struct.unpack("<I", raw)[0] & 0x0FFFFFFF
        else:
            value = struct.unpack("<H", self._bytes(self._fat + 2 * cluster, 2))[0]
            value |= 0x0FFF0000 if value >= 0xFFF0 else 0
        return value

    def _chain(self, cluster: int, limit: int) -> bytes:
        """At most `limit` bytes of a cluster chain."""
        out = bytearray()
        seen: set[int] = set()
        while len(out) < limit and cluster < 0x0FFFFFF0:
            if cluster in seen or not 2 <= cluster < self._clusters + 2:
                raise BadCard("a file's cluster chain is damaged")
            seen.add(cluster)
            want = min(self._cluster, limit - len(out))
            out += self._bytes(self._data + (cluster - 2) * self._cluster, want)
            cluster = self._next(cluster)
        return bytes(out)

    # -- folders -----------------------------------------------------------------------------------

    def _folder(self, cluster: int) -> list[Entry]:
        if cluster == 0 and not self._wide:
            raw = self._bytes(self._root_at, self._root_size)
        else:
            raw = self._chain(cluster or self._root, MAX_FOLDER_BYTES)
        entries: list[Entry] = []
        long_name = ""
        for at in range(0, len(raw) - 31, 32):
            record = raw[at : at + 32]
            if record[0] == 0:
                break
            if record[0] == 0xE5:
                long_name = ""
            elif record[11] & 0x3F == LONG_NAME:
                part = record[1:11] + record[14:26] + record[28:32]
                text = part.decode("utf-16-le", "replace").split("\0")[0].rstrip("\uffff")
                long_name = text + ("" if record[0] & 0x40 else long_name)
            else:
                if not record[11] & VOLUME:
                    entries.append(_entry(record, long_name))
                long_name = ""
        return entries

    def _find(self, name: str) -> Entry | None:
        parts = split_name(name)
        if parts is None:
            return None
        cluster, entry = 0, None
        for depth, part in enumerate(parts, 1):
            found = [e for e in self._folder(cluster) if e.name.lower() == part.lower()]
            if not found or found[0].folder == (depth == len(parts)):
                return None
            entry = found[0]
            cluster = entry.cluster
        return entry

    # -- files -------------------------------------------------------------------------------------

    def find(self, name: str) -> str | None:
        entry = self._find(name)
        return None if entry is None else entry.name

    def size(self, name: str) -> int:
        return self._must(name).size

    def read(self, name: str, limit: int) -> bytes:
        entry = self._must(name)
        limit = min(limit, entry.size)
        return self._chain(entry.cluster, limit) if limit > 0 else b""

    def _must(self, name: str) -> Entry:
        entry = self._find(name)
        if entry is None:
            raise FileNotFoundError(name)
        return entry


def _entry(record: bytes, long_name: str) -> Entry:
    high, _time, _date, low, size = struct.unpack_from("<4HI", record, 20)
    base = record[:8].decode("cp437").rstrip()
    extension = record[8:11].decode("cp437").rstrip()
    short = f"{base}.{extension}" if extension else base
    return Entry(long_name or short, high << 16 | low, size, bool(record[11] & FOLDER))


def looks_like_card(path: Path) -> bool:
    """Whether a file is a card image rather than a kernel: it has a boot sector's signature."""
    try:
        with path.open("rb") as file:
            first = file.read(SECTOR)
    except OSError:
        return False
    if len(first) < SECTOR or first[510:] != SIGNATURE:
        return False
    entries = [first[446 + 16 * n : 462 + 16 * n] for n in range(4)]
    table = all(entry[0] in (0, 0x80) for entry in entries)
    used = any(entry[4] and any(entry[8:12]) for entry in entries)
    return (table and used) or first[0] in (0xEB, 0xE9)
