"""One client: what each of its messages does.

The method that handles a message has the message's name in lower case; `connection.py` has how they
come from the socket.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.mesa.events import CommandReceived, WindowRead
from vc4lab.mesa.protocol import limits, messages
from vc4lab.mesa.protocol.capabilities import V1_BYTES
from vc4lab.mesa.protocol.codes import Bind
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.protocol.messages import MESSAGES, Message
from vc4lab.mesa.protocol.state_commands import CreateSubCtx, DestroySubCtx, SetSubCtx
from vc4lab.mesa.protocol.stream import Wrong, command_at, decode_stream
from vc4lab.mesa.server.connection import Connection
from vc4lab.mesa.server.handles import FENCE_BYTES, FENCE_WORDS, Handles
from vc4lab.mesa.state import walk
from vc4lab.mesa.state.context import Context, box_of
from vc4lab.mesa.store.resources import Refused, Resource, Staging
from vc4lab.mesa.store.screen import Transfer

if TYPE_CHECKING:
    from vc4lab.mesa.server.connection import Shared

PROC = Path("/proc")
GLX = b"/libGLX_mesa.so"
"""Mesa's GLX, which libGL loads when a program calls it for a display."""
_CREDENTIALS = struct.Struct("=iII")


def uses_glx(connection: socket.socket) -> bool:
    """Whether the peer's process has Mesa's GLX loaded; False where that cannot be seen.

    With shared memory, Mesa 22.3 asks the X server for the pixels of a window as soon as it needs a
    front buffer in GLX: of a visual with one buffer always. Of a window that is not mapped, or
    partly outside of the screen, the answer is the error BadMatch, which ends the program. With
    data inline it does not ask (virgl_vtest_winsys_resource_create).
    """
    try:
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, _, _ = _CREDENTIALS.unpack(data)
        return GLX in (PROC / str(process) / "maps").read_bytes()
    except (OSError, struct.error):
        return False


KEPT_BYTES = 1 << 12
"""Bytes of a resource that a context may still know some time after the client has given it up."""
_CHOOSING = frozenset((SetSubCtx, CreateSubCtx, DestroySubCtx))
_IDLE = struct.pack("<III", 1, messages.ResourceBusyWait.number, 0)
"""The answer to a wait."""
_WALKED = frozenset(number for number, kind in enumerate(walk.kinds()) if kind != walk.OTHER)
"""Commands, by number, that native code may know; at others it would only stop."""


class Client(Connection):
    """A program's connection.

    Attributes
    ----------
    number
        From 1, in order of connection.
    name
        The program's, as it says.
    version
        The protocol's version: 2, or 0 until the client asks for one.
    contexts
        By number; 0 is there from the start.
    waits_for_work
        Whether its work is to be done next: it has made a fence, for which it will wait, or need
        not wait for a buffer.
    watched_for
        The events that the server waits for.
    """

    def __init__(self, shared: Shared, connection: socket.socket, number: int) -> None:
        super().__init__(shared, connection)
        self.number = number
        self.name = "?"
        self.version = 0
        self.resources = Handles(shared.screen)
        self.contexts = {0: Context(shared.screen, self.resources)}
        self.context = 0
        self.waits_for_work = False
        self.watched_for = 0

    def __str__(self) -> str:
        return f"client {self.number} ({self.name})"

    def create_renderer(self, message: messages.CreateRenderer) -> None:
        self.name = message.program_name or "?"

    def ping_protocol_version(self, message: messages.PingProtocolVersion) -> None:
        if self.shared.protocol:
            self._reply(message, 0)

    def protocol_version(self, message: messages.ProtocolVersion) -> None:
        """1 was never more than a draft; clients treat it as 0. So it is for GLX."""
        shares = min(message.version, self.shared.protocol) >= 2
        self.version = 2 if shares and not uses_glx(self.connection) else 0
        self._reply(message, 1, self.version.to_bytes(WORD, "little"))

    def get_caps(self, message: messages.GetCaps) -> None:
        self._reply(message, V1_BYTES + 1, self.shared.capabilities[:V1_BYTES])

    def get_caps2(self, message: messages.GetCaps2) -> None:
        """The number of the answer is 2."""
        data = self.shared.capabilities
        header = (len(data) + 1).to_bytes(WORD, "little") + (2).to_bytes(WORD, "little")
        self.outbox.send(header + data)

    def resource_create(self, message: messages.ResourceCreate) -> None:
        self._create(message, 0)

    def resource_create2(self, message: messages.ResourceCreate2) -> None:
        if message.encode()[WORD:] == FENCE_WORDS and self.fence(message.handle):
            return
        staging = self._create(message, message.data_size)
        if staging is not None:
            self.outbox.send(b"\0", staging.take_descriptor())

    def _create(
        self, message: messages.ResourceCreate | messages.ResourceCreate2, size: int
    ) -> Staging | None:
        """A resource and its shared memory. Raises Refused."""
        staging = self.resources.create(message, size)
        self.waits_for_work |= message.width == FENCE_BYTES and message.bind == Bind.CUSTOM
        return staging

    def fence(self, handle: int) -> bool:
        staging = self.resources.fence(handle)
        if staging is None:
            return False
        self.waits_for_work = True
        self.outbox.send(b"\0", staging.descriptor, closes=False)
        return True

    def resource_unref(self, message: messages.ResourceUnref) -> None:
        if self.resources.end_fence(message.handle):
            return
        resource = self.resources.take(message.handle)
        for context in self.contexts.values():
            context.gone(message.handle)
            if resource.size >= KEPT_BYTES:
                context.forget()
        self.shared.screen.destroy(resource)

    def transfer_put2(self, message: messages.TransferPut2) -> None:
        self.shared.screen.upload(self._transfer(message))

    def transfer_get2(self, message: messages.TransferGet2) -> None:
        transfer = self._transfer(message)
        self.shared.screen.finish()
        self.shared.screen.download(transfer)
        self._window_read(transfer.resource)

    def _transfer(self, message: messages.TransferPut2 | messages.TransferGet2) -> Transfer:
        resource = self._resource(message.handle)
        return Transfer(resource, message.level, box_of(message), resource, message.offset)

    def put(self, message: Any, data: bytes) -> None:
        resource = self._resource(message.handle)
        strides = _strides(message)
        self.shared.screen.write(resource, message.level, box_of(message), data, strides)

    def transfer_get(self, message: messages.TransferGet) -> None:
        """The client reads just as many bytes as it said, whatever they are."""
        size = message.data_size
        if size > limits.TRANSFER_BYTES:
            self._end("GL-006", f"{message.name}: {size} bytes")
        data: bytes | memoryview = b""
        try:
            resource = self._resource(message.handle)
            self.shared.screen.finish()
            box = box_of(message)
            data = self.shared.screen.read(resource, message.level, box, _strides(message))
            self._window_read(resource)
        finally:
            if len(data) != size:
                data = bytes(data[:size]).ljust(size, b"\0")
            self.outbox.send(data)

    def work(self) -> None:
        """Have the work done that the client will wait for: what it sends until then waits, too."""
        self.waits_for_work = False
        self.shared.screen.finish()

    def resource_busy_wait(self, message: messages.ResourceBusyWait) -> None:
        self.wait_for(message.handle, message.flags)

    def wait_for(self, handle: int, flags: int) -> None:
        """Answer a wait; if the GPU only reads the buffer, before the work is done, of which the buffer
        shows nothing: transfers to it have copied what they need when they are answered.
        """
        if self.resources.is_only_read(handle):
            self.waits_for_work |= bool(flags)
        else:
            self.work()
        self.outbox.send(_IDLE)

    def submit_cmd(self, message: messages.SubmitCmd) -> None:
        if self.shared.listeners.command.subscriptions:
            self._all_commands(message.commands)
        else:
            self._commands(message.commands)

    def _all_commands(self, data: bytes) -> None:
        """Each as an object, for those who look at them."""
        for _, command in decode_stream(data):
            if isinstance(command, Wrong):
                self.report(command.code, command.text)
                continue
            event = CommandReceived(self, self.context, command)
            self.shared.listeners.command.emit(event)
            self._try(command)

    def _commands(self, data: bytes) -> None:
        """Walk over the known commands of a stream natively, and execute the others as objects."""
        words = np.frombuffer(data, np.uint8)
        address, start = words.ctypes.data, 0
        while start < len(data):
            steps = self.contexts[self.context].walk
            if data[start] in _WALKED:
                start = steps.run(data, address, start)
                if start >= len(data):
                    return
            command, after = command_at(data, start)
            if isinstance(command, Wrong):
                self.report(command.code, command.text)
                if after < 0:
                    return
            elif self._try(command) and command.number in _WALKED:
                steps.learn(data, start, after)
            start = after

    def _try(self, command: Command) -> bool:
        """Whether a command was executed; if not, it is reported."""
        try:
            self._execute(command)
        except Refused as reason:
            self.report(reason.code, reason.text)
            return False
        return True

    def _execute(self, command: Command) -> None:
        if type(command) in _CHOOSING:
            self._choose(command)  # type: ignore[arg-type]
        else:
            self.contexts[self.context].execute(command)

    def _choose(self, command: SetSubCtx | CreateSubCtx | DestroySubCtx) -> None:
        """Make, choose or end a context. Raises Refused."""
        number = command.id
        if isinstance(command, CreateSubCtx):
            if len(self.contexts) >= limits.CONTEXTS:
                raise Refused("GL-006", f"more than {limits.CONTEXTS} contexts")
            if number not in self.contexts:
                self.contexts[number] = Context(self.shared.screen, self.resources, number)
            return
        if number not in self.contexts:
            raise Refused("GL-004", f"{command.name}: there is no context {number}")
        if isinstance(command, SetSubCtx):
            self.context = number
        elif number:
            del self.contexts[number]
            if self.context == number:
                self.context = 0

    def _resource(self, handle: int) -> Resource:
        resource = self.resources.get(handle)
        if resource is None:
            raise Refused("GL-004", f"there is no resource {handle}")
        return resource

    def _window_read(self, resource: Resource) -> None:
        listeners = self.shared.listeners.window
        if resource.is_window and listeners.subscriptions:
            listeners.emit(WindowRead(self, resource))

    def _reply(self, message: Message, length: int, data: bytes = b"") -> None:
        header = length.to_bytes(WORD, "little") + message.number.to_bytes(WORD, "little")
        self.outbox.send(header + data)


def _strides(message: Any) -> tuple[int, int]:
    """Those that count: of one row there is no stride, of one layer no layer stride."""
    stride = message.stride if message.height > 1 else 0
    return stride, message.layer_stride if message.depth > 1 else 0


def _handlers() -> dict[type[Message], Callable[[Client, Any], None]]:
    return {
        declared: getattr(Client, declared.name.lower())
        for declared in MESSAGES.values()
        if declared is not messages.TransferPut
    }


Client.handlers = _handlers()
