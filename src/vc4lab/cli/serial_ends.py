"""The remote ends of the serial cable: keyboard and terminal, a pseudo terminal, a TCP port.

None of them ever makes the machine wait for long: output that is not taken is dropped (a TCP
client gets the last of it when it comes), input is looked for without waiting.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from vc4lab import interruption

CHUNK = 4096
IDLE_LOOKS = 50
IDLE_SECONDS = 0.005
"""After so many looks without input the program is let wait once, so that it costs little CPU. A
polled look takes 100 µs of guest time: time goes on about as fast as on the wall."""
DRAIN_SECONDS = 3.0
SETTLE_SECONDS = 0.1
"""A pseudo terminal stays at least so long at the end: its last bytes may still be on their way."""
BACKLOG = 1 << 16
"""Bytes kept for a TCP client that is not there yet, or slow."""
LOOPBACK = "127.0.0.1"


class InputWait:
    """How long to wait for input: not at all, a little once in many looks in vain."""

    def __init__(self) -> None:
        self._misses = 0

    def seconds(self) -> float:
        """For this look."""
        self._misses += 1
        return 0.0 if self._misses % IDLE_LOOKS else IDLE_SECONDS

    def found(self) -> None:
        """There was input."""
        self._misses = 0


class LeaveKeys:
    """Ctrl-A and then X leave a program that does not react, as in QEMU; Ctrl-A twice is one."""

    FIRST, SECOND = 1, b"xX"

    def __init__(self) -> None:
        self.pressed = False
        self._first = False
        """Whether Ctrl-A was the last key."""

    def rest(self, data: bytes) -> bytes:
        """The keys that are not for leaving."""
        kept = bytearray()
        for key in data:
            if not self._first and key == self.FIRST:
                self._first = True
                continue
            if self._first and key in self.SECOND:
                self.pressed = True
            else:
                kept.append(key)
            self._first = False
        return bytes(kept)


class Keyboard:
    """Standard input. A terminal gives each key at once and shows nothing by itself.

    Ctrl-C and Ctrl-Z keep their meaning unless `all_keys`; Enter sends a carriage return, as on a
    serial terminal.

    Attributes
    ----------
    leaves
        Called when Ctrl-A X is typed on a terminal; None: these are keys like others.
    """

    def __init__(self, all_keys: bool = False) -> None:
        self.ended = False
        self._all_keys = all_keys
        self._wait = InputWait()
        self._saved: Any = None
        self._forget: Callable[[], None] = lambda: None
        self._keys = LeaveKeys()
        self.leaves: Callable[[], object] | None = None
        with contextlib.suppress(ImportError, OSError, ValueError):
            self._raw(sys.stdin.fileno())

    def _raw(self, terminal: int) -> None:
        import termios

        if not os.isatty(terminal):
            return
        try:
            self._saved = termios.tcgetattr(terminal)
            settings = termios.tcgetattr(terminal)
            settings[0] &= ~(termios.ICRNL | termios.IXON)
            settings[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            if self._all_keys:
                settings[3] &= ~termios.ISIG
            termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
            self._forget = interruption.undo_at_end(self._restore)
        except termios.error:
            self._saved = None

    def receive(self) -> bytes:
        """Return the bytes that were typed since the last call."""
        if self.ended:
            return b""
        try:
            ready = select.select([sys.stdin.fileno()], [], [], self._wait.seconds())[0]
            if not ready:
                return b""
            data = os.read(sys.stdin.fileno(), CHUNK)
        except (OSError, ValueError):
            data = b""
        self.ended = not data
        self._wait.found()
        if self.leaves is None or not self.is_terminal:
            return data
        data = self._keys.rest(data)
        if self._keys.pressed:
            self.leaves()
        return data

    @property
    def is_terminal(self) -> bool:
        """Whether it is a terminal, set for single keys."""
        return self._saved is not None

    def descriptors(self) -> list[int]:
        """List the descriptors that become readable when something is typed."""
        try:
            return [] if self.ended else [sys.stdin.fileno()]
        except (OSError, ValueError):
            return []

    def close(self) -> None:
        """Give the terminal back as it was."""
        self._forget()
        self._restore()
        self._saved = None

    def _restore(self) -> None:
        if self._saved is not None:
            import termios

            with contextlib.suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._saved)


class PseudoTerminal:
    """A pseudo terminal for `screen` or `minicom`; `name` is its device. Raises OSError."""

    ended = False
    """A client may always come."""

    def __init__(self) -> None:
        import tty

        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self.name = os.ttyname(self._theirs)
        self._sent = False
        self._wait = InputWait()

    def send(self, data: bytes) -> None:
        """To the terminal; dropped if it is not read."""
        self._sent = True
        with contextlib.suppress(OSError):
            os.write(self._ours, data)

    def receive(self) -> bytes:
        """Return the bytes that were typed since the last call."""
        try:
            if not select.select([self._ours], [], [], self._wait.seconds())[0]:
                return b""
            data = os.read(self._ours, CHUNK)
        except OSError:
            return b""
        self._wait.found()
        return data

    def descriptors(self) -> list[int]:
        """List the descriptors that become readable when something is typed."""
        return [self._ours]

    def close(self) -> None:
        """The device disappears, with what was not read; a reader gets a moment."""
        deadline = time.monotonic() + DRAIN_SECONDS
        settled = time.monotonic() + (SETTLE_SECONDS if self._sent else 0.0)
        while time.monotonic() < deadline:
            if not self._unread() and time.monotonic() >= settled:
                break
            time.sleep(0.01)
        os.close(self._ours)
        os.close(self._theirs)

    def _unread(self) -> bool:
        # Not FIONREAD: what was just sent may still be on its way to the other side, where only
        # waiting for input fetches it.
        return bool(select.select([self._theirs], [], [], 0)[0])


class TcpPort:
    """A TCP port on the loopback interface, for one client at a time. Raises OSError."""

    ended = False
    """A client may always come."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server((LOOPBACK, port))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._client: socket.socket | None = None
        self._backlog = bytearray()
        self._wait = InputWait()

    def send(self, data: bytes) -> None:
        """To the client; without one the last `BACKLOG` bytes are kept."""
        self._backlog += data
        if len(self._backlog) > BACKLOG:
            del self._backlog[: -BACKLOG // 2]
        if self._client is not None or data == b"\n":
            self._look(0.0)
            self._flush()

    def receive(self) -> bytes:
        """Return the bytes that the client sent since the last call."""
        ready = self._look(self._wait.seconds())
        self._flush()
        if self._client is None or not ready:
            return b""
        try:
            data = self._client.recv(CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._hang_up()
        self._wait.found()
        return data

    def descriptors(self) -> list[int]:
        """List the descriptors that become readable when a client comes, or sends something."""
        return [end.fileno() for end in (self._listener, self._client) if end is not None]

    def _look(self, seconds: float) -> bool:
        """Take a new client; whether the present one has sent something."""
        watched = [self._listener] + ([self._client] if self._client else [])
        ready = select.select(watched, [], [], seconds)[0]
        if self._listener in ready:
            with contextlib.suppress(OSError):
                client, _address = self._listener.accept()
                if self._client is None:
                    client.setblocking(False)
                    self._client = client
                else:
                    client.close()
        return self._client is not None and self._client in ready

    def _flush(self) -> None:
        if self._client is None or not self._backlog:
            return
        try:
            sent = self._client.send(self._backlog)
        except BlockingIOError:
            return
        except OSError:
            self._hang_up()
            return
        del self._backlog[:sent]

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        """Send what is left if that is possible, give the port back."""
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.settimeout(1.0)
                self._client.sendall(self._backlog)
        self._hang_up()
        self._listener.close()
