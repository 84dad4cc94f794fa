"""A server in this process, and a client that speaks as Mesa does."""

import contextlib
import mmap
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.messages import Message
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.store.software import SoftwareScreen

WORD = struct.Struct("<I")


class RawClient:
    """A connection on which tests send what they want."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(str(path))

    def send(self, message: Message, data: bytes = b"", *, length: int | None = None) -> None:
        """A message with the header it should have."""
        payload = message.encode()
        if length is None:
            length = len(payload) // 4
            if message.length == "words and data":
                length += -(-len(data) // 4)
            if message.length == "words and absent data":
                length += -(-message.data_size // 4)  # type: ignore[attr-defined]
            if message.length == "bytes":
                payload = payload.rstrip(b"\0") + b"\0"
                length = len(payload)
        self.socket.sendall(struct.pack("<II", length, message.number) + payload + data)

    def submit(self, *commands: Any) -> None:
        """Commands of the stream, in one message."""
        data = b"".join(one if isinstance(one, bytes) else one.encode_command() for one in commands)
        self.send(messages.SubmitCmd(data))

    def read(self, size: int) -> bytes:
        """So many bytes of the answer; fewer if the connection ends."""
        data = b""
        while len(data) < size:
            with contextlib.suppress(ConnectionResetError):
                part = self.socket.recv(size - len(data))
                if part:
                    data += part
                    continue
            break
        return data

    def words(self, count: int) -> tuple[int, ...]:
        """So many words of the answer."""
        return struct.unpack(f"<{count}I", self.read(4 * count))

    def memory(self, size: int) -> mmap.mmap:
        """The shared memory whose descriptor comes now."""
        data, descriptors, _, _ = socket.recv_fds(self.socket, 1, 1)
        assert data == b"\0"
        assert len(descriptors) == 1
        with contextlib.closing(os.fdopen(descriptors[0], "rb+")) as file:
            return mmap.mmap(file.fileno(), size)

    def wait(self) -> None:
        """Until everything sent so far is handled."""
        self.send(messages.ResourceBusyWait(0, 1))
        assert self.words(3) == (1, 7, 0)

    def is_closed(self) -> bool:
        """Whether the server has ended the connection."""
        return self.read(1) == b""


class RunningServer:
    """A server whose loop runs in a thread of its own."""

    def __init__(
        self, path: Path, make_screen: Callable[[Reporter], Any] = SoftwareScreen, **options: Any
    ) -> None:
        self.reporter = Reporter()
        self.screen = make_screen(self.reporter)
        self.server = Server(path, self.screen, self.reporter, **options)
        self.problems: list[BaseException] = []
        self._clients: list[RawClient] = []
        self._read, self._write = os.pipe()
        self.server.watch(self._read, self.server.end)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.server.run()
        except BaseException as problem:
            self.problems.append(problem)

    def client(self) -> RawClient:
        self._clients.append(RawClient(self.server.path))
        return self._clients[-1]

    def codes(self) -> list[str]:
        """Of the messages so far."""
        return [item.code for item in self.reporter.items]

    def close(self) -> None:
        os.write(self._write, b"x")
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.server.close()
        for client in self._clients:
            client.socket.close()
        os.close(self._read)
        os.close(self._write)
        assert not self.problems, self.problems


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of version 2."""
    server = RunningServer(tmp_path / "socket")
    yield server
    server.close()


@pytest.fixture
def client(running: RunningServer) -> Iterator[RawClient]:
    """A client that has said its name and asked for version 2."""
    client = running.client()
    client.send(messages.CreateRenderer(b"test\0"))
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    yield client
    client.socket.close()
