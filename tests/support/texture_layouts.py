"""Image layouts for tests: the address of one texel, literally as the manual has it, and tiling."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.images.tiling import (
    SUBTILE_BYTES,
    SUBTILE_ORDER,
    TILE_BYTES,
    UTILE_BYTES,
    UTILE_SHAPES,
    Tiling,
    UtileShape,
    image_bytes,
    pitch_bytes,
    round_up,
    texel_bit_addresses,
)


def texel_bit_address(
    x: int,
    y: int,
    width: int,
    bits_per_texel: int,
    tiling: Tiling,
    stride: int | None = None,
    shape: UtileShape | None = None,
) -> int:
    """Bit address of texel (x, y) from the start of an image that is ``width`` texels wide.

    ``stride`` is the byte distance of two rows of a raster image (default: tight). This is the
    manual's formula, kept literal: everything faster is tested against it.
    """
    shape = shape or UTILE_SHAPES[bits_per_texel]
    pitch = pitch_bytes(width, bits_per_texel, tiling, shape)
    if tiling is Tiling.RASTER:
        return (pitch if stride is None else stride) * 8 * y + x * bits_per_texel
    utile_x, inner_x = divmod(x, shape.width)
    utile_y, inner_y = divmod(y, shape.height)
    inner = ((inner_y << shape.row_bytes_log2) << 3) + inner_x * bits_per_texel
    if tiling is Tiling.LT:
        return (utile_y * pitch + utile_x * UTILE_BYTES) * 8 + inner
    tiles_per_row = pitch // TILE_BYTES
    tile_x, tile_y = utile_x >> 3, utile_y >> 3
    odd = tile_y & 1
    if odd:
        tile_x = tiles_per_row - 1 - tile_x
    subtile = SUBTILE_ORDER[odd][((utile_y >> 2) & 1) * 2 + ((utile_x >> 2) & 1)]
    address = TILE_BYTES * (tile_y * tiles_per_row + tile_x) + SUBTILE_BYTES * subtile
    address += UTILE_BYTES * ((utile_y & 3) * 4 + (utile_x & 3))
    return address * 8 + inner


def tile(texels: NDArray[Any], bits_per_texel: int, tiling: Tiling, stride: int | None = None) -> bytearray:
    """The inverse of :func:`detile`: memory image (padding zero) of an array (height, width)."""
    height, width = texels.shape
    size = image_bytes(width, height, bits_per_texel, tiling)
    if tiling is Tiling.RASTER and stride is not None:
        size = stride * height
    memory = bytearray(round_up(size, 8))
    if bits_per_texel < 8:
        bits = texel_bit_addresses(width, height, bits_per_texel, tiling, stride)
        target = np.frombuffer(memory, dtype=np.uint8)
        values = texels.astype(np.uint8) & ((1 << bits_per_texel) - 1)
        np.bitwise_or.at(target, bits >> 3, values << (bits & 7).astype(np.uint8))
    else:
        unit = np.dtype(f"<u{bits_per_texel // 8}")
        bits = texel_bit_addresses(width, height, bits_per_texel, tiling, stride)
        index = bits // bits_per_texel
        np.frombuffer(memory, dtype=unit)[index] = texels
    return memory
