"""Captured jobs as a folder that people edit, and an edited folder as captured jobs.

Views show memory as it is when a list or program starts (`views.py`). `views.json` has the check sum
of each: one that was not edited is not looked at. For those that were, the jobs are run as they were
captured, the views are made again, and what differs becomes `patch` events before the job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import FolderFiles, write_folder
from vc4lab.capture.lines import TEXT_BYTES, decoded
from vc4lab.capture.pages import page_sum
from vc4lab.capture.table import TABLE_BYTES
from vc4lab.jobs.model import Patched
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.store import files_of
from vc4lab.jobs.views import JobViews, View, ViewLine, lines_of

if TYPE_CHECKING:
    from vc4lab.jobs.model import Event, JobsCapture, JobsFrame
    from vc4lab.jobs.texture_views import TextureView
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobStarted, ProgramStarted

VIEWS = "views.json"
PICTURE_BYTES = 64 << 20
MANUAL = """Captured jobs of the V3D, unpacked. Edit, then: vc4lab replay THIS_FOLDER
                                          or: vc4lab pack THIS_FOLDER NEW.vc4cap

jobs/N/events.txt                 what reached the V3D in frame N, in order
jobs/N/job-K-binning.txt          control lists with their sub-lists: address, id, name, fields
jobs/N/job-K-rendering.txt        the same with the lists of the tiles
jobs/N/job-K-shader-ADDRESS.txt   shader records with their attribute arrays
jobs/N/job-K-program-ADDRESS.qasm QPU programs
jobs/N/job-K-uniforms-….csv       uniforms, and what each is for; numbers are singles, 0x… are bits
jobs/N/job-K-vertices-ADDRESS.csv vertices, a row each; indices likewise
jobs/N/job-K-texture-ADDRESS.png  textures, the largest level
pages/                            memory; it is not edited here

A line stands for the bytes at its address: it may say something else, of the same size. Lines cannot
be added or taken away, except those that begin with #.
"""


def unpack_jobs(capture: JobsCapture, folder: str | Path) -> None:
    """Write captured jobs as a folder. Raises OSError, CaptureError."""
    write_folder(Path(folder), folder_files(capture))


def folder_files(capture: JobsCapture) -> Iterator[tuple[str, bytes]]:
    """All files of the folder with their names."""
    yield "README.txt", MANUAL.encode()
    yield from files_of(capture)
    sums: dict[str, str] = {}
    for frame, seen in _Views(capture).frames():
        del frame
        for one in seen.views:
            data = "".join(f"{line}\n" for line in lines_of(one)).encode()
            sums[one.file] = page_sum(data)
            yield one.file, data
        for name, picture in seen.textures:
            data = picture.png()
            sums[name] = page_sum(data)
            yield name, data
    yield VIEWS, (json.dumps({"sums": sums}, indent=1) + "\n").encode()


class _Seen:
    """The views of a frame; of each the place of the event that starts its job."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.textures: list[tuple[str, TextureView]] = []
        self.places: dict[str, int] = {}

    def take(self, made: JobViews, place: int) -> None:
        """The views of a job."""
        self.views += made.views
        self.textures += made.textures.items()
        for name in [*(one.file for one in made.views), *made.textures]:
            self.places[name] = place


class _Views:
    """Plays a capture and makes the views of its jobs."""

    def __init__(self, capture: JobsCapture) -> None:
        self._capture = capture
        self._player = JobsPlayer(capture, on_v3d=self._listen)
        self._seen = _Seen()
        self._name = ""
        self._jobs = 0

    def frames(self) -> Iterator[tuple[JobsFrame, _Seen]]:
        """Each frame with its views. Raises CaptureError."""
        for frame in self._capture.frames:
            self._seen, self._jobs = _Seen(), 0
            self._name = f"jobs/{frame.number}/job"
            self._player.run(frame)
            yield frame, self._seen

    def _listen(self, v3d: V3D) -> None:
        v3d.listeners.job_started.subscribe(self._started)
        v3d.listeners.program_started.subscribe(self._program)

    def _next(self) -> JobViews:
        self._jobs += 1
        return JobViews(self._player.memory, f"{self._name}-{self._jobs}")

    def _started(self, event: JobStarted) -> None:
        made = self._next()
        made.list("rendering" if event.thread else "binning", event.address, event.end)
        self._seen.take(made, self._player.place)

    def _program(self, event: ProgramStarted) -> None:
        made = self._next()
        made.program("user", event.address, event.uniforms)
        self._seen.take(made, self._player.place)


def edited_jobs(capture: JobsCapture, files: FolderFiles) -> JobsCapture:
    """The jobs of a folder with what was edited in its views. Raises CaptureError."""
    edited = _edited(files)
    if not edited:
        return capture
    patches: list[tuple[JobsFrame, dict[int, list[Event]]]] = []
    for frame, seen in _Views(capture).frames():
        found: dict[int, list[Event]] = {}
        for view in seen.views:
            if view.file in edited:
                found.setdefault(seen.places[view.file], []).extend(_line_patches(view, edited[view.file]))
        for name, picture in seen.textures:
            if name in edited:
                try:
                    texels = picture.edits(edited[name])
                except ValueError as error:
                    raise CaptureError("CAP-006", str(error), name) from None
                found.setdefault(seen.places[name], []).extend(Patched(*one) for one in texels)
        patches.append((frame, found))
    for frame, found in patches:
        events, lines = frame.events, frame.lines
        frame.events, frame.lines = [], []
        for place, event in enumerate(events):
            new = found.get(place, [])
            frame.events += [*new, event]
            line = lines[place] if place < len(lines) else 0
            frame.lines += [line] * (1 + len(new))
    return capture


def _edited(files: FolderFiles) -> dict[str, bytes]:
    """The views whose check sum is another, with what they say. Raises CaptureError."""
    if VIEWS not in files:
        return {}
    try:
        sums = json.loads(files.read(VIEWS, TABLE_BYTES).decode("utf-8"))["sums"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CaptureError("CAP-004", f"no table of views: {str(error)[:100]}", VIEWS) from None
    found = {}
    for name, known in sums:
        if name in files:
            data = files.read(name, PICTURE_BYTES if name.endswith(".png") else TEXT_BYTES)
            if page_sum(data) != known:
                found[name] = data
    return found


def _line_patches(view: View, data: bytes) -> Iterator[Event]:
    """Yield the events that the edited lines of a view stand for. Raises CaptureError."""
    known = [one for one in view.lines if one.encode is not None]
    lines = [
        (number, line.rstrip())
        for number, line in enumerate(decoded(data, view.file).split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    for place, (number, text) in enumerate(lines):
        if place >= len(known):
            raise CaptureError("CAP-006", f"there are only {len(known)} lines to edit", view.file, number)
        one: ViewLine = known[place]
        if text == one.text.rstrip():
            continue
        assert one.encode is not None
        try:
            new = one.encode(text)
        except ValueError as error:
            raise CaptureError("CAP-006", str(error), view.file, number) from None
        if len(new) != one.size:
            text = f"{len(new)} bytes, but there is room for {one.size}"
            raise CaptureError("CAP-006", text, view.file, number)
        yield Patched(one.address, new)
    if len(lines) < len(known):
        text = f"{len(lines)} lines, but there must be {len(known)}"
        raise CaptureError("CAP-006", text, view.file, lines[-1][0] if lines else 1)
