"""Calls whose answers come later: when they can be answered, and by which thread."""

from __future__ import annotations

import select
import threading
import time
from dataclasses import dataclass
from functools import partial

from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi.results import Later, Refused

LOOK_AFTER = 0.05
"""Seconds between looks whether callers that wait are alive and have no signals."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call whose answer comes later."""

    call: Notification
    caller: Caller
    later: Later


class WaitingCalls:
    """The calls of one supervisor that wait for their answers.

    Attributes
    ----------
    listener
        Where calls come from and answers go to, while a program runs.
    """

    def __init__(self, poller: select.poll) -> None:
        self.listener: Listener | None = None
        self._poller = poller
        self._waiting: list[_Waiting] = []
        """Calls that are asked about after whatever happens."""
        self._promised: dict[_Waiting, None] = {}
        """Calls that another thread will answer. Who takes one out answers it."""
        self._answering = threading.Lock()
        """Held while another thread answers, and while the listener is closed."""
        self._next_look = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._promised)

    @property
    def asks(self) -> bool:
        """Whether one waits for what `Supervisor.wake` may announce; from any thread."""
        return bool(self._waiting)

    def close_listener(self) -> None:
        """All programs are gone: there are no more answers, from any thread."""
        with self._answering:
            if self.listener is not None:
                self.listener.close()
                self.listener = None

    def clear(self) -> None:
        """No call waits any more."""
        for waiting in self._waiting:
            self._drop(waiting)
        self._waiting.clear()
        self._promised.clear()

    def answer(self, call: Notification, result: int) -> None:
        """The answer to a call, if there is still one to be given."""
        if self.listener is not None:
            self.listener.answer(call, result)

    def add(self, call: Notification, caller: Caller, later: Later) -> None:
        """From now on a call waits."""
        waiting = _Waiting(call, caller, later)
        if not self:  # most waits are over before that
            self._next_look = time.monotonic() + LOOK_AFTER
        if later.when is not None:
            self._promised[waiting] = None
            later.when(partial(self._keep_promise, waiting))
            return
        if later.watch is not None:
            self._poller.register(later.watch, select.POLLIN)
        self._waiting.append(waiting)

    def look(self, now: float) -> None:
        """Answer the calls that can be answered, or have waited too long."""
        for waiting in self._all():
            result = _result_of(waiting.later) if waiting.later.when is None else None
            late = waiting.later.deadline is not None and now >= waiting.later.deadline
            if result is None and late:
                result = waiting.later.late
            if result is not None and self._end(waiting):
                self.answer(waiting.call, result)

    def look_after(self, now: float) -> None:
        """Calls whose threads died or got a signal do not wait any more."""
        if now < self._next_look:
            return
        self._next_look = now + LOOK_AFTER
        for waiting in self._all():
            if self.listener is None or not self.listener.is_valid(waiting.call):
                self._end(waiting)
                continue
            answer = waiting.caller.interruption()
            if answer is not None and self._end(waiting):
                self.answer(waiting.call, answer)

    def first_moment(self, now: float, until: float) -> float:
        """When a look at them is due, or `until` if that is earlier."""
        if not self:
            return until
        deadlines = (waiting.later.deadline for waiting in self._all())
        return min(until, now + LOOK_AFTER, *(moment for moment in deadlines if moment is not None))

    def _all(self) -> list[_Waiting]:
        if not self._promised:
            return self._waiting[:]
        return self._waiting + list(self._promised)

    def _end(self, waiting: _Waiting) -> bool:
        """It does not wait any more; False if another thread was faster."""
        if waiting.later.when is not None:
            return self._promised.pop(waiting, False) is None
        self._waiting.remove(waiting)
        self._drop(waiting)
        return True

    def _keep_promise(self, waiting: _Waiting) -> None:
        """Answer a call from the thread that did what it waits for."""
        with self._answering:
            result = waiting.later.done()
            if result is not None and self.listener is not None and self._end(waiting):
                self.listener.answer(waiting.call, result)

    def _drop(self, waiting: _Waiting) -> None:
        if waiting.later.watch is not None:
            self._poller.unregister(waiting.later.watch)
        if waiting.later.drop is not None:
            waiting.later.drop()


def _result_of(later: Later) -> int | None:
    try:
        return later.done()
    except Refused as refused:
        return -refused.number
