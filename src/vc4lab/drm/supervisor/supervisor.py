"""Runs programs under the filter and answers their system calls, one at a time, in one thread."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vc4lab.drm.events import CallAnswered
from vc4lab.drm.nodes.tree import Tree
from vc4lab.drm.processes.census import Census
from vc4lab.drm.processes.descriptors import Descriptors
from vc4lab.drm.processes.filters import build_filter
from vc4lab.drm.processes.keeper import descendants
from vc4lab.drm.processes.machines import Machine, host_machine
from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.processes.started import (
    NotPossible,
    Started,
    check_limit,
    check_memory,
    check_proc,
    kept_apart,
    raise_limit,
    short_collections,
)
from vc4lab.drm.processes.targets import KeptFiles
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.calls import SystemCalls
from vc4lab.drm.supervisor.descriptor_calls import DescriptorCalls
from vc4lab.drm.supervisor.mapping_calls import MappingCalls
from vc4lab.drm.supervisor.mode_calls import ModeCalls
from vc4lab.drm.supervisor.path_calls import PathCalls
from vc4lab.drm.supervisor.polling import PollCalls
from vc4lab.drm.supervisor.timer import Timer
from vc4lab.drm.supervisor.uevents import Uevents
from vc4lab.drm.supervisor.waiting_calls import WaitingCalls
from vc4lab.drm.uapi.results import Later, Refused
from vc4lab.listeners import Listeners, OneListener

_SWEEP_SECONDS = 1.0
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC))
"""The host's errors for too few descriptors or too little memory; the program gets them."""
_AGAIN_SECONDS = 0.0005
_MAX_LEFT = 1000
"""Looks at what a dead program left in a socket; its room is far smaller."""
SWITCH_INTERVAL = 0.0002
"""Seconds a thread of Python may keep the others waiting: the GPU's must not delay answers."""


class Supervisor:
    """One program and all that it starts, in front of one device.

    Parameters
    ----------
    deep
        Also see device descriptors that arrive over sockets at other numbers; costs time.

    `on_call` is one listener for `call_answered`; it gets the call and the answer.
    """

    on_call = OneListener("call_answered", tuple)

    def __init__(self, device: Device, tree: Tree, *, deep: bool = False) -> None:
        machine = host_machine()
        if machine is None:
            raise NotPossible(f"no table of system calls for {os.uname().machine}")
        self.machine: Machine = machine
        self.device = device
        self.tree = tree
        self.deep = deep
        self.kept = KeptFiles()
        self.descriptors = Descriptors()
        self.paths = PathCalls(tree, device, machine.name)
        self.files = DescriptorCalls(device)
        self.maps = MappingCalls(device)
        self.polls = PollCalls(device)
        self.turns = 0
        """Changes once a second at least while programs are served."""
        self.calls = 0
        """System calls answered so far."""
        self.call_answered: Listeners[CallAnswered] = Listeners()
        self.inputs = False
        """Whether programs have input devices; before they start."""
        self.unmaps = False
        """Whether the device observes every munmap; set before programs start."""
        self._watched: dict[int, Callable[[], None]] = {}
        self._poller = select.poll()
        self.waiting = WaitingCalls(self._poller)
        """Calls whose answers come later."""
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._woken, select.POLLIN)
        self._timer = Timer()
        """Readable when the device has something to do, such as a vblank."""
        if self._timer.descriptor >= 0:
            self._poller.register(self._timer.descriptor, select.POLLIN)
        self._stop = False
        self.uevents = Uevents()
        """Sockets by which programs hear of what is plugged in and out."""
        modes = ModeCalls(self.paths, device)
        answered = SystemCalls(device, self.paths, self.files, self.maps, modes, self.polls, self.uevents)
        self._handlers = answered.table(machine.calls)
        names = ("open", "openat", "openat2", "ioctl")
        self._sees_closed = {machine.calls[name] for name in names if name in machine.calls}
        self.census = Census()
        self._started: Started | None = None
        self._interrupted = False
        """A SIGINT came before there was a program."""
        self._next_sweep = 0.0
        self._again: list[Notification] = []
        """Calls that are looked at again a moment later."""

    # -- the program -------------------------------------------------------------------------------

    def run(self, program: Sequence[str], *, environment: dict[str, str] | None = None, **popen: Any) -> int:
        """Start a program, answer until it ends, end what it left; its exit code (128 + signal).

        Raises NotPossible, or OSError if the program cannot be started.
        """
        check_limit()
        check_proc()
        code = build_filter(self.machine, deep=self.deep, inputs=self.inputs, unmaps=self.unmaps)
        interval = sys.getswitchinterval()
        limit = None
        try:
            self._lay_down()
            started = self._started = Started(
                program, seccomp=self.machine.seccomp, code=code, root=self.tree.root,
                environment=environment, **popen,
            )  # fmt: skip
            if self._interrupted:
                started.interrupt()
            check_memory(started.keeper.pid)
            sys.setswitchinterval(SWITCH_INTERVAL)
            limit = raise_limit()
            with kept_apart(), short_collections():
                status = self._serve(started)
        finally:
            sys.setswitchinterval(interval)
            if self._started is not None:
                self._started.end()
                self._finish(self._started.keeper)
            self.tree.remove()
            if limit is not None:
                limit()
            self._stop = self._interrupted = False  # of this run, not of the next
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

    def _lay_down(self) -> None:
        """The nodes, as files. Raises NotPossible."""
        try:
            self.tree.write()
        except OSError as error:
            why = (error.strerror or "").lower()
            raise NotPossible(f"cannot make a folder for the device's nodes: {why}") from None

    def stop(self) -> None:
        """End the programs; may be called from any thread."""
        self._stop = True
        self.wake()

    def interrupt(self) -> None:
        """SIGINT came to this process: the program gets it, unless Ctrl-C gave it to both."""
        if self._started is not None:
            self._started.interrupt()
        else:
            self._interrupted = True

    def abandon(self) -> None:
        """End the programs although this one's thread does not go on; from any thread."""
        started = self._started
        if started is not None:
            started.abandon()

    def close(self) -> None:
        """Let go of the host's descriptors; no program runs after this."""
        self.uevents.close()
        if self._woken >= 0:
            self._poller.unregister(self._woken)
            os.close(self._woken)
            self._woken = -1
            if self._timer.descriptor >= 0:
                self._poller.unregister(self._timer.descriptor)
                self._timer.close()
            self.files.polls.close()

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
        """After the socket is closed the keeper ends the programs; they may still make calls."""
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
            for _ in range(_MAX_LEFT):  # the programs are gone: what they wrote last, then the end
                if descriptor in self._watched:
                    ready()
        self.waiting.clear()
        self._sweep()
        self.kept.close()
        self._started = None
        for number in self.files.polls:
            self.files.polls.forget(number)
        for number in self.device.events_kept():
            self.device.forget_event(number)

    def _close_listener(self) -> None:
        if self.waiting.listener is not None:
            self._poller.unregister(self.waiting.listener.descriptor)
            self.waiting.close_listener()

    def _serve(self, started: Started) -> int:
        """Answer until the keeper says how the program ended; its wait status."""
        listener = self.waiting.listener = Listener(started.listener())
        self._poller.register(listener.descriptor, select.POLLIN)
        connection = started.connection.fileno()
        self._poller.register(connection, select.POLLIN)
        try:
            while not self._stop:
                for descriptor in self._step(_SWEEP_SECONDS):
                    if descriptor == connection:
                        status = started.status()
                        if status is not None:
                            return status
            return signal.SIGTERM
        finally:
            self._poller.unregister(connection)

    # -- one turn ----------------------------------------------------------------------------------

    def _step(self, longest: float) -> list[int]:
        """Wait for something and do it; other descriptors that are ready are returned."""
        if self._again:
            self._look_again()
        self.turns += 1
        timeout = self._look(_AGAIN_SECONDS if self._again else longest)
        others = []
        listener = self.waiting.listener
        listened = listener.descriptor if listener is not None else -1
        for descriptor, events in self._poller.poll(timeout):
            if descriptor == listened:
                if events & select.POLLIN:
                    self._receive()
                else:  # all programs are gone
                    self._close_listener()
                    self.files.sweep_at = 0.0
            elif descriptor == self._woken:
                os.eventfd_read(descriptor)
            elif descriptor == self._timer.descriptor:
                pass  # it is set anew before the next wait
            elif descriptor in self._watched:
                self._watched[descriptor]()
            else:
                others.append(descriptor)
        return others

    def _look(self, longest: float) -> float:
        """Time has passed or something happened: which calls can be answered? Then wait so many
        milliseconds for something else.
        """
        now = time.monotonic()
        event = self.device.next_event()
        if event is not None and now >= event:
            self.device.tick(now)
            event = self.device.next_event()
        waits = bool(self.waiting)
        if waits:
            self.waiting.look(now)
        sweep_at = self.files.sweep_at
        if sweep_at is not None and now >= sweep_at:
            self._sweep()
        elif now >= self._next_sweep:
            self._sweep()
            self.waiting.look_after(now)
        elif waits:
            self.waiting.look_after(now)
        return self._pause(now, longest, event)

    def _pause(self, now: float, longest: float, event: float | None) -> float:
        """Milliseconds until something is due."""
        until = now + longest
        self._timer.set(event)
        if event is not None and event < until:
            until = event
        sweep_at = self.files.sweep_at
        if sweep_at is not None and sweep_at < until:
            until = sweep_at
        return max(0.0, (self.waiting.first_moment(now, until) - now) * 1000.0)

    def let_go(self, *, whole: bool = False) -> None:
        """Release what programs closed, or held when they ended, without waiting for the next look;
        `whole`: also each mapping's file, where files or memory are short.

        Linux has done that before a program's parent hears of its end. From this thread only.
        """
        for opened in self.descriptors.sweep(whole=whole):
            self.device.released(opened)

    def _sweep(self) -> None:
        self.files.sweep_at = None
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            self.kept.sweep()
            self._count_copies()
        self.let_go()

    def _count_copies(self) -> None:
        """Let go of epoll instances and eventfds that no program has any more."""
        polls, events = self.census.gone(self.files.polls, self.device.events_kept(), self._processes())
        for number in polls:
            self.files.polls.forget(number)
        for number in events:
            self.device.forget_event(number)

    def _processes(self) -> Iterator[int]:
        """All processes of the program, none when it has ended."""
        if self._started is not None:
            yield from descendants(self._started.keeper.pid)

    # -- one call ----------------------------------------------------------------------------------

    def _receive(self) -> None:
        listener = self.waiting.listener
        assert listener is not None
        call = listener.receive()
        if call is None:
            return
        self.calls += 1
        if self.maps.under_way:
            self.maps.under_way.pop(call.tid, None)
        self._answer(listener, call)

    def _look_again(self) -> None:
        """Calls that could not be looked at yet."""
        listener = self.waiting.listener
        again, self._again = self._again, []
        for call in again:
            if listener is not None and listener.is_valid(call):
                self._answer(listener, call)

    def _answer(self, listener: Listener, call: Notification) -> None:
        if self.files.sweep_at is not None and call.number in self._sees_closed:
            self._sweep()  # what was closed before this call is closed
        handler = self._handlers.get(call.number)
        caller = Caller(self.kept, call, listener, self.descriptors)
        answer: Answer | Refused
        try:
            answer = handler(caller, call.args) if handler is not None else Outcome.PROCEED
        except Refused as refused:
            answer = refused
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            answer = Refused(error.errno, "the host has too little memory")
        if answer is Outcome.AGAIN:
            self._again.append(call)
            return
        if self.call_answered.subscriptions:
            self.call_answered.emit(CallAnswered(call, answer))
        if type(answer) is int:
            listener.answer(call, answer)
        elif type(answer) is Later:
            self.waiting.add(call, caller, answer)
        elif answer is Outcome.PROCEED:
            listener.proceed(call)
        elif isinstance(answer, Refused):
            self.waiting.answer(call, -answer.number)
