"""Records in native code: where one is whole, questions about its id answered from known tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.pointers import host
from vc4lab.records.control import RECORD_SIZES
from vc4lab.simd import Value, const, i1, i8, i32, i64, load, select, staged, store

RECORD_SLOT = 16
"""Room for a record."""
assert max(RECORD_SIZES) <= RECORD_SLOT


@staged
def whole_record(memory: Value, address: Value, edge: Value) -> Value:
    """Host address of RECORD_SLOT bytes, at the end of memory a copy in `edge`."""
    record = host(memory, address)
    if (address & MEMORY_MASK) > MEMORY_SIZE - RECORD_SLOT:
        for k in range(RECORD_SLOT):
            store(edge + k, load(i8, host(memory, address + k)))
        record = edge
    return record


@staged
def note_record(context: Any, address: Value, op: Value) -> None:
    """Notes for listeners (`record_notes.py`) that the record at a guest address is executed."""
    store(context.executed, (op.zext(i64) << 32) | address.zext(i64))
    context.executed = context.executed + 8


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
