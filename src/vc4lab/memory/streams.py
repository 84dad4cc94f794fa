"""Streams: native code appends records to host memory, Python reads them when the work is through.

Nothing else happens while native code runs: no call, no allocation. The room is address space that
costs nothing until it is written; what does not fit is counted, not written.
"""

from __future__ import annotations

import ctypes

from vc4lab.memory.zeros import lazy_zeros
from vc4lab.simd import Struct, Value, i64, ptr, select, staged

SPARE_BYTES = 256
"""After the room of a stream: where a record goes that does not fit. None is longer."""


class Stream(Struct):
    """Records one after the other from `base` on: bytes that are used, that there are, and how many
    records (or groups of them) did not fit.
    """

    base = ptr
    used = i64
    room = i64
    lost = i64


@staged
def append(stream: Stream, size: int) -> Value:
    """Where the next record, of `size` bytes, is to be written."""
    used = stream.used
    fits = used + size <= stream.room
    place = stream.base + select(fits, used, stream.room)
    stream.used = select(fits, used + size, used)
    stream.lost = stream.lost + (~fits).zext(i64)
    return place


class StreamMemory:
    """The memory of one stream; it is there as long as this object lives."""

    def __init__(self, stream: Stream, room: int) -> None:
        self._view = memoryview(lazy_zeros(room + SPARE_BYTES))
        self._start = ctypes.c_char.from_buffer(self._view)
        self.stream = stream
        stream.base, stream.room = ctypes.addressof(self._start), room
        self.clear()

    def clear(self) -> None:
        """The stream is empty."""
        self.stream.used = self.stream.lost = 0

    def part(self, start: int, end: int) -> memoryview:
        """Bytes of the stream, as long as it is not cleared."""
        return self._view[start:end]

    @property
    def content(self) -> bytes:
        """A copy of all that is in it."""
        return bytes(self._view[: self.stream.used])
