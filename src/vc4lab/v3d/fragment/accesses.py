"""Which sample and word a program's n-th colour access means (hardware reference 7.9).

Loads and writes of single samples go through the samples in order, writes of all samples through
the words of a 64-bit colour; each kind has its own counter.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, i32, var
from vc4lab.v3d.state.tile_layout import TileLayout


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
