"""Finds where a texel came from: the job that drew the texture which a program sampled.

A program samples level 0 at a place; a job before, in the frame or in one of those before it, has
that memory as its colour surface. Of a filtered request the texel nearest to the place is followed.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.texture import Wrap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vc4lab.debug.frame.index import FrameJob
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.v3d.tmu.texture_state import TextureKind

MOST_FRAMES_BACK = 32
"""Frames before one in which the maker of a texture is looked for."""


class TextureSource(NamedTuple):
    """Describes the texture and the texel that a request sampled.

    Attributes
    ----------
    address, width, height
        Of level 0.
    type, layout
        Of its texels, in words.
    column, row
        The texel nearest to the place, in level 0.
    is_filtered
        Whether others may count as well: bilinear filters, mip levels.
    """

    address: int
    width: int
    height: int
    type: str
    layout: str
    column: int
    row: int
    is_filtered: bool

    def text(self) -> str:
        """The texture and the place in words."""
        about = "about " if self.is_filtered else ""
        return (
            f"{about}texel {self.column},{self.row} of {self.width}x{self.height} {self.type}"
            f" ({self.layout}) at 0x{self.address:08x}"
        )


def source_of(kind: TextureKind | None, descriptor: Any, coordinates: Sequence[int]) -> TextureSource | None:
    """Return the texel that a request sampled at words S, T …; None: a cube map, or not known."""
    if kind is None or descriptor is None or kind.cube or len(coordinates) < 2:
        return None
    width, height = int(descriptor.width[0]), int(descriptor.height[0])
    places = struct.unpack("<2f", struct.pack("<2I", *(word & 0xFFFFFFFF for word in coordinates[:2])))
    column, row = (
        _texel(value, size, wrap)
        for value, size, wrap in zip(places, (width, height), (kind.wrap_s, kind.wrap_t), strict=True)
    )
    if kind.flip_y:
        row = height - 1 - row
    is_filtered = kind.mag_linear or kind.min_linear or kind.needs_lod
    layout = kind.layout.name.lower()
    address = int(descriptor.base[0]) & MEMORY_MASK
    return TextureSource(address, width, height, kind.type.name, layout, column, row, is_filtered)


def _texel(value: float, size: int, wrap: Wrap) -> int:
    """The texel with a coordinate."""
    if not math.isfinite(value):
        value = 0.0
    if wrap is Wrap.REPEAT:
        value -= math.floor(value)
    elif wrap is Wrap.MIRROR:
        value -= 2 * math.floor(value / 2)
        value = 2 - value if value > 1 else value
    return min(max(math.floor(value * size), 0), size - 1)


def maker_of(frame: FrameRuns, job: FrameJob, address: int) -> tuple[FrameRuns, FrameJob] | None:
    """The last job before a job whose colour surface begins at an address. Raises CaptureError."""
    found = maker_in(frame, job.number, address)
    if found is not None:
        return frame, found
    for earlier in reversed(frame.before[-MOST_FRAMES_BACK:]):
        found = maker_in(earlier, len(earlier.jobs) + 1, address)
        if found is not None:
            return earlier, found
    return None


def maker_in(frame: FrameRuns, before: int, address: int) -> FrameJob | None:
    """The last of a frame's jobs before a number that draws to an address."""
    for one in reversed(frame.jobs[: before - 1]):
        if one.moves(address):
            return one
    return None
