"""A client's socket: bytes become messages, one after the other, and answers go back.

`Connection` knows where a message ends and which are wrong; what messages do is `client.py`.
"""

from __future__ import annotations

import os
import socket
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from vc4lab.mesa.events import MesaListeners, MessageReceived
from vc4lab.mesa.protocol import limits, messages
from vc4lab.mesa.protocol.fields import WORD, Malformed
from vc4lab.mesa.protocol.messages import MESSAGES, Message
from vc4lab.mesa.server.handles import FENCE_WORDS
from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.mesa.store.screen import Screen

_DESCRIPTOR = struct.Struct("@i")
"""As a control message has it (`socket.send_fds` takes some microseconds to make one)."""


class Outbox:
    """Sends data in order, as far as the socket takes it. The socket does not block."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting: deque[tuple[memoryview, list[int], bool]] = deque()
        """Bytes, a descriptor with them, and whether that is closed afterwards."""

    @property
    def is_empty(self) -> bool:
        """Whether everything is sent."""
        return not self._waiting

    def send(self, data: bytes | memoryview, descriptor: int | None = None, *, closes: bool = True) -> None:
        """Send bytes, with a descriptor, which is then closed if it `closes`. Raises OSError."""
        if descriptor is None and not self._waiting:  # most answers
            try:
                sent = self._connection.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        descriptors = [] if descriptor is None else [descriptor]
        self._waiting.append((memoryview(data), descriptors, closes))
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now. Raises OSError."""
        while self._waiting:
            data, descriptors, closes = self._waiting[0]
            try:
                if descriptors:
                    rights = socket.SOL_SOCKET, socket.SCM_RIGHTS, _DESCRIPTOR.pack(*descriptors)
                    sent = self._connection.sendmsg([data], [rights])
                else:
                    sent = self._connection.send(data)
            except BlockingIOError:
                return
            if closes:
                _close(descriptors)
            if sent < len(data):
                self._waiting[0] = data[sent:], [], False
            else:
                self._waiting.popleft()

    def close(self) -> None:
        """Nothing more is sent."""
        for _, descriptors, closes in self._waiting:
            if closes:
                _close(descriptors)
        self._waiting.clear()


def _close(descriptors: list[int]) -> None:
    for one in descriptors:
        os.close(one)


HEADER = 2 * WORD
LOOKS = 16
"""At a message of which a part is there: Mesa writes its header and its payload one after the
other, and to sleep between them takes longer."""
CHUNK = 1 << 17
"""Bytes that are read at a time."""
_HEADER = struct.Struct("<II")
_WORD = struct.Struct("<I")
_TWO_WORDS = struct.Struct("<II")
_CREATE, _WAIT = messages.ResourceCreate2.number, messages.ResourceBusyWait.number
_CREATE_WORDS, _WAIT_WORDS = messages.ResourceCreate2.fixed, messages.ResourceBusyWait.fixed
_QUICK = frozenset((_CREATE, _WAIT))
assert tuple(messages.ResourceBusyWait.specs) == ("handle", "flags")
assert _TWO_WORDS.size == _WAIT_WORDS * WORD
_FENCE_SIZE = HEADER + WORD + len(FENCE_WORDS)
_CREATES = messages.ResourceCreate | messages.ResourceCreate2


class Ended(Exception):  # noqa: N818 - how a connection ends
    """The connection is over: the client went, or sent what leaves no other way."""


class Connection(ABC):
    """A client's socket, and what of its messages is not handled yet.

    Attributes
    ----------
    outbox
        Answers that the client has not read; while there are any, nothing is read from it.
    """

    handlers: dict[type[Message], Callable[[Any, Any], None]]
    """The method of each message."""

    def __init__(self, shared: Shared, connection: socket.socket) -> None:
        self.shared = shared
        self.connection = connection
        self.outbox = Outbox(connection)
        self._input = bytearray()
        # Its own: two servers of a process have a thread each.
        self._chunk = memoryview(bytearray(CHUNK))

    @abstractmethod
    def put(self, message: Any, data: bytes) -> None:
        """A message whose data come with it. Raises Refused."""

    @abstractmethod
    def fence(self, handle: int) -> bool:
        """A fence, as Mesa makes them; False if it is to be made as other resources are."""

    @abstractmethod
    def wait_for(self, handle: int, flags: int) -> None:
        """The client asks whether a resource is in use, or waits until it is not."""

    def receive(self) -> None:
        """Read what is there, and handle it. Raises Ended."""
        for _ in range(LOOKS):
            try:
                count = self.connection.recv_into(self._chunk)
            except BlockingIOError:
                if not self._input:
                    return
                continue
            except OSError:
                count = 0
            if not count:
                if self._input:
                    self.report("GL-008", f"ended inside of a message, after {len(self._input)} bytes")
                raise Ended
            self._input += self._chunk[:count]
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
        listeners = self.shared.listeners.message
        if number in _QUICK and not listeners.subscriptions:
            size = self._quick(number, length, start)
            if size:
                return size
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
        size, after = message.data_bytes(), body + payload
        if size > limits.TRANSFER_BYTES:
            self._end("GL-006", f"{message.name}: {size} bytes of data")
        if len(data) - after < size:
            return 0
        if listeners.subscriptions:
            listeners.emit(MessageReceived(self, message))
        try:
            if size or declared is messages.TransferPut:
                self.put(message, bytes(data[after : after + size]))
            else:
                self.handlers[declared](self, message)
        except Refused as reason:
            self.report(reason.code, f"{message.name}: {reason.text}")
            if isinstance(message, _CREATES):
                raise Ended from None
        return HEADER + payload + size

    def _quick(self, number: int, length: int, start: int) -> int:
        """Handle a message of those that come again and again, without an object; its bytes, or 0
        if it is to be handled as others are.
        """
        data, body = self._input, start + HEADER
        if number == _WAIT:
            if length < _WAIT_WORDS or len(data) - body < _TWO_WORDS.size:
                return 0
            self.wait_for(*_TWO_WORDS.unpack_from(data, body))
            return HEADER + _TWO_WORDS.size
        if length >= _CREATE_WORDS and data.startswith(FENCE_WORDS, body + WORD):
            # Nothing of it but the handle has to be looked at.
            (handle,) = _WORD.unpack_from(data, body)
            if self.fence(handle):
                return _FENCE_SIZE
        return 0

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


@dataclass(frozen=True)
class Shared:
    """The GPU, where messages go, and what the server says of itself.

    Attributes
    ----------
    protocol
        The highest version that it speaks: 0 or 2.
    capabilities
        As Mesa reads them.
    listeners
        For what may be observed (`mesa/events.py`).
    """

    screen: Screen
    reporter: Reporter
    protocol: int
    capabilities: bytes
    listeners: MesaListeners = field(default_factory=MesaListeners)
