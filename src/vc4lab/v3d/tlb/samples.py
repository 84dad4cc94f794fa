"""Samples of a block: colour writes and flags as staged code, and which sample and word a program's
n-th colour access means.

Loads and writes of single samples go through the samples in order, writes of all samples through
the words of a 64-bit colour; each kind has its own counter. Source: hardware reference 7.9.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, const, i32, i32x16, select, var
from vc4lab.v3d.state.tile_layout import TileLayout


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
    """The same for a program with branches: counted while it runs, in staged cells."""

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
