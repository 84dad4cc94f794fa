"""A window's keys and pointer for programs that have a keyboard and a mouse of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from vc4lab.viewer.linux_keys import (
    BUTTON_OF_MOUSE,
    KEY_G,
    KEY_OF_SCANCODE,
    LEFT_ALT,
    LEFT_CONTROL,
    RIGHT_ALT,
    RIGHT_CONTROL,
)


class InputSink(Protocol):
    """Who gets keys and the pointer's movements; called from the window's thread."""

    def key(self, code: int, pressed: bool) -> None:
        """A key goes down or up; Linux's KEY_ number."""

    def motion(self, x: int, y: int) -> None:
        """The pointer is at a pixel of the screen, beyond its edges while the window holds it."""

    def button(self, code: int, pressed: bool) -> None:
        """A button goes down or up; Linux's BTN_ number."""

    def wheel(self, steps: int) -> None:
        """The wheel turns, away from the hand for positive steps."""


class Controls:
    """Translates a window's events. Ctrl+Alt+G holds the pointer in the window, or lets it go.

    While it is held it moves without an end, as games that turn with the mouse need.

    Parameters
    ----------
    pygame
        The module, for the numbers of its events.
    sink
        Who gets what the events mean.
    grab
        Makes the window hold the pointer, or let it go.
    """

    def __init__(self, pygame: Any, sink: InputSink, grab: Callable[[bool], None]) -> None:
        self._pygame = pygame
        self._sink = sink
        self._grab = grab
        self._down: set[int] = set()
        self._buttons: set[int] = set()
        self._place = (0, 0)
        self.holds = False
        """Whether the pointer is held."""

    def take(self, event: Any) -> None:
        """Hand an event on, if it is one of a key or the pointer."""
        pygame = self._pygame
        if event.type in (pygame.KEYDOWN, pygame.KEYUP):
            self._key(event.scancode, event.type == pygame.KEYDOWN)
        elif event.type == pygame.MOUSEMOTION:
            if self.holds:
                x, y = self._place
                self._place = x + event.rel[0], y + event.rel[1]
            else:
                self._place = event.pos
            self._sink.motion(*self._place)
        elif event.type in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP):
            code = BUTTON_OF_MOUSE.get(event.button)
            pressed = event.type == pygame.MOUSEBUTTONDOWN
            if code is not None and pressed != (code in self._buttons):
                self._buttons ^= {code}
                self._sink.button(code, pressed)
        elif event.type == pygame.MOUSEWHEEL:
            if event.y:
                self._sink.wheel(event.y)
        elif event.type == pygame.WINDOWFOCUSLOST:
            self.release()

    def _key(self, scancode: int, pressed: bool) -> None:
        code = KEY_OF_SCANCODE.get(scancode)
        if code is None:
            return
        chord = self._down & {LEFT_CONTROL, RIGHT_CONTROL} and self._down & {LEFT_ALT, RIGHT_ALT}
        if pressed and code == KEY_G and chord:
            self.hold(not self.holds)
        elif pressed != (code in self._down):
            self._down ^= {code}
            self._sink.key(code, pressed)

    def hold(self, holds: bool) -> None:
        """Hold the pointer, or let it go."""
        self.holds = holds
        self._grab(holds)

    def release(self) -> None:
        """Let everything go: what is released elsewhere is not seen here."""
        for code in sorted(self._down):
            self._sink.key(code, False)
        for code in sorted(self._buttons):
            self._sink.button(code, False)
        self._down.clear()
        self._buttons.clear()
        if self.holds:
            self.hold(False)
