"""Serves one editor after the other: reads its requests, answers, sends events.

Requests are carried out in the thread that serves; what executes instructions goes on in another one,
so that `pause` and `disconnect` are heard. A client that vanishes ends its session, whatever it does.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable
from typing import IO, Any

from vc4lab.debug.dap.adapter import Adapter, Work
from vc4lab.debug.dap.arguments import Refused
from vc4lab.debug.dap.messages import Malformed, packed, read_message
from vc4lab.debug.expressions import ExpressionError
from vc4lab.debug.launch import Launchable
from vc4lab.debug.stops import Stop
from vc4lab.ranges import PORT

LOOPBACK = "127.0.0.1"
SEND_SECONDS = 5
"""A client that takes nothing for so long is dropped."""
MOST_MALFORMED = 20
MOST_WAITING = 1000
"""Requests that wait to be read."""
RENAMED = {"continue": "continue_", "variables": "variables_"}
COMMANDS = (
    *("initialize", "launch", "attach", "configurationDone", "restart", "disconnect", "terminate"),
    *("continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "pause"),
    *("threads", "stackTrace", "scopes", "source", "variables", "evaluate", "setVariable", "setExpression"),
    *("disassemble", "readMemory", "writeMemory", "setBreakpoints", "setFunctionBreakpoints"),
    *("setInstructionBreakpoints", "dataBreakpointInfo", "setDataBreakpoints", "setExceptionBreakpoints"),
)
WHILE_RUNNING = frozenset(("pause", "disconnect", "terminate", "threads", "initialize"))
"""Requests that are answered while programs run."""


class Server:
    """One editor on two streams. launch: what the command line has named."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes], launch: Launchable) -> None:
        self._reader, self._writer = reader, writer
        self._queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._room = threading.Semaphore(MOST_WAITING)
        self._sequence = 0
        self._lost = False
        self._sending = threading.Lock()
        self._worker: threading.Thread | None = None
        self.adapter = Adapter(launch, self._event, self._start)

    def serve(self) -> None:
        """Up to `disconnect`, or until the client is gone."""
        threading.Thread(target=self._read, daemon=True, name="vc4lab-dap").start()
        while not self._lost and not self.adapter.ended:
            kind, what = self._queue.get()
            if kind in ("request", "malformed"):
                self._room.release()
            if kind == "request":
                self._answer(what)
            elif kind == "stopped":
                self._join()
                self.adapter.stopped(what)
            elif kind == "malformed":
                self.adapter.print(f"vc4lab: {what}", "stderr")
            else:
                break
        if self.adapter.running:
            self.adapter.session.pause()
            self._join()

    def _read(self) -> None:
        """In a thread: requests as they come."""
        left = MOST_MALFORMED
        try:
            while True:
                try:
                    message = read_message(self._reader)
                except Malformed as error:
                    left -= 1
                    self._room.acquire()
                    self._queue.put(("malformed", str(error)))
                    if error.ends or not left:
                        break
                    continue
                if message is None:
                    break
                self._room.acquire()
                self._queue.put(("request", message))
        except (OSError, ValueError):
            pass
        self._queue.put(("end", None))

    # -- requests

    def _answer(self, request: dict[str, Any]) -> None:
        if request.get("type") != "request":
            return
        command, number = request.get("command"), request.get("seq")
        arguments = request.get("arguments")
        answer: dict[str, Any] = {"type": "response", "request_seq": number, "command": command}
        events: list[tuple[str, dict[str, Any]]] = []
        honest, self.adapter.emit = self.adapter.emit, lambda name, body: events.append((name, body))
        started: list[Work] = []
        self._hold = started
        try:
            body = self._carry_out(command, arguments if isinstance(arguments, dict) else {})
            answer |= {"success": True, "body": body or {}}  # some clients insist on one
        except (Refused, ExpressionError, ValueError) as error:
            answer |= _failure(str(error), command == "launch")
        except Exception as error:  # of ours: said, and the session goes on
            answer |= _failure(f"CLI-003: internal error, {type(error).__name__}: {error}", True)
        finally:
            self.adapter.emit = honest
            self._hold = None
        self._send(answer)
        for name, body in events:
            self._event(name, body)
        for work in started:
            self._run(work)

    def _carry_out(self, command: object, arguments: dict[str, Any]) -> Any:
        if command not in COMMANDS or not isinstance(command, str):
            raise Refused(f"there is no request {str(command)[:40]!r} here")
        if self.adapter.running and command not in WHILE_RUNNING:
            raise Refused("the programs run: pause first")
        method: Callable[[dict[str, Any]], Any] = getattr(self.adapter, RENAMED.get(command, command))
        return method(arguments)

    # -- work

    _hold: list[Work] | None = None
    """While a request is carried out: work that begins after its answer was sent."""

    def _start(self, work: Work) -> None:
        if self._hold is not None:
            self._hold.append(work)
        else:
            self._run(work)

    def _run(self, work: Work) -> None:
        def run() -> None:
            stop: Stop = work()
            self._queue.put(("stopped", stop))

        self._worker = threading.Thread(target=run, daemon=True, name="vc4lab-stepping")
        self._worker.start()

    def _join(self) -> None:
        if self._worker is not None:
            self._worker.join()
            self._worker = None

    # -- sending

    def _event(self, name: str, body: dict[str, Any]) -> None:
        self._send({"type": "event", "event": name, "body": body})

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            self._sequence += 1
            try:
                self._writer.write(packed({"seq": self._sequence, **message}))
                self._writer.flush()
            except (OSError, ValueError):
                self._lost = True


def _failure(text: str, shown: bool) -> dict[str, Any]:
    """Return the answer to a request that failed; in the protocol, braces would be variables."""
    plain = text.replace("{", "(").replace("}", ")")
    error = {"id": 1, "format": plain, "showUser": shown}
    return {"success": False, "message": text, "body": {"error": error}}


def serve_port(port: int, launch: Launchable, say: Callable[[str], None], once: bool = False) -> None:
    """Serves editors on a loopback port, one after the other. Raises OSError, ValueError.

    port: 0 takes a free one. say: told where it listens. once: ends after the first.
    """
    listener = socket.create_server((LOOPBACK, PORT.check(port)))
    with listener:
        say(f"waiting for an editor at {LOOPBACK}:{listener.getsockname()[1]}")
        while True:
            client, _ = listener.accept()
            timeout = struct.pack("@ll", SEND_SECONDS, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
            with client, client.makefile("rb") as reader, client.makefile("wb") as writer:
                with contextlib.suppress(OSError):
                    Server(reader, writer, launch).serve()
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
                with contextlib.suppress(OSError, ValueError):
                    writer.close()
            if once:
                return
