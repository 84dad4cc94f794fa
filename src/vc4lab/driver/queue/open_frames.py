"""Frames that are collected: clears and draws for one frame buffer become one job of the V3D.

They do as long as nothing needs its pixels: a draw to another frame buffer that samples them, a
copy, a sync. While another frame buffer is bound a frame waits, so that it may go on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.driver.commands.blocks import MAX_KNOWN
from vc4lab.driver.frames.job import MOST_LISTS, FrameJob, FramesAside, FrameSurfaces
from vc4lab.driver.frames.target import frame_target
from vc4lab.driver.gpu.memory import OutOfMemory
from vc4lab.driver.pictures import Snapshot
from vc4lab.driver.queue.events import JobDrawn, JobPlaced

if TYPE_CHECKING:
    from vc4lab.driver.draws.frame_draws import FrameDraws
    from vc4lab.driver.gpu.memory import GpuMemory, GpuResource
    from vc4lab.driver.gpu.runner import Runner
    from vc4lab.driver.queue.events import QueueListeners
    from vc4lab.mesa.state.pipe import Framebuffer


class OpenFrames:
    """The frame at hand, and those that wait aside.

    Attributes
    ----------
    job
        The frame to which draws are added.
    """

    def __init__(
        self,
        memory: GpuMemory,
        runner: Runner,
        frame_draws: FrameDraws,
        listeners: QueueListeners,
        counts: FrameCounts,
    ) -> None:
        self.memory = memory
        self.runner = runner
        self.frame_draws = frame_draws
        self.listeners = listeners
        self.counts = counts
        self.job: FrameJob | None = None
        self._aside = FramesAside()
        self._surfaces: Bounded[int, FrameSurfaces] = Bounded(MAX_KNOWN)
        """By the ids of the frame buffers."""
        self._numbers = count(1)
        self._target: tuple[GpuResource, int] | None = None
        self._picture: Snapshot | None = None

    @property
    def last_picture(self) -> Snapshot | None:
        """The picture that was drawn to last."""
        return Snapshot(*self._target) if self._target is not None else self._picture

    def forget(self, resource: GpuResource) -> None:
        """A resource goes: nothing may keep it alive."""
        if self._target is not None and self._target[0] is resource:
            self._picture, self._target = self.last_picture, None
        self._surfaces.clear()

    # -- what others need --------------------------------------------------------------------------

    def will_read(self, resources: Collection[int]) -> None:
        """A draw samples these: what waits to be drawn to them comes before."""
        job = self.job
        if job is not None and job.has_work and not job.writes.keys().isdisjoint(resources):
            self.flush()
        self._draw_aside((), resources)

    def will_use(self, resource: GpuResource) -> None:
        """A resource is read or written outside of frames: what waits comes before."""
        self.will_write(resource, 0, resource.size)

    def will_write(self, resource: GpuResource, first: int, end: int) -> None:
        """Some bytes of a buffer are written outside of frames. Streams of vertices are written where no
        draw that waits reads them: so it goes on waiting.
        """
        if resource.is_used(self.frame_draws.sink.turn, first, end):
            self.finish()
            return
        number = resource.number
        self._draw_aside((number,))
        job = self.job
        if job is not None and (number in job.writes or number in job.reads):
            self.flush()

    # -- frames ------------------------------------------------------------------------------------

    def begin(self, framebuffer: Framebuffer) -> FrameJob:
        """The frame that goes to these surfaces. Raises Refused."""
        job = self.job
        if job is not None and job.framebuffer is framebuffer:
            return job
        if job is not None and job.framebuffer == framebuffer:
            return job
        self._leave()
        surfaces = self._surfaces.get(id(framebuffer))
        if surfaces is None:
            target = frame_target(framebuffer)
            surfaces = FrameSurfaces(framebuffer, target, next(self._numbers), Bounded(MOST_LISTS))
            self._surfaces[id(framebuffer)] = surfaces
        job = self._aside.take(framebuffer)
        if job is None:
            job = FrameJob(surfaces, self.frame_draws)
        self._draw_aside(job.writes)
        job.go_on()
        self.job = job
        return job

    def parts(self, framebuffer: Framebuffer) -> Iterator[FrameJob]:
        """The frame that goes to these surfaces, for a draw; and more of them for what is left of
        the draw where the list of one has as much as the chip takes. Raises Refused.
        """
        draws = self.frame_draws
        draws.sink.batch = 0
        while True:
            job = self.begin(framebuffer)
            if draws.is_full:
                self.flush()
                job = self.begin(framebuffer)
            yield job
            if not draws.sink.batch:
                return
            self.flush()

    def begin_with(self, job: FrameJob) -> None:
        """Another frame begins, and is this one: there is none at hand, and none aside."""
        self.job = job
        job.go_on()

    @property
    def is_empty(self) -> bool:
        """Whether no frame is collected."""
        return self.job is None and not len(self._aside)

    def _leave(self) -> None:
        """Another frame begins: the one at hand waits, or is drawn if it has no more to come."""
        job = self.job
        if job is None or not job.has_work or job.has_only_blits or self._aside.is_full:
            self.flush()
            return
        self._draw_aside(job.writes, job.reads)
        self._aside.put(job)
        self.job = None
        self.frame_draws.end()

    def _draw_aside(self, writes: Collection[int] | None, reads: Collection[int] = ()) -> None:
        """Draw the frames that wait and come before what writes and reads these; None: all."""
        if len(self._aside):
            for job in self._aside.take_those(writes, reads):
                self._run(job)
        self.frame_draws.sink.aside = len(self._aside)

    def finish(self) -> None:
        """Draw all that waits."""
        self._draw_aside(None)
        self.flush()

    def flush(self) -> None:
        """Draw the frame at hand, and those before that it needs."""
        job, self.job = self.job, None
        self.frame_draws.end()
        if job is None or not job.has_work:
            return
        if len(self._aside):
            self._draw_aside(job.writes, job.reads)
        self._run(job)
        if not len(self._aside):
            self.frame_draws.all_drawn()

    def run(self, job: FrameJob) -> None:
        """Draw a job at once; `will_use` was called for all that it reads and writes."""
        self._run(job)

    def _run(self, job: FrameJob) -> None:
        """Draw a frame."""
        drawn, where = job.drawn, f"frame {self.counts.frame}"
        if drawn:
            where += f", draw {drawn[0]}" if len(drawn) == 1 else f", draws {drawn[0]}-{drawn[-1]}"
        self.runner.reports.doing = where
        try:
            lists = job.lists(self.memory)
        except OutOfMemory as reason:
            self.runner.reports.report("GL-006", str(reason), block="GL")
            return
        if self.listeners.placed.subscriptions:
            self.listeners.placed.emit(JobPlaced(where, lists, job))
        self.runner.run(lists)
        job.has_drawn()
        self.counts.jobs += 1
        for written in job.writes.values():
            written.changes += 1
        colours = [one for one in job.framebuffer.cbufs if one is not None]
        if colours and (job.draws or not job.is_aside or self._target is None):
            target: Any = colours[0].resource
            self._target = target, colours[0].state.level
        if self.listeners.job.subscriptions:
            self.listeners.job.emit(JobDrawn(self.counts.frame, tuple(drawn), lists, job))


@dataclass
class FrameCounts:
    """Frames and draws.

    Attributes
    ----------
    frame
        The frame that is being drawn, from 1 on. A frame ends when a window's pixels are read.
    draw_of_frame
        The last draw of it, from 1 on.
    draws, left_out, jobs
        Numbers for the whole run: draws, those that could not be drawn, jobs of the V3D.
    """

    frame: int = 1
    draw_of_frame: int = 0
    draws: int = 0
    left_out: int = 0
    jobs: int = 0

    def end_frame(self) -> None:
        """The frame is shown."""
        self.frame += 1
        self.draw_of_frame = 0

    def begin(self, frame: int) -> None:
        """This frame comes next."""
        self.frame = frame
        self.draw_of_frame = 0
