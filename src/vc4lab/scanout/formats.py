"""Pixel formats of planes: where the channels are, and which layouts there are."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.images.tiling import TILE_UTILES, UTILE_SHAPES

LINEAR = 0
T_TILED = 0x0700_0000_0000_0001
_UTILE = UTILE_SHAPES[32]  # as high as that of 16 bits, and as many bytes wide
TILE_PITCH = TILE_UTILES << _UTILE.row_bytes_log2
"""Bytes of a T tile's rows side by side: a tiled pitch is a multiple of it."""
TILE_ROWS = TILE_UTILES * _UTILE.height


def fourcc(text: str) -> int:
    """The code of a format's name."""
    return int.from_bytes(text.encode(), "little")


Bits = tuple[int, int]
"""The lowest bit of a channel in a pixel, and how many; (0, 0) for a channel that is not there."""


@dataclass(frozen=True)
class Format:
    """Where the channels of a pixel (a little-endian number) are.

    name: four letters, as DRM has them. bits: of a pixel. depth: as the ioctl GETFB gives it.
    """

    name: str
    bits: int
    depth: int
    red: Bits
    green: Bits
    blue: Bits
    alpha: Bits = (0, 0)
    tiled: bool = False
    """Whether the display hardware reads it T-tiled, too."""

    @property
    def code(self) -> int:
        """Its number in ioctls (`fourcc`)."""
        return fourcc(self.name)

    @property
    def has_alpha(self) -> bool:
        """Whether its pixels can be transparent."""
        return self.alpha[1] > 0

    @property
    def channels(self) -> tuple[Bits, Bits, Bits, Bits]:
        """In the order red, green, blue, alpha."""
        return self.red, self.green, self.blue, self.alpha

    def allows(self, modifier: int) -> bool:
        """Whether a frame buffer of this format can have that layout."""
        return modifier == LINEAR or (modifier == T_TILED and self.tiled)
