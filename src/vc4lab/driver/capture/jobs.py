"""Keeps the jobs that frames of the driver become, beside the commands that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.jobs.model import Shown

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuResource
    from vc4lab.driver.queue.events import FrameShown, JobPlaced
    from vc4lab.driver.screen import VideoCoreScreen
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.listeners import Subscription

WORD_BITS = 32


def capture(screen: VideoCoreScreen, recorder: JobsRecorder) -> list[Subscription[Any]]:
    """Keep what reaches the V3D of a screen, until the recorder is closed, and these as well."""
    memory = screen.memory

    def placed(event: JobPlaced) -> None:
        resources = {**event.job.reads, **event.job.writes}.values()
        buffers = [(one.address, one.size, str(one)) for one in resources]
        lookups = [(one.start, one.next - one.start) for one in (memory.arena, memory.states)]
        recorder.job(event.where, buffers, lookups=lookups)

    def shown(event: FrameShown) -> None:
        on_display = _shown(event.picture)
        if on_display is not None:
            recorder.display(on_display)
        recorder.frame(event.number, lambda: None)

    recorder.attach(screen.runner.v3d)
    return [screen.listeners.placed.subscribe(placed), screen.listeners.frame.subscribe(shown)]


def _shown(picture: GpuResource) -> Shown | None:
    """The memory of a window; None: no rows of 32-bit colours, red or blue first."""
    letters = [letter for letter, _bits in picture.layout.channels][:3]
    orders = {"RGB": "rgb", "BGR": "bgr"}
    order = orders.get("".join(letters))
    if not picture.is_raster or picture.bits != WORD_BITS or order is None:
        return None
    return Shown(picture.address, picture.width, picture.height, picture.chain[0].pitch, WORD_BITS, order)
