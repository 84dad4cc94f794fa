"""Which partition of a card is its root: what `root=` of the kernel's command line names.

Sources: the partition table of a PC's boot sector; ext4's superblock (Linux,
Documentation/filesystems/ext4/super.rst); Microsoft's FAT specification.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

SECTOR, TABLE, ENTRY, SIGNATURE = 512, 446, 16, b"\x55\xaa"
EXT_MAGIC_AT, EXT_MAGIC = 1024 + 0x38, b"\x53\xef"
FAT_TYPES = (b"FAT12   ", b"FAT16   ", b"FAT32   ")
FAT_TYPE_AT = (0x36, 0x52)
CARD = "/dev/mmcblk0"
GPT = 0xEE


class NoRoot(ValueError):  # noqa: N818 - said to the user as it is
    """The card has no root that is found without help; the text says why."""


def root_of(card: Path) -> str:
    """The device of a card's root: its ext4 partition, else its FAT partition.

    card: an image, or a folder, which the machine shows as a FAT partition.
    Raises NoRoot, OSError.
    """
    if card.is_dir():
        return f"{CARD}p1"
    if card.exists() and not card.is_file():
        raise NoRoot(f"{card} is neither a folder nor a file")
    with card.open("rb") as file:
        head = file.read(SECTOR)
        kinds = {CARD: _kind(file, 0)}
        if head[-2:] == SIGNATURE and not kinds[CARD]:
            for number in range(4):
                row = head[TABLE + ENTRY * number :][:ENTRY]
                if row[4] == GPT:
                    text = f"{card} has a GUID partition table"
                    raise NoRoot(f"{text}: --append root=… names its root")
                first, count = struct.unpack_from("<2I", row, 8)
                if row[4] and count:
                    kinds[f"{CARD}p{number + 1}"] = _kind(file, first * SECTOR)
    for wanted in ("ext4", "fat"):
        for device, kind in kinds.items():
            if kind == wanted:
                return device
    raise NoRoot(f"{card} has no ext4 and no FAT partition: --append root=… names its root")


def _kind(file: BinaryIO, at: int) -> str:
    """The file system at a place of the image, "" for others."""
    file.seek(at)
    head = file.read(EXT_MAGIC_AT + 2)
    if head[EXT_MAGIC_AT:] == EXT_MAGIC:
        return "ext4"
    return "fat" if any(head[place:][:8] in FAT_TYPES for place in FAT_TYPE_AT) else ""
