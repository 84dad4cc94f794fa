"""A picture as TXP writes it: its pixels packed, and where each lies in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.images.tiling import TILE_UTILES, UTILE_SHAPES, Tiling, texel_bit_addresses

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

RASTER, T, LT = Tiling.RASTER, Tiling.T, Tiling.LT
PITCH_BITS = {T: 7, LT: 4}
"""Bits of the pitch below the number of tiles or utiles in a row."""
SOURCE = {"B": 0, "G": 1, "R": 2}
"""The composer's place of a channel."""
ALL_BYTES = 15

Pixels = np.ndarray[Any, Any]


def packed(pixels: Pixels, order: str, widths: Mapping[str, int], alpha: int) -> Pixels:
    """Bytes blue, green, red and one without a meaning, (height, width, 4), as bytes of a format.

    `order`: its channels from the highest bits on.
    """
    words = np.zeros(pixels.shape[:2], np.uint32)
    shift = 0
    for name in reversed(order):
        width = widths[name]
        if name == "A":
            words |= np.uint32(alpha >> 8 - width << shift)
        else:
            narrow = pixels[..., SOURCE[name]] >> 8 - width
            words |= narrow.astype(np.uint32) << np.uint32(shift)
        shift += width
    return words.view(np.uint8).reshape(*words.shape, 4)[..., : shift // 8]


@dataclass(frozen=True)
class Place:
    """The place of a picture: the registers' address and pitch, its size, bits of a pixel."""

    address: int
    pitch: int
    width: int
    height: int
    bits: int
    tiling: Tiling

    @property
    def _row(self) -> int:
        """Tiles or utiles in a row."""
        return self.pitch >> PITCH_BITS[self.tiling]

    @property
    def _row_texels(self) -> int:
        utiles = TILE_UTILES if self.tiling is T else 1
        return self._row * utiles * UTILE_SHAPES[self.bits].width

    def problem(self, memory: GuestMemory) -> str:
        """Why it cannot be written, "" if it can."""
        if self.tiling is not RASTER:
            if self.bits not in (16, 32):
                return f"tiles of pixels with {self.bits} bits are asked for"
            if self._row_texels < self.width:
                return f"a row of {self._row} tiles is narrower than {self.width} pixels"
        if not memory.contains(self.address, self._extent()):
            return "the picture does not fit into RAM"
        return ""

    def _extent(self) -> int:
        """Bytes up to the end of the last one."""
        if self.tiling is RASTER:
            return self.pitch * (self.height - 1) + self.width * self.bits // 8
        utiles = TILE_UTILES if self.tiling is T else 1
        rows = -(-self.height // (UTILE_SHAPES[self.bits].height * utiles))
        return rows * self._row * 64 * utiles * utiles

    def store(self, memory: GuestMemory, pixels: Pixels, enabled: int) -> None:
        """Write packed pixels; `enabled`: a bit for each byte of an aligned word."""
        target = memory.array(self.address, self._extent())
        if self.tiling is RASTER:
            lanes = np.arange(self.width * self.bits // 8) & 3
            for row in range(self.height):
                begin = row * self.pitch
                self._put(target[begin : begin + len(lanes)], pixels[row].ravel(), begin, enabled)
            return
        bits = texel_bit_addresses(self._row_texels, self.height, self.bits, self.tiling)
        first = bits[:, : self.width, None] // 8
        places = (first + np.arange(self.bits // 8)).ravel()
        written = enabled >> (places + self.address & 3) & 1 == 1
        target[places[written]] = pixels.ravel()[written]

    def _put(self, target: Pixels, row: Pixels, offset: int, enabled: int) -> None:
        if enabled == ALL_BYTES:
            target[:] = row
            return
        lanes = np.arange(len(row)) + self.address + offset & 3
        written = enabled >> lanes & 1 == 1
        target[written] = row[written]
