"""How much of a process's CPU time is Python: the time of its threads outside native calls.

System calls count as Python: they are what the interpreter asks the kernel for. What compiled
code of the project takes, whichever thread calls it, does not. A look costs about a microsecond
for each thread, and each native call about one more, which is counted as Python as well: what a
program costs without a watch is less.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vc4lab.simd.native import NativeFunction

TEAM = "vc4lab-team-"
"""Threads that never leave native code."""


class PythonTime:
    """CPU time of all threads, and of native calls, since the watch began."""

    def __init__(self) -> None:
        self._native: deque[int] = deque()
        """Nanoseconds of native calls since the last look; any thread adds to it."""
        self._spent = 0
        self._clocks: list[int] = []
        self._threads = 0

    def nanoseconds(self) -> tuple[int, int]:
        """CPU time of Python, and of native calls, of the threads that live."""
        if threading.active_count() != self._threads:
            self._threads = threading.active_count()
            self._clocks = [
                time.pthread_getcpuclockid(thread.ident)
                for thread in threading.enumerate()
                if thread.ident is not None and not thread.name.startswith(TEAM)
            ]
        total = sum(map(time.clock_gettime_ns, self._clocks))
        while self._native:
            self._spent += self._native.popleft()
        return total - self._spent, self._spent

    @contextmanager
    def watching(self) -> Iterator[PythonTime]:
        """Native calls are timed meanwhile, of devices that are made meanwhile."""
        add, now = self._native.append, time.thread_time_ns
        plain = NativeFunction.__init__
        replaced: list[tuple[NativeFunction, Any]] = []

        def wrap(function: NativeFunction) -> None:
            call = function.call
            replaced.append((function, call))

            def timed(*args: Any) -> Any:
                start = now()
                result = call(*args)  # it raises nothing
                add(now() - start)
                return result

            function.call = timed

        def made(function: NativeFunction, *args: Any) -> None:
            plain(function, *args)
            wrap(function)

        for thing in gc.get_objects():
            if type(thing) is NativeFunction:
                wrap(thing)
        NativeFunction.__init__ = made  # type: ignore[assignment, method-assign]
        try:
            yield self
        finally:
            NativeFunction.__init__ = plain  # type: ignore[method-assign]
            for function, call in replaced:
                function.call = call
