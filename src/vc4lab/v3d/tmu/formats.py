"""Texture types 0-17: how a texel is stored and which word it becomes (golden form).

Plain Python; ``texel_codecs.py`` is the native twin.
A *unit* is what the layouts of ``images/tiling.py`` move around: one texel, a 4x4 block of ETC1, or
a pair of YUYV texels.

Source: VideoCore IV 3D Architecture Reference Guide p. 40 (types), Broadcom's software image
library (expansion to 8 bits), Mesa ``vc4_formats.c`` (component order), OES_compressed_ETC1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vc4lab.images.tiling import UTILE_SHAPES, WIDE_BITS, UtileShape
from vc4lab.records.texture import TextureType


@dataclass(frozen=True)
class TextureFormat:
    """One row of the type table.

    Attributes
    ----------
    channels
        Stored channels that a blend has to treat: 1, 2 or 4.
    block
        Texels along each side of a unit that is a block (ETC1), else 1.
    filterable
        Whether texels may be blended; the others are always point-sampled.
    half
        Whether channels are half floats, which have a way of their own to be blended.
    """

    type: TextureType
    channels: int
    block: int = 1
    filterable: bool = True
    half: bool = False

    @property
    def unit_bits(self) -> int:
        """Bits of one unit in memory (YUYV: one texel; decoding wants the whole pair)."""
        return self.type.bits * self.block * self.block

    def utile(self, bit_utile: str) -> UtileShape:
        """Shape of the utiles that units lie in. bit_utile: the unknown "tmu_bw1_utile"."""
        wide = self.unit_bits == 1 and bit_utile == "64x8"
        return WIDE_BITS if wide else UTILE_SHAPES[self.unit_bits]


_T = TextureType

FORMATS: dict[int, TextureFormat] = {
    row.type: row
    for row in (
        TextureFormat(_T.RGBA8888, 4),
        TextureFormat(_T.RGBX8888, 4),
        TextureFormat(_T.RGBA4444, 4),
        TextureFormat(_T.RGBA5551, 4),
        TextureFormat(_T.RGB565, 4),
        TextureFormat(_T.LUMINANCE, 1),
        TextureFormat(_T.ALPHA, 1),
        TextureFormat(_T.LUMALPHA, 2),
        TextureFormat(_T.ETC1, 4, block=4),
        TextureFormat(_T.S16F, 1, half=True),
        TextureFormat(_T.S8, 1),
        TextureFormat(_T.S16, 1, filterable=False),
        TextureFormat(_T.BW1, 1),
        TextureFormat(_T.A4, 1),
        TextureFormat(_T.A1, 1),
        TextureFormat(_T.RGBA64, 4, half=True),
        TextureFormat(_T.RGBA32R, 4),
        TextureFormat(_T.YUYV422R, 4),
    )
}


def pack_rgba(red: int, green: int, blue: int, alpha: int = 255) -> int:
    """The result word of the texture unit: R in bits 7:0, A in bits 31:24."""
    return red | green << 8 | blue << 16 | alpha << 24


def expand5(value: int) -> int:
    """5 bits to 8 as Broadcom's library does: (x * 33) >> 2."""
    return value * 33 >> 2


def expand6(value: int) -> int:
    """6 bits to 8: (x * 65) >> 4."""
    return value * 65 >> 4


def _rgba4444(v: int) -> int:
    return pack_rgba((v >> 12) * 17, (v >> 8 & 15) * 17, (v >> 4 & 15) * 17, (v & 15) * 17)


def _rgba5551(v: int) -> int:
    red, green, blue = expand5(v >> 11), expand5(v >> 6 & 31), expand5(v >> 1 & 31)
    return pack_rgba(red, green, blue, (v & 1) * 255)


def _rgb565(v: int) -> int:
    return pack_rgba(expand5(v >> 11), expand6(v >> 5 & 63), expand5(v & 31))


def _grey(v: int) -> int:
    return pack_rgba(v, v, v)


def _luminance_alpha(v: int) -> int:
    return pack_rgba(v & 255, v & 255, v & 255, v >> 8)


#: Value of a stored texel -> result word, for the types where a texel stands alone in memory.
DECODERS: dict[TextureType, Callable[[int], int]] = {
    _T.RGBA8888: lambda v: v,
    _T.RGBX8888: lambda v: v | 0xFF000000,
    _T.RGBA4444: _rgba4444,
    _T.RGBA5551: _rgba5551,
    _T.RGB565: _rgb565,
    _T.LUMINANCE: _grey,
    _T.ALPHA: lambda v: v << 24,
    _T.LUMALPHA: _luminance_alpha,
    _T.S16F: lambda v: v,
    _T.S8: lambda v: v,
    _T.S16: lambda v: v,
    _T.BW1: lambda v: _grey(v * 255),
    _T.A4: lambda v: v * 17 << 24,
    _T.A1: lambda v: v * 255 << 24,
    _T.RGBA32R: lambda v: v,
}


def decode_yuyv(pair: int, odd: int, order: str) -> int:
    """Texel 0 or 1 of a 32-bit pair Y0, U, Y1, V; `order` names bytes 0 to 2 of the word."""
    parts = {"y": pair >> (16 if odd else 0) & 255, "u": pair >> 8 & 255, "v": pair >> 24}
    return pack_rgba(*(parts[letter] for letter in order))
