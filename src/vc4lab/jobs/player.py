"""Runs captured jobs again, on memory and a V3D of their own, and compares what is stored.

player = JobsPlayer(capture)
for frame, result in player.play():
    result.differing        # surfaces that hold other bytes than they did
    result.image            # what was drawn last
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.pages import PAGE, page_sum
from vc4lab.diagnostics import Reporter
from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.jobs.model import (
    Filled,
    JobBegun,
    PagesLoaded,
    Patched,
    PowerCame,
    Settled,
    Shown,
    Stored,
    Written,
    Zeroed,
)
from vc4lab.jobs.pictures import shown_picture, surface_picture
from vc4lab.jobs.start import begin_with
from vc4lab.jobs.walk import surface_bytes
from vc4lab.memory import MEMORY_MASK, GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.state.frame_mode import COLOUR
from vc4lab.v3d.state.power_on import PowerOn
from vc4lab.v3d.submission import GivenUp, SubmissionReports
from vc4lab.v3d.tiles.threads import Abandoned

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.jobs.model import Event, JobsCapture, JobsFrame
    from vc4lab.v3d.events import FrameTiles
    from vc4lab.v3d.state.frame_mode import Surface

DRIVERS = frozenset(("drm", "gl", "hang", "clif"))
"""Fronts that give up a job which never ends, and reset the list threads."""


@dataclass
class FrameResult:
    """Holds what came of a frame.

    Attributes
    ----------
    frames
        Ends of frames that the V3D has shown.
    stored
        Surfaces that were compared.
    differing
        Those that hold other bytes than they did.
    sums
        By the place of their events in the frame: the check sums that they have now.
    image
        The colour surface that was stored last; None: there was none.
    """

    frames: int = 0
    stored: int = 0
    differing: list[Stored] = field(default_factory=list)
    sums: dict[int, str] = field(default_factory=dict)
    image: Image | None = None


class JobsPlayer:
    """A V3D that captured jobs run on.

    Attributes
    ----------
    v3d, memory
        Those of the frame at hand; a frame that starts anew has others. `on_v3d` is called with
        each V3D before it is used.
    """

    def __init__(
        self,
        capture: JobsCapture,
        *,
        reporter: Reporter | None = None,
        gpu: GpuOptions | None = None,
        on_v3d: Callable[[V3D], object] | None = None,
    ) -> None:
        self.capture = capture
        self.reporter = reporter if reporter is not None else Reporter()
        self._gpu = gpu or GpuOptions()
        self._on_v3d = on_v3d
        self.reports = PlayReports(self.reporter) if capture.front in DRIVERS else self.reporter
        self._surface: Surface | None = None
        self._shown: Shown | None = None
        self._is_edited = False
        self._frames = 0
        self.job = ""
        self.hangs: list[str] = []
        """Why jobs were given up that never end, as the front's driver did."""
        self.place = 0
        """Index of the event at hand, in its frame."""
        self.memory = GuestMemory(PAGE)
        self.v3d = V3D(self.memory, self.reports)
        self._first = PowerOn(self.v3d)

    @property
    def undrawn(self) -> int:
        """Frames that were stored without any of their draws."""
        return self.v3d.undrawn

    def begin(self, frame: JobsFrame) -> None:
        """Memory and V3D as they were when a frame began that starts anew. Raises CaptureError."""
        capture = self.capture
        self.memory = GuestMemory(capture.ram_bytes)
        if capture.noise is not None:
            self.memory.fill_with_noise(*capture.noise)
        self._make()
        if frame.start:
            begin_with(self.v3d, frame.start, frame.file)

    def _make(self) -> None:
        """A V3D on the memory at hand."""
        capture, gpu = self.capture, self._gpu
        changed = {**capture.unknowns, **gpu.unknowns.changed()}
        options = GpuOptions(
            gpu.engine, gpu.threads, Unknowns(changed), gpu.budget, gpu.forgiving or capture.forgiving
        )
        self.v3d = V3D(self.memory, self.reports, options=options)
        self._first = PowerOn(self.v3d)
        if capture.checks:
            self.v3d.check_programs()
        self.v3d.listeners.frame_tiles.subscribe(self._tiles)
        self.v3d.listeners.frame_done.subscribe(self._done)
        if self._on_v3d is not None:
            self._on_v3d(self.v3d)

    def _done(self, _event: object) -> None:
        self._frames += 1

    def play(self) -> Iterator[tuple[JobsFrame, FrameResult]]:
        """Run all frames. Raises CaptureError, StrictStop."""
        for frame in self.capture.frames:
            yield frame, self.run(frame)

    def run(self, frame: JobsFrame) -> FrameResult:
        """Run a frame after those before it."""
        if frame.start is not None:
            self.begin(frame)
        result, before = FrameResult(), self._frames
        self._surface = self._shown = None
        for place in range(len(frame.events)):
            self.step(frame, place, result)
        result.frames = self._frames - before
        result.image = self.picture()
        return result

    def step(self, frame: JobsFrame, place: int, result: FrameResult) -> None:
        """The event at a place of a frame. Raises CaptureError, which names its line."""
        self.place = place
        try:
            self.do(frame.events[place], result)
        except CaptureError as error:
            line = frame.lines[place] if place < len(frame.lines) else 0
            raise CaptureError(error.code, error.text, frame.file, line) from None

    def do(self, event: Event, result: FrameResult) -> None:
        """One event. Raises CaptureError."""
        match event:
            case PagesLoaded(address, first, count):
                pages = self.capture.pages
                for place in range(count if pages is not None else 0):
                    assert pages is not None
                    self.memory.write(address + PAGE * place, pages.page(first + place))
            case Filled(address, page, count):
                data = self.capture.pages.page(page) if self.capture.pages is not None else b""
                for place in range(count):
                    self.memory.write(address + PAGE * place, data)
            case Patched(address, data):
                self.memory.write(address, data)
                self._is_edited = True
            case Zeroed(address, count):
                self.memory.fill(address, PAGE * count)
            case Written(register, value):
                try:
                    self.v3d.write(BY_NAME[register].offset, value)
                except (GivenUp, Abandoned) as reason:
                    # As the front's driver did; what it did then follows.
                    text = str(reason) or "a tile took too long"
                    if text not in self.hangs:
                        self.hangs.append(text)
            case Settled():
                self.v3d.settle()
            case PowerCame():
                if self._first.can_reset(self.v3d):
                    self._first.reset(self.v3d)
                else:
                    self._make()
            case Shown():
                self._shown = event
            case JobBegun(name):
                self.job = name
            case Stored(address, size, total):
                result.stored += 1
                found = page_sum(self.memory.view(address, size))
                if found != total:
                    result.differing.append(event)
                    result.sums[self.place] = found
            case _:
                pass

    def _tiles(self, event: FrameTiles) -> None:
        if event.over:
            for one in event.surfaces:
                if one.buffer == COLOUR and one.address and one.width and one.height:
                    self._surface = one
                    break

    def picture(self) -> Image | None:
        """Return the picture on the display, else the colour surface that was stored last (red first).

        None: there was neither.
        """
        shown, one = self._shown, self._surface
        if shown is not None and one is not None and self._is_edited and not _overlap(shown, one):
            shown = None  # the display has another frame yet, as it was captured
        if shown is not None:
            return shown_picture(self.memory, shown)
        return None if one is None else surface_picture(self.memory, one)


def _overlap(shown: Shown, surface: Surface) -> bool:
    """Whether what is shown is what was drawn."""
    first, second = shown.address & MEMORY_MASK, surface.address & MEMORY_MASK
    return first < second + surface_bytes(surface) and second < first + shown.pitch * shown.height


class PlayReports(SubmissionReports):
    """Findings, each once; what has no end is given up, as the front's driver did."""

    def words(self, code: str, message: str, address: int | None) -> tuple[Hashable, str, str]:
        return (code, message, address), message, message
