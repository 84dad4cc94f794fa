"""A window that shows the display and takes keys, by pygame-ce (the extra `window`).

Nothing here moves guest time: the picture is shown when a frame comes. Of a board, keys go to the
serial line; `controls` gives them to programs that have a keyboard and a pointer.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from vc4lab.viewer.controls import Controls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PIL import Image

    from vc4lab.viewer.controls import InputSink

TITLE = "vc4lab"
LOOK_SECONDS = 1 / 30
"""Host time between two looks for keys."""
STAY_SECONDS = 1 / 10
"""The same when the program has ended; SDL's own waiting costs more than looking so seldom."""
REPEAT_AFTER, REPEAT_EVERY = 400, 40
"""Milliseconds after which a key that is held comes again, and again."""
SPECIAL_KEYS = {
    "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D",
    "home": b"\x1b[H", "end": b"\x1b[F", "insert": b"\x1b[2~", "delete": b"\x1b[3~",
    "page up": b"\x1b[5~", "page down": b"\x1b[6~",
}  # fmt: skip
"""What a VT100 sends for the keys without a character."""


_UNSEEN = "offscreen", "dummy"
"""What SDL takes when it reaches no display: a window there could not be closed."""
_MASKS = 0xFF0000, 0xFF00, 0xFF, 0
"""Of the colours in the pixels that `paint` takes."""


class NoWindow(Exception):  # noqa: N818 - said to the user as it is
    """There can be no window here; the text says why."""


def check_display() -> None:
    """Raises NoWindow if there is no display or no pygame-ce."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    ):
        raise NoWindow("there is no display here (DISPLAY is not set); going on without a window")
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
        What stands above it.
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
            raise NoWindow("the display cannot be reached; going on without a window")
        self.error: type[Exception] = self._pygame.error
        """What SDL raises when the display is gone."""
        self._title = title
        self._repeats = repeats
        self._surface: Any = None
        self._next_look = 0.0
        self.closed = False

    def show(self, image: Image.Image) -> None:
        """Show a picture; the window takes its size."""
        if self.closed:
            return
        pygame = self._pygame
        self._fit(image.size)
        picture = pygame.image.frombuffer(image.convert("RGB").tobytes(), image.size, "RGB")
        self._surface.blit(picture, (0, 0))
        pygame.display.flip()

    def paint(self, size: tuple[int, int], draw: Callable[[int, int], None]) -> None:
        """Show what `draw(address, pitch)` writes: bytes blue, green, red and one of no meaning."""
        if self.closed:
            return
        pygame = self._pygame
        self._fit(size)
        target = self._surface
        if target.get_masks() != _MASKS:
            target = pygame.Surface(size, 0, 32, _MASKS)
        target.lock()
        try:
            draw(target._pixels_address, target.get_pitch())
        finally:
            target.unlock()
        if target is not self._surface:
            self._surface.blit(target, (0, 0))
        pygame.display.flip()

    def _fit(self, size: tuple[int, int]) -> None:
        """Open the window, or give it another size."""
        pygame = self._pygame
        if self._surface is not None and self._surface.get_size() == size:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no fast renderer changes nothing
            self._surface = pygame.display.set_mode(size, pygame.RESIZABLE | pygame.SCALED)
        pygame.display.set_caption(self._title)
        if self._repeats:
            pygame.key.set_repeat(REPEAT_AFTER, REPEAT_EVERY)

    @property
    def is_open(self) -> bool:
        """Whether there is a window to be seen."""
        return self._surface is not None and not self.closed

    def keys(self) -> bytes:
        """What was typed since, as a serial terminal would send it; notices the closing."""
        now = time.monotonic()
        if not self.is_open or now < self._next_look:
            return b""
        self._next_look = now + LOOK_SECONDS
        return b"".join(self._typed(event) for event in self.events())

    def events(self) -> Iterator[Any]:
        """What came in since; the window's own business is done."""
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
            elif event.type in (pygame.WINDOWEXPOSED, pygame.WINDOWSIZECHANGED):
                pygame.display.flip()  # a picture that stands still is not drawn again by itself
            else:
                yield event

    def controls(self, sink: InputSink) -> Controls:
        """Takes the window's events for programs with a keyboard and a pointer."""
        return Controls(self._pygame, sink)

    def stay(self) -> None:
        """Keep the last picture on the screen until the window is closed, or Ctrl-C."""
        while self.is_open:
            for _event in self.events():
                pass
            time.sleep(STAY_SECONDS)

    def _typed(self, event: Any) -> bytes:
        """What an event means for the serial line."""
        pygame = self._pygame
        if event.type != pygame.KEYDOWN:
            return b""
        text: str = getattr(event, "unicode", "")
        return text.encode() or SPECIAL_KEYS.get(pygame.key.name(event.key), b"")

    def close(self) -> None:
        """Take the window away."""
        self.closed = True
        self._pygame.display.quit()
