"""Which source pixels make a pixel of the screen, along one axis, and with which weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy

PHASE_BITS = 3
TAPS = 4
WEIGHT_BITS = 12
ONE = 1 << WEIGHT_BITS
SCALE_BITS = 21
"""Bits of the hardware's scale fields, 16 of them after the point."""

Numbers = numpy.ndarray[Any, Any]


@dataclass(frozen=True)
class Span:
    """A plane along one axis: a source in 16.16 fixed point, its place on the screen."""

    source: int
    source_size: int
    pixels: int
    """Pixels of the frame buffer along this axis."""
    target: int
    target_size: int
    screen: int
    mirrored: bool = False

    @property
    def scaled(self) -> bool:
        """Whether the scaler is on: a fraction of a source pixel alone does not do it."""
        return self.target_size != self.source_size >> 16

    @property
    def shrinks_too_much(self) -> bool:
        """Whether the factor has more bits than its field."""
        return self.source_size // self.target_size >> SCALE_BITS > 0


@dataclass(frozen=True)
class Axis:
    """Pixels `first` to `first + count` of the screen, each a sum of source pixels."""

    first: int
    count: int
    places: Numbers
    """Source pixels by (pixel, tap)."""
    weights: Numbers | None
    """Weights by (pixel, tap), for each pixel ONE in all; None: there is one tap."""


@lru_cache(maxsize=32)
def axis_of(span: Span, *, filtered: bool, wraps: bool) -> Axis:
    """Return the scaler's work along an axis; `count` is 0 for a plane beyond the screen's edge.

    filtered: by the polyphase and area filters, else the nearest pixel. wraps: a factor too large
    for its field loses its upper bits.
    """
    first = max(span.target, 0)
    count = max(min(span.target + span.target_size, span.screen) - first, 0)
    steps = numpy.arange(first - span.target, first - span.target + count, dtype=numpy.int64)
    if span.mirrored:
        steps = span.target_size - 1 - steps
    size = span.source_size
    if wraps and span.shrinks_too_much:
        size = (size // span.target_size & (1 << SCALE_BITS) - 1) * span.target_size
    weights: Numbers | None = None
    if not span.scaled:
        places = ((span.source >> 16) + steps)[:, None]
    elif not filtered:
        places = _middles(span, size, steps)[:, None] >> 16
    elif 3 * span.target_size >= 2 * (span.source_size >> 16):
        places, weights = _polyphase(_middles(span, size, steps))
    else:
        places, weights = _areas(span, size, steps)
    last = -(-(span.source + span.source_size) >> 16) - 1
    low = min(span.source >> 16, span.pixels - 1)
    places = places.clip(low, max(min(last, span.pixels - 1), low))
    return Axis(first, count, numpy.ascontiguousarray(places, numpy.int32), weights)


def _middles(span: Span, size: int, steps: Numbers) -> Numbers:
    """The middle of each pixel in the source, 16.16."""
    return _scaled(2 * steps + 1, size, 2 * span.target_size) + span.source


def _scaled(numbers: Numbers, size: int, target: int) -> Numbers:
    """numbers * size // target; a size of 32 bits and as many of a number fit 64 bits."""
    return (numbers.astype(numpy.uint64) * numpy.uint64(size) // numpy.uint64(target)).astype(numpy.int64)


def _polyphase(middles: Numbers) -> tuple[Numbers, Numbers]:
    corners = middles - 0x8000
    phases = (corners & 0xFFFF) >> 16 - PHASE_BITS
    places = (corners >> 16)[:, None] + numpy.arange(-1, TAPS - 1)
    return places, numpy.ascontiguousarray(_coefficients()[phases])


def _areas(span: Span, size: int, steps: Numbers) -> tuple[Numbers, Numbers]:
    starts = _scaled(steps, size, span.target_size) + span.source
    ends = _scaled(steps + 1, size, span.target_size) + span.source
    ends = numpy.maximum(ends, starts + 1)
    begin = starts >> 16
    taps = int(((ends - 1 >> 16) - begin).max(initial=0)) + 1
    edges = (begin[:, None] + numpy.arange(taps + 1)) << 16
    covered = edges.clip(starts[:, None], ends[:, None]) - starts[:, None]
    whole = (ends - starts)[:, None]
    parts = (covered * ONE + whole // 2) // whole
    places = begin[:, None] + numpy.arange(taps)
    return places, numpy.ascontiguousarray(numpy.diff(parts), numpy.int32)


@lru_cache(maxsize=1)
def _coefficients() -> Numbers:
    """Return the four taps' weights in each phase, from Mitchell and Netravali's piecewise cubic."""
    rows = []
    for phase in range(1 << PHASE_BITS):
        at = Fraction(2 * phase + 1, 2 << PHASE_BITS)
        values = [_mitchell(abs(at - tap)) for tap in range(-1, TAPS - 1)]
        row = [round(ONE * value / sum(values)) for value in values]
        row[row.index(max(row))] += ONE - sum(row)
        rows.append(row)
    return numpy.array(rows, numpy.int32)


def _mitchell(x: Fraction) -> Fraction:
    """The filter of B = C = 1/3 at a distance of `x` pixels: exact, since halves are rounded."""
    if x < 1:
        return (21 * x**3 - 36 * x**2 + 16) / 18
    return (-7 * x**3 + 36 * x**2 - 60 * x + 32) / 18 if x < 2 else Fraction(0)
