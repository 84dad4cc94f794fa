"""Formats of texels and vertices: their numbers, and what their names say about their bits.

A name lists the channels from the lowest bit up: B5G6R5_UNORM has blue in the low five bits,
R8G8B8A8_UNORM red in the first byte. Source: Mesa 22.3, virgl_hw.h (those that the driver sends).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

NUMBERED = {
    0: """
        NONE B8G8R8A8_UNORM B8G8R8X8_UNORM A8R8G8B8_UNORM X8R8G8B8_UNORM B5G5R5A1_UNORM
        B4G4R4A4_UNORM B5G6R5_UNORM R10G10B10A2_UNORM L8_UNORM A8_UNORM I8_UNORM L8A8_UNORM
        L16_UNORM
    """,
    16: """
        Z16_UNORM Z32_UNORM Z32_FLOAT Z24_UNORM_S8_UINT S8_UINT_Z24_UNORM Z24X8_UNORM
        X8Z24_UNORM S8_UINT R64_FLOAT R64G64_FLOAT R64G64B64_FLOAT R64G64B64A64_FLOAT
        R32_FLOAT R32G32_FLOAT R32G32B32_FLOAT R32G32B32A32_FLOAT R32_UNORM R32G32_UNORM
        R32G32B32_UNORM R32G32B32A32_UNORM R32_USCALED R32G32_USCALED R32G32B32_USCALED
        R32G32B32A32_USCALED R32_SNORM R32G32_SNORM R32G32B32_SNORM R32G32B32A32_SNORM
        R32_SSCALED R32G32_SSCALED R32G32B32_SSCALED R32G32B32A32_SSCALED R16_UNORM
        R16G16_UNORM R16G16B16_UNORM R16G16B16A16_UNORM R16_USCALED R16G16_USCALED
        R16G16B16_USCALED R16G16B16A16_USCALED R16_SNORM R16G16_SNORM R16G16B16_SNORM
        R16G16B16A16_SNORM R16_SSCALED R16G16_SSCALED R16G16B16_SSCALED R16G16B16A16_SSCALED
        R8_UNORM R8G8_UNORM R8G8B8_UNORM R8G8B8A8_UNORM
    """,
    69: "R8_USCALED R8G8_USCALED R8G8B8_USCALED R8G8B8A8_USCALED",
    74: "R8_SNORM R8G8_SNORM R8G8B8_SNORM R8G8B8A8_SNORM",
    82: "R8_SSCALED R8G8_SSCALED R8G8B8_SSCALED R8G8B8A8_SSCALED",
    91: """
        R16_FLOAT R16G16_FLOAT R16G16B16_FLOAT R16G16B16A16_FLOAT L8_SRGB L8A8_SRGB
        R8G8B8_SRGB A8B8G8R8_SRGB X8B8G8R8_SRGB B8G8R8A8_SRGB B8G8R8X8_SRGB A8R8G8B8_SRGB
        X8R8G8B8_SRGB R8G8B8A8_SRGB DXT1_RGB DXT1_RGBA DXT3_RGBA DXT5_RGBA DXT1_SRGB
        DXT1_SRGBA DXT3_SRGBA DXT5_SRGBA RGTC1_UNORM RGTC1_SNORM RGTC2_UNORM RGTC2_SNORM
    """,
    121: """
        A8B8G8R8_UNORM B5G5R5X1_UNORM R10G10B10A2_USCALED R11G11B10_FLOAT R9G9B9E5_FLOAT
        Z32_FLOAT_S8X24_UINT
    """,
    131: "B10G10R10A2_UNORM",
    134: """
        R8G8B8X8_UNORM B4G4R4X4_UNORM X24S8_UINT S8X24_UINT X32_S8X24_UINT B2G3R3_UNORM
        L16A16_UNORM A16_UNORM I16_UNORM LATC1_UNORM LATC1_SNORM LATC2_UNORM LATC2_SNORM
        A8_SNORM L8_SNORM L8A8_SNORM
    """,
    151: "A16_SNORM L16_SNORM L16A16_SNORM",
    155: """
        A16_FLOAT L16_FLOAT L16A16_FLOAT I16_FLOAT A32_FLOAT L32_FLOAT L32A32_FLOAT
        I32_FLOAT YV12 YV16 IYUV NV12 NV21
    """,
    172: "R10G10B10A2_SSCALED R10G10B10A2_SNORM",
    176: """
        B10G10R10A2_SNORM R8_UINT R8G8_UINT R8G8B8_UINT R8G8B8A8_UINT R8_SINT R8G8_SINT
        R8G8B8_SINT R8G8B8A8_SINT R16_UINT R16G16_UINT R16G16B16_UINT R16G16B16A16_UINT
        R16_SINT R16G16_SINT R16G16B16_SINT R16G16B16A16_SINT R32_UINT R32G32_UINT
        R32G32B32_UINT R32G32B32A32_UINT R32_SINT R32G32_SINT R32G32B32_SINT
        R32G32B32A32_SINT A8_UINT I8_UINT L8_UINT L8A8_UINT A8_SINT I8_SINT L8_SINT
        L8A8_SINT A16_UINT I16_UINT L16_UINT L16A16_UINT A16_SINT I16_SINT L16_SINT
        L16A16_SINT A32_UINT I32_UINT L32_UINT L32A32_UINT A32_SINT I32_SINT L32_SINT
        L32A32_SINT B10G10R10A2_UINT ETC1_RGB8
    """,
    229: """
        R8G8B8X8_SNORM R8G8B8X8_SRGB R8G8B8X8_UINT R8G8B8X8_SINT B10G10R10X2_UNORM
        R16G16B16X16_UNORM R16G16B16X16_SNORM R16G16B16X16_FLOAT R16G16B16X16_UINT
        R16G16B16X16_SINT R32G32B32X32_FLOAT R32G32B32X32_UINT R32G32B32X32_SINT
    """,
    253: "R10G10B10A2_UINT",
    255: "BPTC_RGBA_UNORM BPTC_SRGBA BPTC_RGB_FLOAT BPTC_RGB_UFLOAT",
    262: """
        A1B5G5R5_UNORM A1R5G5B5_UNORM A2B10G10R10_UNORM A2R10G10B10_UNORM A4R4G4B4_UNORM
    """,
    269: """
        ETC2_RGB8 ETC2_SRGB8 ETC2_RGB8A1 ETC2_SRGB8A1 ETC2_RGBA8 ETC2_SRGBA8 ETC2_R11_UNORM
        ETC2_R11_SNORM ETC2_RG11_UNORM ETC2_RG11_SNORM ASTC_4x4 ASTC_5x4 ASTC_5x5 ASTC_6x5
        ASTC_6x6 ASTC_8x5 ASTC_8x6 ASTC_8x8 ASTC_10x5 ASTC_10x6 ASTC_10x8 ASTC_10x10
        ASTC_12x10 ASTC_12x12 ASTC_4x4_SRGB ASTC_5x4_SRGB ASTC_5x5_SRGB ASTC_6x5_SRGB
        ASTC_6x6_SRGB ASTC_8x5_SRGB ASTC_8x6_SRGB ASTC_8x8_SRGB ASTC_10x5_SRGB
        ASTC_10x6_SRGB ASTC_10x8_SRGB ASTC_10x10_SRGB ASTC_12x10_SRGB ASTC_12x12_SRGB
    """,
    308: "R10G10B10X2_UNORM",
    311: "A4B4G4R4_UNORM R8_SRGB R8G8_SRGB",
    317: "B8G8R8_UNORM R3G3B2_UNORM R4G4B4A4_UNORM R5G5B5A1_UNORM R5G6B5_UNORM",
}
"""The names, in runs that begin with these numbers."""


class _Named(IntEnum):
    """A number whose text is its name."""

    def __str__(self) -> str:
        return self.name


_make: Any = _Named
Format: Any = _make(
    "Format",
    {name: first + number for first, names in NUMBERED.items() for number, name in enumerate(names.split())},
    module=__name__,
)
"""The formats as an enumeration."""

_CHANNEL = re.compile(r"([RGBALIXSZ])(\d+)")
_BLOCKS = {
    "DXT1": (4, 4, 8),
    "DXT3": (4, 4, 16),
    "DXT5": (4, 4, 16),
    "RGTC1": (4, 4, 8),
    "RGTC2": (4, 4, 16),
    "LATC1": (4, 4, 8),
    "LATC2": (4, 4, 16),
    "BPTC": (4, 4, 16),
    "ETC1": (4, 4, 8),
    "ETC2_RGB8": (4, 4, 8),
    "ETC2_SRGB8": (4, 4, 8),
    "ETC2_RGB8A1": (4, 4, 8),
    "ETC2_SRGB8A1": (4, 4, 8),
    "ETC2_RGBA8": (4, 4, 16),
    "ETC2_SRGBA8": (4, 4, 16),
    "ETC2_R11": (4, 4, 8),
    "ETC2_RG11": (4, 4, 16),
}
"""Compressed formats: width and height of a block in texels, and its bytes."""
_PLANAR = ("YV12", "YV16", "IYUV", "NV12", "NV21", "NONE")


@dataclass(frozen=True)
class Layout:
    """How a format's texels lie in memory.

    Attributes
    ----------
    block_width, block_height
        Texels of a block; 1 except in compressed formats.
    block_bytes
        Bytes of a block.
    channels
        Letter and bits of each channel, the lowest first; none in compressed formats.
    kind
        The type of the numbers: UNORM, SNORM, USCALED, SSCALED, FLOAT, UINT, SINT, SRGB.
    """

    block_width: int
    block_height: int
    block_bytes: int
    channels: tuple[tuple[str, int], ...]
    kind: str

    @property
    def is_srgb(self) -> bool:
        """Whether red, green and blue are stored by the sRGB curve."""
        return self.kind == "SRGB"

    @property
    def has_depth(self) -> bool:
        """Whether it is depth, stencil or both."""
        return any(letter in "ZS" for letter, _ in self.channels)

    def row_bytes(self, width: int) -> int:
        """Bytes of so many texels in a row."""
        return -(-width // self.block_width) * self.block_bytes

    def rows(self, height: int) -> int:
        """Rows of blocks."""
        return -(-height // self.block_height)


@cache
def layout_of(number: int) -> Layout | None:
    """The layout of a format by its number; None if the number or its layout is not known."""
    known = Format._value2member_map_.get(number)
    if known is None or known.name in _PLANAR:
        return None
    name = known.name
    special = _compressed(name)
    if special is not None:
        return Layout(*special, (), name.rpartition("_")[2])
    channels = tuple((letter, int(bits)) for letter, bits in _CHANNEL.findall(name))
    total = sum(bits for _, bits in channels)
    if name == "R9G9B9E5_FLOAT":
        total = 32
    if name == "Z32_FLOAT_S8X24_UINT":
        return Layout(1, 1, 8, (("Z", 32), ("S", 8), ("X", 24)), "FLOAT")
    if not channels or total % 8:
        return None
    return Layout(1, 1, total // 8, channels, _kind(name))


@cache
def unorm_of(number: int) -> int:
    """Return the linear format of one in sRGB; others are their own."""
    known = Format._value2member_map_.get(number)
    name = known.name if known is not None else ""
    found: int = Format.__members__.get(name.replace("_SRGB", "_UNORM"), number)
    return found


def _kind(name: str) -> str:
    kinds = [part for part in name.split("_") if not _CHANNEL.match(part)]
    if "UNORM" in kinds:
        return "UNORM"
    return kinds[0] if kinds else ""


def _compressed(name: str) -> tuple[int, int, int] | None:
    if name.startswith("ASTC_"):
        width, height = name.split("_")[1].split("x")
        return int(width), int(height), 16
    parts = name.split("_")
    return _BLOCKS.get("_".join(parts[:2])) or _BLOCKS.get(parts[0])
