"""Computes the address of a texel: the raster, T and linear-tile image layouts and the mip chain.

The numpy form, for screenshots and replay; ``tile_kernels.py`` is the native one. The smallest unit
of both tiled layouts is the *utile* (micro-tile): 64 bytes in raster order. Linear-tile (LT) puts
utiles in raster order. The T format groups 4x4 utiles to a sub-tile of 1 KiB and 2x2 sub-tiles to a
tile of 4 KiB; tile rows run alternately left to right and right to left, and the order of the
sub-tiles turns with them.

Source: VideoCore IV 3D Architecture Reference Guide pp. 105-109; Mesa ``vc4_tiling.c`` and
``vc4_resource.c`` (the mip chain); Broadcom ``khrn_tformat.c``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UTILE_BYTES = 64
SUBTILE_BYTES = 1024
TILE_BYTES = 4096
#: A T tile is 8x8 utiles.
TILE_UTILES = 8


class Tiling(IntEnum):
    """Image layout; the values are those of the tile buffer's load/store records."""

    RASTER = 0
    T = 1
    LT = 2


@dataclass(frozen=True)
class UtileShape:
    """Geometry of a 64-byte micro-tile for one texel size, everything as a power of two."""

    bits_per_texel: int
    width_log2: int
    height_log2: int

    @property
    def width(self) -> int:
        return 1 << self.width_log2

    @property
    def height(self) -> int:
        return 1 << self.height_log2

    @property
    def row_bytes_log2(self) -> int:
        """log2 of the bytes in one row of the utile."""
        return 6 - self.height_log2


#: Texel bits -> utile (width log2, height log2). 1 bpp: guide p. 105 (32x16).
_UTILE_LOG2 = {64: (1, 2), 32: (2, 2), 16: (3, 2), 8: (3, 3), 4: (4, 3), 1: (5, 4)}

UTILE_SHAPES = {bits: UtileShape(bits, *log2) for bits, log2 in _UTILE_LOG2.items()}

WIDE_BITS = UtileShape(1, 6, 3)
"""The utile of 1-bit texels in Broadcom's image library (64x8); the functions below take it as
``shape``, by default that of the guide."""


def is_linear_tile(width: int, height: int, bits_per_texel: int, shape: UtileShape | None = None) -> bool:
    """Whether a tiled level of this size (texels) is stored as LT instead of T."""
    shape = shape or UTILE_SHAPES[bits_per_texel]
    return width <= 4 * shape.width or height <= 4 * shape.height


def round_up(value: int, unit: int) -> int:
    """``value`` rounded up to a multiple of ``unit``."""
    return -(-value // unit) * unit


def padded_size(
    width: int, height: int, bits_per_texel: int, tiling: Tiling, shape: UtileShape | None = None
) -> tuple[int, int]:
    """Size in texels including the padding that the layout adds: whole utiles or T tiles."""
    shape = shape or UTILE_SHAPES[bits_per_texel]
    if tiling is Tiling.RASTER:
        return width, height
    utiles = TILE_UTILES if tiling is Tiling.T else 1
    return round_up(width, shape.width * utiles), round_up(height, shape.height * utiles)


def image_bytes(
    width: int, height: int, bits_per_texel: int, tiling: Tiling, shape: UtileShape | None = None
) -> int:
    """Bytes in memory of an image, padding included (raster: rows of whole bytes)."""
    padded_width, padded_height = padded_size(width, height, bits_per_texel, tiling, shape)
    if tiling is Tiling.RASTER:
        return padded_height * ((padded_width * bits_per_texel + 7) // 8)
    return padded_width * padded_height * bits_per_texel // 8


def pitch_bytes(width: int, bits_per_texel: int, tiling: Tiling, shape: UtileShape | None = None) -> int:
    """Distance in bytes between rows (raster), utile rows (LT) or tile rows (T)."""
    shape = shape or UTILE_SHAPES[bits_per_texel]
    padded_width, _ = padded_size(width, 1, bits_per_texel, tiling, shape)
    if tiling is Tiling.RASTER:
        return (padded_width * bits_per_texel + 7) // 8
    utiles = padded_width // shape.width
    return utiles * UTILE_BYTES * (TILE_UTILES if tiling is Tiling.T else 1)


#: Order of the four sub-tiles (index: y * 2 + x) in a T tile, for even and odd tile rows.
SUBTILE_ORDER = ((0, 3, 1, 2), (2, 1, 3, 0))


def texel_bit_addresses(
    width: int, height: int, bits_per_texel: int, tiling: Tiling, stride: int | None = None
) -> NDArray[np.int64]:
    """Bit addresses of a whole image as an array of shape (height, width)."""
    import numpy as np

    x = np.arange(width, dtype=np.int64)[None, :]
    y = np.arange(height, dtype=np.int64)[:, None]
    pitch = pitch_bytes(width, bits_per_texel, tiling)
    if tiling is Tiling.RASTER:
        return y * ((pitch if stride is None else stride) * 8) + x * bits_per_texel
    shape = UTILE_SHAPES[bits_per_texel]
    utile_x, utile_y = x >> shape.width_log2, y >> shape.height_log2
    inner = ((y & (shape.height - 1)) << (shape.row_bytes_log2 + 3)) + (
        x & (shape.width - 1)
    ) * bits_per_texel
    if tiling is Tiling.LT:
        return (utile_y * pitch + utile_x * UTILE_BYTES) * 8 + inner
    tiles_per_row = pitch // TILE_BYTES
    tile_y = utile_y >> 3
    odd = tile_y & 1
    tile_x = np.where(odd == 1, tiles_per_row - 1 - (utile_x >> 3), utile_x >> 3)
    order = np.array(SUBTILE_ORDER, dtype=np.int64)
    subtile = order[odd, ((utile_y >> 2) & 1) * 2 + ((utile_x >> 2) & 1)]
    address = TILE_BYTES * (tile_y * tiles_per_row + tile_x) + SUBTILE_BYTES * subtile
    found: NDArray[np.int64] = (address + UTILE_BYTES * ((utile_y & 3) * 4 + (utile_x & 3))) * 8 + inner
    return found


@lru_cache(maxsize=8)
def _unit_index(
    width: int, height: int, bits_per_texel: int, tiling: Tiling, stride: int | None
) -> NDArray[np.int64]:
    """Index of each texel in units of its own size (of bytes below 8 bits per texel)."""
    addresses = texel_bit_addresses(width, height, bits_per_texel, tiling, stride)
    return addresses // max(bits_per_texel, 8)


def detile(
    memory: Any, width: int, height: int, bits_per_texel: int, tiling: Tiling,
    stride: int | None = None,
) -> NDArray[Any]:  # fmt: skip
    """The texels of an image in memory as an array (height, width), first row in memory first.

    ``memory``: bytes-like, starting at the image's base address; missing bytes at the end read as
    zero. Element type is uint8 (also for 1 and 4 bits per texel), uint16, uint32 or uint64.
    ``stride`` (bytes, raster only) must be a multiple of the texel size.
    """
    import numpy as np

    index = _unit_index(width, height, bits_per_texel, tiling, stride)
    unit = np.dtype(f"<u{max(bits_per_texel // 8, 1)}")
    needed = (int(index.max()) + 1) * unit.itemsize
    data = np.frombuffer(memory, dtype=np.uint8)[:needed]
    if len(data) < needed:
        data = np.concatenate([data, np.zeros(needed - len(data), np.uint8)])
    texels = np.ascontiguousarray(data).view(unit)[index]
    if bits_per_texel < 8:
        shift = texel_bit_addresses(width, height, bits_per_texel, tiling, stride) & 7
        texels = (texels >> shift.astype(np.uint8)) & ((1 << bits_per_texel) - 1)
    return texels


@dataclass(frozen=True)
class MipLevel:
    """One level of a texture: true size (texels), layout, and place relative to level 0."""

    width: int
    height: int
    tiling: Tiling
    pitch: int
    offset: int
    size: int


def power_of_two(value: int) -> int:
    """The smallest power of two that is not below ``value`` (which is at least 1)."""
    return 1 << (value - 1).bit_length()


def _minified(width: int, height: int, level: int) -> tuple[int, int]:
    return max(width >> level, 1), max(height >> level, 1)


def mip_chain(
    width: int, height: int, bits_per_texel: int, levels: int, *, raster: bool = False,
    block: int = 1, shape: UtileShape | None = None, padded: bool = False,
) -> tuple[MipLevel, ...]:  # fmt: skip
    """Levels 0 .. ``levels`` - 1; level i lies directly *below* level i - 1 in memory.

    ``bits_per_texel`` is the size of the addressed unit; for block-compressed types that is the
    block (``block`` texels square), and ``width``/``height`` of the result stay in texels.
    Level i takes the room of the next power of two (Mesa's setup_slices); its picture has the true
    size, halved i times, and fills the corner. ``padded``: it has the size of the room.
    """
    units = (-(-width // block), -(-height // block))
    room = (power_of_two(units[0]), power_of_two(units[1]))
    picture = (power_of_two(width), power_of_two(height)) if padded else (width, height)
    chain: list[MipLevel] = []
    offset = 0
    for level in range(levels):
        size, unit_size = (width, height), units
        if level:
            size, unit_size = _minified(*picture, level), _minified(*room, level)
        if raster:
            tiling = Tiling.RASTER
            # The texture unit assumes a power-of-two width of raster images (HW-2898).
            pitch = pitch_bytes(power_of_two(unit_size[0]), bits_per_texel, tiling)
            level_bytes = pitch * unit_size[1]
        else:
            linear = is_linear_tile(*unit_size, bits_per_texel, shape)
            tiling = Tiling.LT if linear else Tiling.T
            pitch = pitch_bytes(unit_size[0], bits_per_texel, tiling, shape)
            level_bytes = image_bytes(*unit_size, bits_per_texel, tiling, shape)
        if level:
            offset -= level_bytes
        chain.append(MipLevel(*size, tiling, pitch, offset, level_bytes))
    return tuple(chain)
