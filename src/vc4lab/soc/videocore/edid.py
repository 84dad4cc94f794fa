"""The simulated monitor's EDID: the mode that config.txt chose, or those of another monitor.

It is an HDMI monitor with stereo sound, as most are: a second block says so. Without it drivers
take it for one with DVI, and send no packets.
Sources: VESA Enhanced EDID Standard 1.3, section 3; CEA-861-D, 7.5; HDMI 1.3a, 8.3.2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from vc4lab.scanout.timings import POSITIVE_H, POSITIVE_V, STANDARD, Timing, timing_of

SIZE = 128
MAKER = "VCL"
NAME = b"vc4lab"
SRGB = bytes.fromhex("ee91a3544c99260f5054")
"""The coordinates of its red, green, blue and white."""
DIGITAL_SYNC = 0x18
HAS_640X480 = 0x20
"""An established timing; an HDMI monitor must have it."""
MOST_MODES = 2 + 6
"""Two in the first block, and so many fit into the second one."""
CEA, REVISION = 2, 3
"""The beginning of the second block."""
UNDERSCANS, HAS_SOUND = 0x80, 0x40
SOUND = bytes.fromhex("23 09 07 07")
"""Audio data block: two channels of PCM; 32, 44.1, 48 kHz; 16, 20, 24 bits."""
HDMI = bytes.fromhex("65 03 0c 00 10 00")
"""HDMI's vendor specific data block: it is the first monitor at the source."""
ABILITIES = bytes.fromhex("e2 00 4a")
"""Video capability data block: full and limited range as the source says; never overscans."""
VIDEO = 0x40
"""Video data block: numbers of modes."""
MODE_NUMBERS = {
    (640, 480, 60): 1, (720, 480, 60): 2, (1280, 720, 60): 4, (1920, 1080, 60): 16,
    (720, 576, 50): 17, (1280, 720, 50): 19, (1920, 1080, 50): 31, (1920, 1080, 24): 32,
    (1920, 1080, 25): 33, (1920, 1080, 30): 34,
}  # fmt: skip
"""CEA-861's number of a mode (VIC)."""


def edid_block(width: int, height: int, rate: int) -> bytes:
    """For a monitor whose only mode has so many pixels and pictures a second."""
    return edid_of([(width, height, rate)])


def edid_of(modes: Sequence[tuple[int, int, int]]) -> bytes:
    """For a monitor with these modes (width, height, pictures a second), the native one first.

    Two blocks; 640x480 is always among the modes. Raises ValueError for none and for more than
    `MOST_MODES`.
    """
    if not 1 <= len(modes) <= MOST_MODES:
        raise ValueError(f"a monitor's EDID has room for 1 to {MOST_MODES} modes, not {len(modes)}")
    timings = [timing_of(*mode) for mode in modes]
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
    block[35] = HAS_640X480
    block[38:54] = b"\x01\x01" * 8
    descriptors = [_described(timing) for timing in timings[:2]]
    descriptors.append(b"\0\0\0\xfc\0" + (NAME + b"\n").ljust(13))
    descriptors.append(_limits(timings))
    descriptors += [b"\0\0\0\x10\0" + bytes(13)] * (4 - len(descriptors))
    block[54:126] = b"".join(descriptors)
    block[126] = 1
    return _summed(block) + _summed(_extension(timings))


def _extension(timings: Sequence[Timing]) -> bytearray:
    """The block with what an HDMI monitor says: modes by number, those without one by timing."""
    listed = [timings[0], *timings[2:]]  # the second one's number would be one byte too many
    numbers = [MODE_NUMBERS[timing.mode] for timing in listed if timing.mode in MODE_NUMBERS]
    data = bytes([VIDEO | len(numbers), *numbers]) if numbers else b""
    data += SOUND + HDMI + ABILITIES
    more = [timing for timing in timings[2:] if timing.mode not in MODE_NUMBERS]
    block = bytearray(SIZE)
    block[:4] = CEA, REVISION, 4 + len(data), UNDERSCANS | HAS_SOUND | 1
    data += b"".join(_described(timing) for timing in more)
    block[4 : 4 + len(data)] = data
    return block


def _summed(block: bytearray) -> bytes:
    """A block with its checksum."""
    block[127] = -sum(block) & 0xFF
    return bytes(block)


def _limits(timings: Sequence[Timing]) -> bytes:
    """The descriptor of the lowest and highest rates: of pictures, lines (kHz), pixels (10 MHz)."""
    timings = [*timings, STANDARD[640, 480, 60]]
    rates = [timing.refresh for timing in timings]
    lines = [timing.clock / timing.horizontal[2] for timing in timings]
    fastest = -(-max(timing.clock for timing in timings) // 10_000)
    limits = min(rates), max(rates), int(min(lines)), int(max(lines)) + 1, fastest
    numbers = bytes(max(1, min(number, 0xFF)) for number in limits)
    return b"\0\0\0\xfd\0" + numbers + b"\0\n      "


def _described(timing: Timing) -> bytes:
    """A detailed timing descriptor."""
    width, height = timing.width, timing.height
    (begin, end, across), (top, bottom, down) = timing.horizontal, timing.vertical
    blank, before, sync = across - width, begin - width, end - begin
    lines, above, pulse = down - height, top - height, bottom - top
    signs = bool(timing.flags & POSITIVE_H) << 1 | bool(timing.flags & POSITIVE_V) << 2
    return struct.pack(
        "<H16B",
        min(timing.clock // 10, 0xFFFF),
        width & 0xFF, blank & 0xFF, width >> 8 << 4 | blank >> 8,
        height & 0xFF, lines & 0xFF, height >> 8 << 4 | lines >> 8,
        before & 0xFF, sync & 0xFF, (above & 15) << 4 | pulse & 15,
        before >> 8 << 6 | sync >> 8 << 4 | above >> 4 << 2 | pulse >> 4,
        520 & 0xFF, 290 & 0xFF, 520 >> 8 << 4 | 290 >> 8, 0, 0, DIGITAL_SYNC | signs,
    )  # fmt: skip
