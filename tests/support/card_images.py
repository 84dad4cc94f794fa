"""SD-card images with a FAT16 or FAT32 file system, made from bytes."""

import struct

SECTOR = 512


def make_card(files: dict[str, bytes], fat32: bool = True, partition: bool = True) -> bytes:
    """A card image with the files in its root folder (8.3 names, one with a long name)."""
    clusters = 70_000 if fat32 else 5_000
    width = 4 if fat32 else 2
    fat_sectors = -(-(clusters + 2) * width // SECTOR)
    reserved = 32 if fat32 else 1
    roots = 0 if fat32 else 512
    boot = bytearray(SECTOR)
    boot[0:3] = b"\xeb\x3c\x90"
    struct.pack_into("<HBHBHHBH", boot, 11, SECTOR, 1, reserved, 1, roots, 0, 0xF8,
                     0 if fat32 else fat_sectors)  # fmt: skip
    data_at = reserved + fat_sectors + roots * 32 // SECTOR
    struct.pack_into("<I", boot, 32, data_at + clusters)
    if fat32:
        struct.pack_into("<I", boot, 36, fat_sectors)
        struct.pack_into("<I", boot, 44, 2)
    boot[510:] = b"\x55\xaa"
    fat = bytearray(fat_sectors * SECTOR)
    data = bytearray()
    root = bytearray()
    last = 0x0FFFFFFF if fat32 else 0xFFFF
    free = 4 if fat32 else 2

    def link(cluster: int, value: int) -> None:
        struct.pack_into("<I" if fat32 else "<H", fat, width * cluster, value)

    body = bytearray()
    for name, content in files.items():
        count = max(-(-len(content) // SECTOR), 1)
        base, _, extension = name.partition(".")
        if len(base) > 8:
            text = (name + "\0").ljust(26, "\uffff").encode("utf-16-le")[:52]
            for part in (1, 0):
                piece = text[26 * part : 26 * part + 26]
                piece += b"\xff" * (26 - len(piece))
                record = bytes([part + 1 | (0x40 if part else 0)]) + piece[:10] + b"\x0f\0\0"
                root.extend(record + piece[10:22] + b"\0\0" + piece[22:26])
            base = base[:6] + "~1"
        record = base.upper().ljust(8).encode() + extension.upper().ljust(3).encode() + b"\x20"
        record += bytes(8) + struct.pack("<H", free >> 16) + bytes(4)
        record += struct.pack("<HI", free & 0xFFFF, len(content))
        root.extend(record)
        for n in range(count):
            link(free + n, last if n == count - 1 else free + n + 1)
        body.extend(content.ljust(count * SECTOR, b"\0"))
        free += count
    if fat32:
        link(2, 3)
        link(3, last)
        data = root.ljust(2 * SECTOR, b"\0") + body
        volume = boot + bytes((reserved - 1) * SECTOR) + fat + data
    else:
        volume = boot + fat + root.ljust(roots * 32, b"\0") + body
    if not partition:
        return bytes(volume)
    first = bytearray(SECTOR)
    first[446 + 4] = 0x0C if fat32 else 0x06
    struct.pack_into("<I", first, 446 + 8, 8)
    first[510:] = b"\x55\xaa"
    return bytes(first) + bytes(7 * SECTOR) + bytes(volume)
