"""Signals that arrive while `vc4lab drm` and `vc4lab gl` run programs."""

from __future__ import annotations

import signal
from typing import Any, Protocol


class Runs(Protocol):
    """What runs programs."""

    def interrupt(self) -> None:
        """Ctrl-C came here; it may have come to the programs, too."""

    def stop(self) -> None:
        """End the programs."""


class RunSignals:
    """A context in which Ctrl-C is the program's, and SIGTERM and SIGHUP end the programs.

    Pictures and recordings are saved after each of them. What was ignored when vc4lab was started
    (by nohup, by a script that starts it in the background) stays ignored.
    """

    def __init__(self, runs: Runs) -> None:
        self.came = False
        """Whether one of them came: then the window does not stay."""
        self._runs = runs
        self._held: list[tuple[int, Any]] = []

    def __enter__(self) -> RunSignals:
        for number, handler in (
            (signal.SIGINT, self._interrupt),
            (signal.SIGTERM, self._stop),
            (signal.SIGHUP, self._stop),
        ):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._held.append((number, signal.signal(number, handler)))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._held:
            signal.signal(number, handler)

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
