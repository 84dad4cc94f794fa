"""Which records native code has executed, for those who listen: `events.RecordExecuted`.

Each native reader of lists (`../cle/binning_kernel.py`, `../tiles/collect_kernel.py`,
`../tile_lists/scan_kernel.py`) has a variant, compiled from the same source, that notes what it
executes (`native_records.note_record`); it is called while there is a listener.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from vc4lab.listeners import AnyListener, Listeners
from vc4lab.memory import lazy_zeros
from vc4lab.records.control import RECORDS
from vc4lab.v3d.events import RecordExecuted, RecordsNoted

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
