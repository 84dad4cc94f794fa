"""Pictures of a device's screen: what it shows, and what it showed last."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vc4lab.drm.kms.scanout import shown_by
from vc4lab.images.pixels import png_bytes
from vc4lab.scanout.composer import Composer, Shown, picture_of

if TYPE_CHECKING:
    import numpy
    from PIL.Image import Image

    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.drm.kms.screen import Screen
    from vc4lab.memory import GuestMemory

LONGEST_WAIT = 1.0
"""Seconds that a picture waits for one that is handed over but not drawn yet."""


class FinalScreen:
    """The screen as programs left it."""

    def __init__(self, pixels: numpy.ndarray[Any, Any] | None, frames: int) -> None:
        self._pixels = pixels
        self.frames = frames
        """Pictures shown in this run."""

    @cached_property
    def image(self) -> Image | None:
        """The last picture; None if there was none."""
        return picture_of(self._pixels) if self._pixels is not None else None

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return png_bytes(self.image)


class RunResult(int):
    """A program's exit code (128 + the number of the signal that ended it), and what it left."""

    screen: FinalScreen

    def __new__(cls, code: int, screen: FinalScreen) -> RunResult:
        """A code with the screen that belongs to it."""
        made = super().__new__(cls, code)
        made.screen = screen
        return made

    @property
    def exit_code(self) -> int:
        """The plain number."""
        return int(self)

    @property
    def frames(self) -> int:
        """Pictures shown in this run."""
        return self.screen.frames

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return self.screen._repr_png_()


class FrameSource:
    """The frames of a screen for a window that draws in a thread of its own.

    `notice` is called in the supervisor's thread while a frame is on the screen: what programs
    commit next is not shown before its time. The frame stays whole for as long as it is on the
    screen; a window that comes later than that may show parts of the next but one.
    """

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._seen: Shown | None = None
        self._drawn: Shown | None = None

    def notice(self) -> None:
        """A frame came."""
        self._seen = self._pictures.shown

    def size(self) -> tuple[int, int] | None:
        """The size of the frame that `draw` will give."""
        self._drawn = shown = self._seen
        return (shown.width, shown.height) if shown is not None else None

    def draw(self, address: int, pitch: int) -> None:
        """The frame into memory, as `Composer.draw` does."""
        if self._drawn is not None:
            self._pictures.composer.draw(self._drawn, address, pitch)


class Pictures:
    """Makes pictures of a screen, and keeps the one that went away last.

    While programs run, only the supervisor's thread knows what is on the screen: a buffer is the
    screen's as soon as a program hands it over, before it is drawn, and the one before it is drawn
    into again as soon as it has left. Other threads ask for their picture.
    """

    def __init__(self, screen: Screen, memory: GuestMemory, unknowns: Unknowns) -> None:
        self._screen = screen
        self.composer = Composer(memory, unknowns)
        self._last: numpy.ndarray[Any, Any] | None = None
        self.wake: Callable[[], None] = lambda: None
        """Called when there is something for the supervisor's thread to do."""
        self._lock = threading.Lock()
        self._server: int | None = None
        """The thread that answers programs."""
        self._asked: list[tuple[float, Future[numpy.ndarray[Any, Any] | None]]] = []
        """When they asked, and what they wait for."""

    @contextlib.contextmanager
    def served_by_this_thread(self) -> Iterator[None]:
        """Programs run: other threads' questions are answered by this one."""
        with self._lock:
            self._server = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                self._server = None
            self._answer()

    def ask(self) -> numpy.ndarray[Any, Any] | None:
        """`pixels`, from any thread."""
        with self._lock:
            if self._server in (None, threading.get_ident()):
                return self.pixels
            future: Future[numpy.ndarray[Any, Any] | None] = Future()
            self._asked.append((time.monotonic(), future))
        self.wake()
        return future.result()

    def next_event(self) -> float | None:
        """When `tick` has something to do."""
        if not self._asked:
            return None
        return self._asked[0][0] + LONGEST_WAIT if self._screen.flips else 0.0

    def tick(self, now: float) -> None:
        """Answer the waiting calls, if every picture handed over is visible."""
        if self._asked and (not self._screen.flips or now >= self._asked[0][0] + LONGEST_WAIT):
            self._answer()

    def _answer(self) -> None:
        with self._lock:
            asked, self._asked = self._asked, []
        if asked:
            try:
                pixels = self.pixels
            except Exception as error:
                for _, future in asked:
                    future.set_exception(error)
                return
            for _, future in asked:
                future.set_result(pixels)

    @property
    def shown(self) -> Shown | None:
        """Give what is on the screen now, as numbers; None while it is off."""
        return shown_by(self._screen)

    def keep(self) -> None:
        """Keep the picture of what is shown, which goes away now."""
        self._last = self.pixels

    @property
    def pixels(self) -> numpy.ndarray[Any, Any] | None:
        """Give what the screen shows, or what it showed last, as bytes blue, green, red and another."""
        shown = self.shown if not self._screen.is_over else None
        return self.composer.pixels(shown) if shown is not None else self._last

    @property
    def image(self) -> Image | None:
        """Give what the screen shows as an RGB picture."""
        pixels = self.pixels
        return picture_of(pixels) if pixels is not None else None
