"""Colour writes and flags of a block's samples, as staged code. Source: hardware reference 7.9."""

from __future__ import annotations

from vc4lab.simd import (
    Value,
    const,
    i32x16,
    select,
)
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
