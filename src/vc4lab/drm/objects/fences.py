"""Fences: they signal when a job of the GPU is done or a picture is on the screen."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from vc4lab.drm.processes.descriptors import Opened, kept
from vc4lab.drm.processes.targets import DescriptorInfo

_lock = threading.Lock()
"""A lock for all fences: what is done under it is short, and a job has one of its own without more."""


class Fence:
    """Done or not yet; callbacks run once, in the thread that is done.

    `moment` is when it was done, in seconds of time.monotonic.
    """

    __slots__ = ("_callbacks", "is_done", "moment")

    def __init__(self, *, done: bool = False) -> None:
        self.moment = time.monotonic() if done else 0.0
        self.is_done = done
        self._callbacks: list[Callable[[], None]] | None = None

    def signal(self) -> None:
        """It is done."""
        with _lock:
            self.moment = time.monotonic()
            self.is_done = True
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback()

    def then(self, callback: Callable[[], None]) -> None:
        """Call when it is done, at once if it is."""
        with _lock:
            if not self.is_done:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, seconds: float) -> bool:
        """Wait in this thread; whether it is done."""
        if not self.is_done:
            done = threading.Event()
            self.then(done.set)
            done.wait(seconds)
        return self.is_done


def all_of(fences: Iterable[Fence]) -> Fence:
    """A fence that is done when all others are."""
    pending = [fence for fence in fences if not fence.is_done]
    result = Fence(done=not pending)
    left = len(pending)
    lock = threading.Lock()

    def one() -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            result.signal()

    for fence in pending:
        fence.then(one)
    return result


class SyncObject(Opened):
    """A box for a fence."""

    def __init__(self, fence: Fence | None = None) -> None:
        self.fence = fence


class SyncFiles:
    """Fences as descriptors of programs: eventfds, which can be polled.

    An eventfd is known by the number that /proc shows. Our copy is closed when the fence is done;
    an unknown eventfd that is readable stands for a fence that has signalled.
    """

    def __init__(self) -> None:
        self._pending: dict[int, tuple[int, Fence]] = {}
        self._lock = threading.Lock()

    def make(self, fence: Fence) -> int:
        """The supervisor's descriptor for a fence, to be copied and closed by the caller."""
        descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
                number = DescriptorInfo(file.read()).event_number
            copy = kept(os.dup(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        with self._lock:
            self._pending[number] = copy, fence

        def done() -> None:
            with self._lock:
                if self._pending.get(number, (0, None))[1] is not fence:
                    return  # no program has it any more
                os.eventfd_write(copy, 1)  # first, for callers that no longer find it here
                del self._pending[number]
            os.close(copy)

        fence.then(done)
        return descriptor

    def __iter__(self) -> Iterator[int]:
        with self._lock:
            return iter(list(self._pending))

    def forget(self, number: int) -> None:
        """Let go of one that no program has any more."""
        with self._lock:
            found = self._pending.pop(number, None)
        if found is not None:
            os.close(found[0])

    def find(self, look: Callable[[], DescriptorInfo | None]) -> Fence | None:
        """The fence of a descriptor, None if it is no sync file; `look` reads its fdinfo."""
        info = look()
        if info is None or info.value(b"eventfd-count") is None:
            return None
        with self._lock:
            found = self._pending.get(info.event_number)
        if found is not None:
            return found[1]
        info = look()  # it may have been done between the first look and the lock
        count = info.value(b"eventfd-count") if info is not None else None
        return Fence(done=True) if count is not None and int(count, 16) else None
