"""Where things are in a captured frame: pixels of surfaces, and positions as links have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.memory import MEMORY_MASK

if TYPE_CHECKING:
    from vc4lab.jobs.model import Shown
    from vc4lab.v3d.state.frame_mode import Surface


class NoSuchPlace(Exception):  # noqa: N818 - an answer to a question
    """There is no such frame, draw or pixel; the text says what there is."""


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
