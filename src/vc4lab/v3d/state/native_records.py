"""Records in native code: where one is whole, questions about its id answered from known tables.

Each native reader of lists (`../cle/binning_kernel.py`, `../tiles/collect_kernel.py`,
`../tile_lists/scan_kernel.py`) has a variant, compiled from the same source, that notes what it
executes (`note_record`); it is called while there is a listener.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vc4lab.listeners import AnyListener, Listeners
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE, lazy_zeros
from vc4lab.memory.native import host
from vc4lab.records.control import RECORD_SIZES, RECORDS
from vc4lab.simd import Value, const, i1, i8, i32, i64, load, select, staged, store
from vc4lab.v3d.events import RecordExecuted, RecordsNoted

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
    """Notes for listeners (`events.RecordExecuted`) that the record at a guest address is executed."""
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


MAX_NOTES = 1 << 24
"""More than a reader executes in one call: its budget, of which hostile lists take all."""
NOTE_BYTES = 8


class RecordNotes:
    """The memory in which the readers of one V3D note, one after the other."""

    def __init__(
        self, listeners: Listeners[RecordExecuted], many: Listeners[RecordsNoted] | None = None
    ) -> None:
        self.listeners = listeners
        self.many: Listeners[RecordsNoted] = many or Listeners()
        self.any_listener = AnyListener(self.listeners, self.many)
        self._start = 0

    def emit(self, thread: int, address: int, identity: int) -> None:
        """A record that Python executes."""
        if self.many.subscriptions:
            note = (identity << 32 | address).to_bytes(NOTE_BYTES, "little")
            self.many.emit(RecordsNoted(thread, note))
        if self.listeners.subscriptions:
            self.listeners.emit(RecordExecuted(thread, address, RECORDS[identity]))

    def run(self, thread: int, context: Any, reader: Callable[[int], int]) -> int:
        """Call a reader's recording variant, and make events of what it noted."""
        self.attach(context)
        result = reader(context.address)
        self.take(thread, context)
        return int(result)

    def attach(self, context: Any) -> None:
        """The reader with this context, which has `executed`, may note in its next call."""
        if not self._start:  # of the pages, only those that are used cost anything
            self._notes = memoryview(lazy_zeros(NOTE_BYTES * MAX_NOTES))
            self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._notes))
        context.executed = self._start

    def take(self, thread: int, context: Any, pieces: Callable[[int, int], bytes] | None = None) -> None:
        """Make events of what was noted since `attach`.

        `pieces`: gives `RecordsNoted.pieces`, of the notes' host address and bytes.
        """
        size, context.executed = context.executed - self._start, 0
        if size and self.many.subscriptions:
            numbers = None if pieces is None else pieces(self._start, size)
            self.many.emit(RecordsNoted(thread, bytes(self._notes[:size]), numbers))
        for note in self._notes[:size].cast("Q"):
            if not self.listeners.subscriptions:
                break
            address, identity = note & 0xFFFFFFFF, note >> 32
            self.listeners.emit(RecordExecuted(thread, address, RECORDS[identity]))
