"""Answers on their way to a client that may not read."""

from __future__ import annotations

import os
import socket
import struct
from collections import deque

_DESCRIPTOR = struct.Struct("@i")
"""As a control message has it (`socket.send_fds` takes some microseconds to make one)."""


class Outbox:
    """What is sent, in order, as far as the socket takes it. The socket does not block."""

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
