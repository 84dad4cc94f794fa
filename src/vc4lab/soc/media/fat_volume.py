"""A folder of the host as an SD card: a FAT32 image, generated sector by sector when read.

Nothing of the host is written, and no file is read before the program asks for its sectors. The
same folder gives the same image: names in order, one date, files without gaps. Names that begin
with a dot stay at home, links only lead to files inside the folder.
Source: Microsoft FAT specification (2005), sections 3 to 7.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vc4lab.soc.media.fat_names import ARCHIVE, FOLDER, VOLUME, is_possible, name_records, record
from vc4lab.soc.media.sd_medium import SECTOR

SMALLEST, LARGEST = 1 << 23, 1 << 26
"""Sectors of the card: 4 GiB, more if the files want it, up to the 32 GiB of an SDHC card."""
START = 8192
PER_CLUSTER = 64
CLUSTER = PER_CLUSTER * SECTOR
RESERVED, FATS, INFO, BACKUP = 32, 2, 1, 6
ROOT = 2
IN_SECTOR = SECTOR // 4
END, MEDIA = 0x0FFFFFFF, 0x0FFFFFF8
LABEL = b"BOOT       "
VOLUME_ID = 0x34435643
MAX_FILES, DEEPEST = 20_000, 32
LARGEST_FILE = (1 << 32) - 1
READ_AHEAD = 1 << 16


@dataclass
class _Entry:
    """A file or folder; `data` are a folder's own records."""

    name: str
    path: Path
    size: int = 0
    children: list[_Entry] | None = None
    cluster: int = 0
    clusters: int = 0
    data: bytes = b""
    records: list[bytes] = field(default_factory=list)
    short: bytes = b""
    case: int = 0


class FolderVolume:
    """The card made of a folder.

    Parameters
    ----------
    tell
        Receives a sentence about each file that cannot be on the card.

    Raises
    ------
    OSError
        The folder cannot be read, or its files are more than a card holds.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.title = str(folder)
        self._folder = folder.resolve()
        self._report = tell
        self._count = 0
        root = _Entry("", folder, children=self._scan(folder, 0))
        self._extents: list[_Entry] = []
        self._place(root, ROOT)
        self._write_records(root, 0)
        self._starts = [entry.cluster for entry in self._extents]
        used = sum(entry.clusters for entry in self._extents)
        self.sectors = SMALLEST
        while self.sectors < LARGEST and used * PER_CLUSTER > self.sectors * 3 // 4:
            self.sectors *= 2
        volume = self.sectors - START
        self._fat_size = -(-(volume // PER_CLUSTER + 2) // IN_SECTOR)
        self._data = RESERVED + FATS * self._fat_size
        clusters = (volume - self._data) // PER_CLUSTER
        if used > clusters:
            raise OSError(27, "its files do not fit on a card of 32 GiB")
        self._fixed = self._make_fixed(volume, clusters - used, ROOT + used)
        self._ahead: tuple[Path | None, int, bytes] = (None, 0, b"")

    # -- the folder --------------------------------------------------------------------------------

    def _scan(self, folder: Path, depth: int) -> list[_Entry]:
        """List a folder in order."""
        with os.scandir(folder) as found:
            items = sorted(found, key=lambda item: (item.name.casefold(), item.name))
        entries: list[_Entry] = []
        names: set[str] = set()
        for item in items:
            if item.name.startswith("."):
                continue
            if self._count >= MAX_FILES:
                self._report(f"there are more than {MAX_FILES} files; the others are left out")
                break
            try:
                entry = self._look_at(item, depth)
            except OSError as error:
                entry = None
                self._report(f"{item.path}: {error.strerror or 'cannot be read'}")
            if entry is None:
                continue
            if entry.name.casefold() in names:
                self._report(f"{item.path} is left out: names on a card ignore case")
                continue
            names.add(entry.name.casefold())
            entries.append(entry)
        return entries

    def _look_at(self, item: os.DirEntry[str], depth: int) -> _Entry | None:
        path = Path(item.path)
        if item.is_symlink() and (item.is_dir() or not path.resolve().is_relative_to(self._folder)):
            self._report(f"{path} is left out: a link to a folder, or out of the folder")
            return None
        if not item.is_dir() and not item.is_file():
            self._report(f"{path} is left out: it is not a regular file")
            return None
        if not is_possible(item.name):
            self._report(f"{item.path!r} is left out: a card cannot hold this name")
            return None
        self._count += 1
        if item.is_dir():
            if depth == DEEPEST:
                self._report(f"{path} is left out: folders are nested too deeply")
                return None
            return _Entry(item.name, path, children=self._scan(path, depth + 1))
        size = item.stat().st_size
        if size > LARGEST_FILE:
            self._report(f"{path} is left out: files on the card must be smaller than 4 GiB")
            return None
        return _Entry(item.name, path, size)

    # -- the layout --------------------------------------------------------------------------------

    def _place(self, entry: _Entry, cluster: int) -> int:
        """Give an entry and what is in it their clusters; the next free one."""
        size = entry.size
        if entry.children is not None:
            taken: set[bytes] = set()
            count = 1 if entry.name == "" else 2
            for child in entry.children:
                child.records, child.short, child.case = name_records(child.name, taken)
                count += len(child.records) + 1
            size = 32 * count
        if size or entry.children is not None:
            entry.cluster = cluster
            entry.clusters = max(-(-size // CLUSTER), 1)
            self._extents.append(entry)
        cluster += entry.clusters
        for child in entry.children or ():
            cluster = self._place(child, cluster)
        return cluster

    def _write_records(self, folder: _Entry, parent: int) -> None:
        out = []
        if folder.name == "":
            out.append(record(LABEL, VOLUME, 0, 0))
        else:
            out.append(record(b".".ljust(11), FOLDER, folder.cluster, 0))
            out.append(record(b"..".ljust(11), FOLDER, parent, 0))
        own = 0 if folder.name == "" else folder.cluster
        for child in folder.children or ():
            kind = ARCHIVE if child.children is None else FOLDER
            out += child.records
            out.append(record(child.short, kind, child.cluster, child.size, child.case))
            if child.children is not None:
                self._write_records(child, own)
        folder.data = b"".join(out)

    def _make_fixed(self, volume: int, free: int, next_free: int) -> dict[int, bytes]:
        """The partition table, the boot sector and its kin, by sector of the card."""
        table = bytearray(SECTOR)
        struct.pack_into("<I", table, 440, VOLUME_ID)
        partition = struct.pack("<B3sB3sII", 0, b"\xfe\xff\xff", 0x0C, b"\xfe\xff\xff",
                                START, volume)  # fmt: skip
        table[446 : 446 + 16] = partition
        table[510:] = b"\x55\xaa"
        boot = bytearray(SECTOR)
        struct.pack_into(
            "<3s8sHBHBHHBHHHIIIHHIHH12xBBBI11s8s", boot, 0, b"\xeb\x58\x90", b"VC4LAB  ",
            SECTOR, PER_CLUSTER, RESERVED, FATS, 0, 0, 0xF8, 0, 63, 255, START, volume,
            self._fat_size, 0, 0, ROOT, INFO, BACKUP, 0x80, 0, 0x29, VOLUME_ID, LABEL, b"FAT32   ",
        )  # fmt: skip
        boot[510:] = b"\x55\xaa"
        info = struct.pack("<I480xIII12xI", 0x41615252, 0x61417272, free, next_free, 0xAA550000)
        fixed = {0: bytes(table)}
        for first in (0, BACKUP):
            fixed[START + first] = bytes(boot)
            fixed[START + first + INFO] = info
        return fixed

    # -- sectors -----------------------------------------------------------------------------------

    def read(self, sector: int) -> bytes:
        """One sector of the card. Raises OSError."""
        fixed = self._fixed.get(sector)
        if fixed is not None:
            return fixed
        place = sector - START
        if RESERVED <= place < self._data:
            return self._fat_sector((place - RESERVED) % self._fat_size)
        if place < self._data:
            return bytes(SECTOR)
        cluster, part = divmod(place - self._data, PER_CLUSTER)
        return self._data_sector(cluster + ROOT, part)

    def read_run(self, first: int, count: int) -> bytes:
        """Sectors that follow each other. Raises OSError."""
        return b"".join(map(self.read, range(first, first + count)))

    def _owner(self, cluster: int) -> _Entry | None:
        place = bisect_right(self._starts, cluster) - 1
        if place < 0:
            return None
        entry = self._extents[place]
        return entry if cluster < entry.cluster + entry.clusters else None

    def _fat_sector(self, number: int) -> bytes:
        values = []
        for cluster in range(number * IN_SECTOR, (number + 1) * IN_SECTOR):
            owner = self._owner(cluster)
            if cluster < ROOT:
                values.append(END if cluster else MEDIA)
            elif owner is None:
                values.append(0)
            else:
                last = owner.cluster + owner.clusters - 1
                values.append(END if cluster == last else cluster + 1)
        return struct.pack(f"<{IN_SECTOR}I", *values)

    def _data_sector(self, cluster: int, part: int) -> bytes:
        owner = self._owner(cluster)
        if owner is None:
            return bytes(SECTOR)
        at = (cluster - owner.cluster) * CLUSTER + part * SECTOR
        if owner.children is not None:
            return owner.data[at : at + SECTOR].ljust(SECTOR, b"\0")
        return self._file_sector(owner, at)

    def _file_sector(self, entry: _Entry, at: int) -> bytes:
        """512 bytes of a file; it may have become shorter, but never becomes longer."""
        path, start, data = self._ahead
        if path != entry.path or not start <= at < start + READ_AHEAD:
            start = at // READ_AHEAD * READ_AHEAD
            with entry.path.open("rb") as file:
                file.seek(start)
                data = file.read(min(READ_AHEAD, max(entry.size - start, 0)))
            self._ahead = entry.path, start, data
        return data[at - start : at - start + SECTOR].ljust(SECTOR, b"\0")
