"""The mouse cursor that the firmware lays over the display (tags 0x8010, 0x8011).

Source: Raspberry Pi firmware wiki, mailbox property interface, set cursor info and state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

    from vc4lab.memory import GuestMemory

MIN_SIDE, MAX_PIXELS = 16, 64 * 64


class Cursor:
    """A small picture with alpha (words 0xAARRGGBB) and where it is.

    Attributes
    ----------
    pixels
        Its bytes as the program gave them, b"" until then.
    """

    def __init__(self) -> None:
        self.width = self.height = 0
        self.pixels = b""
        self.hot_x = self.hot_y = 0
        self.shown = False
        self.x = self.y = 0

    def set_picture(
        self, memory: GuestMemory, width: int, height: int, address: int, hot_x: int, hot_y: int
    ) -> bool:
        """Take the picture at a bus address; False if it makes no sense."""
        if min(width, height) < MIN_SIDE or width * height > MAX_PIXELS:
            return False
        if not memory.contains(address, 4 * width * height) or hot_x >= width or hot_y >= height:
            return False
        self.width, self.height, self.hot_x, self.hot_y = width, height, hot_x, hot_y
        self.pixels = memory.read(address, 4 * width * height)
        return True

    def place(self, shown: int, x: int, y: int) -> bool:
        """Show it with its hot spot at a pixel, or hide it; False without a picture."""
        self.shown, self.x, self.y = bool(shown & 1), x, y
        return bool(self.pixels)

    def paint(self, picture: Image.Image) -> None:
        """Lay it over a picture of the display."""
        width, height = self.width, self.height
        if not self.shown or not self.pixels or len(self.pixels) != 4 * width * height:
            return
        inside = 0 <= self.x < picture.width and 0 <= self.y < picture.height
        if not inside or not (0 <= self.hot_x < width and 0 <= self.hot_y < height):
            return
        from PIL import Image

        cursor = Image.frombytes("RGBA", (width, height), self.pixels, "raw", "BGRA")
        picture.paste(cursor, (self.x - self.hot_x, self.y - self.hot_y), cursor)
