"""The socket that Mesa's virpipe driver connects to, and the loop that serves all clients.

One thread serves all of them: there is one GPU. A client that does not read its answers is not
served meanwhile, and holds up no other one.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.capabilities import Capabilities, videocore
from vc4lab.mesa.server.client import Client
from vc4lab.mesa.server.connection import Ended, Shared

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.mesa.store.screen import Screen

PROTOCOLS = (0, 2)
"""0: data come inline; 2: through shared memory."""
TURNS = 4
"""Frames of a client, at most, before others are looked at."""


LONGEST_NAME = 107
"""Bytes of a path that a socket of Unix takes."""


def _bind(socket_: socket.socket, path: Path) -> None:
    """Gives a socket its path, by way of its folder where the path is too long. Raises OSError."""
    if len(os.fsencode(path)) <= LONGEST_NAME:
        socket_.bind(str(path))
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        socket_.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


class Server:
    """A listening socket and its clients; also as a context manager.

    Raises OSError if the socket cannot be made.

    Attributes
    ----------
    clients
        Those that are connected.
    connections
        How many there were.
    listeners
        For what may be observed (`events.py`).
    """

    def __init__(
        self,
        path: Path,
        screen: Screen,
        reporter: Reporter,
        *,
        protocol: int = 2,
        capabilities: Capabilities | None = None,
    ) -> None:
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocol {protocol} is none of {PROTOCOLS}")
        self.path = path
        said = (capabilities or videocore()).encode()
        self.shared = Shared(screen, reporter, protocol, said)
        self.listeners = self.shared.listeners
        self.clients: list[Client] = []
        self.connections = 0
        self._ended = False
        self._selector = selectors.DefaultSelector()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # no other user may connect
        try:
            _bind(self._socket, path)
        except OSError:
            self._socket.close()
            raise
        finally:
            os.umask(before)
        self._socket.listen(limits.CLIENTS)
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections, and remove the socket."""
        for client in list(self.clients):
            self._drop(client)
        self._socket.close()
        self._selector.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def watch(self, descriptor: int, call: Callable[[], object]) -> None:
        """`call()` in the loop whenever the descriptor can be read."""
        self._selector.register(descriptor, selectors.EVENT_READ, call)

    def end(self) -> None:
        """Let `run` return."""
        self._ended = True

    def run(self) -> None:
        """Serve clients until `end` is called. Raises what listeners and `--strict` raise."""
        self._ended = False
        while not self._ended:
            self.step(None)

    def step(self, timeout: float | None) -> None:
        """Handle what there is to do now; wait for it at most so many seconds."""
        for key, events in self._selector.select(timeout):
            if isinstance(key.data, Client):
                self._serve(key.data, events)
            else:
                key.data()

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                time.sleep(0.05)  # no more descriptors: it stays readable until there are
            return
        if len(self.clients) >= limits.CLIENTS:
            self.shared.reporter.report("GL-006", f"more than {limits.CLIENTS} clients", block="GL")
            connection.close()
        else:
            self.add(connection)

    def add(self, connection: socket.socket) -> None:
        """Serve a client that is connected."""
        connection.setblocking(False)
        self.connections += 1
        client = Client(self.shared, connection, self.connections)
        self.clients.append(client)
        client.watched_for = selectors.EVENT_READ
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _serve(self, client: Client, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                client.flush()
            if events & selectors.EVENT_READ:
                client.receive()
            for _ in range(TURNS):
                if not client.waits_for_work or not client.outbox.is_empty:
                    break
                client.work()
                client.receive()  # meanwhile it mostly has asked whether this is done
        except Ended:
            self._drop(client)
            return
        # While it does not read, it is not read.
        wanted = selectors.EVENT_READ if client.outbox.is_empty else selectors.EVENT_WRITE
        if wanted != client.watched_for:
            client.watched_for = wanted
            self._selector.modify(client.connection, wanted, client)

    def _drop(self, client: Client) -> None:
        self._selector.unregister(client.connection)
        client.outbox.close()
        client.connection.close()
        self.clients.remove(client)
        for resource in client.resources.close():
            self.shared.screen.destroy(resource)
