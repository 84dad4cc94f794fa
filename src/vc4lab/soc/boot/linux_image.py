"""Headers of Linux kernels: what an image is, where it has to lie, and how much room it needs.

A kernel needs more room than its file has: the arm64 Image clears its .bss, the zImage of AArch32
moves itself away and unpacks the kernel where it was.
Sources: Linux, Documentation/arch/arm64/booting.rst and Documentation/arch/arm/booting.rst; the
table of a zImage as its linker script lays it out; PE/COFF, section table.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MIB = 1 << 20
ARM64_MAGIC, RISCV_MAGIC = b"ARM\x64", b"RSC\x05"
ARM64_MAGIC_AT = 0x38
BIG_ENDIAN, PAGE_SIZE, PAGES_OF_16K = 1, 1, 2
"""Flags of an Image: a bit, the place of a field, and one of that field's values."""
ALIGNMENT = 2 * MIB
ZIMAGE_MAGIC, ZIMAGE_MAGIC_AT = 0x016F2818, 0x24
LITTLE, BIG = 0x04030201, 0x01020304
TABLE_MAGIC, KERNEL_SIZE_TAG = 0x45454545, 0x5A534C4B
MAX_TAGS = 64
UNPACKED = 5
"""A zImage that does not say it unpacks to so many times its size at most, .bss included."""
LARGEST_BSS = 256 * MIB
DECOMPRESSOR = MIB // 8
"""Its stack, its heap and its page tables."""
GZIP = b"\x1f\x8b"
ELSEWHERE = (
    (0, b"\x27\x05\x19\x56", "an image of U-Boot (uImage)"),
    (0, b"\xd0\x0d\xfe\xed", "a device tree, or an image of U-Boot in one (FIT)"),
    (0, GZIP, "packed with gzip, which the firmware unpacks for AArch64 only"),
    (0, b"\xfd7zXZ", "packed with xz"),
    (0, b"\x28\xb5\x2f\xfd", "packed with zstd"),
    (0, b"\x04\x22\x4d\x18", "packed with lz4"),
    (0, b"\x02\x21\x4c\x18", "packed with lz4"),
    (0, b"BZh", "packed with bzip2"),
    (4, b"zimg", "a compressed EFI program (zboot)"),
    (0x202, b"HdrS", "a kernel for x86"),
    (ARM64_MAGIC_AT, RISCV_MAGIC, "a kernel for RISC-V"),
)
"""Kernels that the firmware does not understand: place and content of what marks them."""


class BadImage(ValueError):  # noqa: N818 - said to the user as it is
    """The header contradicts itself or the file."""


class ForeignImage(ValueError):  # noqa: N818 - said to the user as it is
    """A kernel, but none that these boards start."""


@dataclass(frozen=True)
class LinuxImage:
    """The contents of a header.

    Attributes
    ----------
    address
        Where the firmware loads it.
    room
        Bytes from there on that belong to it while it starts.
    """

    title: str
    wide: bool
    address: int
    room: int


def is_wide(head: bytes) -> bool:
    """Whether a file that begins like this is a kernel for AArch64."""
    return head[ARM64_MAGIC_AT : ARM64_MAGIC_AT + 4] == ARM64_MAGIC


def is_zimage(head: bytes) -> bool:
    """Whether it is a kernel for AArch32 that unpacks itself."""
    return len(head) >= 0x30 and _word(head, ZIMAGE_MAGIC_AT) == ZIMAGE_MAGIC


def read_header(image: bytes) -> LinuxImage | None:
    """Read an image's header; None if it is no Linux kernel.

    Raises
    ------
    BadImage, ForeignImage
    """
    if is_wide(image):
        return _image(image)
    if is_zimage(image):
        return _zimage(image)
    for at, magic, title in ELSEWHERE:
        if image[at : at + len(magic)] == magic:
            raise ForeignImage(f"is {title}")
    return None


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


# -- AArch64 ---------------------------------------------------------------------------------------


def _image(image: bytes) -> LinuxImage:
    size = len(image)
    if size <= 64:
        raise BadImage(f"has {size} bytes, no more than its header")
    offset, image_size, flags = struct.unpack_from("<3Q", image, 8)
    if flags & BIG_ENDIAN:
        raise ForeignImage("is a big-endian kernel, which is not supported")
    if flags >> PAGE_SIZE & 3 == PAGES_OF_16K:
        raise ForeignImage("is built for pages of 16 KiB, which a Cortex-A53 does not have")
    if offset >= ALIGNMENT or offset % 8:
        raise BadImage(f"asks for the offset 0x{offset:x}; it must be less than 2 MiB")
    if image_size and image_size < size - ALIGNMENT:
        raise BadImage(f"needs {image_size} bytes by its header, but the file has {size}")
    end = _end_of_sections(image)
    if end > size:
        raise BadImage(f"is truncated: its sections go up to byte {end}, but the file has {size}")
    # What lies below belongs to the firmware.
    address = offset if offset >= 0x1000 else ALIGNMENT + offset
    return LinuxImage("Linux for AArch64", True, address, max(image_size, size))


def _end_of_sections(image: bytes) -> int:
    """The last byte of the file that a section of its PE header needs, 0 without such a header."""
    at = _word(image, 0x3C)
    if image[:2] != b"MZ" or image[at : at + 4] != b"PE\0\0" or at + 24 > len(image):
        return 0
    count, optional = (int.from_bytes(image[at + n : at + n + 2], "little") for n in (6, 20))
    sections = image[at + 24 + optional :][: 40 * count]
    whole = len(sections) - len(sections) % 40
    ends = [_word(sections, row + 16) + _word(sections, row + 20) for row in range(0, whole, 40)]
    return max(ends, default=0)


def unpack(data: bytes, limit: int) -> bytes:
    """Unpack a gzip file, up to one byte more than `limit`. Raises BadImage."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        image = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        text = f"is a damaged gzip file ({str(error).rpartition(': ')[2]})"
        raise BadImage(text) from None
    if not unpacker.eof and len(image) <= limit:
        raise BadImage("is a truncated gzip file")
    return image


# -- AArch32 ---------------------------------------------------------------------------------------


def _zimage(image: bytes) -> LinuxImage:
    start, end = _word(image, 0x28), _word(image, 0x2C)
    if _word(image, 0x30) == BIG:
        raise ForeignImage("is a big-endian kernel, which is not supported")
    length = end - start
    if length <= 0x30:
        raise BadImage(f"ends at 0x{end:x} by its header, but begins at 0x{start:x}")
    if length > len(image):
        raise BadImage(f"is truncated: it has {len(image)} of {length} bytes")
    room = (_unpacked(image) or UNPACKED * length) + len(image) + DECOMPRESSOR
    return LinuxImage("Linux for AArch32", False, 0x8000, room)


def _unpacked(image: bytes) -> int:
    """Bytes of the kernel in a zImage with its .bss, 0 if no table says it."""
    at = _word(image, 0x38) if _word(image, 0x34) == TABLE_MAGIC else 0
    for _count in range(MAX_TAGS):
        words, tag, place, bss = (_word(image, at + 4 * n) for n in range(4))
        if not at or not words:
            return 0
        if tag == KERNEL_SIZE_TAG:
            return _word(image, place) + min(bss, LARGEST_BSS)
        at += 4 * words
    return 0
