"""Textures as pictures: PNG files of levels, faces and uploads, and what was edited in them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.images.pixels import read_png
from vc4lab.mesa.store import pixels
from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.mesa.protocol.formats import Layout


class NoPicture(ValueError):  # noqa: N818 - a fact about a file
    """The file is no picture of this size; the text says why."""


def is_editable(layout: Layout) -> bool:
    """Whether texels can be made of colours again."""
    is_color = layout.kind in ("UNORM", "SRGB") and not layout.has_depth
    return is_color and layout.block_width == 1 and layout.block_bytes in (1, 2, 4)


def texels(rows: NDArray[np.uint8], layout: Layout) -> NDArray[np.uint8]:
    """Rows of bytes as (row, column, RGBA). Raises Refused for what are no colours."""
    found: NDArray[np.uint8] = np.rint(pixels.unpack(rows[None], layout)[0] * 255).astype(np.uint8)
    return found


def png_of(rows: NDArray[np.uint8], layout: Layout) -> bytes | None:
    """A picture of rows of texels; of depth in grey; None if they are no colours."""
    from PIL import Image

    if layout.has_depth:
        grey = _grey(rows, layout)
        if grey is None:
            return None
        image = Image.fromarray(grey, "L")
    else:
        try:
            image = Image.fromarray(texels(rows, layout), "RGBA")
        except Refused:
            return None
    file = BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _grey(rows: NDArray[np.uint8], layout: Layout) -> NDArray[np.uint8] | None:
    if layout.block_bytes != 4:
        return None
    words = np.ascontiguousarray(rows).view(np.uint32)
    shift = 0
    for letter, width in layout.channels:
        if letter == "Z" and width >= 8:
            high = words >> np.uint32(shift + width - 8) & 0xFF
            found: NDArray[np.uint8] = high.astype(np.uint8)
            return found
        shift += width
    return None


def edited(rows: NDArray[np.uint8], layout: Layout, png: bytes) -> NDArray[np.uint8]:
    """The rows with those texels changed that the picture has in another colour.

    Raises NoPicture.
    """
    before = texels(rows, layout)
    try:
        after = read_png(png, (before.shape[1], before.shape[0]), "RGBA")
    except ValueError as error:
        raise NoPicture(str(error)) from None
    changed = (before != after).any(axis=2)
    words = pixels.pack(after.astype(np.float32) / np.float32(255), layout)
    made = np.ascontiguousarray(rows).view(words.dtype).copy()
    made[changed] = words[changed]
    return made.view(np.uint8)
