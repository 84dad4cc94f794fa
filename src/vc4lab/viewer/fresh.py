"""The display's picture, converted only when it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

    from vc4lab.soc.machine import Machine


class FreshPictures:
    """Remembers the picture that was taken last.

    Attributes
    ----------
    taken
        Pictures taken so far.
    """

    def __init__(self, machine: Machine) -> None:
        self._frames = machine.frames
        self._framebuffer = machine.videocore.framebuffer
        self._moves = -1
        self._look: tuple[object, ...] = ()
        self._bytes = b""
        self.taken = 0

    def take(self) -> Image.Image | None:
        """The picture if it is another than the one taken last, else (or without one) None."""
        frames, framebuffer = self._frames, self._framebuffer
        if not framebuffer.is_shown or frames.moves == self._moves:
            return None
        self._moves = frames.moves
        look = self._how()
        if look == self._look and framebuffer.holds(self._bytes):
            return None
        self._look, self._bytes = look, framebuffer.content()
        self.taken += 1
        return framebuffer.image()

    def _how(self) -> tuple[object, ...]:
        """Return a key of all settings that decide how the content looks."""
        framebuffer = self._framebuffer
        if framebuffer.composed is not None:
            return ("composed",)
        g = framebuffer.geometry
        palette = tuple(framebuffer.palette) if g.depth <= 8 else ()
        return g, framebuffer.blank, framebuffer.order_told, framebuffer.low_first, palette
