"""Where a pixel is sampled: at its centre, or at four points in multisample frames.

The positions of the hardware are not documented; `vc4lab unknowns` lists the choices. Source:
hardware reference 7.3, 7.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.v3d.fragment.tile_context import FragmentKey

PATTERNS: dict[str, tuple[tuple[int, int], ...]] = {
    "rotated": ((3, 1), (7, 3), (1, 5), (5, 7)),
    "mirrored": ((5, 1), (1, 3), (7, 5), (3, 7)),
    "grid": ((2, 2), (6, 2), (2, 6), (6, 6)),
}
"""Positions of samples 0 to 3 in eighths of a pixel from its corner, by choice of the unknown."""

CENTRE = 8
"""The pixel centre in 1/16 pixel."""


@dataclass(frozen=True)
class Raster:
    """How coverage is decided: the fill rule, and points (1/16 pixel) at which it is evaluated."""

    top_left: bool = True
    points: tuple[tuple[int, int], ...] = ((CENTRE, CENTRE),)

    @property
    def lowest(self) -> int:
        """Smallest coordinate of a sample inside its pixel."""
        return min(min(point) for point in self.points)

    @property
    def highest(self) -> int:
        """Largest coordinate of a sample inside its pixel."""
        return max(max(point) for point in self.points)


def sample_points(key: FragmentKey) -> tuple[tuple[int, int], ...]:
    """Where each sample of the frame lies, in 1/16 pixel."""
    if not key.multisample:
        return ((CENTRE, CENTRE),)
    return tuple((2 * x, 2 * y) for x, y in PATTERNS[key.unknowns["sample_positions"]])


def raster_of(key: FragmentKey) -> Raster:
    """How a draw is rasterised; with oversampling off all samples share the centre's coverage."""
    separate = key.oversample or key.unknowns["ms_no_oversample"] == "samples"
    points = sample_points(key) if separate else ((CENTRE, CENTRE),)
    return Raster(key.unknowns["fill_rule"] == "top-left", points)
