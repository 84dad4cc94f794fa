"""Pictures of a device's screen: what it shows, and what it showed last."""

from __future__ import annotations

from functools import cached_property
from io import BytesIO
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

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        image = self.image
        if image is None:
            return None
        data = BytesIO()
        image.save(data, "PNG")
        return data.getvalue()


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
        """Of the frame that `draw` will give."""
        self._drawn = shown = self._seen
        return (shown.width, shown.height) if shown is not None else None

    def draw(self, address: int, pitch: int) -> None:
        """The frame into memory, as `Composer.draw` does."""
        if self._drawn is not None:
            self._pictures.composer.draw(self._drawn, address, pitch)


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
