"""Compares what jobs have drawn, and finds whose draws made the pixels that differ.

Pictures after a draw are drawn natively, without the draws after it. Each pixel that differs in the
end was equal before some draw and differs after it; halving finds that draw for all pixels at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_PICTURES = 48
"""Pairs of pictures that are drawn to find whose draws made the pixels of a job."""
Step = tuple[int, int]
"""Draws of both frames that are kept: numbers of the last ones."""


@dataclass(frozen=True)
class Maker:
    """Some of the pixels that differ, and the draws that made them.

    Attributes
    ----------
    a, b
        First and last draw of each frame that may have made them; None: no draw of it. Both None:
        they differ before any draw.
    count
        How many pixels.
    x, y
        The first of them.
    """

    a: tuple[int, int] | None
    b: tuple[int, int] | None
    count: int
    x: int
    y: int

    def text(self) -> str:
        """The draws in words."""
        if self.a is None and self.b is None:
            return "before any draw"
        if self.a == self.b:
            return _draws(self.a)
        return ", ".join(f"{_draws(one)} of {side}" for one, side in ((self.a, "A"), (self.b, "B")) if one)


def _draws(numbers: tuple[int, int] | None) -> str:
    assert numbers is not None
    return f"draw {numbers[0]}" if numbers[0] == numbers[1] else f"draws {numbers[0]} to {numbers[1]}"


@dataclass
class Pixels:
    """The pixels in which the pictures of two jobs differ.

    Attributes
    ----------
    size, other_size
        Of the pictures; pixels are only compared if they are equal.
    count
        How many differ; None: the sizes do.
    box
        Left, top, right and bottom of the part with differences, all included.
    largest
        The largest difference of a channel of 8 bits; 0: colours have other channels.
    mask
        Which differ: booleans (height, width).
    makers
        Whose draws made them, in order.
    """

    size: tuple[int, int]
    other_size: tuple[int, int]
    count: int | None = None
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    largest: int = 0
    mask: NDArray[np.bool_] | None = field(default=None, repr=False)
    makers: list[Maker] = field(default_factory=list)

    def text(self) -> str:
        """The pixels in one line."""
        width, height = self.size
        if self.count is None:
            return "the pictures have {}x{} and {}x{} pixels".format(*self.size, *self.other_size)
        left, top, right, bottom = self.box
        most = f", by at most {self.largest}" if self.largest else ""
        return f"{self.count} of {width * height} pixels differ, from {left},{top} to {right},{bottom}{most}"

    def as_dict(self) -> dict[str, Any]:
        """The pixels as JSON has them."""
        return {
            "size": list(self.size),
            "other_size": list(self.other_size),
            "count": self.count,
            "box": list(self.box),
            "largest": self.largest,
            "makers": [asdict(one) for one in self.makers],
        }


def pixels_of(one: NDArray[Any], two: NDArray[Any]) -> Pixels | None:
    """Compare words of shape (height, width) each; None: they are equal."""
    size, other = (one.shape[1], one.shape[0]), (two.shape[1], two.shape[0])
    if size != other:
        return Pixels(size, other)
    mask = one != two
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    box = int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])
    largest = 0
    if one.dtype.itemsize == two.dtype.itemsize == 4:
        parts = [side[mask].view(np.uint8).astype(np.int16) for side in (one, two)]
        largest = int(np.abs(parts[0] - parts[1]).max())
    return Pixels(size, other, int(mask.sum()), box, largest, mask)


def find_makers(
    pixels: Pixels, steps: Sequence[Step], words: Callable[[Step], tuple[NDArray[Any], NDArray[Any]]]
) -> None:
    """Say whose draws made the pixels.

    steps: draws that are kept, the first one before any, the last one with all. words: what both have
    drawn then.
    """
    if pixels.mask is None:
        return
    left = [MOST_PICTURES]

    def different(step: Step) -> NDArray[np.bool_]:
        left[0] -= 1
        one, two = words(step)
        found: NDArray[np.bool_] = one != two
        return found

    start = different(steps[0])
    before = pixels.mask & start
    if before.any():
        pixels.makers.append(_maker(None, None, before))
    waiting = [(0, len(steps) - 1, pixels.mask & ~start)]
    while waiting:
        low, high, mask = waiting.pop()
        if not mask.any():
            continue
        if high - low == 1 or left[0] <= 0:
            first, last = steps[low], steps[high]
            a, b = ((first[n] + 1, last[n]) if last[n] > first[n] else None for n in (0, 1))
            pixels.makers.append(_maker(a, b, mask))
            continue
        middle = (low + high) // 2
        here = different(steps[middle])
        waiting += [(middle, high, mask & ~here), (low, middle, mask & here)]


def _maker(a: tuple[int, int] | None, b: tuple[int, int] | None, mask: NDArray[np.bool_]) -> Maker:
    y, x = divmod(int(mask.argmax()), mask.shape[1])
    return Maker(a, b, int(mask.sum()), x, y)
