"""Pixel formats of planes: where channels are, layouts, and the samples and matrix of YUV planes."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.images.tiling import TILE_UTILES, UTILE_SHAPES
from vc4lab.scanout.native.lines import BLOCK, Picture, converter

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
    """The places of the channels in a pixel (a little-endian number).

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


@dataclass(frozen=True)
class Component:
    """The samples of Y, Cb or Cr. step: bytes from one to the next in a row.

    column: bytes of the columns that a SAND layout has, 0 in rows; pitch: bytes from row to row,
    in SAND layouts rows of a column, all of which are memory's before the next one. The first
    sample may lie within a column, which begins at a multiple of its size.
    """

    address: int
    step: int
    pitch: int
    column: int
    columns: int
    rows: int

    @property
    def row(self) -> int:
        """Bytes from row to row."""
        return self.column or self.pitch

    @property
    def skip(self) -> int:
        """Bytes of a column before the first sample."""
        return self.address % self.column if self.column else 0

    @property
    def start(self) -> int:
        """Address of the column, or of the first sample."""
        return self.address - self.skip

    @property
    def extent(self) -> int:
        """Bytes from `start` to the last sample."""
        last = (self.columns - 1) * self.step + self.skip
        down = (self.rows - 1) * self.row
        if not self.column:
            return down + last + 1
        whole = last // self.column * self.column * self.pitch
        return whole + down + (last % self.column if last < self.column else self.column - 1) + 1


@dataclass(frozen=True)
class Yuv:
    """A plane: Y, Cb, Cr, which of columns and rows chroma has half as many of; how red, green and
    blue come from them (each row of the matrix in 256ths), after offsets are added.
    """

    components: tuple[Component, Component, Component]
    halved: tuple[bool, bool]
    offsets: tuple[int, int, int]
    matrix: tuple[int, ...]


def picture_of(
    yuv: Yuv, base: int, size: tuple[int, int], out: int, *, blends: bool, rounding: int
) -> Picture:
    """For the native converter. base: host address of memory; out: room for all pixels."""
    width, height = size
    picture = Picture(
        width=width, height=height, blends=blends, rounding=rounding, out=out,
    )  # fmt: skip
    for number, one in enumerate(yuv.components):
        part = picture.parts[number]
        part.start, part.step, part.skip = base + one.start, one.step, one.skip
        part.right, part.bottom = one.columns - 1, one.rows - 1
        part.row = one.row
        if one.column:
            part.shift, part.mask = one.column.bit_length() - 1, one.column - 1
            part.column = one.column * one.pitch
        else:
            part.shift, part.mask, part.column = 31, 0x7FFFFFFF, 0
    for number, half in enumerate(yuv.halved):
        picture.halved[number] = half
    for number, offset in enumerate(yuv.offsets):
        picture.offsets[number] = offset
    for number, factor in enumerate(yuv.matrix):
        picture.matrix[number] = factor
    return picture


def room(width: int, height: int) -> int:
    """Bytes that the converted pixels need."""
    return 4 * width * height + 4 * BLOCK


def convert(picture: Picture) -> None:
    """Make the pixels anew, as memory is now."""
    converter()["convert"](picture.address)
