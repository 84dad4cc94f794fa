"""Questions about a record's id in native code, answered from tables that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vc4lab.simd import Value, const, i1, i32, select, staged


@staged
def is_one_of(op: Value, ids: Iterable[int]) -> Value:
    """Whether the id is one of these."""
    found = const(i1, False)
    for first, last in _runs(ids):
        found = found | _between(op, first, last)
    return found


@staged
def size_among(op: Value, sizes: Mapping[int, int]) -> Value:
    """Bytes of the record with this id; 0 if it is not in the table."""
    size = const(i32, 0)
    for length in sorted(set(sizes.values())):
        ids = [identifier for identifier, own in sizes.items() if own == length]
        size = select(is_one_of(op, ids), const(i32, length), size)
    return size


@staged
def _between(op: Value, first: int, last: int) -> Value:
    return op == first if first == last else (op - first).ule(last - first)


def _runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of ids in a row."""
    first = last = -2
    for identifier in sorted(ids):
        if identifier != last + 1:
            if last >= 0:
                yield first, last
            first = identifier
        last = identifier
    if last >= 0:
        yield first, last
