"""The lists of a job as lines of text beside their bytes, and lines that people have edited.

The lines are those of an unpacked capture (`jobs/views.py`): memory as it is when a list starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.jobs.views import MAX_ROWS, JobViews

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.jobs.texture_views import TextureView
    from vc4lab.jobs.views import View, ViewLine
    from vc4lab.memory import GuestMemory
    from vc4lab.records.declarations import IndexedPrimitives
    from vc4lab.v3d.events import JobStarted

Key = tuple[str, int, int, int]
ORDER = ("binning", "rendering", "shader", "program", "uniforms", "vertices", "coordinates", "indices")
"""Kinds of views, as they are listed."""
MOST_LINES = 2000
"""Lines of a view that are handed out at once."""
UNKNOWN = -1
"""The total of a view that was not made."""
FEW = 256
"""Rows of a table of indices that is always made."""
LONGEST_BYTES = 64
"""Bytes of a line that are shown."""


class JobView(NamedTuple):
    """A file of lines.

    Attributes
    ----------
    name
        Of the file.
    lines, hexes
        The lines, and the bytes of each as digits; not all of a view that was not wanted yet.
    total
        How many lines there are; UNKNOWN: it was not made.
    place
        Of the event in its frame before which an edit is made.
    key
        What it is wanted by.
    """

    name: str
    lines: Sequence[ViewLine]
    hexes: Sequence[str]
    total: int
    place: int
    key: Key


class _JobViews(JobViews):
    """Views of which long ones, tables of vertices and indices, have rows only if they are wanted."""

    def __init__(self, memory: GuestMemory, wanted: frozenset[Key]) -> None:
        super().__init__(memory, "")
        self._wanted = wanted
        self.keys: dict[str, Key] = {}
        self.totals: dict[str, int] = {}

    def stub(self, what: str, kind: str, key: Key, total: int) -> None:
        """A view without lines."""
        view = self._view(what, kind)
        self.keys[view.file], self.totals[view.file] = key, total

    def _table(self, address: int, stride: int, size: int, rows: int) -> None:
        key = "vertices", address, stride, size
        super()._table(address, stride, size, rows if key in self._wanted else 0)
        view = self._tables.get((address, stride, size))
        if view is not None and stride:
            self.keys[view.file] = key
            self.totals[view.file] = max(self.totals.get(view.file, 0), rows + 1)

    def _indices(self, payload: IndexedPrimitives) -> None:
        address, count = int(payload.address), min(int(payload.length), MAX_ROWS)
        key = "indices", address, count, int(payload.index_type)
        if key in self._wanted or count <= FEW:
            super()._indices(payload)
        elif self._first(*key):
            self.stub(f"indices-{address:08x}", "csv", key, count + 1)


@dataclass
class JobLists:
    """The lists of a job, and all that they name, as lines.

    Attributes
    ----------
    wanted
        The keys of long views that have their lines.
    views
        Lists, shader records, programs, uniforms, vertices, indices.
    textures
        By the names of their files: pictures that can be edited, and the place of the event.
    """

    wanted: frozenset[Key] = frozenset()
    views: list[JobView] = field(default_factory=list)
    textures: dict[str, tuple[TextureView, int]] = field(default_factory=dict)
    _by_address: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    def find(self, kind: str, address: int) -> tuple[int, int] | None:
        """Return the view and the line for an address in views of a kind ("binning", "program" …)."""
        if not self._by_address:
            for number, view in enumerate(self.views):
                for line, one in enumerate(view.lines):
                    if one.encode is not None:
                        self._by_address.setdefault((_kind(view.name), one.address), (number, line))
        return self._by_address.get((kind, address))

    def view(self, number: int) -> JobView:
        """Return a view. Raises NoSuchPlace."""
        if not 0 <= number < len(self.views):
            raise NoSuchPlace(f"the job has no view {number}: it has {len(self.views)}")
        return self.views[number]


def _kind(name: str) -> str:
    """The kind of a view, by its name."""
    return name.split("-")[0].partition(".")[0]


def lists_of(frame: CapturedFrame, job: FrameJob, wanted: frozenset[Key] = frozenset()) -> JobLists:
    """Run a job, and return its lists as they were when they started. Raises CaptureError.

    wanted: keys of the long views that have all their lines.
    """
    stage, found = frame.stage, JobLists(wanted)
    made: list[_JobViews] = []
    places: dict[str, int] = {}
    seen: list[View] = []

    def started(event: JobStarted) -> None:
        place = stage.player.place
        if not job.begun <= place <= job.place:
            return
        if not made:
            made.append(_JobViews(stage.memory, wanted))
        known = made[0]
        key = "rendering", event.address, event.end, 0
        if event.thread and job.draws and key not in wanted:
            known.stub("rendering", "txt", key, UNKNOWN)  # with all its tiles' lists: it is long
        else:
            known.list("rendering" if event.thread else "binning", event.address, event.end)
        for name in [*(one.file for one in known.views[len(seen) :]), *known.textures]:
            places.setdefault(name, place)
        seen[:] = known.views

    stage.on_list = started
    try:
        stage.run(job.number)
    finally:
        stage.on_list = None
    for known in made:
        for view in seen:
            hexes = [stage.memory.read(one.address, min(one.size, LONGEST_BYTES)).hex() for one in view.lines]
            total = known.totals.get(view.file, len(view.lines))
            key = known.keys.get(view.file, (view.file, 0, 0, 0))
            name = view.file.removeprefix("-")
            found.views.append(JobView(name, view.lines, hexes, total, places[view.file], key))
        for file, texture in known.textures.items():
            found.textures[file.removeprefix("-")] = texture, places[file]
    found.views.sort(key=lambda one: ORDER.index(_kind(one.name)))
    return found


def views_document(lists: JobLists) -> list[dict[str, Any]]:
    """Return the names of a job's views, and how many lines each has; null: it was not made yet."""
    return [{"name": one.name, "lines": None if one.total == UNKNOWN else one.total} for one in lists.views]


def view_document(lists: JobLists, number: int, first: int = 0) -> dict[str, Any]:
    """Return lines of a view from one on, each as text, address, bytes, whether it may be edited.

    Raises NoSuchPlace.
    """
    view = lists.view(number)
    end = first + MOST_LINES
    rows = [
        [one.text, one.address, raw, one.encode is not None]
        for one, raw in zip(view.lines[first:end], view.hexes[first:end], strict=True)
    ]
    return {"name": view.name, "first": first, "total": view.total, "rows": rows}


def edited_line(lists: JobLists, number: int, line: int, text: str) -> list[tuple[int, int, bytes]]:
    """Return the change of memory that a new text of a line stands for: place, address, bytes.

    Raises NoSuchPlace, ValueError for a text that is no such line.
    """
    view = lists.view(number)
    if not 0 <= line < len(view.lines):
        raise NoSuchPlace(f"{view.name} has no line {line}: it has {len(view.lines)}")
    one = view.lines[line]
    if one.encode is None:
        raise ValueError("this line is there to be read only")
    data = one.encode(text)
    if len(data) != one.size:
        raise ValueError(f"{len(data)} bytes, but there is room for {one.size}")
    return [(view.place, one.address, data)]
