"""The simulated monitor's EDID: a block with the mode config.txt chose.

Source: VESA Enhanced EDID Standard 1.3, section 3.
"""

from __future__ import annotations

import struct

SIZE = 128
MAKER = "VCL"
NAME = b"vc4lab"
BLANK_COLUMNS, FRONT_PORCH, SYNC = 160, 48, 32
"""Of a line, as reduced blanking has it."""
BLANK_LINES, LINE_PORCH, LINE_SYNC = 40, 3, 5


def edid_block(width: int, height: int, rate: int) -> bytes:
    """Block 0 for a monitor whose native mode has so many pixels and pictures a second."""
    letters = [ord(letter) - 64 for letter in MAKER]
    maker = letters[0] << 10 | letters[1] << 5 | letters[2]
    block = bytearray(SIZE)
    block[:8] = b"\x00\xff\xff\xff\xff\xff\xff\x00"
    struct.pack_into(">H", block, 8, maker)
    struct.pack_into("<HI", block, 10, 1, 1)
    block[16:25] = bytes(
        (1, 30, 1, 3, 0x80, 52, 29, 120, 0x0A)
    )  # week, year, 1.3, digital, cm, 2.2
    block[38:54] = b"\x01\x01" * 8
    block[54:72] = _timing(width, height, rate)
    block[72:90] = b"\0\0\0\xfc\0" + NAME.ljust(13, b" ")[:12] + b"\n"
    block[90:108] = b"\0\0\0\x10\0" + bytes(13)
    block[108:126] = b"\0\0\0\x10\0" + bytes(13)
    block[127] = -sum(block) & 0xFF
    return bytes(block)


def pixel_clock(width: int, height: int, rate: int) -> int:
    """Hertz, with what the monitor blanks."""
    return (width + BLANK_COLUMNS) * (height + BLANK_LINES) * rate


def _timing(width: int, height: int, rate: int) -> bytes:
    """A detailed timing descriptor."""
    return struct.pack(
        "<H16B",
        min(pixel_clock(width, height, rate) // 10_000, 0xFFFF),
        width & 0xFF, BLANK_COLUMNS, width >> 8 << 4,
        height & 0xFF, BLANK_LINES, height >> 8 << 4,
        FRONT_PORCH, SYNC, LINE_PORCH << 4 | LINE_SYNC, 0,
        520 & 0xFF, 290 & 0xFF, 520 >> 8 << 4 | 290 >> 8, 0, 0, 0x1E,
    )  # fmt: skip
