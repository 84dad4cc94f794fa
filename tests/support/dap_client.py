"""A small client of the Debug Adapter Protocol for tests."""

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

from vc4lab.debug.dap.server import Server
from vc4lab.debug.launch import Launch, Launchable

SECONDS = 60.0


class Client:
    """Speaks to a server in a thread, through a pair of sockets."""

    def __init__(self, launch: Launchable | None = None) -> None:
        mine, theirs = socket.socketpair()
        mine.settimeout(SECONDS)
        self.socket = mine
        self.reader = mine.makefile("rb")
        self._theirs = theirs
        self._files = theirs.makefile("rb"), theirs.makefile("wb")
        self.server = Server(*self._files, launch or Launch())
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        self.sequence = 0
        self.events: list[dict[str, Any]] = []

    def _serve(self) -> None:
        self.server.serve()
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> dict[str, Any]:
        length = 0
        while line := self.reader.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        if not length:
            raise EOFError
        found: dict[str, Any] = json.loads(self.reader.read(length))
        return found

    def send(self, command: str, **arguments: Any) -> int:
        self.sequence += 1
        request = {"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.sequence

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The whole answer; events on the way are kept."""
        number = self.send(command, **arguments)
        while True:
            message = self.receive()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["command"] == command
                return message
            self.events.append(message)

    def get(self, command: str, **arguments: Any) -> Any:
        """The body of an answer that succeeds."""
        answer = self.ask(command, **arguments)
        assert answer["success"], answer
        return answer.get("body")

    def event(self, name: str) -> Any:
        """The body of the next event with this name."""
        while True:
            for message in self.events:
                if message["event"] == name:
                    self.events.remove(message)
                    return message["body"]
            self.events.append(self.receive())

    def begin(self, program: Path, **arguments: Any) -> None:
        """As editors do, up to where breakpoints are set."""
        self.get("initialize", adapterID="vc4lab", linesStartAt1=True)
        self.get("launch", program=str(program), **arguments)
        self.event("initialized")

    def end(self) -> None:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        self.reader.close()
        self.socket.close()
        self._theirs.close()
