"""Pixel formats of frame buffers (fourcc codes) and how they become pictures."""

from __future__ import annotations

from dataclasses import dataclass

LINEAR = 0
T_TILED = 0x0700_0000_0000_0001
INVALID_MODIFIER = 0x00FF_FFFF_FFFF_FFFF


def fourcc(text: str) -> int:
    """The code of a format's name."""
    return int.from_bytes(text.encode(), "little")


@dataclass(frozen=True)
class Format:
    """`order`: which byte of a pixel holds R, G, B, A; of 16 bits: name only."""

    name: str
    bits: int
    depth: int
    order: tuple[int, int, int, int] = (2, 1, 0, 3)
    alpha: bool = False

    @property
    def code(self) -> int:
        return fourcc(self.name)


FORMATS = {
    f.code: f
    for f in (
        Format("XR24", 32, 24),
        Format("AR24", 32, 32, alpha=True),
        Format("XB24", 32, 24, (0, 1, 2, 3)),
        Format("AB24", 32, 32, (0, 1, 2, 3), alpha=True),
        Format("RG16", 16, 16),
    )
}
MODIFIERS = (T_TILED, LINEAR)
LEGACY = {(32, 24): fourcc("XR24"), (32, 32): fourcc("AR24"), (16, 16): fourcc("RG16")}
"""By bits and depth of ADDFB."""


def in_formats() -> bytes:
    """The IN_FORMATS blob: every format with every modifier."""
    import struct

    codes = list(FORMATS)
    head = 24
    modifiers = head + 4 * len(codes) + 4 * (len(codes) % 2)
    out = struct.pack("<IIIIII", 1, 0, len(codes), head, len(MODIFIERS), modifiers)
    out += struct.pack(f"<{len(codes)}I", *codes)
    out = out.ljust(modifiers, b"\0")
    for modifier in MODIFIERS:
        out += struct.pack("<QIIQ", (1 << len(codes)) - 1, 0, 0, modifier)
    return out
