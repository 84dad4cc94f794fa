"""Events of the command queue that may be observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.listeners import Listeners

if TYPE_CHECKING:
    from vc4lab.driver.commands.commands import Draw, QueueCommand
    from vc4lab.driver.draws.pipeline import Pipeline
    from vc4lab.driver.gpu.memory import GpuResource
    from vc4lab.driver.gpu.runner import Lists
    from vc4lab.mesa.state.pipe import PipeState


class QueueBegun(NamedTuple):
    """A queue, before any of its commands is executed."""

    address: int
    size: int
    """Bytes, its halt included."""


class QueueDone(NamedTuple):
    """A queue is done; programs that wait for it go on after this."""

    begun: float
    """Before its first command: seconds of time.monotonic."""


class CommandExecuted(NamedTuple):
    """A command, before it is executed."""

    address: int
    command: QueueCommand


class DrawAdded(NamedTuple):
    """A draw became records of a frame."""

    number: int
    """In the frame, from 1 on."""
    command: Draw
    state: PipeState
    pipeline: Pipeline


class JobPlaced(NamedTuple):
    """A job of the V3D lies in GPU memory, and runs next."""

    where: str
    """Frame and draws, in words."""
    lists: Lists
    job: Any
    """The `FrameJob`."""


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
        self.queue: Listeners[QueueBegun] = Listeners()
        self.done: Listeners[QueueDone] = Listeners()
        self.command: Listeners[CommandExecuted] = Listeners()
        self.draw: Listeners[DrawAdded] = Listeners()
        self.placed: Listeners[JobPlaced] = Listeners()
        self.job: Listeners[JobDrawn] = Listeners()
        self.frame: Listeners[FrameShown] = Listeners()

    @property
    def see_commands(self) -> bool:
        """Whether the commands of a queue are looked at, so that all work has to be among them."""
        return bool(self.queue.subscriptions or self.command.subscriptions)
