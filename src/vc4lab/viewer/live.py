"""A window in a separate thread, so that the screen's programs do not wait for it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from vc4lab.viewer.controls import Controls, InputSink
from vc4lab.viewer.window import Window, check_display

LOOK_SECONDS = 1 / 60
"""Between two looks for keys."""
MIN_SECONDS = 1 / 100
"""Between two pictures."""
NICE = 10


class Source(Protocol):
    """Makes pictures; asked by the window's thread."""

    def size(self) -> tuple[int, int] | None:
        """Return width and height of the picture in pixels; None: there is none."""

    def draw(self, address: int, pitch: int) -> None:
        """Write the picture of that size: bytes blue, green, red and one of no meaning."""


class LiveWindow:
    """Shows a source's pictures as they change. Raises NoWindow.

    Parameters
    ----------
    title
        The text above it.
    source
        Who makes the pictures, in the window's thread.
    sink
        Who gets keys and the pointer.
    on_close
        Called when the person closes the window.
    """

    def __init__(
        self,
        title: str,
        source: Source,
        sink: InputSink | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        check_display()
        self._title = title
        self._source = source
        self._sink = sink
        self._on_close = on_close
        self._ready = threading.Event()
        self._wake = threading.Event()
        self._fresh = False
        self._painting = False
        self._stopped = False
        self._problem: Exception | None = None
        self.failure = ""
        """Why the window went away by itself."""
        self.closed = False
        """Whether the person has closed it."""
        self.painted = 0
        """Pictures shown."""
        self._thread = threading.Thread(target=self._serve, name="window", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem

    def notice(self) -> None:
        """There is another picture; may be called from any thread."""
        self._fresh = True
        self._wake.set()

    def stay(self) -> None:
        """Wait until the person closes the window, or Ctrl-C; at once if there never was one."""
        while self.has_picture and not self.closed and self._thread.is_alive():
            self._thread.join(0.1)

    @property
    def has_picture(self) -> bool:
        """Whether there is a picture in the window, or one on its way there."""
        # in this order: a picture is always in one of the three
        return bool(self._fresh or self._painting or self.painted)

    def close(self) -> None:
        """Take the window away."""
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _serve(self) -> None:
        """Everything of SDL happens in this thread."""
        try:
            window = Window(self._title, repeats=False)
        except Exception as problem:
            self._problem = problem
            self._ready.set()
            return
        with contextlib.suppress(OSError):  # programs and their GPU come first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        self._ready.set()
        controls = window.controls(self._sink) if self._sink is not None else None
        try:
            self._show(window, controls)
        except window.error as error:
            self.failure = str(error)
        finally:
            if controls is not None:
                controls.release()
            if window.closed:
                self.closed = True
                self._on_close()
            window.close()

    def _show(self, window: Window, controls: Controls | None) -> None:
        while not self._stopped and not window.closed:
            if self._wake.wait(LOOK_SECONDS):
                self._wake.clear()
            if self._fresh:
                self._painting = True
                self._fresh = False
                self._paint(window)
                self._painting = False
                time.sleep(MIN_SECONDS)
            for event in window.events() if window.is_open else ():
                if controls is not None:
                    controls.take(event)

    def _paint(self, window: Window) -> None:
        size = self._source.size()
        if size is not None:
            window.paint(size, self._source.draw)
            self.painted += 1
