"""Runs programs under the filter and answers their system calls, one at a time, in one thread."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vc4lab.drm.nodes.tree import Tree
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.census import Census
from vc4lab.drm.supervisor.descriptor_calls import DescriptorCalls
from vc4lab.drm.supervisor.descriptors import Descriptors
from vc4lab.drm.supervisor.filters import IOCTL_MARK, WINDOW, build_filter
from vc4lab.drm.supervisor.keeper import descendants
from vc4lab.drm.supervisor.machines import Machine, host_machine
from vc4lab.drm.supervisor.notifications import Listener, Notification
from vc4lab.drm.supervisor.path_calls import PathCalls
from vc4lab.drm.supervisor.polling import PollCalls
from vc4lab.drm.supervisor.targets import Targets
from vc4lab.drm.supervisor.uevents import Uevents
from vc4lab.drm.uapi.results import Later, Refused

KEEPER = Path(__file__).with_name("keeper.py")
_LOOK_AFTER_WAITING = 0.05
"""Seconds between looks whether callers that wait are alive and have no signals."""
_SWEEP_SECONDS = 1.0
_AT_FDCWD = 0xFFFFFF9C
_MOST_LEFT = 1000
"""Looks at what a dead program left in a socket; its room is far smaller."""
_START_SECONDS = 30.0
SWITCH_INTERVAL = 0.0002
"""Seconds a thread of Python may keep the others waiting: the GPU's must not delay answers."""


class NotPossible(Exception):  # noqa: N818 - a fact about the host
    """This host cannot supervise programs; the text says what is missing."""


@dataclass
class _Waiting:
    """A call whose answer comes later."""

    call: Notification
    caller: Caller
    later: Later


class Supervisor:
    """One program and all that it starts, in front of one device.

    Parameters
    ----------
    memory_file
        Descriptor of the memory that programs map.
    deep
        Also see device descriptors that arrive over sockets at other numbers; costs time.
    """

    def __init__(self, device: Device, tree: Tree, memory_file: int, *, deep: bool = False) -> None:
        machine = host_machine()
        if machine is None:
            raise NotPossible(f"no table of system calls for {os.uname().machine}")
        self.machine: Machine = machine
        self.device = device
        self.tree = tree
        self.deep = deep
        self.targets = Targets()
        self.descriptors = Descriptors(memory_file)
        self.paths = PathCalls(tree, device, machine.name)
        self.files = DescriptorCalls(device)
        self.polls = PollCalls(device)
        self.calls = 0
        """System calls answered so far."""
        self.on_call: Callable[[Notification, Answer | Refused], None] | None = None
        self.inputs = False
        """Whether programs have input devices; before they start."""
        self.unmaps = False
        """Whether the device wants to know of every munmap; before programs start."""
        self._watched: dict[int, Callable[[], None]] = {}
        self._waiting: list[_Waiting] = []
        self._poller = select.poll()
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._woken, select.POLLIN)
        self._stop = False
        self._handlers = self._make_handlers()
        self.uevents = Uevents()
        """Where programs hear of what is plugged in and out."""
        names = ("open", "openat", "openat2", "ioctl")
        self._sees_closed = {machine.calls[name] for name in names if name in machine.calls}
        self._listener: Listener | None = None
        self.census = Census()
        self._keeper: int | None = None
        self._next_sweep = 0.0
        self._next_look = 0.0
        self._event: float | None = None
        """When the device wants to be called, as it said last."""

    # -- the program -------------------------------------------------------------------------------

    def run(
        self,
        program: Sequence[str],
        *,
        environment: dict[str, str] | None = None,
        **popen: Any,
    ) -> int:
        """Start a program, answer until it ends, end what it left; its exit code (128 + signal).

        Raises NotPossible, or OSError if the program cannot be started.
        """
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most != resource.RLIM_INFINITY and most < WINDOW.stop:
            raise NotPossible(
                f"ulimit -Hn: {most} descriptors are allowed, {WINDOW.stop} are needed"
            )
        ours, theirs = socket.socketpair()
        code = build_filter(self.machine, deep=self.deep, inputs=self.inputs, unmaps=self.unmaps)
        self.tree.write()
        command = [
            *(sys.executable, "-I", "-S", str(KEEPER), str(theirs.fileno())),
            *(str(self.machine.seccomp), code.hex(), self.tree.root, *program),
        ]
        interval = sys.getswitchinterval()
        keeper: subprocess.Popen[Any] | None = None
        try:
            keeper = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, **popen)
            self._keeper = keeper.pid
            theirs.close()
            sys.setswitchinterval(SWITCH_INTERVAL)
            status = self._serve(ours)
        finally:
            sys.setswitchinterval(interval)
            with contextlib.suppress(OSError):
                ours.send(b"Q")  # the programs end without a word
            ours.close()
            if keeper is not None:
                self._finish(keeper)
            self.tree.remove()
            self._stop = False  # of this run, not of the next
        return (
            os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        )

    def stop(self) -> None:
        """End the programs; may be called from any thread."""
        self._stop = True
        self.wake()

    def close(self) -> None:
        """Let go of the host's descriptors; no program runs after this."""
        self.uevents.close()
        if self._woken >= 0:
            self._poller.unregister(self._woken)
            os.close(self._woken)
            self._woken = -1
            self.files.polls.close()

    def mappings(self) -> list[tuple[int, int]]:
        """Ranges of the memory file that programs map, as (start, end)."""
        inode = str(self.descriptors.identity[1])
        ranges = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/maps", encoding="utf-8", errors="replace") as file:
                    lines = file.read().split("\n")
            except OSError:
                continue
            for line in lines:
                fields = line.split(None, 5)
                if len(fields) == 6 and fields[4] == inode and "memfd:" in fields[5]:
                    low, _, high = fields[0].partition("-")
                    start = int(fields[2], 16)
                    ranges.append((start, start + int(high, 16) - int(low, 16)))
        return ranges

    def watch(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever a descriptor is readable; from the supervisor's thread only."""
        self._watched[descriptor] = ready
        self._poller.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Watch it no more."""
        del self._watched[descriptor]
        self._poller.unregister(descriptor)

    def wake(self) -> None:
        """Something happened that a waiting call may wait for; may be called from any thread."""
        if self._woken >= 0:
            os.eventfd_write(self._woken, 1)

    def _finish(self, keeper: subprocess.Popen[Any]) -> None:
        """After the socket is closed the keeper ends the programs; they may call us meanwhile."""
        ended = threading.Event()

        def wait() -> None:
            keeper.wait()
            ended.set()
            self.wake()

        threading.Thread(target=wait, daemon=True).start()
        while not ended.is_set():
            self._step(0.5)
        self._close_listener()
        for descriptor, ready in list(self._watched.items()):
            for _ in range(_MOST_LEFT):  # the programs are gone: what they wrote last, then the end
                if descriptor in self._watched:
                    ready()
        for waiting in self._waiting:
            self._drop(waiting)
        self._waiting.clear()
        self._sweep()
        self.targets.close()
        self._keeper = None
        for number in self.files.polls:
            self.files.polls.forget(number)
        for number in self.device.events_kept():
            self.device.forget_event(number)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._poller.unregister(self._listener.descriptor)
            self._listener.close()
            self._listener = None

    def _serve(self, connection: socket.socket) -> int:
        """Answer until the keeper says how the program ended; its wait status."""
        connection.settimeout(_START_SECONDS)
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        except OSError:
            raise NotPossible("the program's keeper did not start") from None
        if data != b"L" or not descriptors:
            number = _number(connection) if data == b"E" else 0
            raise NotPossible(
                f"the kernel does not accept the filter: {os.strerror(number)} (seccomp "
                "user notification; inside of a container its runtime may be using it)"
            )
        self._listener = Listener(descriptors[0])
        self._poller.register(self._listener.descriptor, select.POLLIN)
        self._poller.register(connection, select.POLLIN)
        connection.setblocking(False)
        try:
            while not self._stop:
                for descriptor in self._step(_SWEEP_SECONDS):
                    if descriptor != connection.fileno():
                        continue
                    kind = connection.recv(1)
                    if kind == b"X":
                        return _number(connection)
                    if kind == b"E":
                        number = _number(connection)
                        raise OSError(number, os.strerror(number))
                    if not kind:
                        return 9  # the keeper was killed
            return 15
        finally:
            self._poller.unregister(connection)

    # -- one turn ----------------------------------------------------------------------------------

    def _step(self, longest: float) -> list[int]:
        """Wait for something and do it; other descriptors that are ready are returned."""
        self._look()
        others = []
        listener = self._listener.descriptor if self._listener is not None else -1
        for descriptor, events in self._poller.poll(self._timeout(longest)):
            if descriptor == listener:
                if events & select.POLLIN:
                    self._receive()
                else:  # all programs are gone
                    self._close_listener()
                    self.files.sweep_at = 0.0
            elif descriptor == self._woken:
                os.eventfd_read(descriptor)
            elif descriptor in self._watched:
                self._watched[descriptor]()
            else:
                others.append(descriptor)
        return others

    def _timeout(self, longest: float) -> float:
        now = time.monotonic()
        until = now + longest
        if self._event is not None:
            until = min(until, self._event)
        if self.files.sweep_at is not None:
            until = min(until, self.files.sweep_at)
        for waiting in self._waiting:
            until = min(until, now + _LOOK_AFTER_WAITING)
            if waiting.later.deadline is not None:
                until = min(until, waiting.later.deadline)
        return max(0.0, (until - now) * 1000.0)

    def _look(self) -> None:
        """Time has passed or something happened: who can be answered?"""
        now = time.monotonic()
        event = self.device.next_event()
        if event is not None and now >= event:
            self.device.tick(now)
            event = self.device.next_event()
        self._event = event
        for waiting in self._waiting[:]:
            result = self._result_of(waiting.later)
            late = waiting.later.deadline is not None and now >= waiting.later.deadline
            if result is None and late:
                result = waiting.later.late
            if result is not None:
                self._end(waiting)
                self._answer(waiting.call, result)
        if self.files.sweep_at is not None and now >= self.files.sweep_at:
            self._sweep()
        elif now >= self._next_sweep:
            self._sweep()
            self._look_after_waiting()
        elif self._waiting:
            self._look_after_waiting()

    def _result_of(self, later: Later) -> int | None:
        try:
            return later.done()
        except Refused as refused:
            return -refused.number

    def _look_after_waiting(self) -> None:
        """Calls whose threads died or got a signal do not wait any more."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_AFTER_WAITING
        for waiting in list(self._waiting):
            if self._listener is None or not self._listener.is_valid(waiting.call):
                self._end(waiting)
                continue
            answer = waiting.caller.interruption()
            if answer is not None:
                self._end(waiting)
                self._answer(waiting.call, answer)

    def _end(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        self._drop(waiting)

    def _drop(self, waiting: _Waiting) -> None:
        if waiting.later.watch is not None:
            self._poller.unregister(waiting.later.watch)
        if waiting.later.drop is not None:
            waiting.later.drop()

    def _sweep(self) -> None:
        self.files.sweep_at = None
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            self.targets.sweep()
            self._count_copies()
        for opened in self.descriptors.sweep():
            self.device.released(opened)

    def _count_copies(self) -> None:
        """Let go of epoll instances and eventfds that no program has any more."""
        polls, events = self.census.gone(
            self.files.polls, self.device.events_kept(), self._processes()
        )
        for number in polls:
            self.files.polls.forget(number)
        for number in events:
            self.device.forget_event(number)

    def _processes(self) -> Iterator[int]:
        """All processes of the program, none when it has ended."""
        if self._keeper is not None:
            yield from descendants(self._keeper)

    # -- one call ----------------------------------------------------------------------------------

    def _receive(self) -> None:
        assert self._listener is not None
        call = self._listener.receive()
        if call is None:
            return
        self.calls += 1
        if self.files.sweep_at is not None and call.number in self._sees_closed:
            self._sweep()  # what was closed before this call is closed
        handler = self._handlers.get(call.number)
        caller = Caller(self.targets, call, self._listener, self.descriptors)
        answer: Answer | Refused
        try:
            answer = handler(caller, call.args) if handler is not None else Outcome.PROCEED
        except Refused as refused:
            answer = refused
        if self.on_call is not None:
            self.on_call(call, answer)
        if type(answer) is int:
            self._listener.answer(call, answer)
        elif answer is Outcome.PROCEED:
            self._listener.proceed(call)
        elif isinstance(answer, Refused):
            self._answer(call, -answer.number)
        elif isinstance(answer, Later):
            waiting = _Waiting(call, caller, answer)
            if answer.watch is not None:
                self._poller.register(answer.watch, select.POLLIN)
            self._waiting.append(waiting)

    def _answer(self, call: Notification, result: int) -> None:
        if self._listener is not None:
            self._listener.answer(call, result)

    def _make_handlers(self) -> dict[int, Callable[[Caller, tuple[int, ...]], Answer]]:
        paths, files, polls = self.paths, self.files, self.polls
        table: dict[str, Callable[[Caller, tuple[int, ...]], Answer]] = {
            "open": lambda c, a: paths.open(c, _AT_FDCWD, a[0], _int(a[1])),
            "openat": lambda c, a: paths.open(c, a[0], a[1], _int(a[2])),
            "openat2": paths.open_how,
            "stat": lambda c, a: paths.stat(c, _AT_FDCWD, a[0], a[1]),
            "lstat": lambda c, a: paths.stat(c, _AT_FDCWD, a[0], a[1], flags=0x100),
            "newfstatat": lambda c, a: paths.stat(c, a[0], a[1], a[2], flags=_int(a[3])),
            "statx": lambda c, a: paths.stat(c, a[0], a[1], a[4], flags=_int(a[2]), extended=True),
            "fstat": lambda c, a: paths.status_of_descriptor(c, _int(a[0]), a[1]),
            "fstatfs": lambda c, a: paths.file_system(c, _int(a[0]), a[1]),
            "readlink": lambda c, a: paths.read_link(c, _AT_FDCWD, a[0], a[1], _int(a[2])),
            "readlinkat": lambda c, a: paths.read_link(c, a[0], a[1], a[2], _int(a[3])),
            "access": lambda c, a: paths.access(c, _AT_FDCWD, a[0], _int(a[1])),
            "faccessat": lambda c, a: paths.access(c, a[0], a[1], _int(a[2])),
            "faccessat2": lambda c, a: paths.access(c, a[0], a[1], _int(a[2])),
            "getxattr": lambda c, a: paths.attributes(c, a[0]),
            "lgetxattr": lambda c, a: paths.attributes(c, a[0]),
            "listxattr": lambda c, a: paths.attributes(c, a[0]),
            "llistxattr": lambda c, a: paths.attributes(c, a[0]),
            "ioctl": self._ioctl,
            "socket": self._socket,
            "read": lambda c, a: files.read(c, _int(a[0]), a[1], a[2]),
            "close": lambda c, a: files.closed(),
            "dup": lambda c, a: files.duplicate(c, _int(a[0])),
            "dup2": lambda c, a: files.duplicate(c, _int(a[0]), at=_int(a[1])),
            "dup3": self._dup3,
            "fcntl": lambda c, a: files.control(c, _int(a[0]), _int(a[1]), a[2]),
            "lseek": lambda c, a: files.seek(c, _int(a[0]), a[1], _int(a[2])),
            "mmap": files.map,
            "munmap": files.unmap,
            "mremap": lambda c, a: files.grow(c, a[0], a[1], a[2]),
            "remap_file_pages": lambda c, a: files.turn(c, a[0]),
            "epoll_create": lambda c, a: files.make_poll(c, 0),
            "epoll_create1": lambda c, a: files.make_poll(c, _int(a[0])),
            "epoll_ctl": files.control_poll,
            "kcmp": files.compare,
            "poll": lambda c, a: polls.poll(c, a[0], _int(a[1]), _milliseconds(a[2])),
            "ppoll": lambda c, a: polls.poll(c, a[0], _int(a[1]), _timespec(c, a[2])),
            "select": lambda c, a: polls.select(c, a, _timeval(c, a[4]), remaining=True),
            "pselect6": lambda c, a: polls.select(c, a, _timespec(c, a[4]), remaining=False),
        }
        for name in (
            *("write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev"),
            *("preadv2", "pwritev2", "ftruncate", "fallocate", "sendfile", "copy_file_range"),
        ):
            table[name] = lambda c, a: files.refuse(c, _int(a[0]))
        table["pwrite64"] = self._write_at
        calls = self.machine.calls
        return {calls[name]: handler for name, handler in table.items() if name in calls}

    def _dup3(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        if args[0] == args[1]:
            raise Refused(errno.EINVAL)
        return self.files.duplicate(caller, _int(args[0]), at=_int(args[1]), flags=_int(args[2]))

    def _write_at(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """pwrite64: from programs under qemu an ioctl, see setup/preload.py."""
        if args[3] >> 32 != IOCTL_MARK:
            return self.files.refuse(caller, _int(args[0]))
        answer = self._ioctl(caller, (args[0], _int(args[3]), args[1]))
        if answer is Outcome.PROCEED:
            raise Refused(errno.ENOTTY)
        return answer

    def _socket(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """A socket for device events: one that hears our devices alone, where that is possible."""
        kind = _int(args[1])
        made = self.uevents.socket(kind)
        if made is None:
            return Outcome.PROCEED
        try:
            return caller.give_copy(made, close_on_exec=bool(kind & socket.SOCK_CLOEXEC))
        finally:
            os.close(made)

    def _ioctl(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        number, request, argument = _int(args[0]), _int(args[1]), args[2]
        opened = self.descriptors.find(caller, number)
        if opened is None:
            return self.device.plain_ioctl(caller, number, request, argument)
        return self.device.ioctl(opened, caller, request, argument)


def _int(value: int) -> int:
    return value & 0xFFFFFFFF


def _number(connection: socket.socket) -> int:
    data = b""
    connection.setblocking(True)
    while len(data) < 4:
        more = connection.recv(4 - len(data))
        if not more:
            return 0
        data += more
    number: int = struct.unpack("<i", data)[0]
    return number


def _milliseconds(value: int) -> float | None:
    signed = value & 0xFFFFFFFF
    return None if signed & 0x80000000 else signed / 1000.0


def _timespec(caller: Caller, address: int) -> float | None:
    if not address:
        return None
    seconds, nanoseconds = struct.unpack("<qq", caller.read(address, 16))
    return max(0.0, float(seconds) + nanoseconds / 1e9)


def _timeval(caller: Caller, address: int) -> float | None:
    if not address:
        return None
    seconds, microseconds = struct.unpack("<qq", caller.read(address, 16))
    return max(0.0, float(seconds) + microseconds / 1e6)
