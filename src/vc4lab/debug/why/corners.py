"""Finds the vertices of a binned draw, as the binner has them after it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.v3d.ptb.clipper import OUT_ABOVE, OUT_BAD, OUT_BELOW, OUT_FAR, OUT_LEFT, OUT_NEAR, OUT_RIGHT
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_16
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import VERTEX_BATCH
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

_WORD = 0xFFFFFFFF
MOST = 4096
"""Vertices that are looked at."""
CLIP_ROWS = 4
PLANES = {
    OUT_LEFT: "left of the view volume (Xc < -Wc)",
    OUT_RIGHT: "right of the view volume (Xc > Wc)",
    OUT_BELOW: "below the view volume (Yc < -Wc)",
    OUT_ABOVE: "above the view volume (Yc > Wc)",
    OUT_NEAR: "before the near plane (Zc < -Wc)",
    OUT_FAR: "beyond the far plane (Zc > Wc)",
    OUT_BAD: "not finite",
}
"""Bits of an outcode, in words."""


@dataclass(frozen=True)
class Corners:
    """Vertices of a draw.

    Attributes
    ----------
    number
        Of each vertex.
    screen
        Xs and Ys in pixels, with the viewport offset.
    clip
        Xc, Yc, Zc, Wc of each; None where the draw is not clipped.
    planes
        Outcodes of each.
    depth, one_over_w
        Zs and 1/Wc of each.
    """

    number: NDArray[np.int64]
    screen: NDArray[np.float64]
    clip: NDArray[np.float32] | None
    planes: NDArray[np.uint8]
    depth: NDArray[np.float32]
    one_over_w: NDArray[np.float32]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom in pixels."""
        low, high = self.screen.min(0), self.screen.max(0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def common_planes(self) -> list[str]:
        """Name the planes outside of which all vertices are."""
        every = int(np.bitwise_and.reduce(self.planes)) if len(self.planes) else 0
        some = int(np.bitwise_or.reduce(self.planes)) if len(self.planes) else 0
        return [text for bit, text in PLANES.items() if (some if bit == OUT_BAD else every) & bit]


def corners_of(v3d: V3D, row: Any, most: int = MOST) -> Corners | None:
    """The vertices of the draw that a V3D has binned last; None: there are none, or VG's.

    row: its `first`, `last`, `index_type`, `place` and `length`. most: vertices that are looked at.
    """
    binner = v3d.binning.binner
    context = binner.context
    named = _numbers(v3d, row, most)
    is_last = (context.first_vertex, context.last_vertex) == (row["first"], row["last"])
    if named is None or not len(named) or not context.vertices or not is_last:
        return None
    batch, lane = named // VERTEX_BATCH, named % VERTEX_BATCH
    base = int(context.vertices) + batch * int(context.pitch) + lane * 4
    words = _words(base + int(context.xy_row))
    x = (words & 0xFFFF).astype(np.uint16).view(np.int16) + int(context.viewport_x)
    y = (words >> 16).astype(np.uint16).view(np.int16) + int(context.viewport_y)
    screen = np.stack([x, y], 1) / 16.0
    after = base + int(context.xy_row)
    depth, over_w = (_words(after + ROW_BYTES * k).view(np.float32) for k in (1, 2))
    if not context.clipping:
        return Corners(named, screen, None, np.zeros(len(named), np.uint8), depth, over_w)
    clip = np.stack([_words(base + ROW_BYTES * k).view(np.float32) for k in range(CLIP_ROWS)], 1)
    outcodes: Any = (ctypes.c_uint8 * (int(named.max()) + 1)).from_address(int(context.codes))
    codes = np.frombuffer(outcodes, np.uint8)[named]
    return Corners(named, screen, clip, codes, depth, over_w)


def _words(places: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Words at host addresses."""
    first = int(places.min())
    words: Any = (ctypes.c_uint32 * ((int(places.max()) - first) // 4 + 1)).from_address(first)
    return np.frombuffer(words, np.uint32)[(places - first) // 4]


def _numbers(v3d: V3D, row: Any, most: int) -> NDArray[np.int64] | None:
    """The numbers of the vertices that a draw names, each once, none beyond those that are shaded."""
    first, last = int(row["first"]), int(row["last"])
    if not 0 <= first <= last < MAX_VERTICES:
        return None
    size = {INDEX_8: 1, INDEX_16: 2}.get(int(row["index_type"]))
    if size is None:
        return np.arange(first, last + 1)[:most]
    data = v3d.memory.read(int(row["place"]) & _WORD, min(int(row["length"]), most) * size)
    found = np.unique(np.frombuffer(data, f"<u{size}").astype(np.int64))
    return found[(found >= first) & (found <= last)]
