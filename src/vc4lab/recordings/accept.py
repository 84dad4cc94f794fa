"""Writes what was drawn now into a recording: pictures, and check sums of surfaces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.capture.files import open_files, write_archive
from vc4lab.capture.lines import TEXT_BYTES, decoded
from vc4lab.capture.table import NAME, TABLE_BYTES, read_table
from vc4lab.files import write_file
from vc4lab.images.pixels import png_bytes
from vc4lab.recordings.drawn import PICTURE
from vc4lab.recordings.kinds import Kind, kind_of

if TYPE_CHECKING:
    from vc4lab.capture.files import Files
    from vc4lab.recordings.drawn import DrawnFrame

_FOLDERS = {Kind.JOBS: "jobs", Kind.QUEUE: "frames"}


def accept(path: Path, frames: Sequence[DrawnFrame]) -> None:
    """Make these frames, as they were drawn, what the recording holds. Raises CaptureError, OSError."""
    kind = kind_of(path)
    if kind is Kind.RUN:
        for one in frames:
            png = png_bytes(one.image)
            if png is not None and one.folder is not None:
                write_file(one.folder / PICTURE, png)
        return
    files = open_files(path)
    new = dict(_new_files(files, kind, frames))
    if files.is_folder:
        for name, data in new.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(path / name, data)
        return
    names = [*files, *(name for name in new if name not in files)]
    write_archive(path, ((name, new[name] if name in new else files.read(name)) for name in names))


def _new_files(files: Files, kind: Kind, frames: Iterable[DrawnFrame]) -> Iterator[tuple[str, bytes]]:
    """The files that are others now. Raises CaptureError."""
    read_table(files)  # checked, before it is changed
    table: Any = json.loads(files.read(NAME, TABLE_BYTES))
    level = table["jobs" if kind is Kind.JOBS else "queue"]
    is_changed = False
    for one in frames:
        entry = level["frames"][one.number]
        if one.sums:
            yield entry["events"], _with_sums(files, entry["events"], one)
        png = png_bytes(one.image)
        if png is not None:
            if entry.get("picture") is None:
                entry["picture"] = f"{_FOLDERS[kind]}/{entry['number']}/{PICTURE}"
                is_changed = True
            yield entry["picture"], png
    if is_changed:
        yield NAME, (json.dumps(table, indent=1, ensure_ascii=True) + "\n").encode()


def _with_sums(files: Files, name: str, frame: DrawnFrame) -> bytes:
    """The events of a frame with the check sums of now."""
    lines = decoded(files.read(name, TEXT_BYTES), name).split("\n")
    for number, total in frame.sums.items():
        words = lines[number - 1].split()
        lines[number - 1] = " ".join([*words[:3], total])
    return "\n".join(lines).encode()
