"""Planes of brightness and colour in display lists: NV12, YUV420, YUV422 and their like, and SAND.

Source: Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_regs.h (SCALER_CSC0 to 2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from vc4lab.scanout.formats import Component, Format, Yuv
from vc4lab.soc.display.tiled_planes import PITCH

COLUMNED = 12
"""NV12 in columns (SAND), which Linux names H264."""
HALVED = {
    8: (True, True), 9: (True, True), 10: (True, False), 11: (True, False), COLUMNED: (True, True),
}  # fmt: skip
"""Whether colour has half the columns and half the rows, by format."""
INTERLEAVED = frozenset((9, 11, COLUMNED))
"""Cb and Cr follow each other, in one plane."""
SWAPPED = frozenset((1, 3))
"""Orders in which Cr comes first."""
COLUMNS = {0: 0, 1: 64, 2: 128}
"""Bytes of the columns of a SAND layout, by tiling; in the last one, 3, they have 256."""
LARGE_COLUMN = 256
PIXELS = Format("XR24", 32, 24, (16, 8), (8, 8), (0, 8))
"""The format of the pixels that samples become."""


class Listed(Protocol):
    """A plane of a display list (`planes.Plane`)."""

    @property
    def kind(self) -> int: ...
    @property
    def order(self) -> int: ...
    @property
    def tiling(self) -> int: ...
    @property
    def upward(self) -> bool: ...
    @property
    def source_width(self) -> int: ...
    @property
    def source_height(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def pitch(self) -> int: ...
    @property
    def more(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def matrix(self) -> tuple[int, int, int]: ...


def absence_of_layout(plane: Listed) -> str:
    """Why a plane of this layout is not composed, "" if it is."""
    if plane.kind == COLUMNED and not plane.tiling:
        return f"pixel format {plane.kind} (H264) without columns is not read"
    if plane.tiling and plane.kind not in INTERLEAVED:
        return f"tiling {plane.tiling} (columns) of three planes is not read"
    return ""


def yuv_of(plane: Listed) -> Yuv:
    """The layout of its samples."""
    width, height = plane.source_width, plane.source_height
    column = COLUMNS.get(plane.tiling, LARGE_COLUMN)
    half_x, half_y = HALVED[plane.kind]
    columns, rows = -(-width // 2) if half_x else width, -(-height // 2) if half_y else height
    luma = Component(plane.address, 1, plane.pitch & PITCH, column, width, height)
    if plane.kind in INTERLEAVED:
        address, pitch = plane.more[0]
        both = [
            Component(address + n, 2, (pitch or plane.pitch) & PITCH, column, columns, rows) for n in range(2)
        ]
    else:
        both = [Component(address, 1, pitch & PITCH, 0, columns, rows) for address, pitch in plane.more]
    if plane.order in SWAPPED:
        both.reverse()
    if plane.upward:
        luma, both = _from_last(luma), [_from_last(part) for part in both]
    return Yuv((luma, both[0], both[1]), (half_x, half_y), *_colours(*plane.matrix))


def _from_last(part: Component) -> Component:
    """A component whose address is that of its last row, which is shown first."""
    return replace(part, address=part.address - (part.rows - 1) * part.row)


def _colours(first: int, second: int, third: int) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """Offsets of Y, Cb, Cr, and the matrix, of the three words of the colour space."""
    offsets = _signed(first >> 16), _signed(first >> 8), _signed(first)
    luma = _coefficient(second >> 2)
    red = luma, _coefficient(third >> 20), _coefficient(third >> 10)
    green = luma, _coefficient(second >> 22), _coefficient(second >> 12)
    blue = luma, _coefficient(third), _coefficient((second & 3) << 8 | first >> 24)
    return offsets, (*red, *green, *blue)


def _signed(byte: int) -> int:
    return (byte & 0xFF) - ((byte & 0x80) << 1)


def _coefficient(bits: int) -> int:
    """In 256ths: two bits before the point stand for 0, 1, 2 and -1."""
    value = bits & 0x3FF
    return value - 0x400 if value >= 0x300 else value
