"""Which files a picture can be written to."""

from __future__ import annotations

from pathlib import Path


def is_picture(path: Path) -> bool:
    """Whether Pillow writes a format with this file's ending (some it can only read)."""
    from PIL import Image

    return Image.registered_extensions().get(path.suffix.lower()) in Image.SAVE
