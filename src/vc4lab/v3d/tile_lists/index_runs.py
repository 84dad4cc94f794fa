"""Runs of triangles in a compressed list, each with the step of the one before: taken together.

Vertices that are drawn in order give such runs, two bytes a triangle. Without this the `Decoder`
takes the triangles one by one, with the same result.
"""

from __future__ import annotations

from vc4lab.memory.pointers import host
from vc4lab.simd import Value, const, i8, i32, i64, load, staged, store, vec
from vc4lab.v3d.tile_lists.primitive_decoder import Decoder, field

RUN_TRIANGLES = 4
"""Triangles that `runs` looks at and `take_run` takes."""

CONSECUTIVE_RUN = 0x3333333333333333
"""A run whose indices are always those before plus 3, as when vertices are drawn in order."""


@staged
def runs(decoder: Decoder) -> Value:
    """Whether the next `RUN_TRIANGLES` triangles (16-bit indices) each make the same step.

    Consecutive vertices give such runs: two bytes each, differences of three indices, all equal.
    """
    word = load(i64, host(decoder.base, decoder.address.get()))
    first = word & 0xFFFF
    near = ((first & 3) == 3) & ((first & 15) != 15) & (word == first * 0x0001000100010001)
    return near & (decoder.budget.get() > RUN_TRIANGLES) & (decoder.clipped.get() == 0)


@staged
def take_run(decoder: Decoder) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Goes on by `RUN_TRIANGLES` triangles of a run; what was i0, i1, i2 before, and the steps."""
    word = load(i32, host(decoder.base, decoder.address.get()))
    before = (decoder.i0.get(), decoder.i1.get(), decoder.i2.get())
    steps = (field(word, 4, 4), field(word, 8, 4), field(word, 12, 4))
    cells = (decoder.i0, decoder.i1, decoder.i2)
    for cell, index, step in zip(cells, before, steps, strict=True):
        cell.set((index + step * RUN_TRIANGLES) & decoder.mask)
    decoder.flags.set(0)
    decoder.address.set(decoder.address.get() + 2 * RUN_TRIANGLES)
    decoder.budget.set(decoder.budget.get() - RUN_TRIANGLES)
    return before, steps


@staged
def take_rows(decoder: Decoder, used: Value) -> Value:
    """Takes triangles of consecutive vertices after the last one, which was such; their number."""
    taken = const(i32, 0)
    going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    while going:
        i0, i2 = decoder.i0.get(), decoder.i2.get()
        plain = (decoder.i1.get() == i0 + 1) & (i2 == i0 + 2) & (i2 <= 0xFFFF - 3 * RUN_TRIANGLES)
        going = plain & (decoder.budget.get() > RUN_TRIANGLES)
        if going:
            store(used + i2 + 1, const(vec(i8, 8), 1))
            store(used + i2 + 9, const(vec(i8, 4), 1))
            take_run(decoder)
            taken = taken + RUN_TRIANGLES
            going = load(i64, host(decoder.base, decoder.address.get())) == CONSECUTIVE_RUN
    return taken
