"""Keeps what reaches a V3D: a listener at its door, the same for every front.

Pages of memory are kept as the V3D is about to use them (`shadow.py`), register writes and jobs in
order, check sums of what was stored. A write comes after the pages that it needs, although these are
known only while it works: it is held back until the next one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.capture.pages import PAGE, Full, PageKeeper, page_sum
from vc4lab.jobs.model import (
    STARTS,
    BufferNamed,
    Event,
    Filled,
    JobBegun,
    JobsCapture,
    JobsFrame,
    Origin,
    PagesLoaded,
    PowerCame,
    Settled,
    Shown,
    Stored,
    Submitted,
    Written,
    Zeroed,
)
from vc4lab.jobs.shadow import Shadow
from vc4lab.jobs.start import start_of
from vc4lab.jobs.walk import list_ranges, surface_bytes, tile_state
from vc4lab.v3d.events import Use
from vc4lab.v3d.registers import BY_OFFSET
from vc4lab.v3d.state.power_on import is_idle

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.diagnostics import Diagnostic
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import FrameTiles, JobStarted, MemoryUse, ProgramsRun, RegisterWritten

LIMIT = 256 << 20
"""Bytes of all pages of a capture, if nothing else is asked for."""
BEFORE, AFTER = 1, 1
"""Frames that are kept around one with the message that was waited for."""
WRITTEN = frozenset((Use.TILE_MEMORY, Use.TILE_STATE))
ZEROS = bytes(PAGE)
ALL = (0, 0)
"""Stands for all of memory among the ranges that were used."""
Range = tuple[int, int]


class JobsRecorder:
    """Keeps frames of jobs.

    Parameters
    ----------
    first, last
        The frames that are kept, as the front counts them.
    on
        A code of a message: only the frames around the first one with it are kept.
    limit
        Bytes of all pages together.
    where
        Where the program is that writes a register; None: nothing is known.
    tell
        Called with a sentence when the capture is full.

    Attributes
    ----------
    capture
        What was kept so far.
    is_done, is_full
        Whether the last frame was shown, or there was no room for a frame.
    on_done
        Called when no more is kept.
    """

    def __init__(
        self,
        capture: JobsCapture | None = None,
        *,
        first: int = 1,
        last: int = 1 << 30,
        on: str | None = None,
        limit: int = LIMIT,
        where: Callable[[], str | None] | None = None,
        tell: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self.capture = capture if capture is not None else JobsCapture()
        self.first, self.last, self.on = first, last, on
        self.is_done = self.is_full = False
        self.on_done: Callable[[], object] = lambda: None
        self._limit, self.where, self._tell = limit, where, tell
        self._job_buffers: Sequence[tuple[int, int, str]] | None = None
        """Address, bytes and name of the buffers of a driver's job: all that it uses is in them."""
        self._ends_in_writes = True
        self._keeper = PageKeeper(limit)
        self.capture.pages = self._keeper
        self._lock = threading.RLock()
        self._v3d: V3D | None = None
        self._subscriptions: list[Any] = []
        self._frame: JobsFrame | None = None
        self._number = 0
        """Number of the frame that was shown last."""
        self._shown: deque[tuple[int, Image | None]] = deque()
        """Frames that were shown while the V3D worked."""
        self._shadow: Shadow | None = None
        self._held: Event | None = None
        self._pages: dict[int, int] = {}
        """Pages that the write at hand needs, and their numbers; -1: zeros."""
        self._after: list[Event] = []
        self._used: set[tuple[int, int]] = set()
        """Ranges that the write at hand has used."""
        self._tile_memory: list[Range] = []
        self._uniforms: Range = (0, 0)
        self._overspill = 0
        self._recent: deque[JobsFrame] = deque(maxlen=BEFORE + 1)
        self._left = -1
        """Frames that are kept yet after the one with the message; -1: it has not come."""
        self._came = False

    # -- the front ---------------------------------------------------------------------------------

    def attach(self, v3d: V3D) -> None:
        """Listen to a V3D from now on, also to another one than before on the same memory."""
        if self.is_done:
            return
        if self._v3d is not None and self._v3d is not v3d:
            for one in self._subscriptions:
                one.close()
            self._subscriptions = []
            with self._lock:
                self._flush()
                self._note(PowerCame())
        self._v3d = v3d
        capture = self.capture
        capture.ram_bytes, capture.noise = v3d.memory.ram_bytes, v3d.memory.noise
        capture.unknowns = v3d.unknowns.changed()
        capture.checks = v3d.progress is not None
        if self.on is not None:
            v3d.reporter.listeners.append(self._reported)
        if self.first <= self._number + 1:
            self._listen()

    def job(
        self, name: str, buffers: Sequence[tuple[int, int, str]] = (), submit: bytes | None = None
    ) -> None:
        """A driver's job is about to reach the V3D.

        buffers: address, size and label of each; a label may be "". submit: what the program handed
        in, for conversions.
        """
        with self._lock:
            self._flush()
            self._end_frames()
            self._job_buffers = buffers
            if not self._begun() or self._frame is None:
                return
            frame = self._frame
            frame.events.append(JobBegun(name))
            if submit is not None:
                file = f"jobs/{frame.number}/submit-{len(frame.files) + 1}.json"
                frame.files[file] = submit
                frame.events.append(Submitted(file))
            for address, size, label in buffers:
                if label:
                    frame.events.append(BufferNamed(address, size, label))
            for address, size, _label in buffers:
                self._use(address, size)
            self._flush()

    def frame(self, number: int, picture: Callable[[], Image | None], *, at_once: bool = True) -> None:
        """A frame is shown: what comes now belongs to the next one.

        at_once: it is said in the V3D's thread; else the frame ends when the next job begins.
        """
        with self._lock:
            if self.is_done:
                return
            self._number = number
            wanted = self.first <= number <= self.last and self._frame is not None
            self._shown.append((number, picture() if wanted else None))
            self._ends_in_writes = at_once
            if at_once and (self._v3d is None or is_idle(self._v3d)):
                self._end_frames()

    @property
    def has_jobs(self) -> bool:
        """Whether the frame at hand has let the V3D work."""
        frame = self._frame
        return frame is not None and (isinstance(self._held, Settled | Written) or frame.has_jobs)

    def display(self, shown: Shown) -> None:
        """Add the memory on the display to the frame at hand, if it has jobs."""
        with self._lock:
            if self.has_jobs and self._begun():
                self._flush()
                size = shown.pitch * shown.height
                self._use(shown.address, size)
                self._flush()
                self._note(self._stored(shown.address, size))
                self._note(shown)

    def close(self) -> None:
        """The run is over; a frame that was not shown to its end is kept if anything is in it."""
        with self._lock:
            if self.is_done:
                return
            self._end_frames()
            frame = self._frame
            if frame is not None:
                self._flush()
                if self.is_full:
                    self._no_room()
                elif frame.has_jobs:
                    self._keep(frame)
            self._finish()

    # -- frames ------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Keep what comes from now on."""
        v3d = self._v3d
        if v3d is None or self._subscriptions:
            return
        listeners = v3d.listeners
        self._subscriptions = [
            listeners.register_written.subscribe(self._written),
            listeners.job_started.subscribe(self._job_started),
            listeners.memory_used.subscribe(self._memory_used),
            listeners.frame_tiles.subscribe(self._tiles),
            listeners.programs_run.subscribe(self._programs),
            listeners.powered_on.subscribe(self._powered_on),
        ]

    def _begun(self) -> bool:
        """Whether a frame is kept now; begins one where that is due."""
        if self.is_done or self._v3d is None or not self._subscriptions:
            return False
        if self._frame is None:
            number = self._number + 1
            fresh = self._shadow is None or self.on is not None
            self._frame = JobsFrame(number, start=start_of(self._v3d) if fresh else None)
            if fresh:
                self._shadow = Shadow(self._v3d.memory)
                self._tile_memory.clear()
        return True

    def _end_frames(self) -> None:
        """The V3D is at rest: frames that were shown meanwhile end here."""
        while self._shown and not self.is_done:
            number, picture = self._shown.popleft()
            frame, self._frame = self._frame, None
            if frame is not None:
                self._frame = frame
                self._flush()
                self._frame = None
                if self.is_full:
                    self._no_room()
                    return
                frame.number, frame.picture = number, picture
                self._keep(frame)
            if number >= self.last or (self._left == 0 and self.on is not None):
                self._finish()
            elif number + 1 >= self.first:
                self._listen()

    def _keep(self, frame: JobsFrame) -> None:
        if self.on is None:
            self.capture.frames.append(frame)
            return
        if self._left >= 0:
            self.capture.frames.append(frame)
            self._left -= 1
            return
        self._recent.append(frame)
        if self._came:
            self.capture.frames += self._recent
            self._left = AFTER

    def _reported(self, item: Diagnostic) -> None:
        self._came = self._came or (item.code == self.on and bool(self._subscriptions))

    def _finish(self) -> None:
        """No more is kept."""
        if self.is_done:
            return
        self.is_done = True
        for one in self._subscriptions:
            one.close()
        self._frame, self._shadow = None, None
        self.on_done()

    def _no_room(self) -> None:
        """There is no room for the frame at hand."""
        self.is_full = True
        kept = [one.number for one in self.capture.frames]
        which = f"frames {kept[0]} to {kept[-1]} are kept" if kept else "no frame is kept"
        self._tell(f"the capture is full: the next frame does not fit in {self._limit >> 20} MiB; {which}")
        self._finish()

    # -- what the V3D does -------------------------------------------------------------------------

    def _written(self, event: RegisterWritten) -> None:
        with self._lock:
            self._flush()
            if self._shown and self._ends_in_writes and self._v3d is not None and is_idle(self._v3d):
                self._end_frames()
            if not self._begun():
                return
            register = BY_OFFSET[event.offset].name
            if register in STARTS and self.where is not None:
                place = self.where()
                if place:
                    self._note(Origin(place))
            self._held = Written(register, event.value)
            if register == "BPOA":
                self._overspill = event.value
            elif register == "BPOS":
                self._gives_tile_memory(self._overspill, event.value)

    def _powered_on(self, _event: object) -> None:
        with self._lock:
            self._flush()
            if self._begun():
                self._note(PowerCame())

    def _job_started(self, event: JobStarted) -> None:
        v3d = self._v3d
        if self._frame is None or v3d is None or event.thread:
            return
        found = tile_state(v3d.memory.read, event.address, event.end)
        if found is not None:
            self._use(*found)

    def _memory_used(self, event: MemoryUse) -> None:
        if self._frame is None or self._v3d is None:
            return
        use, address, size, _record = event
        if use in WRITTEN:
            self._gives_tile_memory(address, size)
        elif use is Use.LIST and size == 1:
            self._use_list(address, None)
        elif use is Use.LOOKUPS:
            self._use_everything()
        elif use.is_read:
            if use is Use.UNIFORMS:
                self._uniforms = address, size
            self._use(address, size)

    def _tiles(self, event: FrameTiles) -> None:
        if self._frame is None or self._shadow is None:
            return
        ranges = [(one.address, surface_bytes(one)) for one in event.surfaces]
        if not event.over:
            for start, end in event.pieces:
                self._use_list(start, end)
            for address, size in (*ranges, *event.full):
                self._use(address, size)
            return
        for address, size in event.full:
            self._shadow.wrote(address, size)
        for address, size in ranges:
            if address:
                self._shadow.wrote(address, size)
                self._after.append(self._stored(address, size))

    def _programs(self, event: ProgramsRun) -> None:
        with self._lock:
            if not event.over:
                if not event.requested:
                    self._flush()
                if self._begun():
                    if not event.requested:
                        self._held = Settled()
                    self._use_everything()
            elif self._shadow is not None and self._frame is not None:
                for first, count in self._shadow.wrote_somewhere():
                    self._after.append(self._stored(first * PAGE, count * PAGE))

    # -- memory ------------------------------------------------------------------------------------

    def _use(self, address: int, size: int) -> None:
        """The V3D is about to use a range."""
        if (address, size) not in self._used and self._shadow is not None:
            self._used.add((address, size))
            self._take(self._shadow.differing(address, size))

    def _use_everything(self) -> None:
        """Take all that a replay does not have: what the V3D is about to use is not known."""
        if ALL not in self._used and self._shadow is not None:
            self._used.add(ALL)
            if self._job_buffers is None:
                self._take(self._shadow.everywhere())

    def _take(self, pages: Iterable[int]) -> None:
        """Keeps pages as they are now, before anything writes there."""
        shadow = self._shadow
        if shadow is None or self.is_full:
            return
        try:
            for page in pages:
                data = shadow.take(page)
                self._pages.setdefault(page, -1 if data == ZEROS else self._keeper.add(data))
        except Full:
            self.is_full = True

    def _put_pages(self, frame: JobsFrame) -> None:
        """The pages that were taken, as events."""
        pages, self._pages = self._pages, {}
        run = _Run()
        for page, number in sorted(pages.items()):
            if not run.takes(page, number):
                frame.events += run.events
                run = _Run(page, number)
        frame.events += run.events

    def _use_list(self, start: int, end: int | None) -> None:
        """A list, or a piece of one, that the program has written: not one of the binner's."""
        v3d = self._v3d
        if v3d is None or self._in_tile_memory(start):
            return
        for address, size in list_ranges(v3d.memory.read, start, end):
            self._use(address, size)

    def _gives_tile_memory(self, address: int, size: int) -> None:
        if self._shadow is None or not size:
            return
        size = min(size, self.capture.ram_bytes)
        self._shadow.forget(address, size)
        if (address, size) not in self._tile_memory:
            self._tile_memory.append((address, size))

    def _in_tile_memory(self, address: int) -> bool:
        return any(start <= address < start + size for start, size in self._tile_memory)

    def _stored(self, address: int, size: int) -> Stored:
        assert self._v3d is not None
        return Stored(address, size, page_sum(self._v3d.memory.view(address, size)))

    # -- events ------------------------------------------------------------------------------------

    def _note(self, event: Event) -> None:
        if self._frame is not None:
            self._frame.events.append(event)

    def _flush(self) -> None:
        """Put what was held back into the frame."""
        held, self._held = self._held, None
        after, self._after = self._after, []
        self._used.clear()
        frame = self._frame
        if frame is None:
            return
        self._put_pages(frame)
        if held is not None:
            frame.events.append(held)
        frame.events += after


class _Run:
    """Pages in a row whose numbers go on by one each, or stay the same."""

    def __init__(self, page: int = -2, number: int = -1) -> None:
        self._page, self._number = page, number
        self._count, self._step = 0 if page < 0 else 1, 0

    def takes(self, page: int, number: int) -> bool:
        """Whether a page goes on with it."""
        if page != self._page + self._count:
            return False
        if self._count == 1:
            self._step = number - self._number
            if self._step not in (0, 1) or (self._number < 0 and self._step):
                return False
        elif number != self._number + self._step * self._count:
            return False
        self._count += 1
        return True

    @property
    def events(self) -> list[Event]:
        """The run as an event, if there is anything in it."""
        at, count = self._page * PAGE, self._count
        if not count:
            return []
        if self._number < 0:
            return [Zeroed(at, count)]
        same = count > 1 and not self._step
        return [Filled(at, self._number, count) if same else PagesLoaded(at, self._number, count)]
