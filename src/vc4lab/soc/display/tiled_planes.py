"""Planes of T-tiles in display lists: which part of an image they show, and where it begins.

A list says where a plane's first line begins: the address of its sub-tile's part in the first tile,
and in the pitch how many tiles the row has before and from there on, the pixel and the line in that
tile, and two directions. Rows of tiles run to the right and to the left in turn.
Source: Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_regs.h (SCALER_PITCH0_*).
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.scanout.formats import TILE_PITCH, TILE_ROWS

TILE, SUBTILE = TILE_PITCH * TILE_ROWS, TILE_PITCH * TILE_ROWS // 4
UTILE_ROWS = 4
UPWARD, LEFTWARD = 1 << 15, 1 << 14
"""Flags in the pitch: lines follow upwards; the first row of tiles runs to the left."""
TILES, LINES, PIXELS = 0x7F, 0x3F, 0x3F
PITCH = 0xFFFF
"""The pitch of a plane without tiles: bytes from line to line."""


class Window(NamedTuple):
    """A plane's window: pixels from (x, y) on of an image of whole rows of tiles, whose first
    row runs to the right."""

    address: int
    tiles: int
    """Tiles in a row."""
    x: int
    y: int
    rows: int
    """Rows of tiles, down to the last line that is shown."""

    @property
    def size(self) -> int:
        """Bytes of the image."""
        return self.tiles * self.rows * TILE


def window_of(address: int, pitch: int, pixel_bytes: int, height: int) -> Window:
    """The image of which a plane of `height` lines shows a part."""
    before, after = pitch >> 16 & TILES, pitch & TILES
    tiles = before + after
    line = pitch >> 8 & LINES & TILE_ROWS - 1
    if pitch & UPWARD:
        line = TILE_ROWS - 1 - line
    lower = line // (TILE_ROWS // 2)
    address -= line // UTILE_ROWS % 4 << 8 | line % UTILE_ROWS << 4
    if pitch & LEFTWARD:
        address += (2 - lower) * SUBTILE - (tiles - before) * TILE
        address -= tiles * TILE  # the row before
        line += TILE_ROWS
    else:
        address -= before * TILE + lower * SUBTILE
    x = before * (TILE_PITCH // pixel_bytes) + (pitch >> 26 & PIXELS)
    if pitch & UPWARD:
        line -= height - 1
        pairs = -(line // (2 * TILE_ROWS)) if line < 0 else 0
        address -= 2 * pairs * tiles * TILE
        line += 2 * pairs * TILE_ROWS
    return Window(address, tiles, x, line, -(-(line + height) // TILE_ROWS))
