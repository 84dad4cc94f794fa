"""A GDB server: the remote serial protocol on a loopback port, for gdb-multiarch and others.

    vc4lab boot sdcard/ --gdb 1234
    gdb-multiarch kernel.elf -ex "target remote :1234"

The machine never waits for a client in the middle of a slice: the socket is looked at between two,
and only a client that has sent a good packet makes the machine stand. One that vanishes is
forgotten with its breakpoints. Guest time is the same with and without a client.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable

from vc4lab import interruption
from vc4lab.ranges import PORT
from vc4lab.soc.debug.breakpoints import StopEvent
from vc4lab.soc.debug.gdb_commands import Commands, Core, Next
from vc4lab.soc.debug.gdb_packets import Kind, PacketReader, Received, frame
from vc4lab.soc.events import RunEnded
from vc4lab.soc.machine import Machine
from vc4lab.soc.result import Stop

LOOPBACK = "127.0.0.1"
CHUNK = 1 << 16
SEND_SECONDS = 2.0
"""A client that does not take its answer for so long is dropped."""
WAIT_SECONDS = 0.5
MAX_GARBAGE = 4 * CHUNK
MAX_DAMAGED = 20
"""Damaged frames in a row after which a client is dropped."""


class GdbServer:
    """Serves one client at a time.

    Parameters
    ----------
    port
        TCP port on the loopback interface; 0 takes a free one, see `port`.
    wait
        Let the machine stand before its first instruction until a client lets it go on.
    tell
        Called with sentences for the user.

    Raises
    ------
    OSError
        The port cannot be had.
    ValueError
        There is no such port.
    """

    def __init__(
        self,
        machine: Machine,
        port: int,
        *,
        wait: bool = True,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._machine = machine
        self._report = tell
        self._wait = wait
        self._listener = socket.create_server((LOOPBACK, PORT.check(port)))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._client: socket.socket | None = None
        self._reader = PacketReader()
        self._queue: list[Received] = []
        self._sent = b""
        self._damaged = 0
        self._attached = False
        self._running = True
        self._commands = Commands(machine, self._on_stop)
        machine.hardware.before_slice = self._before_slice
        self._run_ended = machine.listeners.run_ended.subscribe(self._on_end)
        machine.watches.append(self._descriptors)

    def close(self) -> None:
        """Give the port back; for the client the program has ended."""
        if self._client is not None and self._attached:
            self._send(b"W00")
        self._drop()
        self._listener.close()
        self._machine.hardware.before_slice = None
        self._run_ended.close()
        self._machine.watches.remove(self._descriptors)

    def _descriptors(self) -> list[int]:
        """Descriptors that become readable when a client comes, or sends something."""
        return [end.fileno() for end in (self._listener, self._client) if end is not None]

    # -- the machine's side ------------------------------------------------------------------------

    def _before_slice(self) -> None:
        if self._wait:
            self._wait = False
            self._report(f"waiting for a debugger: target remote :{self.port}")
            self._stand(for_a_client=True)
            return
        self._receive(0.0)
        if self._queue:
            self._while_running()

    def _while_running(self) -> None:
        """Something came while the machine runs: Ctrl-C, or a new client's first packet."""
        received = self._queue[0]
        if received.kind is Kind.INTERRUPT and self._attached:
            self._queue.pop(0)
            self._on_stop(self._commands.cores[0], StopEvent("interrupt", 0))
        elif received.kind is Kind.PACKET:
            self._stand()
        else:
            self._handle(self._queue.pop(0))

    def _on_stop(self, core: Core, event: StopEvent) -> None:
        reply = self._commands.stop_reply(core, event)
        self._send(reply)
        self._stand()

    def _on_end(self, event: RunEnded) -> None:
        """The run is over: after a crash or hang the client may look around, then that is the end.

        After others the machine may run on, as a `Linux` does in steps, so the client stays.
        """
        result = event.result
        if not self._attached or self._client is None:
            return
        if result.reason not in (Stop.CRASH, Stop.HANG, Stop.HALTED):
            return
        self._send(b"O" + f"{result.message}\n".encode().hex().encode())
        kind = "crash" if result.reason is Stop.CRASH else "interrupt"
        self._send(self._commands.stop_reply(self._commands.stopped, StopEvent(kind, 0)))
        self._stand()
        if self._client is not None:
            self._send(b"W00")
        self._drop()

    def _stand(self, *, for_a_client: bool = False) -> None:
        """Answer the client until it lets the machine go on, is gone, or a signal ends the run."""
        self._running = False
        while not self._running:
            if interruption.came():
                interruption.look()
                self._go_on_alone()  # the signal's owner ends the run at its next moment
                return
            for_a_client = for_a_client and not self._attached
            if self._client is None and not for_a_client:
                self._go_on_alone()
            elif self._queue:
                self._handle(self._queue.pop(0))
            else:
                self._receive(WAIT_SECONDS)

    def _go_on_alone(self) -> None:
        """No client any more: no points, no steps, the program runs."""
        self._commands.forget()
        for core in self._commands.cores:
            core.points.resume(step=False)
        self._running = True

    # -- the client's side -------------------------------------------------------------------------

    def _receive(self, seconds: float) -> None:
        """Take what comes within `seconds`; a new client, bytes, or the end of the client."""
        sockets = [self._listener] + ([self._client] if self._client else [])
        ready = select.select(sockets, [], [], seconds)[0]
        if self._client is not None and self._client in ready:
            self._take_from_client()
        if self._listener in ready:  # afterwards: the old client may just have gone
            self._accept()

    def _take_from_client(self) -> None:
        assert self._client is not None
        try:
            data = self._client.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._drop()
            return
        self._queue.extend(self._reader.feed(data))
        if self._reader.garbage > MAX_GARBAGE:
            self._drop("disconnected a client that does not speak the protocol")

    def _accept(self) -> None:
        try:
            client, _address = self._listener.accept()
        except OSError:
            return
        if self._client is not None:
            client.close()
            return
        client.settimeout(SEND_SECONDS)
        with contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = client
        self._reader = PacketReader()
        self._queue.clear()
        self._attached = False
        self._damaged = 0
        self._commands.no_acknowledge = False

    def _handle(self, received: Received) -> None:
        if received.kind is Kind.PACKET:
            self._damaged = 0
            self._answer(received.data)
        elif received.kind is Kind.DAMAGED or received.kind is Kind.REPEAT:
            self._damaged += 1
            if self._damaged > MAX_DAMAGED:
                self._drop("disconnected a client that sends only damaged packets")
            else:
                self._send_raw(b"-" if received.kind is Kind.DAMAGED else self._sent)

    def _answer(self, packet: bytes) -> None:
        if not self._attached:
            self._attached = True
            self._report("a debugger is attached")
        commands = self._commands
        if not commands.no_acknowledge:
            self._send_raw(b"+")
        reply = commands.answer(packet)
        if commands.next is Next.RUN:
            self._running = True
            return
        self._send(reply)
        if commands.next is Next.KILL:
            self._drop("the debugger ends the program")
            self._machine.end("ended by the debugger")
        elif commands.next is Next.DETACH:
            self._drop()
        if commands.next is not Next.STAY:
            self._go_on_alone()

    def _send(self, data: bytes) -> None:
        self._sent = frame(data)
        self._send_raw(self._sent)

    def _send_raw(self, data: bytes) -> None:
        if self._client is None:
            return
        try:
            self._client.sendall(data)
        except OSError:
            self._drop()

    def _drop(self, why: str = "") -> None:
        """The client is gone, or is sent away."""
        if self._client is None:
            return
        with contextlib.suppress(OSError):
            self._client.close()
        self._client = None
        self._queue.clear()
        if self._attached or why:
            self._report(why or "the debugger has disconnected; the program continues")
        if self._attached:
            self._commands.forget()
        self._attached = False
