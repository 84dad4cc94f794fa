"""The SD card's storage: an image file, and the writes kept in memory on top of it.

The image itself is only ever read here, except by `Overlay.save_to`, which is called when the user
asked for it.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

SECTOR = 512
UNIT = 1024
"""Sectors of the step in which a card states its size (CSD version 2: 512 KiB)."""
MAX_SECTORS = 1 << 32
MAX_KEPT = 1 << 20
"""Sectors kept in memory: 512 MiB."""
MAX_RANGES = 10_000
CHUNK = 1 << 20


class Medium(Protocol):
    """Sectors that can be read."""

    title: str
    sectors: int

    def read(self, sector: int) -> bytes:
        """One sector below `sectors`. Raises OSError."""

    def read_run(self, first: int, count: int) -> bytes:
        """Sectors that follow each other, all below `sectors`. Raises OSError."""


class OverlayFull(Exception):  # noqa: N818 - becomes a sentence for the user
    """No more writes can be kept in memory."""


class ImageFile:
    """The file of a card image. It may end anywhere: what is missing of the last unit is zeros.

    Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(22, "is neither a folder nor a file")
        self.path = path
        self.title = str(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        units = -(-found.st_size // (SECTOR * UNIT))
        self.sectors = min(max(units, 1) * UNIT, MAX_SECTORS)

    def read(self, sector: int) -> bytes:
        """One sector. Raises OSError."""
        return self.read_run(sector, 1)

    def read_run(self, first: int, count: int) -> bytes:
        """Sectors that follow each other. Raises OSError."""
        size = count * SECTOR
        return os.pread(self._descriptor, size, first * SECTOR).ljust(size, b"\0")


class CardFile:
    """A card that is a file of the host's, read and written in place: its medium and itself.

    `Overlay` keeps writes apart; this is for what only a transfer of files needs.

    Parameters
    ----------
    descriptor
        Of an open file; it stays the caller's.
    sectors
        The card's size, whatever the file has: what is missing is zeros.
    """

    def __init__(self, descriptor: int, sectors: int, title: str) -> None:
        self._descriptor = descriptor
        self.sectors = min(-(-sectors // UNIT) * UNIT, MAX_SECTORS)
        self.title = title
        self.written: dict[int, bytes] = {}
        self.erased: list[tuple[int, int]] = []

    @property
    def medium(self) -> CardFile:
        """The medium that the sectors are read from."""
        return self

    @property
    def changed(self) -> bool:
        """It is not part of the machine's state."""
        return False

    def read(self, sector: int) -> bytes:
        """One sector. Raises OSError."""
        return self.read_run(sector, 1)

    def read_run(self, first: int, count: int) -> bytes:
        """Sectors that follow each other. Raises OSError."""
        size = count * SECTOR
        return os.pread(self._descriptor, size, first * SECTOR).ljust(size, b"\0")

    def write(self, sector: int, data: bytes) -> None:
        """Write 512 bytes. Raises OverlayFull where the file takes no more."""
        try:
            os.pwrite(self._descriptor, data, sector * SECTOR)
        except OSError:
            raise OverlayFull from None

    def erase(self, first: int, end: int) -> None:
        """Sectors from `first` to before `end` become zeros."""
        size = os.fstat(self._descriptor).st_size
        for sector in range(first, min(end, -(-size // SECTOR))):
            self.write(sector, bytes(SECTOR))

    def save_to(self, path: Path) -> int:
        """There is nothing apart from the file."""
        return 0


class Overlay:
    """A medium with the writes to it: sectors written, ranges erased (they read as zeros)."""

    def __init__(self, medium: Medium) -> None:
        self.medium = medium
        self.written: dict[int, bytes] = {}
        self.erased: list[tuple[int, int]] = []
        """First sector and the one after the last, in order, apart from each other."""

    @property
    def sectors(self) -> int:
        """The card's size."""
        return self.medium.sectors

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.written or self.erased)

    def read(self, sector: int) -> bytes:
        """One sector below `sectors`. Raises OSError."""
        found = self.written.get(sector)
        if found is not None:
            return found
        if self._is_erased(sector):
            return bytes(SECTOR)
        return self.medium.read(sector)

    def read_run(self, first: int, count: int) -> bytes:
        """Sectors that follow each other, all below `sectors`. Raises OSError."""
        if self.erased or any(map(self.written.__contains__, range(first, first + count))):
            return b"".join(map(self.read, range(first, first + count)))
        return self.medium.read_run(first, count)

    def write(self, sector: int, data: bytes) -> None:
        """Keep 512 bytes. Raises OverlayFull."""
        if sector not in self.written and len(self.written) >= MAX_KEPT:
            raise OverlayFull
        self.written[sector] = data

    def erase(self, first: int, end: int) -> None:
        """Sectors from `first` to before `end` become zeros. Raises OverlayFull."""
        if len(self.erased) >= MAX_RANGES:
            raise OverlayFull
        for sector in [n for n in self.written if first <= n < end]:
            del self.written[sector]
        apart = []
        for start, stop in self.erased:
            if stop < first or start > end:
                apart.append((start, stop))
            else:
                first, end = min(first, start), max(end, stop)
        self.erased = sorted([*apart, (first, end)])

    def _is_erased(self, sector: int) -> bool:
        place = bisect_right(self.erased, (sector, MAX_SECTORS)) - 1
        return place >= 0 and sector < self.erased[place][1]

    def save_to(self, path: Path) -> int:
        """Write what was changed into an image file that exists; how many sectors. Raises OSError.

        Sectors after the end of the file make it longer, erased ones there do not. A card is too
        large to be written beside and renamed; a disk without room for all of it is noticed before
        anything is changed.
        """
        count = 0
        with path.open("r+b") as file:
            length = file.seek(0, os.SEEK_END)
            self._reserve(file.fileno(), length)
            for start, stop in self.erased:
                at, end = start * SECTOR, min(stop * SECTOR, length)
                count += max(end - at, 0) // SECTOR
                while at < end:
                    file.seek(at)
                    at += file.write(bytes(min(CHUNK, end - at)))
            for sector in sorted(self.written):
                file.seek(sector * SECTOR)
                file.write(self.written[sector])
            file.flush()
            os.fsync(file.fileno())
        return count + len(self.written)

    def _reserve(self, descriptor: int, length: int) -> None:
        """Room on the disk for the sectors written. Raises OSError, with the file as it was."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            for first, count in _runs(sorted(self.written)):
                os.posix_fallocate(descriptor, first * SECTOR, count * SECTOR)
        except OSError as error:
            os.ftruncate(descriptor, length)
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


def _runs(sectors: list[int]) -> Iterator[tuple[int, int]]:
    """First sector and length of each run of neighbours."""
    start = 0
    for at in range(1, len(sectors) + 1):
        if at == len(sectors) or sectors[at] != sectors[at - 1] + 1:
            yield sectors[start], at - start
            start = at
