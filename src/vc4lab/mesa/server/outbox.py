"""Answers on their way to a client that may not read."""

from __future__ import annotations

import os
import socket
from collections import deque


class Outbox:
    """What is sent, in order, as far as the socket takes it. The socket does not block."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting: deque[tuple[memoryview, list[int]]] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether everything is sent."""
        return not self._waiting

    def send(self, data: bytes, descriptor: int | None = None) -> None:
        """Send bytes, with a descriptor, which is closed then. Raises OSError."""
        self._waiting.append((memoryview(data), [] if descriptor is None else [descriptor]))
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now. Raises OSError."""
        while self._waiting:
            data, descriptors = self._waiting[0]
            try:
                if descriptors:
                    sent = socket.send_fds(self._connection, [data], descriptors)
                else:
                    sent = self._connection.send(data)
            except BlockingIOError:
                return
            _close(descriptors)
            if sent < len(data):
                self._waiting[0] = data[sent:], []
            else:
                self._waiting.popleft()

    def close(self) -> None:
        """Nothing more is sent."""
        for _, descriptors in self._waiting:
            _close(descriptors)
        self._waiting.clear()


def _close(descriptors: list[int]) -> None:
    for one in descriptors:
        os.close(one)
