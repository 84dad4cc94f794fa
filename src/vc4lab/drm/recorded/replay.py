"""Runs recorded jobs on the V3D: the picture that the driver's program would have seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Reporter
from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS
from vc4lab.drm.kernel.hardware import JobReports, run_job
from vc4lab.drm.kernel.rendering import ColourSurface
from vc4lab.drm.recorded.byte_order import ByteOrder, ByteOrders
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import JobError
from vc4lab.images.pixels import average_of_samples, colours, full_resolution_bytes, png_bytes
from vc4lab.images.tiling import Tiling, image_bytes, round_up
from vc4lab.options import GpuOptions, chosen
from vc4lab.ranges import check_word

if TYPE_CHECKING:
    import numpy
    from PIL.Image import Image

    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.drm.recorded.jobs import RecordedJob
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.memory import GuestMemory
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.events import FrameDrawn

Progress = Callable[[int, int, str], None]
"""`progress(number, total, name)` before each job."""


@dataclass(frozen=True)
class Replay:
    """The result of a run.

    `image` is the last colour surface that was written (RGB, first memory row on top) or None;
    `drawn` counts the jobs that finished.
    """

    image: Image | None
    jobs: int
    drawn: int
    reporter: Reporter
    order: ByteOrder = ByteOrder.RGBA
    """Byte order of the surface in memory, as read for `image`; means nothing for 16 bits."""
    bits_per_pixel: int = 32
    undrawn: int = 0
    """Frames that were stored without any of their draws, because all of them were refused."""

    def __repr__(self) -> str:
        size = f"{self.image.width}x{self.image.height} {self.format}" if self.image else None
        return f"<Replay: {self.drawn} of {self.jobs} jobs drawn, {size or 'no picture'}>"

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return png_bytes(self.image)

    @property
    def format(self) -> str:
        """Name of the surface's pixels: "rgba", "bgra", or "rgb565" (red in the high bits)."""
        return self.order.value if self.bits_per_pixel == 32 else "rgb565"


def replay(
    path: str | Path,
    *,
    engine: str = "jit",
    order: ByteOrder | str | None = None,
    strict: bool = False,
    threads: int | None = None,
    number: int | None = None,
    unknowns: Unknowns | None = None,
    progress: Progress | None = None,
    on_image: Callable[[str, Image], None] | None = None,
    on_counters: Callable[[str, dict[int, int]], None] | None = None,
    on_tiles: Callable[[str, FrameDrawn], None] | None = None,
    on_work: Callable[[str, Sequence[Frame]], None] | None = None,
    reporter: Reporter | None = None,
    gpu: GpuOptions | None = None,
    recorder: JobsRecorder | None = None,
) -> Replay:
    """Draw every job of a run directory, or of one job directory after those before it.

    Parameters
    ----------
    engine
        "jit", or "interpreter" for the reference interpreter.
    order
        Byte order of 32-bit colour surfaces; None: what the run's fragment shaders show.
    strict
        Raise StrictStop at the first error instead of going on as the hardware would.
    threads
        Worker threads for tiles; one per processor by default.
    number
        Draw the run up to this job only.
    unknowns
        Choices for undocumented hardware; None: the default ones.
    gpu
        `engine`, `threads` and `unknowns` as one object, instead of them.
    recorder
        Keeps the jobs as a capture, a frame for each; the caller closes it.
    on_image
        Called with a job's name and its picture after each job that writes colour.
    on_counters
        Called with a job's name and what the modelled performance counters counted in it.
    on_tiles
        Called with a job's name and what each of its tiles took, once or more for a job.
    on_work
        Called with a job's name and the pieces of work that it had (`timing/frames/`), for each
        part of it that was drawn.
    """
    gpu = chosen(gpu, GpuOptions(engine, threads, unknowns or DEFAULT_UNKNOWNS))
    if order is not None and not isinstance(order, ByteOrder):
        order = ByteOrder(check_word("order", order, [known.value for known in ByteOrder]))
    reporter = reporter if reporter is not None else Reporter(strict)
    run = RecordedRun(path, reporter, number)
    if not run.jobs:
        return Replay(None, 0, 0, reporter)
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.counters import counts

    v3d = V3D(run.memory, JobReports(reporter), options=gpu)
    v3d.counters.everything = on_counters is not None
    if recorder is not None:
        recorder.attach(v3d)
    feed = None
    if on_work is not None:
        from vc4lab.timing.frames.feed import FrameFeed

        feed = FrameFeed(v3d)
    colour: ColourSurface | None = None
    whose = ""
    drawn = 0
    orders = ByteOrders()

    def shot(surface: ColourSurface) -> Image:
        return picture(run.memory, surface, order or orders.of(surface.address))

    def listening(job: RecordedJob) -> AbstractContextManager[object]:
        if on_tiles is None or job not in run.wanted:
            return nullcontext()
        return v3d.listeners.frame_drawn.subscribe(partial(on_tiles, job.name))

    def recording(job: RecordedJob) -> AbstractContextManager[object]:
        return feed if feed is not None and job in run.wanted else nullcontext()

    for number, job in enumerate(run.jobs):
        if progress is not None:
            progress(number, len(run.jobs), job.name)
        try:
            built = job.build(run.memory)
        except JobError:
            continue  # reported already; later jobs may still be whole
        before = counts(v3d.events())
        if recorder is not None and job.submit is not None:
            from vc4lab.drm.recorded.captured import take_recorded

            take_recorded(recorder, job.name, job.submit)
        with listening(job), recording(job):
            drawn += run_job(v3d, built, job.name)
        if on_work is not None and feed is not None and (frames := feed.take()):
            on_work(job.name, frames)
        if on_counters is not None and job in run.wanted:
            after = counts(v3d.events())
            on_counters(job.name, {number: after[number] - before[number] for number in after})
        surface = built.colour
        if recorder is not None:
            take = partial(shot, surface) if surface is not None else lambda: None
            recorder.frame(number + 1, take)
        if surface is not None:
            colour, whose = surface, job.name
            orders.add(surface.address, built.fragment_programs)
            if on_image is not None:
                on_image(job.name, shot(surface))
        elif job is run.jobs[-1]:
            if job is run.wanted[0]:  # another job's picture was not asked for
                colour = None
            instead = f"; the picture is that of {whose}" if colour is not None else ""
            reporter.report("DRM-015", f"{job.name} writes no colour surface{instead}", block="DRM")
    image = shot(colour) if colour is not None else None
    used = order or (orders.of(colour.address) if colour else ByteOrder.RGBA)
    bits = colour.bits_per_pixel if colour else 32
    return Replay(image, len(run.jobs), drawn, reporter, used, bits, v3d.undrawn)


def picture(memory: GuestMemory, surface: ColourSurface, order: ByteOrder = ByteOrder.RGBA) -> Image:
    """A colour surface as an RGB picture, its first row in memory on top.

    Alpha is left out: window surfaces do not have it, whatever the shader wrote there.
    """
    from PIL import Image

    pixels = rgba(memory, surface)[..., :3]
    if order is ByteOrder.BGRA and surface.bits_per_pixel == 32:
        pixels = pixels[..., ::-1]
    return Image.fromarray(pixels.copy())


def rgba(memory: GuestMemory, surface: ColourSurface) -> numpy.ndarray[Any, Any]:
    """A colour surface as bytes of shape (height, width, 4), in the order of memory."""
    width, height, bits = surface.width, surface.height, surface.bits_per_pixel
    if surface.multisample:
        raw = memory.array(surface.address, full_resolution_bytes(width, height))
        return average_of_samples(raw, width, height)
    tiling = Tiling(surface.tiling)
    stride = None
    if tiling is Tiling.RASTER:
        stride = round_up(width * bits // 8, 16)
        size = stride * height
    else:
        size = image_bytes(width, height, bits, tiling)
    return colours(memory.view(surface.address, size), width, height, bits, tiling, stride)
