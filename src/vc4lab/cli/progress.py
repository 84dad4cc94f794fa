"""A line of progress on the terminal while a program runs; nothing when there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from vc4lab.soc.machine import Machine

INTERVAL = 0.5


class Progress:
    """Shows frames, guest time and speed on standard error.

    Use as a context manager; `show` prints a line above the progress.
    """

    def __init__(self, enabled: bool, frames: int | None, seconds: float | None) -> None:
        self.enabled = enabled and sys.stderr.isatty()
        self._frames = frames
        self._seconds = seconds
        self._status: Any = None
        self._last = time.monotonic()
        self._shown = 0

    def __enter__(self) -> Progress:
        if self.enabled:
            from rich.console import Console

            self._status = Console(stderr=True).status("starting", spinner="dots")
            self._status.start()
        return self

    def __exit__(self, *_details: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, line: str) -> None:
        """Print a line of the guest's above the progress."""
        if self._status is not None:
            self._status.console.print(line, markup=False, highlight=False)

    def update(self, machine: Machine) -> None:
        """Called at every vsync of the guest."""
        now = time.monotonic()
        if self._status is None or now - self._last < INTERVAL:
            return
        speed = (machine.frames.count - self._shown) / (now - self._last)
        self._last, self._shown = now, machine.frames.count
        frames = str(machine.frames.count)
        if self._frames is not None:
            frames += f" of {self._frames}"
        guest = f"{machine.seconds:.2f} s"
        if self._seconds is not None:
            guest += f" of {self._seconds:g} s"
        self._status.update(f"frame {frames} · guest time {guest} · {speed:.0f} frames/s")
