"""Pictures of a device's screen: what it shows, and what it showed last."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from vc4lab.drm.kms.scanout import Composer, Shown, picture_of, shown_by

if TYPE_CHECKING:
    import numpy
    from PIL.Image import Image

    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.drm.kms.screen import Screen
    from vc4lab.memory import GuestMemory


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


class Pictures:
    """Makes pictures of a screen, and keeps the one that went away last."""

    def __init__(self, screen: Screen, memory: GuestMemory, unknowns: Unknowns) -> None:
        self._screen = screen
        self.composer = Composer(memory, unknowns)
        self._last: numpy.ndarray[Any, Any] | None = None

    @property
    def shown(self) -> Shown | None:
        """What is on the screen now, as numbers; None while it is off."""
        return shown_by(self._screen)

    def keep(self) -> None:
        """What is shown goes away now: keep its picture."""
        shown = self.shown
        if shown is not None:
            self._last = self.composer.pixels(shown)

    @property
    def pixels(self) -> numpy.ndarray[Any, Any] | None:
        """What the screen shows, or what it showed last, as bytes blue, green, red and another."""
        shown = self.shown
        return self.composer.pixels(shown) if shown is not None else self._last

    @property
    def image(self) -> Image | None:
        """The same as an RGB picture."""
        pixels = self.pixels
        return picture_of(pixels) if pixels is not None else None
