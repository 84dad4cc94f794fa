"""The tile buffer as a whole: clears, full-resolution dumps and reloads (records 26, 27).

Source: hardware reference 3.3, 7.10, 7.11.
"""

from __future__ import annotations

from vc4lab.memory.native import host
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i8, i32, i32x16
from vc4lab.simd.memory import load, store
from vc4lab.simd.types import mask16, vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import shuffle
from vc4lab.v3d.state.frame_mode import (
    MULTISAMPLE,
    PART_COLOUR,
    PART_MASK,
    PART_ZS,
    PLANE_BYTES,
    QUAD_ROW_BYTES,
    TILE_SIZE,
    TILE_WORDS,
    WIDE,
)
from vc4lab.v3d.state.tile_context import TileContext
from vc4lab.v3d.unknowns import Unknowns

_ROW = [4 * (x >> 1) + (x & 1) for x in range(16)]
"""Words of the upper row of eight quads."""
_QUADS = [2 * (k >> 2) + (k & 1) + (16 if k & 2 else 0) for k in range(16)]
"""Words of four quads from two rows."""
_PAIRED = [k for pair in zip(range(8), range(8, 16), strict=True) for k in pair]


@staged
def move_full(
    context: TileContext, address: Value, parts: Value, to_memory: bool, unknowns: Unknowns
) -> None:
    """A full-resolution dump or reload (records 26, 27): whole parts of the tile buffer in turn.

    Every 64 bytes are masked into guest memory by themselves.
    """
    paired = unknowns["dump_64_bit"] == "pixels"
    in_rows = unknowns["dump_single"] == "rows"
    bytes_only = unknowns["dump_mask"] == "bytes"
    for part, name in ((PART_COLOUR, "colour"), (PART_ZS, "zs"), (PART_MASK, "mask")):
        words = context.field_ptr(name)
        if (parts & part) != 0:
            if bytes_only & (part == PART_MASK):
                move_bytes(context.memory, address, words, to_memory)
            elif paired & (part == PART_COLOUR):
                if (context.mode & WIDE) != 0:
                    move_pairs(context.memory, address, words, to_memory)
                else:
                    move_plane(context, address, words, to_memory, in_rows)
            else:
                move_plane(context, address, words, to_memory, in_rows)
            address = address + TILE_WORDS * 4


@staged
def move_plane(context: TileContext, address: Value, words: Value, to_memory: bool, in_rows: bool) -> None:
    """A part of which every pixel has words of its own; `in_rows`: with one sample, by rows."""
    if in_rows:
        if (context.mode & MULTISAMPLE) == 0:
            move_rows(context.memory, address, words, to_memory)
        else:
            move_words(context.memory, address, words, to_memory)
    else:
        move_words(context.memory, address, words, to_memory)


@staged
def move_words(memory: Value, address: Value, words: Value, to_memory: bool) -> None:
    """Words as they stand in the tile buffer."""
    for place in range(TILE_WORDS // 16):
        there = host(memory, address + place * 64)
        if to_memory:
            store(there, load(i32x16, words + place * 64))
        else:
            store(words + place * 64, load(i32x16, there))


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
def move_bytes(memory: Value, address: Value, words: Value, to_memory: bool) -> None:
    """The low bytes of words."""
    for place in range(TILE_WORDS // 16):
        there, here = host(memory, address + place * 16), words + place * 64
        if to_memory:
            store(there, load(i32x16, here).trunc(i8))
        else:
            store(here, load(vec(i8, 16), there).zext(i32))


@staged
def move_rows(memory: Value, address: Value, words: Value, to_memory: bool) -> None:
    """Words of 2x2 quads as rows of pixels, two rows of 16 pixels at a time.

    Both halves of 64-bit colours are such rows, the second after the first.
    """
    row_bytes = 4 * TILE_SIZE
    for pair in range(TILE_SIZE // 2):
        for part in range(TILE_SIZE // 16):
            quads = words + (pair * QUAD_ROW_BYTES + part * 128)
            upper = host(memory, address + pair * (2 * row_bytes) + part * 64)
            lower = upper + row_bytes
            if to_memory:
                first, second = load(i32x16, quads), load(i32x16, quads + 64)
                store(upper, shuffle(first, second, _ROW))
                store(lower, shuffle(first, second, [lane + 2 for lane in _ROW]))
            else:
                first, second = load(i32x16, upper), load(i32x16, lower)
                store(quads, shuffle(first, second, _QUADS))
                store(quads + 64, shuffle(first, second, [lane + 8 for lane in _QUADS]))


@staged
def fill_words(target: Value, even: Value, odd: Value, start: int, end: int) -> None:
    """Clears words `start` to `end` of a buffer; columns are even and odd by turns."""
    value = select(const(mask16, [0, 1] * 8), splat(odd), splat(even))
    for place in range(start // 16, end // 16):
        store(target + place * 64, value)


@staged
def clear_colour(context: TileContext, low: Value, high: Value, unknowns: Unknowns) -> None:
    """Clears the colours to the two words of record 114."""
    colour = context.colour
    half = TILE_WORDS // 2
    if (context.mode & WIDE) != 0:
        fill_words(colour, low, low, 0, half)
        fill_words(colour, high, high, half, TILE_WORDS)
    else:
        odd = high if unknowns["clear_colour_words"] == "columns" else low
        fill_words(colour, low, odd, 0, TILE_WORDS)
