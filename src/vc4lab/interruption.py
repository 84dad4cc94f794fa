"""Signals that end a run: noted when they come, raised where an exception can be passed on.

An exception in native code's call back to Python is printed and dropped, and Python lets handlers
raise anywhere. So in regions that call native code (`deferred`) the handler only takes note, and
the region raises `Interrupted` at its safe points (`look`) and at its end. A second signal ends
the process at once. The state is the process's, as signals are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Self

ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
SAME_SECONDS = 0.25
"""A SIGTERM that comes again so soon is the same one: `timeout` sends its own to the process and to
its group."""
PATIENCE = 0.5
"""Seconds after which work that is normally short ends in its middle, not at a good moment."""
AGAIN = b"\ninterrupted again: ended at once, nothing more is saved\n"


class Interrupted(KeyboardInterrupt):
    """A signal has asked for the end; `number`: which."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = int(number)


class _State:
    """Keeps what came, and what the main thread is doing."""

    def __init__(self) -> None:
        self.came = 0
        """The signal that came and has not been dealt with."""
        self.last = 0
        self.last_at = 0.0
        self.depth = 0
        """Regions around what the main thread does."""
        self.owners = 0
        """Regions whose owner looks at `came` itself."""
        self.protected = 0
        self.message = b""
        self.undo: list[Callable[[], None]] = []
        self.pipe: tuple[int, int] | None = None


_state = _State()
_MAIN = threading.main_thread().ident


def came() -> int:
    """The signal that asks for the end, for an owner of a region; 0: none."""
    return _state.came


def is_overdue() -> bool:
    """Whether a signal waits for longer than `PATIENCE`: long work is given up in its middle.

    For all threads, and for callbacks of native code, which must not raise.
    """
    if not _state.came or _state.owners:
        return False
    return time.monotonic() - _state.last_at > PATIENCE


def look_if_overdue() -> None:
    """A safe point in the middle of work that is normally short: raise Interrupted."""
    if _state.came and is_overdue():
        look()


def look() -> None:
    """A safe point: raise Interrupted if a signal has come."""
    if _state.came and not _state.owners and threading.get_ident() == _MAIN:
        raise Interrupted(_state.came)


def dealt_with() -> None:
    """Note that what ran has been ended and something follows: a further signal is a first one again."""
    _state.came = 0


class deferred:  # noqa: N801 - read as a phrase: with interruption.deferred()
    """A region in which signals wait for the next safe point; its end is one.

    takes_over: also Python's own Ctrl-C, while it lasts, so that programs which use vc4lab as a
    library get their KeyboardInterrupt, too.
    """

    __slots__ = ("_installed", "_is_main", "_takes_over")

    def __init__(self, takes_over: bool = False) -> None:
        self._takes_over = takes_over
        self._is_main = self._installed = False

    def __enter__(self) -> Self:
        self._is_main = threading.get_ident() == _MAIN
        if self._is_main:
            if not _state.depth:
                look()
            _state.depth += 1
            if self._takes_over and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, arrive)
                self._installed = True
        return self

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if not self._is_main:
            return
        number = 0
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            number, _state.came, _state.last = _state.came, 0, 0
        _state.depth -= 1
        if kind is not None:
            return
        if number:
            raise Interrupted(number)
        if _state.came and not _state.depth:
            look()


@contextlib.contextmanager
def owned(message: str = "") -> Iterator[None]:
    """A region whose owner asks `came()` and ends what runs; nothing is raised in it.

    message: printed on standard error when the first signal comes.
    """
    _state.depth += 1
    _state.owners += 1
    before, _state.message = _state.message, message.encode()
    try:
        yield
    finally:
        _state.message = before
        _state.owners -= 1
        _state.depth -= 1


@contextlib.contextmanager
def protected() -> Iterator[None]:
    """A region that no signal ends, not even a second one: it changes a file of the user's."""
    _state.depth += 1
    _state.protected += 1
    try:
        yield
    finally:
        _state.protected -= 1
        _state.depth -= 1


def undo_at_end(call: Callable[[], None]) -> Callable[[], None]:
    """`call` (it restores a terminal) where the process ends at once; returns what forgets it."""
    _state.undo.append(call)

    def forget() -> None:
        with contextlib.suppress(ValueError):
            _state.undo.remove(call)

    return forget


def arrive(number: int, _frame: FrameType | None) -> None:
    """The handler of `ENDING`."""
    now = time.monotonic()
    if number == _state.last and number != signal.SIGINT:
        # A terminal that is closed sends SIGHUP more than once.
        if number == signal.SIGHUP or now - _state.last_at < SAME_SECONDS:
            return
    _state.last, _state.last_at = number, now
    before, _state.came = _state.came, number
    if not _state.depth:
        raise Interrupted(number)
    if before and not _state.protected:
        _end_at_once(number)
    with contextlib.suppress(OSError):
        if not before and _state.message:
            os.write(2, _state.message)  # not by a stream: it may be in use at this moment
        if _state.pipe is not None:
            os.write(_state.pipe[1], b"!")


def descriptor() -> int:
    """Becomes readable when a signal comes, for sleeps in a region."""
    if _state.pipe is None:
        _state.pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    return _state.pipe[0]


def drain() -> None:
    """Take what made `descriptor` readable, so that it waits for the next signal."""
    if _state.pipe is not None:
        with contextlib.suppress(OSError):
            os.read(_state.pipe[0], 4096)


def install() -> None:
    """Take over the signals that would end the process; what is ignored (nohup) stays so."""
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, arrive)


def uninstall() -> None:
    """Back to how they end a process."""
    for number in ENDING:
        if signal.getsignal(number) is arrive:
            signal.signal(number, signal.SIG_DFL)


def _end_at_once(number: int) -> None:
    """Nothing is in order afterwards but the terminal."""
    for call in reversed(_state.undo):
        with contextlib.suppress(Exception):
            call()
    with contextlib.suppress(OSError):
        os.write(2, AGAIN)
    os._exit(128 + number)
