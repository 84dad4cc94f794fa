"""The registers of the SD card: its identity, size and abilities.

Source: SD Physical Layer Simplified Specification 3.01: CID 5.2, CSD 5.3.3, SCR 5.6, SD status
4.10.2, switch function status 4.3.10.
"""

from __future__ import annotations

SCR = bytes((0x02, 0x35, 0x80, 0x02, 0, 0, 0, 0))
"""Version 3.0x, erased blocks read as zeros, 1 and 4 data lines, CMD23."""
FUNCTION_GROUPS = 6
DEFAULT_SPEED, HIGH_SPEED, INVALID = 0, 1, 15
NO_INFLUENCE = 0x8001
"""A group that has its function 0 only."""
ACCESS_MODES = 0x8003
MILLIAMPERES = 100
SWITCH = 1 << 31


def _with_crc(data: bytes) -> bytes:
    """15 bytes and their CRC7."""
    crc = 0
    for byte in data:
        for bit in range(7, -1, -1):
            crc = crc << 1 & 0x7F ^ (0x09 if (crc >> 6 ^ byte >> bit) & 1 else 0)
    return data + bytes((crc << 1 | 1,))


CID = _with_crc(bytes((0x76,)) + b"VC" + b"4LAB " + bytes.fromhex("10 56433401 0103"))
"""Maker, application, product, revision 1.0, serial number, made in March 2016."""


def csd(units: int) -> bytes:
    """Version 2 of the CSD of a card of so many times 512 KiB."""
    size = units - 1
    head = bytes((0x40, 0x0E, 0x00, 0x32, 0x5B, 0x59, 0x00))
    return _with_crc(head + (size & 0x3FFFFF).to_bytes(3, "big") + bytes.fromhex("7f800a4000"))


def sd_status(wide: bool) -> bytes:
    """The 64 bytes of ACMD13."""
    data = bytearray(64)
    data[0] = 0x80 if wide else 0
    data[8], data[10] = 2, 0x90
    return bytes(data)


def switch_status(argument: int, fast: bool) -> tuple[bytes, bool]:
    """The 64 bytes of CMD6, and whether the card runs at high speed from now on."""
    data = bytearray(64)
    data[0:2] = MILLIAMPERES.to_bytes(2, "big")
    chosen = []
    for group in range(1, FUNCTION_GROUPS + 1):
        able = ACCESS_MODES if group == 1 else NO_INFLUENCE
        data[14 - 2 * group : 16 - 2 * group] = able.to_bytes(2, "big")
        wanted = argument >> 4 * (group - 1) & 15
        if wanted == 15:
            chosen.append(HIGH_SPEED if group == 1 and fast else DEFAULT_SPEED)
        else:
            chosen.append(wanted if able >> wanted & 1 else INVALID)
    for pair in range(3):
        data[16 - pair] = chosen[2 * pair + 1] << 4 | chosen[2 * pair]
    if INVALID in chosen:
        data[0:2] = bytes(2)
    elif argument & SWITCH:
        fast = chosen[0] == HIGH_SPEED
    return bytes(data), fast
