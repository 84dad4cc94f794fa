"""Where a pixel is sampled: at its centre, or at four points in multisample frames.

The positions of the hardware are not documented; `vc4lab unknowns` lists the choices. Source:
hardware reference 7.3, 7.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.v3d.state.tile_context import FragmentKey
    from vc4lab.v3d.unknowns import Unknowns

PATTERNS: dict[str, tuple[tuple[int, int], ...]] = {
    "rotated": ((3, 1), (7, 3), (1, 5), (5, 7)),
    "mirrored": ((5, 1), (1, 3), (7, 5), (3, 7)),
    "grid": ((2, 2), (6, 2), (2, 6), (6, 6)),
}
"""Positions of samples 0 to 3 in eighths of a pixel from its corner, by choice of the unknown."""

PATH_PATTERNS: dict[str, tuple[tuple[int, int], ...]] = {
    "grid": tuple((4 * x + 2, 4 * y + 2) for y in range(4) for x in range(4)),
    "rooks": tuple(((5 * row + 2) % 16, row) for row in range(16)),
}
"""Positions of the 16 samples of a path in 1/16 pixel, by choice of the unknown."""

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
    return _pattern(key.unknowns) if key.multisample else ((CENTRE, CENTRE),)


def _pattern(unknowns: Unknowns) -> tuple[tuple[int, int], ...]:
    return tuple((2 * x, 2 * y) for x, y in PATTERNS[unknowns["sample_positions"]])


def separate_samples(key: FragmentKey) -> bool:
    """Whether samples have a coverage of their own; without oversampling the centre's counts."""
    return key.multisample and (key.oversample or key.unknowns["ms_no_oversample"] == "samples")


def raster(unknowns: Unknowns, separate: bool) -> Raster:
    """How primitives are rasterised, with coverage at the samples or at the centre."""
    return _filled(unknowns, _pattern(unknowns) if separate else ((CENTRE, CENTRE),))


def _filled(unknowns: Unknowns, points: tuple[tuple[int, int], ...]) -> Raster:
    """Coverage at these points, and which edges of a triangle belong to it."""
    return Raster(unknowns["fill_rule"] == "top-left", points)


def raster_of(key: FragmentKey) -> Raster:
    """How a draw is rasterised."""
    if key.coverage:
        points = PATH_PATTERNS[key.unknowns["coverage_samples"]]
        if key.coverage_points < len(points):
            points = _pattern(key.unknowns) if key.coverage_points > 1 else ((CENTRE, CENTRE),)
        return _filled(key.unknowns, points)
    return raster(key.unknowns, separate_samples(key))
