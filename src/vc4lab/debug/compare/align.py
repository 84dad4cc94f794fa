"""Finds which elements of two sequences belong together; others were inserted or removed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

MOST_EDITS = 1000
"""Elements that may be inserted or removed between equal ones; beyond, sequences are paired in order."""
Pair = tuple[int | None, int | None]
"""Places in both sequences; None: it is in the other one only."""
Keys = tuple[Sequence[Hashable], Sequence[Hashable]]


def aligned(*keys: Keys) -> list[Pair]:
    """Pair the elements of two sequences, in order.

    keys: what the elements are compared by, from the finest to the coarsest, for both sequences. What
    none of them finds is paired in its order where both sequences have elements there.
    """
    first, second = keys[0]
    return list(_stretch(keys, range(len(first)), range(len(second))))


def _stretch(keys: Sequence[Keys], one: range, two: range) -> Iterator[Pair]:
    """The pairs of a stretch of both sequences, by the first of the keys and those after it."""
    if not keys or not one or not two:
        both = min(len(one), len(two))
        yield from zip(one, two, strict=False)
        yield from ((place, None) for place in one[both:])
        yield from ((None, place) for place in two[both:])
        return
    first, second = [keys[0][0][n] for n in one], [keys[0][1][n] for n in two]
    a = b = 0
    for x, y in [*_common(first, second), (len(one), len(two))]:
        if (x, y) != (a, b):
            yield from _stretch(keys[1:], one[a:x], two[b:y])
        if x < len(one):
            yield one[x], two[y]
        a, b = x + 1, y + 1


def _common(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Places of elements that are equal in both, with as few others between as there can be.

    Myers, "An O(ND) Difference Algorithm and Its Variations", 1986. Empty if there are too many others.
    """
    ends, trail = {1: 0}, []
    for edits in range(min(len(first) + len(second), MOST_EDITS) + 1):
        trail.append(dict(ends))
        for diagonal in range(-edits, edits + 1, 2):
            before = _before(ends, diagonal, edits)
            x = ends[before] + (before < diagonal)
            y = x - diagonal
            while x < len(first) and y < len(second) and first[x] == second[y]:
                x, y = x + 1, y + 1
            ends[diagonal] = x
            if x >= len(first) and y >= len(second):
                return _walked_back(trail, x, y)
    return []


def _before(ends: dict[int, int], diagonal: int, edits: int) -> int:
    """The diagonal from which one is reached: the one above inserts an element, the other removes one."""
    if diagonal == -edits or (diagonal != edits and ends[diagonal - 1] < ends[diagonal + 1]):
        return diagonal + 1
    return diagonal - 1


def _walked_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """The equal elements on the way to the end of both sequences."""
    found = []
    for edits in reversed(range(len(trail))):
        ends, diagonal = trail[edits], x - y
        before = _before(ends, diagonal, edits)
        start = ends[before] + (before < diagonal)
        while x > start:
            x, y = x - 1, y - 1
            found.append((x, y))
        x = ends[before]
        y = x - before
    return found[::-1]
