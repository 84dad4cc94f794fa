"""Captured jobs as files of an archive.

capture.json            table: front, memory, frames
jobs/3/events.txt       what reached the V3D in a frame, one event a line (`events_text.py`)
jobs/3/picture.png      what was shown
jobs/3/submit-1.json    what a program handed to its driver, for conversions
pages/…                 what memory held (`capture/pages.py`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab import __version__
from vc4lab.capture import table
from vc4lab.capture.files import write_archive
from vc4lab.capture.pages import PACK, PAGE, SUMS, PageKeeper, pack_name, page_sum
from vc4lab.images.pixels import png_bytes
from vc4lab.jobs.events_text import events_text

if TYPE_CHECKING:
    from vc4lab.capture.pages import Pages
    from vc4lab.jobs.model import JobsCapture, JobsFrame

LEVEL = "jobs"
"""The table's entry."""
NONE: Mapping[int, str | None] = {}


def save_jobs(capture: JobsCapture, path: str | Path) -> None:
    """Write an archive. Raises OSError, CaptureError."""
    write_archive(Path(path), files_of(capture))


def content(capture: JobsCapture) -> dict[str, Any]:
    """The table."""
    return {"made_by": f"vc4lab {__version__}", "program": capture.program, LEVEL: layer_table(capture)}


def layer_table(capture: JobsCapture, pictures: Mapping[int, str | None] = NONE) -> dict[str, Any]:
    """The table's entry. pictures: files that pictures of frames are in already, by their numbers."""
    return {
        "front": capture.front,
        "ram_bytes": capture.ram_bytes,
        "noise": list(capture.noise) if capture.noise is not None else None,
        "unknowns": capture.unknowns,
        "forgiving": capture.forgiving,
        "checks": capture.checks,
        "frames": [
            {
                "number": one.number,
                "events": one.file,
                "picture": pictures.get(one.number) or _picture_name(one),
                "start": one.start,
            }
            for one in capture.frames
        ],
    }


def _picture_name(frame: JobsFrame) -> str | None:
    return f"jobs/{frame.number}/picture.png" if frame.picture is not None else None


def files_of(capture: JobsCapture) -> Iterator[tuple[str, bytes]]:
    """All files with their names."""
    yield table.NAME, table.table_bytes(content(capture))
    yield from layer_files(capture)


def layer_files(
    capture: JobsCapture, pictures: Mapping[int, str | None] = NONE
) -> Iterator[tuple[str, bytes]]:
    """All files but the table, and but pictures that are in other files already."""
    for frame in capture.frames:
        yield frame.file, events_text(frame).encode()
        yield from frame.files.items()
        name = _picture_name(frame)
        if name is not None and not pictures.get(frame.number):
            yield name, picture_bytes(frame) or b""
    if capture.pages is not None:
        yield from page_files(capture.pages)


def picture_bytes(frame: JobsFrame) -> bytes | None:
    """A frame's picture as a PNG file."""
    picture = frame.picture
    return picture if isinstance(picture, bytes) or picture is None else png_bytes(picture)


def page_files(pages: Pages) -> Iterator[tuple[str, bytes]]:
    """The files of all pages."""
    if isinstance(pages, PageKeeper):
        yield from pages.files()
        return
    sums = []
    for first in range(0, len(pages), PACK):
        data = [pages.page(number) for number in range(first, min(first + PACK, len(pages)))]
        sums += [page_sum(one) for one in data]
        assert all(len(one) == PAGE for one in data)
        yield pack_name(first // PACK), b"".join(data)
    yield SUMS, "".join(f"{one}\n" for one in sums).encode()
