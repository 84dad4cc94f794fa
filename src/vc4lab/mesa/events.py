"""Reports to listeners what clients do: their messages, their commands, their pictures.

Each kind has its listeners (`vc4lab.listeners`) in `Server.listeners`; without any, no event is
made.

`--trace gallium` prints every message and command of every client as a line.

    1 glmark2-es2 RESOURCE_CREATE2 handle=3 target=texture_2d format=B8G8R8A8_UNORM …
    1.1 glmark2-es2   CREATE_OBJECT RASTERIZER handle=2 depth_clip half_pixel_center …

The first number is the client, the second the context. A shader's text follows its command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.listeners import Listeners
from vc4lab.mesa.protocol.command import Command, CreateObject
from vc4lab.mesa.protocol.messages import SubmitCmd
from vc4lab.mesa.protocol.objects import ShaderPart

if TYPE_CHECKING:
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


class GalliumTrace:
    """Prints what clients send, through `write`, a line at a time."""

    def __init__(self, listeners: MesaListeners, write: Callable[[str], object]) -> None:
        self._write = write
        listeners.message.subscribe(self._message)
        listeners.command.subscribe(self._command)

    def _message(self, event: MessageReceived) -> None:
        message, client = event.message, event.client
        text = message.text()
        if isinstance(message, SubmitCmd):
            text = f"{len(message.commands) // 4} words"
        self._write(f"{client.number} {client.name} {message.name} {text}".rstrip())

    def _command(self, event: CommandReceived) -> None:
        client = event.client
        start = f"{client.number}.{event.context} {client.name}   "
        for line in command_lines(event.command):
            self._write(f"{start}{line}")


def command_lines(command: Command) -> list[str]:
    """A command as text; a shader's part with its own lines."""
    text = command.text()
    if isinstance(command, CreateObject) and isinstance(command.state, ShaderPart):
        shader = command.state.part.partition(b"\0")[0].decode("ascii", "replace")
        printable = "".join(c if c.isprintable() or c == "\n" else "?" for c in shader)
        return [f"{command.name} {text}", *(f"  | {line}" for line in printable.splitlines())]
    return [f"{command.name} {text}".rstrip()]
