"""Pixel formats of frame buffers (fourcc codes), and which of them may be tiled."""

from __future__ import annotations

import struct

from vc4lab.scanout.formats import LINEAR, T_TILED, Format, fourcc

FORMATS = {
    f.code: f
    for f in (
        Format("XR24", 32, 24, (16, 8), (8, 8), (0, 8), tiled=True),
        Format("AR24", 32, 32, (16, 8), (8, 8), (0, 8), (24, 8), tiled=True),
        Format("AB24", 32, 32, (0, 8), (8, 8), (16, 8), (24, 8), tiled=True),
        Format("XB24", 32, 24, (0, 8), (8, 8), (16, 8), tiled=True),
        Format("RG16", 16, 16, (11, 5), (5, 6), (0, 5), tiled=True),
        Format("BG16", 16, 16, (0, 5), (5, 6), (11, 5), tiled=True),
        Format("AR15", 16, 15, (10, 5), (5, 5), (0, 5), (15, 1), tiled=True),
        Format("XR15", 16, 15, (10, 5), (5, 5), (0, 5), tiled=True),
        Format("RG24", 24, 24, (16, 8), (8, 8), (0, 8)),
        Format("BG24", 24, 24, (0, 8), (8, 8), (16, 8)),
        Format("RGB8", 8, 8, (5, 3), (2, 3), (0, 2)),
        Format("BGR8", 8, 8, (0, 3), (3, 3), (6, 2)),
        Format("XR12", 16, 12, (8, 4), (4, 4), (0, 4)),
        Format("AR12", 16, 12, (8, 4), (4, 4), (0, 4), (12, 4)),
        Format("XB12", 16, 12, (0, 4), (4, 4), (8, 4)),
        Format("AB12", 16, 12, (0, 4), (4, 4), (8, 4), (12, 4)),
        Format("RX12", 16, 12, (12, 4), (8, 4), (4, 4)),
        Format("RA12", 16, 12, (12, 4), (8, 4), (4, 4), (0, 4)),
        Format("BX12", 16, 12, (4, 4), (8, 4), (12, 4)),
        Format("BA12", 16, 12, (4, 4), (8, 4), (12, 4), (0, 4)),
    )
}
"""Those of the HVS of a Pi 1 to 3 as Linux's driver lists them, without YUV."""
_FULL, _PAIRS = (8, 1, 1), (16, 2, 2)
_QUARTER, _HALF = (8, 2, 2), (8, 2, 1)
SUBSAMPLED = {
    fourcc("NV12"): (_FULL, _PAIRS),
    fourcc("NV21"): (_FULL, _PAIRS),
    fourcc("NV16"): (_FULL, (16, 2, 1)),
    fourcc("NV61"): (_FULL, (16, 2, 1)),
    fourcc("YU12"): (_FULL, _QUARTER, _QUARTER),
    fourcc("YV12"): (_FULL, _QUARTER, _QUARTER),
    fourcc("YU16"): (_FULL, _HALF, _HALF),
    fourcc("YV16"): (_FULL, _HALF, _HALF),
}
"""YUV by code: bits, columns and rows of the picture for each element of each plane. Programs can
make such frame buffers; the planes of this display do not show them.
"""
PLANAR = {
    code: Format(code.to_bytes(4, "little").decode(), 8, 0, (0, 0), (0, 0), (0, 0)) for code in SUBSAMPLED
}
MODIFIERS = (T_TILED, LINEAR)
LEGACY = {
    (32, 24): fourcc("XR24"),
    (32, 32): fourcc("AR24"),
    (24, 24): fourcc("RG24"),
    (16, 16): fourcc("RG16"),
    (16, 15): fourcc("XR15"),
}
"""By bits and depth of ADDFB."""


def in_formats(tiled: bool = True) -> bytes:
    """The IN_FORMATS blob: which format can have which modifier; `tiled`: others than linear."""
    codes = list(FORMATS)
    kinds = MODIFIERS if tiled else (LINEAR,)
    head = 24
    modifiers = head + 4 * len(codes) + 4 * (len(codes) % 2)
    out = struct.pack("<IIIIII", 1, 0, len(codes), head, len(kinds), modifiers)
    out += struct.pack(f"<{len(codes)}I", *codes)
    out = out.ljust(modifiers, b"\0")
    for modifier in kinds:
        which = sum(1 << n for n, f in enumerate(FORMATS.values()) if f.allows(modifier))
        out += struct.pack("<QIIQ", which, 0, 0, modifier)
    return out
