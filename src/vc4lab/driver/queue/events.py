"""What may be observed of the command queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.listeners import Listeners

if TYPE_CHECKING:
    from vc4lab.driver.gpu.resource import GpuResource
    from vc4lab.driver.gpu.runner import Lists
    from vc4lab.driver.queue.commands import QueueCommand


class CommandExecuted(NamedTuple):
    """A command, before it is executed."""

    address: int
    command: QueueCommand


class JobDrawn(NamedTuple):
    """A job of the V3D is done. Its lists lie in GPU memory as long as the listener looks."""

    frame: int
    draws: tuple[int, ...]
    """By their numbers in the frame."""
    lists: Lists
    job: Any
    """The `FrameJob`."""


class FrameShown(NamedTuple):
    """A frame is shown."""

    number: int
    """From 1 on."""
    picture: GpuResource


class QueueListeners:
    """The listeners of a queue, by kind of event."""

    def __init__(self) -> None:
        self.command: Listeners[CommandExecuted] = Listeners()
        self.job: Listeners[JobDrawn] = Listeners()
        self.frame: Listeners[FrameShown] = Listeners()
