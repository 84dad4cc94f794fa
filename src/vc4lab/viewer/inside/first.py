"""The first picture of a capture, read from its file: it is there before anything can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import open_files
from vc4lab.capture.table import read_table

if TYPE_CHECKING:
    from pathlib import Path

PICTURE_BYTES = 64 << 20
LAYERS = ("jobs", "queue")


def first_picture(path: Path, frame: int | None = None) -> bytes | None:
    """Return the picture of a frame as a PNG file; None: none is kept.

    frame: its number; None: the last one that has a picture.
    """
    try:
        files = open_files(path)
        table = read_table(files)
        for layer in LAYERS:
            found = table.get(layer)
            if found is None:
                continue
            for one in reversed(list(found["frames"])):
                picture = one.get("picture")
                if picture is not None and picture.value is not None:
                    if frame in (None, one["number"].whole(0, 1 << 30)):
                        return files.read(picture.text(), PICTURE_BYTES)
    except CaptureError:
        pass  # what is wrong is said when it is opened
    return None
