"""Samples of a block: colour writes and flags as staged code, and which sample and word a program's
n-th colour access means.

Loads and writes of single samples go through the samples in order, writes of all samples through
the words of a 64-bit colour; each kind has its own counter. Source: hardware reference 7.9.

The store and load loops of `stores.py` know tiles with one sample; resolving functions fill a second
buffer of that arrangement from the tile buffer, or the tile buffer from it. Source: hardware
reference 7.10.
"""

from __future__ import annotations

from typing import Any

from vc4lab.records.codes import Decimate
from vc4lab.simd import Value, const, i32, i32x16, load, reduce_add, select, staged, store, unroll, var, vec
from vc4lab.v3d.state.frame_mode import PLANE_BYTES, QUAD_BYTES, QUAD_ROW_BYTES, TileLayout
from vc4lab.v3d.unknowns import Unknowns


def colour_write(layout: TileLayout, colour: Value, value: Value, active: Value) -> None:
    """A write of TLB_COLOUR: replaces the words of one sample in the lanes of `active`."""
    layout.update_block(colour, layout.load_block(colour), value, active)


ALL_SAMPLES = 0xF
"""MS_FLAGS of a covered pixel (with one sample only "not zero" is certain)."""


def flags_word(masks: list[Value]) -> Value:
    """MS_FLAGS from the lanes that each sample has on."""
    zero = const(i32x16, 0)
    if len(masks) == 1:
        return select(masks[0], const(i32x16, ALL_SAMPLES), zero)
    word = zero
    for number, mask in enumerate(masks):
        word = word | select(mask, const(i32x16, 1 << number), zero)
    return word


def sample_masks(word: Value, samples: int) -> list[Value]:
    """The inverse of `flags_word`; with one sample any flag counts."""
    if samples == 1:
        return [(word & ALL_SAMPLES) != 0]
    return [(word & (1 << number)) != 0 for number in range(samples)]


def any_lane(masks: list[Value]) -> Value:
    """Lanes that at least one sample has on."""
    lanes = masks[0]
    for mask in masks[1:]:
        lanes = lanes | mask
    return lanes


def sample_and_word(layout: TileLayout, number: int) -> tuple[int, int]:
    """Sample and colour word of access `number`; after the last one it starts again."""
    return number // layout.words % layout.samples, number % layout.words


class ColourAccesses:
    """Counts the accesses of one run of a program whose order is known."""

    def __init__(self, layout: TileLayout) -> None:
        self.layout = layout
        self._loads = self._samples = self._all = 0

    def load(self) -> tuple[int, int]:
        """Sample and word of the next load."""
        self._loads += 1
        return sample_and_word(self.layout, self._loads - 1)

    def write(self, all_samples: bool) -> tuple[int | None, int]:
        """Sample (None: all) and word of the next write of TLB_COLOUR_ALL or TLB_COLOUR_MS."""
        if all_samples or self.layout.samples == 1:
            self._all += 1
            return None, (self._all - 1) % self.layout.words
        self._samples += 1
        return sample_and_word(self.layout, self._samples - 1)


class StagedColourAccesses:
    """Counts those of a program with branches: counted while it runs, in staged cells."""

    def __init__(self, layout: TileLayout) -> None:
        self.layout = layout
        self._loads, self._samples, self._all = (var(i32, 0) for _ in range(3))

    def load(self) -> tuple[Value, Value]:
        """Sample and word of the next load, scalars."""
        return self._next(self._loads)

    def write(self, all_samples: bool) -> tuple[Value | None, Value]:
        """Sample (None: all) and word of the next write."""
        if all_samples or self.layout.samples == 1:
            return None, self._next(self._all)[1]
        return self._next(self._samples)

    def _next(self, cell: Any) -> tuple[Value, Value]:
        number = cell.get()
        cell.set(number + 1)
        word_bits = self.layout.words - 1
        return number.shr(word_bits) & (self.layout.samples - 1), number & word_bits


QUADS_PER_ROW = 16
QUAD_ROWS = 16
"""With 64-bit colours, 8 rows of red and green and 8 of blue and alpha."""

RESOLVED_PLANE_BYTES = PLANE_BYTES // 2
"""Distance of the halves of 64-bit colours in a resolved tile."""

_FOUR_SAMPLES = TileLayout(multisample=True)
_QUAD = vec(i32, 4)
_PAIRS = 0x00FF00FF


def average(samples: list[Value], rounding: str, whole_quad: bool = False) -> Value:
    """Mean of the four samples of each pixel, channel by channel; or of all 16 of a quad."""
    even, odd = samples[0] & _PAIRS, samples[0].shr(8) & _PAIRS
    for sample in samples[1:]:
        even, odd = even + (sample & _PAIRS), odd + (sample.shr(8) & _PAIRS)
    shift = 2
    if whole_quad:
        even, odd, shift = reduce_add(even), reduce_add(odd), 4
    half = (1 << (shift - 1)) * 0x00010001 if rounding == "nearest" else 0
    even, odd = (even + half).shr(shift) & _PAIRS, (odd + half).shr(shift) & _PAIRS
    return even | odd << 8


def samples_at(source: Value) -> list[Value]:
    """The four samples of a quad, each with its four pixels."""
    return [load(_QUAD, source + QUAD_BYTES * number) for number in range(4)]


@staged
def resolve(target: Value, source: Value, decimate: Value, unknowns: Unknowns) -> None:
    """Fills `target` (one sample) from the multisample buffer at `source`.

    `decimate`: as record 28 says; 16x makes one pixel of a quad, so that the tile becomes 16x16.
    """
    rounding = unknowns["resolve_rounding"]
    for y in range(QUAD_ROWS):
        for x in range(QUADS_PER_ROW):
            samples = samples_at(source + y * _FOUR_SAMPLES.quad_row_bytes + x * 64)
            quad = target + y * QUAD_ROW_BYTES + x * QUAD_BYTES
            if decimate == int(Decimate.X16):
                place = (y >> 1) * QUAD_ROW_BYTES + (x >> 1) * QUAD_BYTES
                place = place + (y & 1) * 8 + (x & 1) * 4
                store(target + place, average(samples, rounding, True))
            elif decimate == int(Decimate.X4):
                store(quad, average(samples, rounding))
            else:
                store(quad, samples[0])


@staged
def spread(target: Value, source: Value) -> None:
    """The inverse: every sample of the multisample buffer `target` becomes its pixel's word."""
    for y in range(QUAD_ROWS):
        for x in range(QUADS_PER_ROW):
            pixels = load(_QUAD, source + y * QUAD_ROW_BYTES + x * QUAD_BYTES)
            for number in unroll(4):
                place = y * _FOUR_SAMPLES.quad_row_bytes + x * 64 + QUAD_BYTES * number
                store(target + place, pixels)
