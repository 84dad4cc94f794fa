"""What may be observed of the clients: their messages, their commands, their pictures.

Each kind has its listeners (`vc4lab.listeners`) in `Server.listeners`; without any, no event is
made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.listeners import Listeners

if TYPE_CHECKING:
    from vc4lab.mesa.protocol.command import Command
    from vc4lab.mesa.protocol.messages import Message
    from vc4lab.mesa.store.resources import Resource


class MessageReceived(NamedTuple):
    """A message of a client, before it is answered."""

    client: Any
    """The `Client`."""
    message: Message


class CommandReceived(NamedTuple):
    """A command of a client, before it is executed."""

    client: Any
    context: int
    """The number of the client's context."""
    command: Command


class WindowRead(NamedTuple):
    """A client reads a window's pixels, to show them: a frame is done."""

    client: Any
    resource: Resource


class MesaListeners:
    """The listeners of a server, by kind of event."""

    def __init__(self) -> None:
        self.message: Listeners[MessageReceived] = Listeners()
        self.command: Listeners[CommandReceived] = Listeners()
        self.window: Listeners[WindowRead] = Listeners()
