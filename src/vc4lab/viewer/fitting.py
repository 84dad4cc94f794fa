"""Size and position of a picture in a window."""

from __future__ import annotations

from typing import NamedTuple

Size = tuple[int, int]
"""Width and height in pixels."""
PART_OF_DESKTOP = 4, 5
"""Part of the desktop's width and height that a window takes at most when it opens: 4 / 5."""


class Place(NamedTuple):
    """A picture's place in a window, in pixels of the window; scale: how many show one of the picture."""

    left: int
    top: int
    width: int
    height: int
    scale: float

    def to_picture(self, pos: Size) -> Size:
        """The picture's pixel at a pixel of the window, beyond the picture's edges too."""
        return int((pos[0] - self.left) // self.scale), int((pos[1] - self.top) // self.scale)


def first_size(picture: Size, desktop: Size) -> Size:
    """Return a window's size: as many whole times the picture's as the desktop has room for."""
    part, whole = PART_OF_DESKTOP
    times = min(room * part // whole // length for room, length in zip(desktop, picture, strict=True))
    if times >= 1:
        return picture[0] * times, picture[1] * times
    return place(picture, (desktop[0] * part // whole, desktop[1] * part // whole))[2:4]


def place(picture: Size, window: Size) -> Place:
    """A picture as large as a window allows, in its middle, with its own shape."""
    scale = min(window[0] / picture[0], window[1] / picture[1])
    width = max(1, round(picture[0] * scale))
    height = max(1, round(picture[1] * scale))
    return Place((window[0] - width) // 2, (window[1] - height) // 2, width, height, scale)
