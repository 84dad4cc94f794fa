"""The simulated monitor's EDID: the mode that config.txt chose, or those of another monitor.

Sources: VESA Enhanced EDID Standard 1.3, section 3; CEA-861 (the second block).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

SIZE = 128
MAKER = "VCL"
NAME = b"vc4lab"
SRGB = bytes.fromhex("ee91a3544c99260f5054")
"""Where its red, green, blue and white are."""
CEA = 2
"""Begins a second block with more timings."""
UNDERSCANS = 0x80
MOST_MODES = 2 + 6
BLANK_COLUMNS, FRONT_PORCH, SYNC = 160, 48, 32
"""Of a line, as reduced blanking has it."""
BLANK_LINES, LINE_PORCH, LINE_SYNC = 40, 3, 5


def edid_block(width: int, height: int, rate: int) -> bytes:
    """Block 0 for a monitor whose native mode has so many pixels and pictures a second."""
    return edid_of([(width, height, rate)])


def edid_of(modes: Sequence[tuple[int, int, int]]) -> bytes:
    """For a monitor with these modes (width, height, pictures a second), the native one first.

    One block, or two for more than two modes. Raises ValueError for none and for more than
    `MOST_MODES`.
    """
    if not 1 <= len(modes) <= MOST_MODES:
        raise ValueError(f"a monitor's EDID has room for 1 to {MOST_MODES} modes, not {len(modes)}")
    letters = [ord(letter) - 64 for letter in MAKER]
    maker = letters[0] << 10 | letters[1] << 5 | letters[2]
    block = bytearray(SIZE)
    block[:8] = b"\x00\xff\xff\xff\xff\xff\xff\x00"
    struct.pack_into(">H", block, 8, maker)
    struct.pack_into("<HI", block, 10, 1, 1)
    block[16:25] = bytes(
        (1, 30, 1, 3, 0x80, 52, 29, 120, 0x0E)
    )  # week, year, 1.3, digital, cm, 2.2, sRGB, the first timing is the native one
    block[25:35] = SRGB
    block[38:54] = b"\x01\x01" * 8
    descriptors = [_timing(*mode) for mode in modes[:2]]
    descriptors.append(b"\0\0\0\xfc\0" + (NAME + b"\n").ljust(13))
    descriptors.append(_limits(modes))
    descriptors += [b"\0\0\0\x10\0" + bytes(13)] * (4 - len(descriptors))
    block[54:126] = b"".join(descriptors)
    more = modes[2:]
    if not more:
        return _summed(block)
    block[126] = 1
    extension = bytearray(SIZE)
    extension[:4] = CEA, 3, 4, UNDERSCANS
    for number, mode in enumerate(more):
        extension[4 + 18 * number : 22 + 18 * number] = _timing(*mode)
    return _summed(block) + _summed(extension)


def _summed(block: bytearray) -> bytes:
    """A block with its checksum."""
    block[127] = -sum(block) & 0xFF
    return bytes(block)


def _limits(modes: Sequence[tuple[int, int, int]]) -> bytes:
    """The descriptor of the lowest and highest rates: of pictures, lines (kHz), pixels (10 MHz)."""
    rates = [rate for _width, _height, rate in modes]
    lines = [(height + BLANK_LINES) * rate / 1000 for _width, height, rate in modes]
    fastest = -(-max(pixel_clock(*mode) for mode in modes) // 10_000_000)
    limits = min(rates), max(rates), int(min(lines)), int(max(lines)) + 1, fastest
    numbers = bytes(max(1, min(number, 0xFF)) for number in limits)
    return b"\0\0\0\xfd\0" + numbers + b"\0\n      "


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
