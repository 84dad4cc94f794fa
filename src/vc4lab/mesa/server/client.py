"""One client: its messages as they come from the socket, and the answers.

The method that handles a message has the message's name in lower case.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from vc4lab.mesa.events import CommandReceived, MessageReceived, WindowRead
from vc4lab.mesa.protocol import limits, messages
from vc4lab.mesa.protocol.capabilities import V1_BYTES
from vc4lab.mesa.protocol.codes import Bind
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.fields import WORD, Malformed
from vc4lab.mesa.protocol.messages import MESSAGES, Message
from vc4lab.mesa.protocol.state_commands import CreateSubCtx, DestroySubCtx, SetSubCtx
from vc4lab.mesa.protocol.stream import Wrong, command_at, decode_stream
from vc4lab.mesa.server.outbox import Outbox
from vc4lab.mesa.state import walk
from vc4lab.mesa.state.context import Context, box_of
from vc4lab.mesa.store.resources import Refused, Resource
from vc4lab.mesa.store.screen import Transfer
from vc4lab.mesa.store.staging import SpareStagings, Staging

if TYPE_CHECKING:
    from vc4lab.mesa.server.shared import Shared

HEADER = 2 * WORD
FENCE_BYTES = 8
"""Of a fence of Mesa's: a buffer that is made when commands are sent, and waited for."""
KEPT_BYTES = 1 << 12
"""Of a resource that a context may still know some time after the client has given it up."""
_CHOOSING = frozenset((SetSubCtx, CreateSubCtx, DestroySubCtx))
_HEADER = struct.Struct("<II")
_WALKED = frozenset(number for number, kind in enumerate(walk.kinds()) if kind != walk.OTHER)
"""Commands, by number, that native code may know; at others it would only stop."""
LOOKS = 16
"""At a message of which a part is there: Mesa writes its header and its payload one after the
other, and to sleep between them takes longer."""
_CHUNK = memoryview(bytearray(1 << 18))
"""Where bytes are read to; one thread reads those of all clients."""


class Ended(Exception):  # noqa: N818 - how a connection ends
    """The connection is over: the client went, or sent what leaves no other way."""


class Client:
    """A program's connection.

    Attributes
    ----------
    number
        From 1, in order of connection.
    name
        The program's, as it says.
    version
        Of the protocol: 2, or 0 until the client asks for one.
    contexts
        By number; 0 is there from the start.
    waits_for_work
        Whether it has made a fence, for which it will wait, and its work is not done yet.
    watched_for
        The events that the server waits for.
    """

    def __init__(self, shared: Shared, connection: socket.socket, number: int) -> None:
        self.shared = shared
        self.connection = connection
        self.number = number
        self.name = "?"
        self.version = 0
        self.resources: dict[int, Resource] = {}
        self.contexts = {0: Context(shared.screen, self.resources)}
        self.context = 0
        self.outbox = Outbox(connection)
        self.waits_for_work = False
        self.watched_for = 0
        self._fences = SpareStagings(FENCE_BYTES)
        self._input = bytearray()
        self._bytes = 0
        """Of all resources, and of all shared memory."""

    def __str__(self) -> str:
        return f"client {self.number} ({self.name})"

    def receive(self) -> None:
        """Read what is there, and handle it. Raises Ended."""
        for _ in range(LOOKS):
            try:
                count = self.connection.recv_into(_CHUNK)
            except BlockingIOError:
                if not self._input:
                    return
                continue
            except OSError:
                count = 0
            if not count:
                if self._input:
                    self.report(
                        "GL-008", f"ended inside of a message, after {len(self._input)} bytes"
                    )
                raise Ended
            self._input += _CHUNK[:count]
            self.handle_waiting()
            if not self._input or not self.outbox.is_empty:
                return

    def handle_waiting(self) -> None:
        """Handle the messages that are there, until an answer waits to be read. Raises Ended."""
        start = 0
        try:
            while self.outbox.is_empty:
                size = self._message(start)
                if not size:
                    break
                start += size
        except OSError:
            raise Ended from None
        finally:
            del self._input[:start]

    def flush(self) -> None:
        """The client reads again. Raises Ended."""
        try:
            self.outbox.flush()
        except OSError:
            raise Ended from None
        self.handle_waiting()

    def report(self, code: str, text: str) -> None:
        """A message about this client."""
        self.shared.reporter.report(code, f"{self}: {text}", block="GL")

    # -- messages ----------------------------------------------------------------------------------

    def _message(self, start: int) -> int:
        """Handle the message at byte `start`; its bytes, or 0 if not all are there."""
        data = self._input
        if len(data) - start < HEADER:
            return 0
        length, number = _HEADER.unpack_from(data, start)
        declared = MESSAGES.get(number)
        if declared is None:
            self._end("GL-001", f"there is no message {number}")
        payload = self._payload_bytes(declared, length)
        body = start + HEADER
        if len(data) - body < payload:
            return 0
        try:
            if payload % WORD:
                message = declared.decode(self._filled_up(body, payload))
            else:
                message = declared.decode(data, body, payload // WORD)
        except Malformed as reason:
            self._end("GL-001", f"{declared.name}: {reason}")
        size = message.data_bytes()
        if size > limits.TRANSFER_BYTES:
            self._end("GL-006", f"{message.name}: {size} bytes of data")
        after = body + payload
        if len(data) - after < size:
            return 0
        listeners = self.shared.listeners.message
        if listeners.subscriptions:
            listeners.emit(MessageReceived(self, message))
        try:
            if size or isinstance(message, messages.TransferPut):
                self._put(message, bytes(data[after : after + size]))
            else:
                _HANDLERS[declared](self, message)
        except Refused as reason:
            self.report(reason.code, f"{message.name}: {reason.text}")
            if isinstance(message, messages.ResourceCreate | messages.ResourceCreate2):
                raise Ended from None
        return HEADER + payload + size

    def _payload_bytes(self, declared: type[Message], length: int) -> int:
        """Bytes of a message's payload. Raises Ended."""
        if declared.length == "bytes":
            if length > limits.NAME_BYTES:
                self._end("GL-006", f"{declared.name}: {length} bytes")
            return length
        if declared.length == "words":
            if length > limits.MESSAGE_WORDS:
                self._end("GL-006", f"{declared.name}: {length} words")
            return length * WORD
        if length < declared.fixed:
            self._end("GL-001", f"{declared.name}: {length} words, not {declared.fixed}")
        return declared.fixed * WORD

    def _filled_up(self, start: int, size: int) -> bytes:
        """Bytes of the input, filled up to whole words."""
        return bytes(self._input[start : start + size]) + bytes(-size % WORD)

    def _end(self, code: str, text: str) -> NoReturn:
        self.report(code, f"{text}; the connection is closed")
        raise Ended

    def create_renderer(self, message: messages.CreateRenderer) -> None:
        self.name = message.program_name or "?"

    def ping_protocol_version(self, message: messages.PingProtocolVersion) -> None:
        if self.shared.protocol:
            self._reply(message, 0)

    def protocol_version(self, message: messages.ProtocolVersion) -> None:
        """1 was never more than a draft; clients treat it as 0."""
        self.version = 2 if min(message.version, self.shared.protocol) >= 2 else 0
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
        staging = self._create(message, message.data_size)
        if staging is None:
            return
        if staging.is_kept:
            self.outbox.send(b"\0", staging.descriptor, closes=False)
        else:
            self.outbox.send(b"\0", staging.take_descriptor())

    def _create(
        self, message: messages.ResourceCreate | messages.ResourceCreate2, size: int
    ) -> Staging | None:
        """A resource and its shared memory. Raises Refused."""
        if len(self.resources) >= limits.RESOURCES:
            raise Refused("GL-006", f"more than {limits.RESOURCES} resources")
        if not message.handle or message.handle in self.resources:
            raise Refused("GL-004", f"{message.handle} is no handle for a new resource")
        if size > limits.RESOURCE_BYTES:
            raise Refused("GL-006", f"{size} bytes of shared memory")
        is_fence = message.width == FENCE_BYTES and message.bind == Bind.CUSTOM
        try:
            resource = self.shared.screen.create(message)
            staging = None
            if size:
                spare = is_fence and size == FENCE_BYTES
                staging = self._fences.take() if spare else Staging(size)
        except (OSError, MemoryError) as error:
            raise Refused("GL-006", f"the host has no room: {error}") from None
        resource.staging = staging
        self._bytes += resource.size + size
        if self._bytes > limits.CLIENT_BYTES:
            raise Refused("GL-006", f"more than {limits.CLIENT_BYTES} bytes in all")
        self.resources[message.handle] = resource
        self.waits_for_work |= is_fence
        return staging

    def resource_unref(self, message: messages.ResourceUnref) -> None:
        resource = self.resources.pop(message.handle, None)
        if resource is None:
            raise Refused("GL-004", f"there is no resource {message.handle}")
        staging = resource.staging
        self._bytes -= resource.size + (staging.size if staging is not None else 0)
        if staging is not None and staging.is_kept:
            resource.staging = None
            self._fences.give_back(staging)
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

    def _put(self, message: Any, data: bytes) -> None:
        resource = self._resource(message.handle)
        strides = _strides(message)
        self.shared.screen.write(resource, message.level, box_of(message), data, strides)

    def transfer_get(self, message: messages.TransferGet) -> None:
        """The client reads just as many bytes as it said, whatever they are."""
        size = message.data_size
        if size > limits.TRANSFER_BYTES:
            self._end("GL-006", f"{message.name}: {size} bytes")
        data = b""
        try:
            resource = self._resource(message.handle)
            self.shared.screen.finish()
            box = box_of(message)
            data = self.shared.screen.read(resource, message.level, box, _strides(message))
            self._window_read(resource)
        finally:
            self.outbox.send(data[:size].ljust(size, b"\0"))

    def work(self) -> None:
        """Have the work done that the client will wait for: what it sends until then waits, too."""
        self.waits_for_work = False
        self.shared.screen.finish()

    def resource_busy_wait(self, message: messages.ResourceBusyWait) -> None:
        self.work()
        self._reply(message, 1, bytes(WORD))

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
        """What is known of a stream is walked over natively, the others are objects."""
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
                self.contexts[number] = Context(self.shared.screen, self.resources)
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


_HANDLERS = _handlers()
"""The method of each message; that of TRANSFER_PUT also gets the data."""
