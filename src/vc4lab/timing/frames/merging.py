"""Sequences of numbers that become one, in an order that all of them have.

Lists of several tiles become the list of a bigger one (`bigger_tiles.py`): a primitive is taken
when it comes next in every list that has it; of several, one of the draw at hand, then the one with
the lowest vertex. Lists that a program wrote itself may contradict each other: if none can be taken
so, one is taken all the same, and left out where it comes later.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.simd import NativeFunction, Struct, Value, build, const, i32, kernel, load, ptr, staged, store
from vc4lab.timing.frames.columns import point_at

Words = NDArray[np.int32]

TAKEN = 0


class Merging(Struct):
    """Sequences of numbers that become one for each bigger tile, in the order of all of them.

    begins: of each bigger tile its first sequence, and the last one's end; starts: of each sequence
    its first place in `numbers`, and the last one's end. numbers: from 0 on; left: in how many
    sequences each is; TAKEN: it is in `out`; fronts: of how many it is the next. draw, lowest: of
    each number. heads: of each sequence its next place. out: the numbers, each once.
    """

    begins = ptr
    starts = ptr
    numbers = ptr
    left = ptr
    fronts = ptr
    draw = ptr
    lowest = ptr
    heads = ptr
    out = ptr
    tiles = i32
    reserved = i32


@staged
def _advance(m: Merging, sequence: Any, head: Value, last: Value) -> None:
    """A sequence goes on at a place, or at the first one after it whose number is not taken yet."""
    seeking = const(i32, 1)
    while seeking != 0:
        seeking = const(i32, 0)
        if head < last:
            number = load(i32, m.numbers + head * 4)
            if load(i32, m.left + number * 4) == TAKEN:
                head = head + 1
                seeking = const(i32, 1)
            else:
                front = m.fronts + number * 4
                store(front, load(i32, front) + 1)
    store(m.heads + sequence * 4, head)


@kernel(args=(ptr,), returns=i32)
def merge(pointer: Value) -> Value:
    """Fills `out`; how many numbers it has."""
    m = Merging.at(pointer)
    count = const(i32, 0)
    for tile in range(m.tiles):
        first = load(i32, m.begins + tile * 4)
        end = load(i32, m.begins + tile * 4 + 4)
        for sequence in range(first, end):
            head = load(i32, m.starts + sequence * 4)
            _advance(m, sequence, head, load(i32, m.starts + sequence * 4 + 4))
        draw = const(i32, -1)
        going = const(i32, 1)
        while going != 0:
            best = const(i32, -1)
            best_rank = const(i32, 4)
            best_lowest = const(i32, 0)
            for sequence in range(first, end):
                head = load(i32, m.heads + sequence * 4)
                if head < load(i32, m.starts + sequence * 4 + 4):
                    number = load(i32, m.numbers + head * 4)
                    blocked = load(i32, m.fronts + number * 4) < load(i32, m.left + number * 4)
                    other = load(i32, m.draw + number * 4) != draw
                    rank = (blocked.zext(i32) << 1) + other.zext(i32)
                    lowest = load(i32, m.lowest + number * 4)
                    if (rank < best_rank) | ((rank == best_rank) & (lowest < best_lowest)):
                        best = number
                        best_rank = rank
                        best_lowest = lowest
            if best < 0:
                going = const(i32, 0)
            else:
                store(m.out + count * 4, best)
                store(m.left + best * 4, const(i32, TAKEN))
                count = count + 1
                draw = load(i32, m.draw + best * 4)
                for sequence in range(first, end):
                    head = load(i32, m.heads + sequence * 4)
                    last = load(i32, m.starts + sequence * 4 + 4)
                    if head < last:
                        if load(i32, m.numbers + head * 4) == best:
                            _advance(m, sequence, head + 1, last)
    return count


@cache
def _native() -> NativeFunction:
    functions = {"merge": merge}
    return build("bigger_tiles", functions, float_mode="default", key="merge")["merge"]


def merged(begins: Words, starts: Words, numbers: Words, draw: Words, lowest: Words) -> NDArray[np.int64]:
    """The numbers, each once, group by group; arrays as `Merging` has them.

    begins: (groups + 1). starts: (sequences + 1). numbers: those of all sequences, from 0 to
    len(draw) - 1, each in sequences of one group only. draw, lowest: of each number.
    """
    count = len(draw)
    arrays = {
        "begins": begins,
        "starts": starts,
        "numbers": numbers,
        "left": np.bincount(numbers, minlength=count).astype(np.int32),
        "fronts": np.zeros(count, np.int32),
        "draw": draw,
        "lowest": lowest,
        "heads": np.zeros(len(starts), np.int32),
        "out": np.zeros(count, np.int32),
    }
    merging = Merging(tiles=len(begins) - 1)
    point_at(merging, arrays)
    written = int(_native()(merging.address))
    assert written == count
    return arrays["out"].astype(np.int64)
