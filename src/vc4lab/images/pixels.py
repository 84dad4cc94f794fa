"""Stored pixels as bytes R, G, B, A (numpy), and as PNG files.

What the chip itself does with such pixels, rounding and dither included, is native code of `v3d/`.
Source: hardware reference 7.10.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from vc4lab.images.tiling import Tiling, detile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

FULL_RES_TILE = 16384
"""Bytes of one buffer of one tile in a full-resolution surface: every sample as it is."""
FULL_RES_TILE_PIXELS = 32


def colours(
    memory: Any, width: int, height: int, bits: int, tiling: Tiling, stride: int | None = None
) -> NDArray[np.uint8]:
    """An image of 32 or 16 (565) bits as bytes of shape (height, width, 4).

    Those of 32 bits stay in the order of memory; the others get red first, and alpha 255.
    `memory` and `stride` are those of `detile`.
    """
    import numpy as np

    texels = detile(memory, width, height, bits, tiling, stride)
    if bits == 32:
        return np.ascontiguousarray(texels).view(np.uint8).reshape(height, width, 4)
    return from_565(texels)


def from_565(texels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Red in the high bits; the low bits of a byte repeat the high ones."""
    import numpy as np

    red, green, blue = texels >> 11, texels >> 5 & 63, texels & 31
    parts = [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2]
    return np.stack([*parts, np.full_like(red, 255)], axis=-1).astype(np.uint8)


def full_resolution_bytes(width: int, height: int) -> int:
    """Bytes of a full-resolution surface of 32-bit samples."""
    columns, rows = -(-width // FULL_RES_TILE_PIXELS), -(-height // FULL_RES_TILE_PIXELS)
    return columns * rows * FULL_RES_TILE


def average_of_samples(raw: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """The four samples of each pixel of a full-resolution surface, averaged; as `colours`."""
    import numpy as np

    tile = FULL_RES_TILE_PIXELS
    columns, rows = -(-width // tile), -(-height // tile)
    # in a tile: row of quads, quad, sample, row in the quad, column in the quad, RGBA
    samples = raw.reshape(rows, columns, tile // 2, tile // 2, 4, 2, 2, 4).astype(np.uint16)
    mean = (samples.sum(axis=4) + 2) >> 2
    ordered = mean.transpose(0, 2, 4, 1, 3, 5, 6).astype(np.uint8)
    return np.ascontiguousarray(ordered.reshape(rows * tile, columns * tile, 4)[:height, :width])


def read_png(data: bytes, size: tuple[int, int], mode: str) -> NDArray[np.uint8]:
    """The pixels of a PNG file of a stranger, in a mode of Pillow.

    Raises ValueError for what is none, or has not this width and height.
    """
    import numpy as np
    from PIL import Image as Pictures

    try:
        with Pictures.open(BytesIO(data), formats=("PNG",)) as image:
            if image.size == size:
                return np.asarray(image.convert(mode))
            found = "{}x{}".format(*image.size)
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError) as error:
        raise ValueError(f"no PNG: {str(error)[:200]}") from None
    raise ValueError(f"it has {found} pixels, but must have {size[0]}x{size[1]}")


def png_bytes(image: Image | None, level: int = 6) -> bytes | None:
    """The bytes of a PNG file, as notebooks show it; None if there is no picture.

    level: of zlib, 1 to 9.
    """
    if image is None:
        return None
    file = BytesIO()
    image.save(file, "PNG", compress_level=level)
    return file.getvalue()
