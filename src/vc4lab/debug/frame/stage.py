"""A captured frame that runs again and again: whole, up to a job, or with later draws left out.

Draws are left out in the binning list: their records become NOPs while the list runs. So state
records keep their meaning, and the engine that draws every frame draws what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from vc4lab.capture.pages import PAGE
from vc4lab.debug.frame.checkpoint import Checkpoint, Counts
from vc4lab.debug.frame.index import FrameDraw, FrameJob, States, draws_of, shown_surface
from vc4lab.debug.frame.own_lists import own_draws
from vc4lab.debug.kept_memory import KeptMemory
from vc4lab.diagnostics import Diagnostic, Reporter
from vc4lab.jobs.model import Filled, JobBegun, PagesLoaded, Patched, Shown, Stored, Zeroed
from vc4lab.jobs.player import FrameResult, JobsPlayer
from vc4lab.jobs.walk import stored_ranges
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.options import GpuOptions
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.declarations import Nop
from vc4lab.v3d.cle.binning_context import DrawBinned
from vc4lab.v3d.events import Use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.jobs.model import JobsCapture, JobsFrame
    from vc4lab.listeners import Subscription
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import (
        FrameTiles,
        FrameWork,
        JobEnded,
        JobStarted,
        ListBinned,
        MemoryUse,
        ProgramStarted,
    )
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.tiles.collector import Collector

    Drawing = Callable[[FrameMode, Collector], None]

_WRITTEN = frozenset((Use.TILE_MEMORY, Use.TILE_STATE, Use.OVERSPILL))
MOST_KEPT = 1 << 28
"""Bytes of memory that a frame may write for it to be undone; beyond that frames run from the start."""


class Stage:
    """A frame of a capture on a V3D of its own. Raises CaptureError.

    Attributes
    ----------
    capture, frame
        What runs.
    jobs, draws
        Of the frame.
    player
        Its memory and V3D: where the last run has left them.
    findings
        What the V3D had to say when the frame ran first, each with the place of the event.
    """

    def __init__(self, capture: JobsCapture, frame: JobsFrame, *, gpu: GpuOptions | None = None) -> None:
        self.capture, self.frame = capture, frame
        self.jobs: list[FrameJob] = []
        self.draws: list[FrameDraw] = []
        self.findings: list[tuple[int, Diagnostic]] = []
        place = capture.frames.index(frame)
        starts = [n for n in range(place + 1) if capture.frames[n].start is not None]
        self._before = capture.frames[starts[-1] if starts else 0 : place]
        self._gpu = gpu or GpuOptions(threads=1)
        reporter = Reporter()
        reporter.listeners.append(self._found)
        self.player = JobsPlayer(capture, reporter=reporter, gpu=self._gpu, on_v3d=self._listen)
        self._binnings = self._tiles_drawn = self._event = 0
        self._draws_binned = 0
        self._begun = self._job_begun = 0
        """The event in which the binning list at hand, the first one of a job, was started."""
        self._name = ""
        self._pending: list[FrameDraw] = []
        self._states = States()
        self._grid = 0, 0
        """Columns and rows of tiles of the binning list that was flushed last."""
        self._indexing = False
        self.shown: Shown | None = None
        """The picture in memory that was on the display at the end of the frame; None: not known."""
        self._ranges: set[tuple[int, int]] = set()
        """Address and bytes of the memory that the frame writes."""
        self._unbounded = False
        """Whether it writes where no one knows: user programs ran."""
        self._left_out: dict[int, list[FrameDraw]] = {}
        """By number of the binning list, the draws that it leaves out."""
        self._patched: list[tuple[int, bytes]] = []
        self._start: Checkpoint | None = None
        """The beginning of the frame; None: the frames before have to run again."""
        self._middle: dict[int, Checkpoint] = {}
        """The moments before the jobs that were asked for last, by their numbers."""
        self.on_binned: Callable[[ListBinned, int], object] | None = None
        """Called with what each flush has binned and the number of its first draw, which costs time."""
        self.on_tiles: Callable[[int, bool], object] | None = None
        """Called with a job's number before its tiles are drawn, and again (True) when they are stored."""
        self.on_list: Callable[[JobStarted], object] | None = None
        self.on_program: Callable[[ProgramStarted], object] | None = None
        """Called when a list, or a user program, starts."""
        self._instead: tuple[int, Drawing] | None = None
        """Number of a job, and the function that draws its tiles instead."""
        self._mode: FrameMode | None = None
        self._prepared = 0
        """Draws that were prepared for the tiles of the job at hand."""
        self._own: list[FrameJob] = []
        """Jobs with tile lists that no binner has written."""
        self._index()
        self._checkpoint()
        self._index_own()

    @property
    def frames(self) -> Sequence[JobsFrame]:
        """Those that have to run before it, and the frame itself."""
        return [*self._before, self.frame]

    @property
    def memory(self) -> GuestMemory:
        """As the last run has left it."""
        return self.player.memory

    @property
    def v3d(self) -> V3D:
        """The V3D that the next run uses."""
        return self.player.v3d

    # -- the frame before anything of it ran ---------------------------------------------------------

    def _enter(self) -> None:
        """The frames before run; memory is what it was when the frame began."""
        for one in self._before:
            if one.start is not None:
                self.player.begin(one)
            for place in range(len(one.events)):
                self._do(one, place)
        if self.frame.start is not None:
            self.player.begin(self.frame)

    def _index(self) -> None:
        self._enter()
        self._indexing = True
        self.on_binned = self._binned
        listeners = self.v3d.listeners
        heard: list[Subscription[Any]] = [
            listeners.records_noted.subscribe(self._states.note),
            listeners.draw_prepared.subscribe(self._draw_prepared),
        ]
        try:
            self._run(None, Counts())
        finally:
            for one in heard:
                one.close()
            self._indexing, self.on_binned = False, None

    def _index_own(self) -> None:
        """Find the draws of jobs whose tile lists no binner has written; their numbers are the last."""
        for job in self._own:
            works = self.works_of(job)
            for work in works[:1]:
                job.draws = own_draws(self.memory, work, job.number, len(self.draws) + 1)
                self.draws += job.draws

    def works_of(self, job: FrameJob) -> list[FrameWork]:
        """Run the frame up to the end of a job, and return what recording knows of that."""
        found: list[FrameWork] = []
        counts = self._go_before(job.number)
        heard = self.v3d.listeners.frame_work.subscribe(found.append)
        try:
            self._run(job.number, counts)
        finally:
            heard.close()
        return found[-1:]

    def _checkpoint(self) -> None:
        """Keep what the frame will overwrite."""
        self._enter()
        if not self._unbounded and sum(size for _address, size in self._ranges) <= MOST_KEPT:
            self._start = Checkpoint.of(self.player, Counts(), sorted(self._ranges))

    def _rewind(self) -> None:
        """Memory and V3D as when the frame began."""
        if self._start is None:
            self._enter()
        else:
            self._start.restore(self.player, self.frame.file)

    def _go_before(self, job: int | None) -> Counts:
        """Run what comes before a job, if it can be told from it; what has run."""
        if job is None or self._start is None or not self._is_apart(job):
            self._rewind()
            return Counts()
        nearest = max((number for number in self._middle if number <= job), default=0)
        known = self._middle.get(nearest)
        if known is not None:
            known.restore(self.player, self.frame.file)
        else:
            self._rewind()
        if nearest == job and known is not None:
            return known.counts
        before = self.jobs[job - 2]
        self._play(known.counts if known is not None else Counts(), before.place + 1)
        draws = sum(not draw.lists for one in self.jobs[: job - 1] for draw in one.draws)
        counts = Counts(before.place + 1, self._binnings, draws, job - 1)
        self._keep_moment(job, counts)
        return counts

    def _keep_moment(self, job: int, counts: Counts) -> None:
        """Keep the moment before a job, in place of the oldest if there is no room."""
        made = Checkpoint.of(self.player, counts, sorted(self._ranges))
        if made is None:
            return
        most = MOST_KEPT // max(sum(size for _address, size in self._ranges), 1)
        while self._middle and len(self._middle) >= max(most, 1):
            del self._middle[next(iter(self._middle))]
        self._middle[job] = made

    def _is_apart(self, job: int) -> bool:
        """Whether all of a job comes after those before it; the first one has nothing before."""
        return job > 1 and self.jobs[job - 1].begun > self.jobs[job - 2].place

    # -- runs ----------------------------------------------------------------------------------------

    def run(
        self,
        job: int | None = None,
        *,
        keep: int | None = None,
        only: int | None = None,
        draw: Drawing | None = None,
    ) -> None:
        """Run the frame up to the end of a job (None: of all), with the draws 1 … `keep` only.

        only: with this one of the job's draws. draw: called instead of drawing the job's tiles.
        """
        counts = self._go_before(job)
        self._left_out = {} if keep is None else self._without(self.draws[:keep])
        if only is not None:
            chosen = self.draws[only - 1]
            self._left_out = self._without([one for one in self.draws if one.job != chosen.job] + [chosen])
        self._instead = None if draw is None or job is None else (job, draw)
        try:
            self._run(job, counts)
        finally:
            self._left_out, self._instead = {}, None

    def run_tile(
        self, job: FrameJob, x: int, y: int, draw: Drawing, binned: Callable[[ListBinned, int], object]
    ) -> None:
        """Run the frame up to a job, of which only a tile is drawn.

        x, y: a pixel of the tile. draw: called instead of drawing the job's tiles. binned: called
        with each flush, and the number of its first draw; its draws say how long the tile's list was
        before them.
        """
        counts = self._go_before(job.number)
        self._instead = job.number, draw
        width, height = job.mode.tile(self.v3d.unknowns)
        self.v3d.binning.native.context.watched = y // height * job.grid[0] + x // width
        self.on_binned = binned
        try:
            self._run(job.number, counts)
        finally:
            self._instead = self.on_binned = None

    def free_memory(self, size: int) -> int:
        """A guest address with so many bytes that the frame does not write."""
        size = -(-size // PAGE) * PAGE
        address = MEMORY_SIZE - size
        for start, length in sorted(self._ranges, reverse=True):
            if start < address + size and start + length > address:
                address = max(start - size, 0) // PAGE * PAGE
        return address

    def _without(self, keep: Sequence[FrameDraw]) -> dict[int, list[FrameDraw]]:
        """The draws besides some, by binning list; a record that one of those shares stays."""
        kept = {(one.binning, one.address) for one in keep}
        found: dict[int, list[FrameDraw]] = {}
        for one in self.draws:
            if (one.binning, one.address) not in kept:
                found.setdefault(one.binning, []).append(one)
        return found

    def _run(self, job: int | None, counts: Counts) -> None:
        heard = self.v3d.listeners.list_binned.subscribe(self._flushed) if self.on_binned else None
        try:
            self._play(counts, len(self.frame.events) if job is None else self.jobs[job - 1].place + 1)
        finally:
            if heard is not None:
                heard.close()

    def _play(self, counts: Counts, end: int) -> None:
        """Events of the frame, those before have run."""
        first, self._binnings, self._draws_binned, self._tiles_drawn = counts
        self._pending, self._name = [], ""
        try:
            for place in range(first, end):
                self._event = place
                self._do(self.frame, place)
        finally:
            self._unpatch()

    def _flushed(self, event: ListBinned) -> None:
        if self.on_binned is not None:
            self.on_binned(event, self._draws_binned + 1)
            self._draws_binned += len(event.draws) // DrawBinned.size

    def _do(self, frame: JobsFrame, place: int) -> None:
        """An event of a frame; check sums are not computed."""
        event = frame.events[place]
        match event:
            case Stored():
                return
            case JobBegun(name):
                self._name = name
            case Shown():
                self.shown = event if self._indexing else self.shown
            case PagesLoaded() | Zeroed() | Filled():
                self._writes(event.address, event.pages * PAGE)
            case Patched(address, data):
                self._writes(address, len(data))
            case _:
                pass
        self.player.step(frame, place, FrameResult())

    # -- what the V3D does ---------------------------------------------------------------------------

    def _listen(self, v3d: V3D) -> None:
        v3d.listeners.job_started.subscribe(self._started)
        v3d.listeners.job_ended.subscribe(self._ended)
        v3d.listeners.frame_tiles.subscribe(self._tiles)
        v3d.listeners.program_started.subscribe(self._program_started)
        stage = v3d.rendering
        stage.draw = partial(self._draw, stage.draw)
        if self._indexing or not self.jobs:
            v3d.listeners.memory_used.subscribe(self._used)
            v3d.listeners.programs_run.subscribe(self._programs)

    def _program_started(self, event: ProgramStarted) -> None:
        if self.on_program is not None:
            self.on_program(event)

    def _found(self, finding: Diagnostic) -> None:
        if self._indexing:
            self.findings.append((self._event, finding))

    def _started(self, event: JobStarted) -> None:
        if self.on_list is not None:
            self.on_list(event)
        if event.thread:
            return
        self._binnings += 1
        self._begun = self._event
        for one in self._left_out.get(self._binnings, ()):
            size = RECORD_SIZES[one.record]
            self._patched.append((one.address, self.memory.read(one.address, size)))
            self.memory.write(one.address, bytes([Nop.id]) * size)

    def _ended(self, event: JobEnded) -> None:
        if not event.thread:
            self._unpatch()

    def _unpatch(self) -> None:
        """The binning list is as it was."""
        while self._patched:
            self.memory.write(*self._patched.pop())

    def _binned(self, event: ListBinned, first: int) -> None:
        self._grid = event.tiles
        if not self._pending:
            self._job_begun = self._begun
        self._pending += self._states.of(draws_of(event, self._binnings, first))

    def _draw(self, draw: Drawing, mode: FrameMode, collector: Collector) -> None:
        """The tiles of a job; what is given up while it is drawn is none."""
        self._mode = mode
        if not collector.context.chain_count:
            draw(mode, collector)
            return
        number = self._tiles_drawn + 1
        if self._instead is not None and self._instead[0] == number:
            draw = self._instead[1]
        hears = self.on_tiles if number <= len(self.jobs) else None
        if hears is not None:
            hears(number, False)
        mine = (one for one in self._left_out.get(0, ()) if one.job == number)
        with KeptMemory(self.memory).take(part for one in mine for part in one.lists).filled(Nop.id):
            draw(mode, collector)
        if hears is not None and self._tiles_drawn == number:
            hears(number, True)

    def _draw_prepared(self, _event: object) -> None:
        self._prepared += 1

    def _tiles(self, event: FrameTiles) -> None:
        if not event.over or self._mode is None:
            return
        self._tiles_drawn += 1
        if not self._indexing:
            return
        surfaces = tuple(event.surfaces)
        number = len(self.jobs) + 1
        draws = [replace(one, job=number) for one in self._pending]
        self._pending = []
        self.draws += draws
        begun = self._job_begun if draws else self._event
        full = frozenset(address & MEMORY_MASK for address, _size in event.full)
        colour = shown_surface(surfaces)
        is_own, self._prepared = not draws and self._prepared > 0, 0
        self.jobs.append(
            FrameJob(
                number,
                self._name,
                self._mode,
                self._grid,
                colour,
                surfaces,
                full,
                draws,
                begun,
                self._event,
                frozenset(event.full),
            )
        )
        if is_own:
            self._own.append(self.jobs[-1])
        for address, size in stored_ranges(surfaces, event.full):
            self._writes(address, size)

    def _used(self, event: MemoryUse) -> None:
        if event.use in _WRITTEN:
            self._writes(event.address, event.size)

    def _programs(self, _event: object) -> None:
        self._unbounded = True

    def _writes(self, address: int, size: int) -> None:
        if self._indexing and size and address:
            self._ranges.add((address & MEMORY_MASK, min(size, MEMORY_SIZE)))
