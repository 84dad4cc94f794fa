"""The V3D's jobs as a test wants to see them: lists, size, and the picture that each of them left.

jobs = linux.jobs()
linux.run(["kmscube"], frames=3)
print(jobs[-1], jobs[-1].digest)
jobs[-1].image.save("job.png")
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from vc4lab.images.pixels import colours
from vc4lab.images.tiling import Tiling, image_bytes
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import FrameFormat
from vc4lab.records.control import parse_list
from vc4lab.records.declarations import TileRenderingMode

if TYPE_CHECKING:
    import numpy
    from PIL import Image

    from vc4lab.listeners import Subscription
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.machine import Machine
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobEnded, JobStarted

BINNING = 0
KEPT_PICTURES = 16
HEAD = 16
"""Records of a rendering list among which the size of its frame is looked for."""
ROW = 16
"""A row of a picture without tiles is a multiple of so many bytes."""


@dataclass
class Job:
    """A frame that the V3D has drawn.

    Attributes
    ----------
    number
        Counted from 0, since the jobs are watched.
    binning, rendering
        Begin and end of its lists, bus addresses; `binning` is None for a job without one.
    address
        Bus address of its colours; 0: it stores none.
    width, height
        Size of its frame, in pixels.
    failed
        Whether the rendering list ended with an error.
    seconds
        Guest time of its end.
    digest
        SHA-256 of `pixels`, "" where there are none.
    pixels
        Its colours, bytes of shape (height, width, 4) in the order of memory: blue first in what
        Linux shows. Only the last jobs have them (`KEPT_PICTURES`), others None.
    """

    number: int
    binning: tuple[int, int] | None
    rendering: tuple[int, int]
    address: int = 0
    width: int = 0
    height: int = 0
    failed: bool = False
    seconds: float = 0.0
    digest: str = ""
    pixels: numpy.ndarray[Any, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def image(self) -> Image.Image | None:
        """`pixels` as a Pillow RGB image, blue first; None without them."""
        from PIL import Image

        return None if self.pixels is None else Image.fromarray(self.pixels[..., 2::-1].copy())


class Jobs(Sequence[Job]):
    """The jobs of a V3D from now on; a sequence that grows until `close`.

    Parameters
    ----------
    clock
        Gives `Job.seconds`.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._jobs: list[Job] = []
        self._binning: tuple[int, int] | None = None
        self._begun: Job | None = None
        self._subscriptions: list[Subscription[Any]] = []

    @classmethod
    def of(cls, machine: Machine) -> Jobs:
        """Those of a machine, whose program switches the V3D on and off as it likes."""
        jobs = cls(lambda: machine.seconds)
        if machine.v3d is not None:
            jobs.watch(machine.v3d)
        made = machine.listeners.v3d_made.subscribe(lambda event: jobs.watch(event.v3d))
        jobs._subscriptions.append(made)
        return jobs

    def watch(self, v3d: V3D) -> None:
        """This one's jobs, too."""
        listeners = v3d.listeners
        self._subscriptions += (
            listeners.job_started.subscribe(self._started),
            listeners.job_ended.subscribe(lambda event: self._ended(event, v3d.memory)),
        )

    def __repr__(self) -> str:
        return f"<Jobs: {len(self)}>"

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> list[Job]: ...
    def __getitem__(self, place: int | slice) -> Job | list[Job]:
        return self._jobs[place]

    def close(self) -> None:
        """Watch no longer; what was seen stays."""
        for subscription in self._subscriptions:
            subscription.close()

    def _started(self, event: JobStarted) -> None:
        place = event.address, event.end
        if event.thread == BINNING:
            self._binning = place
        else:
            self._begun = Job(len(self), self._binning, place)
            self._binning = None

    def _ended(self, event: JobEnded, memory: GuestMemory) -> None:
        if event.thread == BINNING or self._begun is None:
            return
        job, self._begun = self._begun, None
        job.failed, job.seconds = event.error, self._clock()
        mode = _mode(memory, *job.rendering)
        if mode is not None:
            job.address, job.width, job.height = int(mode.address), mode.width, mode.height
            job.pixels = _pixels(memory, mode)
        if job.pixels is not None:
            job.digest = hashlib.sha256(job.pixels.tobytes()).hexdigest()
        self._jobs.append(job)
        if len(self) > KEPT_PICTURES:
            self._jobs[-1 - KEPT_PICTURES].pixels = None


def _mode(memory: GuestMemory, start: int, end: int) -> TileRenderingMode | None:
    """The record that names a rendering list's frame."""

    def read(address: int, size: int) -> bytes:
        return memory.read(address & MEMORY_MASK, size)

    for record in parse_list(read, start, end, limit=HEAD):
        if isinstance(record.payload, TileRenderingMode):
            return record.payload
    return None


def _pixels(memory: GuestMemory, mode: TileRenderingMode) -> numpy.ndarray[Any, Any] | None:
    """Return the picture that a frame has stored; None without colours, or in a form of its own."""
    if not mode.address or not mode.width or not mode.height or mode.tiling > Tiling.LT:
        return None
    bits = 32 if mode.format == FrameFormat.RGBA8888 else 16
    tiling, stride = Tiling(int(mode.tiling)), None
    size = image_bytes(mode.width, mode.height, bits, tiling)
    if tiling is Tiling.RASTER:
        stride = -(-mode.width * bits // 8 // ROW) * ROW
        size = stride * mode.height
    address = int(mode.address) & MEMORY_MASK
    if not memory.contains(address, size):
        return None
    return colours(memory.view(address, size), mode.width, mode.height, bits, tiling, stride)
