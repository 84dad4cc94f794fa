"""An archive or folder → captured jobs. What is wrong raises CaptureError, with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import Files, FolderFiles, open_files
from vc4lab.capture.lines import TEXT_BYTES, decoded
from vc4lab.capture.pages import PAGE, StoredPages
from vc4lab.capture.table import Value, read_table
from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.files import size_text
from vc4lab.jobs.dumps.opened import is_dump, open_dump
from vc4lab.jobs.events_text import read_events
from vc4lab.jobs.model import (
    MOST_FRAMES,
    Event,
    Filled,
    JobsCapture,
    JobsFrame,
    PagesLoaded,
    Stored,
    Submitted,
    Zeroed,
)
from vc4lab.jobs.store import LEVEL
from vc4lab.memory import MEMORY_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_EVENTS = 1 << 20
"""Events of all frames together, at most."""
MOST_MOVED = 1 << 36
"""Bytes that all events together put into memory or compare."""
PICTURE_BYTES = 64 << 20
SUBMIT_BYTES = 128 << 20


def open_jobs(path: str | Path) -> JobsCapture:
    """The jobs of a capture, of a folder as it was edited, of a dump of others. Raises CaptureError."""
    if is_dump(path):
        return open_dump(path)
    files = open_files(Path(path))
    found = read_jobs(files)
    if isinstance(files, FolderFiles):
        from vc4lab.jobs.unpack import edited_jobs

        return edited_jobs(found, files)
    return found


def has_jobs(files: Files) -> bool:
    """Whether a capture has this layer. Raises CaptureError."""
    return read_table(files).get(LEVEL) is not None


def read_jobs(files: Files) -> JobsCapture:
    """Read the jobs of files that are open. Raises CaptureError."""
    table = read_table(files)
    found = table.get(LEVEL)
    if found is None:
        raise CaptureError("CAP-004", "it has no captured jobs", files.name)
    program = table.get("program")
    capture = JobsCapture(
        found["front"].text()[:40],
        program.text()[:1000] if program is not None else "",
        found["ram_bytes"].whole(PAGE, MEMORY_SIZE),
        _noise(found.get("noise")),
        _unknowns(found["unknowns"]),
        found["forgiving"].flag(),
        found["checks"].flag(),
    )
    capture.pages = pages = StoredPages(files)
    events = moved = 0
    for value in found["frames"]:
        frame = JobsFrame(value["number"].whole(0, 1 << 30))
        name = value["events"].text()
        text = decoded(files.read(name, TEXT_BYTES), name)
        start = value.get("start")
        if start is not None and start.value is not None:
            frame.start = {key: one.value for key, one in start.items()}
        read_events(text, frame, name, len(pages))
        moved += sum(map(_moved, frame.events))
        if moved > MOST_MOVED:
            raise CaptureError("CAP-002", f"its events move more than {size_text(MOST_MOVED)}", name)
        for event in frame.events:
            if isinstance(event, Submitted) and event.file not in frame.files:
                frame.files[event.file] = files.read(event.file, SUBMIT_BYTES)
        picture = value.get("picture")
        if picture is not None and picture.value is not None:
            frame.picture = files.read(picture.text(), PICTURE_BYTES)
        capture.frames.append(frame)
        events += len(frame.events)
        if events > MOST_EVENTS or len(capture.frames) > MOST_FRAMES:
            raise CaptureError("CAP-002", "it has more events than a capture holds", files.name)
    if capture.frames and capture.frames[0].start is None:
        capture.frames[0].start = {}
    return capture


def _moved(event: Event) -> int:
    """Bytes that an event puts into memory, or compares."""
    match event:
        case PagesLoaded() | Filled() | Zeroed():
            return PAGE * event.pages
        case Stored():
            return event.size
    return 0


def _noise(value: Value | None) -> tuple[int, int] | None:
    if value is None or value.value is None:
        return None
    first, last = (value[at].whole(0, MEMORY_SIZE) for at in (0, 1))
    if first % PAGE or last % PAGE or first >= last:
        raise value.wrong("must be two addresses of pages, the lower one first")
    return first, last


def _unknowns(value: Value) -> dict[str, str]:
    """Choices for undocumented hardware, as far as they exist."""
    found: Mapping[str, str] = {name: one.text() for name, one in value.items()}
    try:
        return Unknowns(found).changed()
    except (KeyError, ValueError) as error:
        raise value.wrong(str(error.args[0])[:200]) from None
