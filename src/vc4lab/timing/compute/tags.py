"""Models the contents of a cache: sets of ways, of which the least recently used one is replaced."""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, kernel, load, ptr, select, store
from vc4lab.timing.compute.state import Tags

EMPTY = -1


@kernel(args=(ptr, i64), returns=i32)
def access(address: Value, line: Value) -> Value:
    """1 if a line is there; else it takes the place of another, and 0."""
    tags = Tags.at(address, 8)
    ways = tags.ways
    first = ((line & (tags.sets - 1).sext(i64)) * ways.sext(i64)) << 3
    lines, used = tags.lines + first, tags.used + first
    tags.stamp = tags.stamp + 1
    found = const(i32, -1)
    oldest, choice = const(i64, (1 << 62)), const(i32, 0)
    for way in range(ways):
        at = way << 3
        if load(i64, lines + at, 8) == line:
            found = const(i32, 0) + way
            break
        age = load(i64, used + at, 8)
        choice = select(age < oldest, way, choice)
        oldest = select(age < oldest, age, oldest)
    hit = select(found >= 0, const(i32, 1), const(i32, 0))
    place = select(found >= 0, found, choice).sext(i64) << 3
    store(lines + place, line, 8)
    store(used + place, tags.stamp, 8)
    return hit


@kernel(args=(ptr, i64), returns=i32)
def holds(address: Value, line: Value) -> Value:
    """1 if a line is there; nothing changes."""
    tags = Tags.at(address, 8)
    first = ((line & (tags.sets - 1).sext(i64)) * tags.ways.sext(i64)) << 3
    found = const(i32, 0)
    for way in range(tags.ways):
        if load(i64, tags.lines + first + (way << 3), 8) == line:
            found = const(i32, 1)
            break
    return found
