"""Writes an initramfs: a cpio archive of the kind "newc", as Linux's early userspace reads it.

Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

TRAILER = "TRAILER!!!"
MAX_NAME = 4095
_TAIL = 64
"""Bytes in which the last entry's name is."""


def is_whole(path: Path) -> bool:
    """Whether there is an archive with its end, which is written last."""
    try:
        with open(path, "rb") as file:
            file.seek(-min(_TAIL, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return TRAILER.encode() in file.read(_TAIL)
    except OSError:
        return False


class Archive:
    """Adds entries one after another; folders above an entry are added with it.

    Parameters
    ----------
    file
        The file that it is written to.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._number = 0
        self._there: set[str] = set()
        self.size = 0
        """Bytes so far."""

    def __contains__(self, path: str) -> bool:
        return path.strip("/") in self._there

    def folder(self, path: str, mode: int = 0o755) -> None:
        """A folder, unless it is there."""
        if path.strip("/") and path not in self:
            self._entry(path, stat.S_IFDIR | mode, b"")

    def add(self, path: str, content: bytes | memoryview, mode: int = 0o644) -> None:
        """A file."""
        self._entry(path, stat.S_IFREG | mode, content)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._entry(path, stat.S_IFLNK | 0o777, target.encode())

    def device(self, path: str, major: int, minor: int, mode: int = 0o600) -> None:
        """A character device."""
        self._entry(path, stat.S_IFCHR | mode, b"", (major, minor))

    def close(self) -> None:
        """Write the end; the file stays open."""
        self._write(TRAILER, 0, b"", (0, 0))

    def _entry(
        self, path: str, mode: int, content: bytes | memoryview, device: tuple[int, int] = (0, 0)
    ) -> None:
        name = path.strip("/")
        if not name or len(name) > MAX_NAME or name in self._there or name == TRAILER:
            raise ValueError(f"{path[:60]!r} cannot be added")
        self.folder(name.rpartition("/")[0])
        self._there.add(name)
        self._write(name, mode, content, device)

    def _write(self, name: str, mode: int, content: bytes | memoryview, device: tuple[int, int]) -> None:
        self._number += 1
        text = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (
            self._number, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(text), 0
        )  # fmt: skip
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + text
        for part in (head, content):
            self._file.write(part)
            self._file.write(bytes(-len(part) % 4))
            self.size += len(part) + -len(part) % 4
