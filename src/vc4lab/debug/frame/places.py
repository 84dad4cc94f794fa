"""Finds places in a captured frame: pixels of surfaces, and positions as links have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.memory import MEMORY_MASK

if TYPE_CHECKING:
    from vc4lab.jobs.model import Shown
    from vc4lab.v3d.state.frame_mode import Surface


class NoSuchPlace(Exception):  # noqa: N818 - an answer to a question
    """There is no such frame, draw or pixel; the text says what there is."""


_LINK = re.compile(r"#?f(?P<frame>\d+)(/j(?P<job>\d+))?(/d(?P<draw>\d+))?(/p(?P<primitive>\d+))?")
_LONGEST_LINK = 60


class Position(NamedTuple):
    """A place in a capture, as links have it: `#f3/j2/d14/p7`.

    Attributes
    ----------
    frame
        As the front counted it.
    job, draw
        From 1 on in the frame; 0: no one in particular.
    primitive
        Of the draw, from 0 on; None: no one in particular.
    """

    frame: int
    job: int = 0
    draw: int = 0
    primitive: int | None = None

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position that a link names. Raises NoSuchPlace."""
        found = _LINK.fullmatch(text) if len(text) <= _LONGEST_LINK else None
        if found is None:
            raise NoSuchPlace(f"{text[:40]!r} is no position, such as #f3/j1/d14/p7")
        parts = found.groupdict()
        primitive = parts["primitive"]
        return cls(
            int(parts["frame"]),
            int(parts["job"] or 0),
            int(parts["draw"] or 0),
            None if primitive is None else int(primitive),
        )

    def __str__(self) -> str:
        parts = [f"#f{self.frame}"]
        parts += [f"j{self.job}"] * bool(self.job) + [f"d{self.draw}"] * bool(self.draw)
        parts += [f"p{self.primitive}"] * (self.primitive is not None)
        return "/".join(parts)


def surface_place(surface: Surface, shown: Shown) -> tuple[int, int] | None:
    """Column and row of a surface at which what was shown begins; None: it was another one."""
    distance = (shown.address & MEMORY_MASK) - (surface.address & MEMORY_MASK)
    size = shown.bits // 8
    if surface.tiling or surface.pitch != shown.pitch or surface.bits != shown.bits or distance < 0:
        return None
    row, rest = divmod(distance, surface.pitch)
    if row >= surface.height or rest % size:
        return None
    return rest // size, row
