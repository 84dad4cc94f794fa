"""A frame as it would be with a raster texture in T format: the same requests, other lines.

The lines that were recorded say which row of the image and which 64 bytes of it a quad read, not
which texels. Which utile of those 64 bytes it was is taken from the quad's place on the screen:
exact for images that are drawn one to one, else right on the average.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.images.tiling import UTILE_SHAPES, Tiling, round_up, texel_bit_addresses
from vc4lab.timing.frames.frame import Frame
from vc4lab.v3d.state.frame_mode import RASTER_ALIGNMENT

LINE = 64
LINE_MASK = (1 << 24) - 1
QUAD_SHIFT = 24
TILE_BITS = 12
"""T-format images begin at multiples of a tile of 4 KiB."""


def requests_of(frame: Frame, draw: int, number: int) -> NDArray[np.bool_]:
    """Which requests are those of a texture of a draw."""
    draws = frame.lists["draw"][frame.list_of_block]
    owner = np.repeat(draws, frame.blocks["requests"])
    return np.asarray((owner == draw) & (frame.requests["number"] == number))


def with_tiled(frame: Frame, textures: NDArray[Any]) -> Frame:
    """The frame with some of its raster textures (rows of `Frame.textures`) in T format."""
    lines = frame.lines.copy()
    request = np.repeat(np.arange(len(frame.requests)), frame.requests["lines"])
    touched = np.zeros(len(lines), bool)
    for texture in textures:
        mine = requests_of(frame, int(texture["draw"]), int(texture["number"]))[request]
        if int(texture["bits"]) in UTILE_SHAPES and mine.any():
            lines[mine] = _tiled(frame, texture, lines[mine], request[mine])
            touched |= mine
    _, first = np.unique(request.astype(np.int64) << 26 | lines, return_index=True)
    kept = ~touched
    kept[first] = True
    requests = frame.requests.copy()
    requests["lines"] = np.bincount(request[kept], minlength=len(requests))
    return replace(frame, lines=lines[kept], requests=requests)


def _tiled(
    frame: Frame, texture: Any, words: NDArray[np.uint32], request: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """The lines in T format that take the place of lines of a raster image."""
    bits, width, height = (int(texture[name]) for name in ("bits", "width", "height"))
    across = UTILE_SHAPES[bits].width
    stride = max(round_up(width * bits // 8, RASTER_ALIGNMENT), RASTER_ALIGNMENT)
    base = int(texture["address"])
    quad = (words >> QUAD_SHIFT).astype(np.int64)
    offset = np.maximum((words & LINE_MASK).astype(np.int64) * LINE - base, 0)
    per_line = max(LINE * 8 // bits // across, 1)
    part = _screen_x(frame, request, quad) // across % per_line
    column = offset % stride * 8 // bits + part * across
    texels = texel_bit_addresses(width, height, bits, Tiling.T)
    row = np.minimum(offset // stride, height - 1)
    line = texels[row, np.minimum(column, width - 1)] // (LINE * 8)
    found = (base >> TILE_BITS << TILE_BITS) // LINE + line
    result: NDArray[np.uint32] = (found & LINE_MASK | quad << QUAD_SHIFT).astype(np.uint32)
    return result


def _screen_x(frame: Frame, request: NDArray[np.int64], quad: NDArray[np.int64]) -> NDArray[np.int64]:
    """The x of a quad of each request."""
    block = np.repeat(np.arange(len(frame.blocks)), frame.blocks["requests"])[request]
    tile = frame.lists["tile"][frame.list_of_block][block]
    corner = frame.tiles["x"][tile] + (frame.blocks["place"][block] & 0xFF)
    return np.asarray(corner + 2 * (quad & 1), np.int64)
