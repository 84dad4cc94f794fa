"""Keeps what reaches a V3D: a listener at its door, the same for every front.

Pages of memory are kept as the V3D is about to use them (`used_memory.py`), register writes and jobs in
order, check sums of what was stored. A write comes after the pages that it needs, although these are
known only while it works: it is held back until the next one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.capture.pages import PAGE, PageKeeper, page_sum
from vc4lab.jobs.model import (
    STARTS,
    BufferNamed,
    Event,
    JobBegun,
    JobsCapture,
    JobsFrame,
    Origin,
    PowerCame,
    Settled,
    Shown,
    Stored,
    Submitted,
    Written,
)
from vc4lab.jobs.start import start_of
from vc4lab.jobs.used_memory import UsedMemory
from vc4lab.jobs.walk import surface_bytes, tile_state
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
Range = tuple[int, int]
"""Address and bytes."""
WRITTEN = frozenset((Use.TILE_MEMORY, Use.TILE_STATE))


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
        self._lookups: Sequence[Range] | None = None
        """The ranges in which programs of a driver's job look memory up; None: anywhere."""
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
        self._memory: UsedMemory | None = None
        self._held: Event | None = None
        self._after: list[Event] = []
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
        self,
        name: str,
        buffers: Sequence[tuple[int, int, str]] = (),
        submit: bytes | None = None,
        lookups: Sequence[Range] | None = None,
    ) -> None:
        """A driver's job is about to reach the V3D.

        buffers: address, size and label of each; a label may be "". submit: what the program handed
        in, for conversions. lookups: the ranges in which its programs look memory up at addresses
        that they compute; None: in the buffers, all of which are kept.
        """
        with self._lock:
            self._flush()
            self._end_frames()
            self._lookups = () if lookups is None else lookups
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
            if self._memory is not None and lookups is None:
                for address, size, _label in buffers:
                    self._memory.use(address, size)
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
            if self.has_jobs and self._begun() and self._memory is not None:
                self._flush()
                size = shown.pitch * shown.height
                self._memory.use(shown.address, size)
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
            fresh = self._memory is None or self.on is not None
            self._frame = JobsFrame(number, start=start_of(self._v3d) if fresh else None)
            if fresh:
                self._memory = UsedMemory(self._v3d.memory, self._keeper)
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
        self._frame, self._memory = None, None
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
            elif register == "BPOS" and self._memory is not None:
                self._memory.give_tile_memory(self._overspill, event.value)

    def _powered_on(self, _event: object) -> None:
        with self._lock:
            self._flush()
            if self._begun():
                self._note(PowerCame())

    def _job_started(self, event: JobStarted) -> None:
        v3d, memory = self._v3d, self._memory
        if self._frame is None or memory is None or v3d is None or event.thread:
            return
        found = tile_state(v3d.memory.read, event.address, event.end)
        if found is not None:
            memory.use(*found)

    def _memory_used(self, event: MemoryUse) -> None:
        memory = self._memory
        if self._frame is None or memory is None:
            return
        use, address, size, _record = event
        if use in WRITTEN:
            memory.give_tile_memory(address, size)
        elif use is Use.LIST and size == 1:
            memory.use_list(address, None)
        elif use is Use.LOOKUPS:
            self._use_everything()
        elif use.is_read:
            memory.use(address, size)

    def _tiles(self, event: FrameTiles) -> None:
        memory = self._memory
        if self._frame is None or memory is None:
            return
        ranges = [(one.address, surface_bytes(one)) for one in event.surfaces]
        if not event.over:
            for start, end in event.pieces:
                memory.use_list(start, end)
            for address, size in (*ranges, *event.full):
                memory.use(address, size)
            return
        for address, size in event.full:
            memory.shadow.wrote(address, size)
        for address, size in ranges:
            if address:
                memory.shadow.wrote(address, size)
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
            elif self._memory is not None and self._frame is not None:
                for first, count in self._memory.shadow.wrote_somewhere():
                    self._after.append(self._stored(first * PAGE, count * PAGE))

    def _use_everything(self) -> None:
        """The V3D may use all of memory, or a driver's job what it named."""
        memory = self._memory
        if memory is not None and self._lookups is None:
            memory.use_everything()
        elif memory is not None:
            for address, size in self._lookups or ():
                memory.use(address, size)

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
        memory, frame = self._memory, self._frame
        if frame is None:
            return
        if memory is not None:
            frame.events += memory.take_events()
            self.is_full = self.is_full or memory.is_full
        if held is not None:
            frame.events.append(held)
        frame.events += after
