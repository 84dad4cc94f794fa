"""Planes whose pixels are brightness and colour: where their samples are, and their matrix."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.scanout.native.lines import BLOCK
from vc4lab.scanout.native.yuv import Picture, converter


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
