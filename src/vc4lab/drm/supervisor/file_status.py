"""struct stat and struct statx as x86-64 and arm64 programs read them, struct statfs."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass

_STAT_X86 = struct.Struct("<QQQIIIxxxxQqqqQqQqQq24x")
_STAT_ARM = struct.Struct("<QQIIIIQQqiiqqQqQqQ8x")
_STATX = struct.Struct("<IIQIIIHxxQQQQqIxxxxqIxxxxqIxxxxqIxxxxIIII112x")
_STATFS = struct.Struct("<qqQQQQQiiqqq32x")
_ALL_BASIC = 0x7FF
SYSFS_MAGIC = 0x62656572
BLOCK = 4096


@dataclass(frozen=True)
class FileStatus:
    """The answer of stat()."""

    mode: int
    inode: int
    size: int = 0
    device: int = 5
    special: tuple[int, int] = (0, 0)
    """Major and minor of a device node."""
    links: int = 1
    time: int = 0
    owner: tuple[int, int] = (0, 0)
    """User and group."""

    @classmethod
    def of(cls, found: os.stat_result) -> FileStatus:
        """That of a real file."""
        return cls(
            found.st_mode, found.st_ino, found.st_size, found.st_dev,
            links=found.st_nlink, time=int(found.st_mtime),
        )  # fmt: skip

    @classmethod
    def character_device(
        cls, major: int, minor: int, mode: int = 0o666, owner: tuple[int, int] = (0, 0)
    ) -> FileStatus:
        """That of a device node; anyone may use it, unless programs have changed that."""
        special = major, minor
        return cls(stat.S_IFCHR | mode, 1000 + minor, special=special, owner=owner)

    def stat(self, machine: str) -> bytes:
        """struct stat."""
        special = os.makedev(*self.special)
        blocks = -(-self.size // 512)
        times = (self.time, 0) * 3
        if machine == "aarch64":
            return _STAT_ARM.pack(
                *(self.device, self.inode, self.mode, self.links, *self.owner, special),
                *(0, self.size, BLOCK, 0, blocks, *times),
            )
        return _STAT_X86.pack(
            *(self.device, self.inode, self.links, self.mode, *self.owner, special),
            *(self.size, BLOCK, blocks, *times),
        )

    def statx(self) -> bytes:
        """struct statx."""
        times = (self.time, 0)
        return _STATX.pack(
            *(_ALL_BASIC, BLOCK, 0, self.links, *self.owner, self.mode, self.inode),
            *(self.size, -(-self.size // 512), 0, *times, *times, *times, *times),
            *(*self.special, os.major(self.device), os.minor(self.device)),
        )


def file_system_status() -> bytes:
    """struct statfs of a file system that only exists in memory."""
    return _STATFS.pack(SYSFS_MAGIC, BLOCK, 0, 0, 0, 0, 0, 0, 0, 255, BLOCK, 0)
