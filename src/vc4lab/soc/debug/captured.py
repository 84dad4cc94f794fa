"""Captures what a board's program has the V3D do: frames as the display shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.jobs.model import Shown

if TYPE_CHECKING:
    from vc4lab.jobs.recorder import JobsRecorder
    from vc4lab.soc.machine import Machine
    from vc4lab.soc.videocore.framebuffer import Framebuffer

RGB = 1
"""The pixel order with red in the lowest byte, as the mailbox numbers them."""


def capture(machine: Machine, recorder: JobsRecorder) -> None:
    """Keep what reaches the V3D of a machine. The recorder's `close` ends it.

    Frames are numbered from the next one on: what was shown before does not count.
    """
    recorder.where = lambda: machine.reporter.where() if machine.reporter.where is not None else None
    before = machine.frames.count
    framebuffer = machine.videocore.framebuffer

    def shown(count: int) -> None:
        on_display = _shown(framebuffer)
        if on_display is not None:
            recorder.display(on_display)
        recorder.frame(count - before, lambda: machine.screen.image)

    machine.frames.listeners.insert(0, shown)
    machine.listeners.v3d_made.subscribe(lambda event: recorder.attach(event.v3d))
    if machine.v3d is not None:
        recorder.attach(machine.v3d)


def _shown(framebuffer: Framebuffer) -> Shown | None:
    """The memory that the display shows; None: not plain pixels in one piece."""
    g = framebuffer.geometry
    plain = framebuffer.composed is None and framebuffer.allocation is not None and not framebuffer.blank
    if not plain or g.depth not in (16, 24, 32) or framebuffer.has_alpha:
        return None
    address = framebuffer.address + g.y * g.pitch + g.x * g.depth // 8
    order = "rgb" if g.order & 1 == RGB else "bgr"
    return Shown(address, g.width, g.height, g.pitch, g.depth, order)
