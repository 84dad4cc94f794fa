"""Texture types 0-17: how texels are stored; ``texel_codecs.py`` converts them.

A *unit* is what the layouts of ``images/tiling.py`` move around: one texel, a 4x4 block of ETC1, or
a pair of YUYV texels.

Source: VideoCore IV 3D Architecture Reference Guide p. 40.
"""

from __future__ import annotations

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
