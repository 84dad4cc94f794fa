"""The tile buffer as a whole: clears, full-resolution dumps and reloads (records 26, 27).

Source: hardware reference 3.3, 7.10, 7.11.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    const,
    i32,
    i32x16,
    load,
    mask16,
    select,
    shuffle,
    splat,
    staged,
    store,
    vec,
)
from vc4lab.v3d.fragment.tile_job import PART_COLOUR, PART_MASK, PART_ZS
from vc4lab.v3d.fragment.tile_layout import PLANE_BYTES, TILE_WORDS, WIDE
from vc4lab.v3d.geometry.primitive_decoder import host

_PAIRED = [k for pair in zip(range(8), range(8, 16), strict=True) for k in pair]


@staged
def move_full(context: Any, address: Value, parts: Value, to_memory: bool, unknowns: Any) -> None:
    """A full-resolution dump or reload (records 26, 27): whole parts of the tile buffer in turn.

    Every 64 bytes are masked into guest memory by themselves.
    """
    paired = unknowns["dump_64_bit"] == "pixels"
    for part, name in ((PART_COLOUR, "colour"), (PART_ZS, "zs"), (PART_MASK, "mask")):
        words = context.field_ptr(name)
        if (parts & part) != 0:
            if paired & (part == PART_COLOUR) & ((context.mode & WIDE) != 0):
                move_pairs(context.memory, address, words, to_memory)
            else:
                for place in range(TILE_WORDS // 16):
                    there = host(context.memory, address + place * 64)
                    if to_memory:
                        store(there, load(i32x16, words + place * 64))
                    else:
                        store(words + place * 64, load(i32x16, there))
            address = address + TILE_WORDS * 4


@staged
def move_pairs(memory: Value, address: Value, words: Value, to_memory: bool) -> None:
    """64-bit colours in a dump with the two words of a sample side by side."""
    eight = vec(i32, 8)
    for place in range(TILE_WORDS // 16):
        there = host(memory, address + place * 64)
        low = words + place * 32
        high = low + PLANE_BYTES
        if to_memory:
            store(there, shuffle(load(eight, low), load(eight, high), _PAIRED))
        else:
            both = load(i32x16, there)
            store(low, shuffle(both, list(range(0, 16, 2))))
            store(high, shuffle(both, list(range(1, 16, 2))))


@staged
def fill_words(target: Value, even: Value, odd: Value, start: int, end: int) -> None:
    """Clears words `start` to `end` of a buffer; columns are even and odd by turns."""
    value = select(const(mask16, [0, 1] * 8), splat(odd), splat(even))
    for place in range(start // 16, end // 16):
        store(target + place * 64, value)


@staged
def clear_colour(context: Any, low: Value, high: Value, unknowns: Any) -> None:
    """Clears the colours to the two words of record 114."""
    colour = context.field_ptr("colour")
    half = TILE_WORDS // 2
    if (context.mode & WIDE) != 0:
        fill_words(colour, low, low, 0, half)
        fill_words(colour, high, high, half, TILE_WORDS)
    else:
        odd = high if unknowns["clear_colour_words"] == "columns" else low
        fill_words(colour, low, odd, 0, TILE_WORDS)
