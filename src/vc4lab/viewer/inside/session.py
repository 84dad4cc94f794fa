"""A capture that a page asks about: its frames, and editions of it with something changed.

Edition 0 is the capture as it is. An edit makes another one, with `patch` events before the job whose
memory it changes; the page asks with the number of an edition.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vc4lab.debug.frame.capture import Capture
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.jobs.model import Patched
from vc4lab.viewer.inside.views import JobLists, lists_of

if TYPE_CHECKING:
    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.debug.shaders.listing import KnownProgram
    from vc4lab.jobs.model import Event, JobsFrame

MOST_EDITIONS = 1000
MOST_FRAMES = 4
"""Frames that may run again at once: each keeps memory of its own."""
MOST_LISTS = 4
"""Jobs whose lists are kept as text."""


class Refused(Exception):  # noqa: N818 - an answer to a question
    """Something that was asked for cannot be done; the text says why."""


@dataclass
class Opened:
    """A capture, and what it knows of its programs, by their words."""

    capture: Capture
    programs: Mapping[tuple[int, ...], KnownProgram] = field(default_factory=dict)


class Session:
    """Answers questions about a capture, one at a time.

    Parameters
    ----------
    name
        Of the capture, for people.
    open_it
        Opens it, when something is asked for the first time. Raises CaptureError.
    """

    def __init__(self, name: str, open_it: Callable[[], Opened]) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._open = open_it
        self._opened: Opened | None = None
        self._editions: list[Capture] = []
        self._running: OrderedDict[int, CapturedFrame] = OrderedDict()
        self._lists: OrderedDict[tuple[int, int], JobLists] = OrderedDict()

    @property
    def opened(self) -> Opened:
        """The capture, opened when it is needed. Raises CaptureError."""
        if self._opened is None:
            self._opened = self._open()
            self._editions = [self._opened.capture]
        return self._opened

    @property
    def editions(self) -> int:
        """How many there are, the capture itself among them."""
        return len(self._editions)

    def capture(self, edition: int = 0) -> Capture:
        """Return an edition. Raises NoSuchPlace, CaptureError."""
        known = self.opened.capture
        if not edition:
            return known
        if edition >= len(self._editions):
            raise NoSuchPlace(f"there is no edition {edition}: the server knows {len(self._editions)}")
        return self._editions[edition]

    def frame(self, number: int, edition: int = 0) -> CapturedFrame:
        """Return a frame of an edition, ready to run. Raises NoSuchPlace, CaptureError."""
        found = self.capture(edition).frame(number)
        self._running[id(found)] = found
        self._running.move_to_end(id(found))
        while len(self._running) > MOST_FRAMES:
            _key, oldest = self._running.popitem(last=False)
            oldest.rest()
        return found

    def lists(self, frame: CapturedFrame, job: int) -> JobLists:
        """Return the lists of a job as text, with what they name. Raises NoSuchPlace, CaptureError."""
        key = id(frame), job
        known = self._lists.pop(key, None)
        if known is None:
            known = lists_of(frame, job_of(frame, job))
        self._lists[key] = known
        while len(self._lists) > MOST_LISTS:
            self._lists.popitem(last=False)
        return known

    def list_with(self, frame: CapturedFrame, job: int, view: int) -> JobLists:
        """Return the lists of a job, with all rows of one of them. Raises NoSuchPlace, CaptureError."""
        known = self.lists(frame, job)
        asked = known.view(view)
        if asked.total != len(asked.lines):
            known = lists_of(frame, job_of(frame, job), known.wanted | {asked.key})
            self._lists[id(frame), job] = known
        return known

    def edit(self, number: int, edition: int, changes: list[tuple[int, int, bytes]]) -> int:
        """Make an edition of an edition: its number.

        changes: for each the place of an event in frame `number` before which memory is changed, the
        guest address and the bytes. Raises NoSuchPlace, Refused.
        """
        before = self.capture(edition)
        if len(self._editions) >= MOST_EDITIONS:
            raise Refused(f"there are {MOST_EDITIONS} editions already")
        frame = before.frame(number).source
        frames = [_patched(one, changes) if one is frame else one for one in before.jobs.frames]
        self._editions.append(Capture(replace(before.jobs, frames=frames)))
        return len(self._editions) - 1


def job_of(frame: CapturedFrame, number: int) -> FrameJob:
    """Return a job of a frame. Raises NoSuchPlace."""
    if not 1 <= number <= len(frame.jobs):
        raise NoSuchPlace(f"frame {frame.number} has no job {number}: it has {len(frame.jobs)}")
    return frame.jobs[number - 1]


def _patched(frame: JobsFrame, changes: list[tuple[int, int, bytes]]) -> JobsFrame:
    """A frame with changes of memory."""
    events: list[Event] = []
    lines: list[int] = []
    for place, event in enumerate(frame.events):
        new = [Patched(address, data) for at, address, data in changes if at == place]
        events += [*new, event]
        lines += [frame.lines[place] if place < len(frame.lines) else 0] * (1 + len(new))
    return replace(frame, events=events, lines=lines)
