"""Which files a picture can be written to, and writing it."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.files import Unusable, write_file

if TYPE_CHECKING:
    from PIL.Image import Image


def is_picture(path: Path) -> bool:
    """Whether Pillow writes a format with this file's ending (some it can only read)."""
    from PIL import Image

    return Image.registered_extensions().get(path.suffix.lower()) in Image.SAVE


def save_picture(image: Image, path: Path, format_: str | None = None, **options: Any) -> None:
    """Write a picture whole, or leave the old file; the format by the file's ending.

    Raises OSError with the file's name.
    """
    from PIL import Image as Pillow

    data = BytesIO()
    try:
        name = format_ or Pillow.registered_extensions()[path.suffix.lower()]
        image.save(data, name, **options)
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        size = f"{image.width}x{image.height}"
        text = f"a picture of {size} cannot be written in this format ({error})"
        raise Unusable(text, path) from None
    write_file(path, data.getvalue())
