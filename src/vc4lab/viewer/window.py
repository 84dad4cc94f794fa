"""A window that shows the display and takes keys, by pygame-ce (the extra `window`).

Nothing here moves guest time: the picture is shown when a frame comes. Of a board, keys go to the
serial line; `controls` gives them to programs that have a keyboard and a pointer.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.viewer.controls import Controls, InputSink
from vc4lab.viewer.fitting import Place, Size, first_size, place

if TYPE_CHECKING:
    from PIL import Image

TITLE = "vc4lab"
LOOK_SECONDS = 1 / 30
"""Host time between two looks for keys."""
STAY_SECONDS = 1 / 10
"""Host time between two looks when the program has ended; SDL's own waiting costs more."""
REPEAT_AFTER, REPEAT_EVERY = 400, 40
"""Milliseconds after which a key that is held comes again, and again."""
SPECIAL_KEYS = {
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D",
    "home": b"\x1b[H", "end": b"\x1b[F", "insert": b"\x1b[2~", "delete": b"\x1b[3~",
    "page up": b"\x1b[5~", "page down": b"\x1b[6~",
}  # fmt: skip
"""Bytes that a VT100 sends for the keys without a character."""


_UNSEEN = "offscreen", "dummy"
"""SDL's drivers for a display that it cannot reach: a window there could not be closed."""
_MASKS = 0xFF0000, 0xFF00, 0xFF, 0
"""Masks of the colours in the pixels that `paint` takes."""


class NoWindow(Exception):  # noqa: N818 - said to the user as it is
    """There can be no window here; the text says why."""


def check_display() -> None:
    """Raises NoWindow if there is no display or no pygame-ce."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    ):
        raise NoWindow("there is no display (DISPLAY is not set); continuing without a window")
    try:
        _pygame()
    except ImportError:
        raise NoWindow("a window needs pygame-ce: pip install 'vc4lab[window]'") from None


def _pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import pygame

    return pygame


class Window:
    """The display in a window. All calls from one thread. Raises NoWindow.

    Parameters
    ----------
    title
        The text above it.
    repeats
        Whether a key that is held comes again and again.

    Attributes
    ----------
    closed
        Whether the person has closed it.
    """

    def __init__(self, title: str = TITLE, *, repeats: bool = True) -> None:
        check_display()
        self._pygame = _pygame()
        try:
            self._pygame.display.init()
        except self._pygame.error as error:
            raise NoWindow(f"no window: {error}") from None
        if self._pygame.display.get_driver() in _UNSEEN and not os.environ.get("SDL_VIDEODRIVER"):
            raise NoWindow("the display cannot be reached; continuing without a window")
        self.error: type[Exception] = self._pygame.error
        """The exception that SDL raises when the display is gone."""
        self._title = title
        self._repeats = repeats
        self._window: Any = None
        self._picture: Any = None
        self._next_look = 0.0
        self.closed = False

    def show(self, image: Image.Image) -> None:
        """Show a picture; the window takes its size."""
        if self.closed:
            return
        self._fit(image.size)
        picture = self._pygame.image.frombuffer(image.convert("RGB").tobytes(), image.size, "RGB")
        self._picture.blit(picture, (0, 0))
        self._present()

    def paint(self, size: Size, draw: Callable[[int, int], None]) -> None:
        """Show what `draw(address, pitch)` writes: bytes blue, green, red and one of no meaning."""
        if self.closed:
            return
        self._fit(size)
        target = self._picture
        target.lock()
        try:
            draw(target._pixels_address, target.get_pitch())
        finally:
            target.unlock()
        self._present()

    def _fit(self, size: Size) -> None:
        """Open the window, or give it another size.

        SDL could scale for us (`pygame.display.set_mode` with SCALED), but pygame-ce 2.5.8 uses
        freed memory when such a window takes another size.
        """
        if self._picture is not None and self._picture.get_size() == size:
            return
        pygame = self._pygame
        window_size = first_size(size, pygame.display.get_desktop_sizes()[0])
        if self._window is None:
            self._window = pygame.Window(self._title, window_size, resizable=True)
            if self._repeats:
                pygame.key.set_repeat(REPEAT_AFTER, REPEAT_EVERY)
        else:
            self._window.size = window_size
        self._picture = pygame.Surface(size, 0, 32, _MASKS)

    def _place(self) -> Place:
        """Return the picture's place in the window."""
        return place(self._picture.get_size(), self._window.size)

    def _present(self) -> None:
        """Draw the picture into the window, as large as its shape allows."""
        surface, picture = self._window.get_surface(), self._picture
        left, top, width, height, scale = self._place()
        if (width, height) != surface.get_size():
            surface.fill(0)
        if (width, height) != picture.get_size():
            transform = self._pygame.transform
            enlarge = transform.scale if scale > 1 else transform.smoothscale
            picture = enlarge(picture, (width, height))
        surface.blit(picture, (left, top))
        self._window.flip()

    @property
    def is_open(self) -> bool:
        """Whether there is a window to be seen."""
        return self._window is not None and not self.closed

    def keys(self) -> bytes:
        """Return the bytes typed since, as a serial terminal would send them; notices the closing."""
        now = time.monotonic()
        if not self.is_open or now < self._next_look:
            return b""
        self._next_look = now + LOOK_SECONDS
        return b"".join(self._typed(event) for event in self.events())

    def events(self) -> Iterator[Any]:
        """Yield the events since, places in the picture's pixels; the window's own are handled here."""
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
            elif event.type in (pygame.WINDOWEXPOSED, pygame.WINDOWSIZECHANGED):
                if self.is_open:
                    self._present()  # a picture that stands still is not drawn again by itself
            elif event.type == pygame.MOUSEMOTION and self.is_open:
                pos = self._place().to_picture(event.pos)
                yield pygame.event.Event(event.type, event.dict | {"pos": pos})
            else:
                yield event

    def controls(self, sink: InputSink) -> Controls:
        """Takes the window's events for programs with a keyboard and a pointer."""
        return Controls(self._pygame, sink, self._hold)

    def _hold(self, holds: bool) -> None:
        """Keep the pointer in the window, unseen and without an end to its way; or let it go."""
        if self._window is not None:
            self._window.grab_mouse = holds
            self._pygame.mouse.set_relative_mode(holds)

    def stay(self) -> None:
        """Keep the last picture on the screen until the window is closed, or Ctrl-C."""
        while self.is_open:
            for _event in self.events():
                pass
            time.sleep(STAY_SECONDS)

    def _typed(self, event: Any) -> bytes:
        """Return the bytes that an event means for the serial line."""
        pygame = self._pygame
        if event.type != pygame.KEYDOWN:
            return b""
        text: str = getattr(event, "unicode", "")
        return text.encode() or SPECIAL_KEYS.get(pygame.key.name(event.key), b"")

    def close(self) -> None:
        """Take the window away."""
        self.closed = True
        if self._window is not None:
            self._window.destroy()
            self._window = self._picture = None
        self._pygame.display.quit()
