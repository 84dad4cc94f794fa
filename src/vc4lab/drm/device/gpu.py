"""The GPU's thread: jobs in the order of their sequence numbers, in parallel with the programs."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.drm.events import JobCounted, JobDone, JobTaken
from vc4lab.drm.kernel.hardware import JobReports, run_job
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.objects.memory import PAGE, TILE_MEMORY, TILE_MEMORY_SIZE
from vc4lab.drm.uapi.results import Later
from vc4lab.images.tiling import round_up
from vc4lab.jobs.dumps.hang_state import REGISTERS as HANG_REGISTERS
from vc4lab.listeners import Listeners, OneListener
from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.host import give_back
from vc4lab.v3d.counters import counts
from vc4lab.v3d.registers import BY_NAME

if TYPE_CHECKING:
    from vc4lab.drm.kernel.built_job import BuiltJob
    from vc4lab.drm.objects.gem_objects import GemObject
    from vc4lab.drm.recorded.writer import JobRecorder
    from vc4lab.drm.uapi.submit import Submit
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.draws.frame import FrameRenderer

_END_SECONDS = 2.0
"""So long a job may still run when the device ends."""
LONGEST_WAIT = 10.0
"""Seconds that a job waits for a fence of others before it is drawn anyway."""
LOOK_SECONDS = 1.0
PATIENCE = 10.0
"""Seconds for one tile; tiles of programs that are meant to be seen take milliseconds."""


class PerformanceMonitor:
    """A set of counters that adds up what the jobs with it did."""

    def __init__(self, sources: list[int]) -> None:
        self.sources = sources
        self.values = [0] * len(sources)

    def add(self, amounts: dict[int, int]) -> None:
        """Add what one job counted."""
        for place, source in enumerate(self.sources):
            self.values[place] += amounts.get(source, 0)


def place_in(objects: Iterable[GemObject], address: int) -> str:
    """The buffer in which an address of the GPU lies, in words; "" for none of them."""
    for target in objects:
        if target.address <= address < target.address + target.size:
            return f"{target}, byte 0x{address - target.address:x}"
    return ""


@dataclass(slots=True, eq=False)
class Job:
    """One job that waits or runs."""

    seqno: int
    program: str
    """The program's name and process."""
    built: BuiltJob
    submit: Submit
    """As the program handed it in."""
    objects: Sequence[GemObject] = ()
    """Its buffers."""
    after: Fence | None = None
    """Another one's fence that must be done first."""
    done: Fence = field(default_factory=Fence)
    perfmon: PerformanceMonitor | None = None
    failed: bool = False
    lists: tuple[int, int] = (0, 0)
    """Address and bytes of what was built for it: lists, shader records, uniforms."""
    registers: dict[str, int] = field(default_factory=dict)
    """The V3D's registers when it failed."""
    kept: list[tuple[int, bytes]] = field(default_factory=list)
    """Bytes of the driver's own memory then, by address: the lists, and tile memory."""
    ready: float = field(default_factory=time.monotonic)
    """When it could begin: it was handed in, and `after` was done."""

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"{self.program} job {self.seqno}"

    def place(self, address: int) -> str:
        """The buffer in which an address of the GPU lies, in words."""
        return place_in(self.objects, address)


class _Rest:
    """In the queue: no program has the device."""


class Watchdog:
    """Abandons a job in which no tile is completed: its shaders end, but take far too long.

    It looks at the renderer once a second, in a thread of its own. A shader that never ends is
    found at once by its count of instructions. On a board the kernel resets the chip when a tile
    takes longer than a tenth of a second.
    """

    def __init__(self, frames: FrameRenderer) -> None:
        self.frames = frames
        self.patience = PATIENCE
        self._progress: tuple[int, ...] | None = None
        """How far the renderer had come at the last look, `_since` when."""
        self._since = 0.0
        self._end = threading.Event()
        weakref.finalize(self, self._end.set)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        if self._thread is None:
            self._end.clear()
            self._progress = None
            self._thread = threading.Thread(
                target=_look_on, args=(weakref.ref(self), self._end, self.pause),
                name="vc4lab-watchdog", daemon=True,
            )  # fmt: skip
            self._thread.start()

    def stop(self) -> None:
        """No more looks."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(LOOK_SECONDS, self.patience)

    def look(self) -> None:
        """Give up what has not come on for too long."""
        now, progress = time.monotonic(), self.frames.progress
        if progress is None or progress != self._progress:
            self._progress, self._since = progress, now
        elif now - self._since >= self.patience:
            self.frames.abandon()


def _look_on(owner: weakref.ref[Watchdog], end: threading.Event, pause: float) -> None:
    """The thread. While it waits it keeps no one alive."""
    while not end.wait(pause):
        watchdog = owner()
        if watchdog is None:
            return
        watchdog.look()
        pause = watchdog.pause
        del watchdog


class Gpu:
    """Takes jobs; `finished` is the sequence number of the last one that is through.

    `on_counters` is one listener for `job_counted`; it gets the job's name and the counters.
    """

    on_counters = OneListener("job_counted", lambda event: (event.name, event.counters))

    def __init__(self, v3d: V3D, reporter: Reporter) -> None:
        self.v3d = v3d
        self.reporter = reporter
        self.submitted = 0
        self.finished = 0
        self.jobs = 0
        self.job_taken: Listeners[JobTaken] = Listeners()
        self.job_counted: Listeners[JobCounted] = Listeners()
        self.job_done: Listeners[JobDone] = Listeners()
        self.on_signalled: Callable[[], None] = lambda: None
        """Called in the GPU's thread when a job is through and its waiters know."""
        self.on_strict: Callable[[StrictStop], None] = lambda stop: None
        self.on_failure: Callable[[Exception], None] = lambda failure: None
        """Called in the GPU's thread with an error of our own: programs would wait for ever."""
        self.watchers: tuple[Callable[[], None], ...] = ()
        """Called when a job is handed in and when one is through, in the thread that does that."""
        self.recorder: JobRecorder | None = None
        self._queue: SimpleQueue[Job | _Rest | None] = SimpleQueue()
        """None wakes the thread to end."""
        weakref.finalize(self, self._queue.put, None)
        self._open: dict[int, Job] = {}
        self._stop = False
        self._thread: threading.Thread | None = None
        self.watchdog = Watchdog(v3d.frames) if v3d.engine == "jit" else None
        """The reference interpreter takes as long as it takes."""

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_serve, args=(self._queue, weakref.ref(self)), name="vc4lab-gpu", daemon=True
            )
            self._thread.start()
            if self.watchdog is not None:
                self.watchdog.start()
        self.submitted = job.seqno
        self._open[job.seqno] = job
        for look in self.watchers:
            look()
        self._queue.put(job)

    def fence_after(self, seqno: int) -> Fence:
        """Done when that job is through."""
        job = self._open.get(seqno)
        return job.done if job is not None else Fence(done=True)

    def wait(self, seqno: int, deadline: float | None = None) -> Later | None:
        """An answer when that job is through; None if it is."""
        job = self._open.get(seqno)  # first: what is not there may have become finished
        if self.finished >= seqno:
            return None
        return Later(
            lambda: 0 if self.finished >= seqno else None,
            deadline,
            when=job.done.then if job is not None else None,
        )

    def rest(self) -> None:
        """No program has the device: what is remembered of their shaders goes, after the last job.

        Their addresses mean nothing any more, and each program's differ; kept, they would fill
        memory for many minutes until no more are kept.
        """
        if self._thread is not None:
            self._queue.put(_Rest())

    def forget(self) -> None:
        """In this thread, between two jobs."""
        self.v3d.forget_programs()
        if isinstance(self.v3d.reporter, JobReports):
            self.v3d.reporter.forget()
        give_back()

    def stop(self) -> None:
        """End the thread; the frame at hand is not drawn to its end."""
        self._stop = True
        self._queue.put(None)
        if self.watchdog is not None:
            self.watchdog.stop()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
            while self._thread.is_alive():
                self.v3d.frames.abandon()
                self._thread.join(_END_SECONDS)
            self._thread = None

    def run(self, job: Job) -> bool:
        """Run a job in this thread; False once no more are to be run."""
        if self._stop:
            return False
        if job.after is not None and not job.after.is_done:
            if not job.after.wait(LONGEST_WAIT):
                self.reporter.report(
                    "DRM-016", f"{job.name}: the fence it waits for has not signalled", block="DRM"
                )
            job.ready = time.monotonic()
        name = job.name
        if self.recorder is not None:
            facts = {"seqno": job.seqno, "program": job.program}
            self.recorder.before(job.submit, job.objects, facts)
        if self.job_taken.subscriptions:
            self.job_taken.emit(JobTaken(name, job.program, job.submit, job.objects))
        counted = job.perfmon is not None or self.job_counted.subscriptions
        before = counts(self.v3d.events()) if counted else {}
        if isinstance(self.v3d.reporter, JobReports):
            self.v3d.reporter.begin(job.program, name, job.place)
        try:
            job.failed = not run_job(self.v3d, job.built, name, lambda: self._look(job))
        except StrictStop as stop:
            job.failed = True
            self.on_strict(stop)
        if counted:
            after = counts(self.v3d.events())
            amounts = {number: after[number] - before.get(number, 0) for number in after}
            if job.perfmon is not None:
                job.perfmon.add(amounts)
            if self.job_counted.subscriptions:
                self.job_counted.emit(JobCounted(name, amounts))
        if self.recorder is not None:
            self.recorder.after(job.submit, job.objects)
        self.jobs += 1
        if self.job_done.subscriptions:
            self.job_done.emit(JobDone(job.seqno, job.ready))
        self._through(job)
        return True

    def fail(self, job: Job, failure: Exception) -> None:
        """A job could not be run, nor can any after it."""
        self._stop = job.failed = True
        self.on_failure(failure)
        self._through(job)

    def _through(self, job: Job) -> None:
        """A job is done with: programs that wait for it go on."""
        self.finished = job.seqno
        self._open.pop(job.seqno, None)
        for look in self.watchers:
            look()
        job.done.signal()
        self.on_signalled()

    def _look(self, job: Job) -> None:
        """A job hangs: what GET_HANG_STATE will show."""
        job.registers = {
            name: self.v3d.read(BY_NAME[name].offset) for name in HANG_REGISTERS if name in BY_NAME
        }
        memory = self.v3d.memory
        ranges = [job.lists]
        used = job.registers["BPCA"] & MEMORY_MASK
        if TILE_MEMORY < used <= TILE_MEMORY + TILE_MEMORY_SIZE and job.built.bin_start != job.built.bin_end:
            ranges.append((TILE_MEMORY, round_up(used - TILE_MEMORY, PAGE)))
        job.kept = [(address, memory.read(address, size)) for address, size in ranges if size]


def _serve(queue: SimpleQueue[Job | _Rest | None], owner: weakref.ref[Gpu]) -> None:
    """The thread: until a None comes. While it waits it keeps no one alive."""
    while (job := queue.get()) is not None:
        gpu = owner()
        if gpu is None:
            return
        if isinstance(job, _Rest):
            gpu.forget()
        else:
            try:
                if not gpu.run(job):
                    return
            except Exception as failure:
                gpu.fail(job, failure)
                return
        del gpu, job
