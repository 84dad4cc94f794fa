"""Signals that arrive while `vc4lab drm` and `vc4lab gl` run programs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, Protocol

PATIENCE = 10.0
"""Seconds after a signal until the thread that serves the programs is taken to be stuck."""
_LAST_PATIENCE = 3.0


class Runs(Protocol):
    """Runs programs, and ends them when asked to."""

    def interrupt(self) -> None:
        """Ctrl-C came here; it may have come to the programs, too."""

    def stop(self) -> None:
        """End the programs."""


class Serves(Runs, Protocol):
    """Runs programs and serves them in the main thread."""

    @property
    def turns(self) -> int:
        """A number that changes once a second at least, as long as it serves."""

    def wake(self) -> None:
        """Let the main thread look up; from any thread."""

    def abandon(self) -> None:
        """End the programs; from any thread, while the main thread waits for something."""


class RunSignals:
    """A context in which Ctrl-C is the program's, and SIGTERM and SIGHUP end the programs.

    Pictures and recordings are saved after each of them. What was ignored when vc4lab was started
    (by nohup, by a script that starts it in the background) stays ignored.

    Parameters
    ----------
    serves
        What serves the programs. If it is stuck, a thread beside it ends the command.
    """

    def __init__(self, runs: Runs, serves: Serves | None = None) -> None:
        self.came = False
        """Whether one of them came: then the window does not stay."""
        self._runs = runs
        self._serves = serves
        self._over = threading.Event()
        self._held: list[tuple[int, Any]] = []
        self._pipe: tuple[int, int] | None = None
        self._wakes_before = -1
        self._blocked_before: set[int | signal.Signals] = set()

    def __enter__(self) -> RunSignals:
        for number, handler in (
            (signal.SIGINT, self._interrupt),
            (signal.SIGTERM, self._stop),
            (signal.SIGHUP, self._stop),
        ):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._held.append((number, signal.signal(number, handler)))
        if self._serves is not None:
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            self._wakes_before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
            args = self._serves, self._pipe[0]
            threading.Thread(target=self._watch, args=args, daemon=True).start()
            numbers = [number for number, _ in self._held]
            self._blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._pipe is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked_before)
            signal.set_wakeup_fd(self._wakes_before)
            os.close(self._pipe[1])  # the thread that watches closes the other end
            self._pipe = None
        for number, handler in self._held:
            signal.signal(number, handler)

    def _watch(self, serves: Serves, end: int) -> None:
        """Signals arrive in this thread: the main one may be where none would wake it."""
        handled = {number for number, _ in self._held}
        while came := os.read(end, 1):
            number = came[0]
            if number not in handled:
                continue
            serves.wake()  # its handler is called there
            before, until = serves.turns, time.monotonic() + PATIENCE
            while not self._over.wait(0.1) and time.monotonic() < until:
                if serves.turns == before:
                    continue
                if number == signal.SIGINT:
                    break  # the program's own, and it was handed on
                before, until = serves.turns, time.monotonic() + PATIENCE
            else:
                self._leave(serves, number)
        os.close(end)

    def _leave(self, serves: Serves, number: int) -> None:
        """The main thread does nothing any more: end the programs, and then this process."""
        if self._over.is_set():
            return
        serves.abandon()
        if self._over.wait(_LAST_PATIENCE):
            return  # it was a program that it waited for
        with contextlib.suppress(OSError):
            os.write(2, b"vc4lab: the device did not answer; the programs are ended\n")
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(128 + number)

    def _interrupt(self, *_: object) -> None:
        self.came = True
        self._runs.interrupt()

    def _stop(self, *_: object) -> None:
        self.came = True
        self._runs.stop()


class EarlySignals:
    """Takes note of signals that come before there is a program to hand them to.

    The thread that starts the program blocks them; others do not, and would end the process.
    """

    def __init__(self) -> None:
        self._came: list[int] = []
        self._before = {
            number: signal.signal(number, lambda number, _frame: self._came.append(number))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) is not signal.SIG_IGN
        }

    def __enter__(self) -> EarlySignals:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def repeat(self) -> None:
        """Raise again what came, now that there are other handlers."""
        for number in self._came:
            signal.raise_signal(number)
