"""A picture in the terminal: two pixels per character, as an upper half block in 24-bit colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

UPPER_HALF = "▀"
RESET = "\x1b[0m"
LARGEST_WIDTH = 400


def preview(image: Image.Image, width: int = 80) -> str:
    """`image` as text of `width` columns, one line of text for two lines of pixels.

    The picture is scaled to the width and keeps its proportions; each line ends with a colour
    reset. Never wider than the picture itself.
    """
    from PIL import Image

    columns = max(1, min(width, image.width, LARGEST_WIDTH))
    rows = max(2, round(image.height * columns / image.width))
    rows += rows & 1
    small = image.convert("RGB").resize((columns, rows), Image.Resampling.BOX)
    data = small.tobytes()
    lines = []
    for row in range(0, rows, 2):
        line: list[str] = []
        last: tuple[bytes, bytes] | None = None
        for column in range(columns):
            above = 3 * (row * columns + column)
            below = above + 3 * columns
            pair = data[above : above + 3], data[below : below + 3]
            if pair != last:
                (r, g, b), (r2, g2, b2) = pair
                line.append(f"\x1b[38;2;{r};{g};{b};48;2;{r2};{g2};{b2}m")
                last = pair
            line.append(UPPER_HALF)
        lines.append("".join(line) + RESET)
    return "\n".join(lines)
