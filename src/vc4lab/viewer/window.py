"""A window that shows the display and takes keys, by pygame-ce (the extra `window`).

Nothing here moves guest time: the picture is shown when a frame comes, keys go to the serial line.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

TITLE = "vc4lab"
LOOK_SECONDS = 1 / 30
"""Host time between two looks for keys."""


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
    """The display in a window. Raises NoWindow.

    Attributes
    ----------
    closed
        Whether the person has closed it.
    """

    def __init__(self, title: str = TITLE) -> None:
        check_display()
        self._pygame = _pygame()
        try:
            self._pygame.display.init()
        except self._pygame.error as error:
            raise NoWindow(f"no window: {error}") from None
        self._title = title
        self._surface: Any = None
        self._next_look = 0.0
        self.closed = False

    def show(self, image: Image.Image) -> None:
        """Show a picture; the window takes its size."""
        if self.closed:
            return
        pygame = self._pygame
        if self._surface is None or self._surface.get_size() != image.size:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "no fast renderer" is nobody's business
                flags = pygame.RESIZABLE | pygame.SCALED
                self._surface = pygame.display.set_mode(image.size, flags)
            pygame.display.set_caption(self._title)
        picture = pygame.image.frombuffer(image.convert("RGB").tobytes(), image.size, "RGB")
        self._surface.blit(picture, (0, 0))
        pygame.display.flip()

    def keys(self) -> bytes:
        """What was typed since, as a serial terminal would send it; notices the closing."""
        now = time.monotonic()
        if self.closed or self._surface is None or now < self._next_look:
            return b""
        self._next_look = now + LOOK_SECONDS
        pygame = self._pygame
        typed = b""
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
            elif event.type == pygame.KEYDOWN:
                typed += getattr(event, "unicode", "").encode()
        return typed

    def close(self) -> None:
        """Take the window away."""
        self.closed = True
        self._pygame.display.quit()
