"""Pictures as PNG files."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def png_bytes(image: Image | None) -> bytes | None:
    """The bytes of a PNG file, as notebooks show it; None if there is no picture."""
    if image is None:
        return None
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
