"""Memory in native code: pointers of guest addresses, streams of records, lines that texels lie in.

To a stream native code appends records, which Python reads when the work is through. Nothing else happens
while native code runs: no call, no allocation. The room is address space that costs nothing until it is
written; what does not fit is counted, not written.

A line has 64 bytes: that is what the texture cache holds, and a whole utile. Of each quad that has
a pixel in the request, every line is noted once, in the order in which its pixels need them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from vc4lab.memory.guest import MEMORY_MASK
from vc4lab.memory.host import lazy_zeros
from vc4lab.simd.kernel import Function, call, staged
from vc4lab.simd.members import i32, i32x16, i64, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import mask_bits, popcount_


def host(base: Value, address: Value) -> Value:
    """Native pointer to a guest address (masked into guest memory)."""
    return base + (address & MEMORY_MASK).zext(i64)


def word_at(base: Value, number: Value) -> Value:
    """Native pointer to a 32-bit word, by its number (unsigned) after `base`."""
    return base + number.zext(i64) * 4


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
    """Return the address to which the next record, of `size` bytes, is to be written."""
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


LINE_SHIFT = 6
"""log2 of a line's bytes."""
QUAD_SHIFT = 24
"""A line in the stream: bits 23:0 of a word are the guest address shifted, 25:24 the quad."""

NO_ADDRESS = -1
"""In place of the address of a texel that is not read: the border."""

_QUAD_BYTES = 16
_LANE_BYTES = 64


class TouchedLines:
    """Appends lines to a stream (its host address); `quads`: bit 4q is set if quad q takes part.

    `lanes`: a mask of those whose texels are read, None: all.
    """

    def __init__(self, stream: Value, quads: Value, lanes: Value | None = None) -> None:
        self.stream, self.quads, self.lanes = stream, quads, lanes

    def only(self, lanes: Value) -> TouchedLines:
        """The lines of some lanes only."""
        return TouchedLines(self.stream, self.quads, lanes)

    def take(self, addresses: Sequence[Value], outside: Sequence[Value | None]) -> None:
        """Notes texels at one or four guest addresses of each lane, without those `outside`."""
        taps = len(addresses)
        places = alloca(taps * _LANE_BYTES)
        for number, (address, border) in enumerate(zip(addresses, outside, strict=True)):
            if border is not None:
                address = select(border, const(i32x16, NO_ADDRESS), address)
            if self.lanes is not None:
                address = select(self.lanes, address, const(i32x16, NO_ADDRESS))
            store(places + number * _LANE_BYTES, address)
        call(_note(taps), self.stream, places, self.quads)


@lru_cache(maxsize=4)
def _note(taps: int) -> Function[None]:
    def body(stream: Value, places: Value, quads: Value) -> None:
        note_quads(taps, Stream.at(stream), places, quads)

    return Function((ptr, ptr, i32), None, body, name=f"note_lines_{taps}")


@staged
def note_quads(taps: int, stream: Stream, places: Value, quads: Value) -> None:
    """Notes the lines of four quads, `taps` texels each lane, if there is room for all."""
    used, base = stream.used, stream.base
    if used + 4 * 4 * 4 * taps > stream.room:
        stream.lost = stream.lost + 1
    else:
        for quad in range(4):
            if (quads.shr(quad << 2) & 1) != 0:
                texels = quad_texels(taps, places + quad * _QUAD_BYTES)
                lines = texels.shr(LINE_SHIFT)
                left = mask_bits(texels >= 0)
                while left != 0:
                    first = popcount_((left & -left) - 1)
                    line = lines[first]
                    store(base + used, line | (quad << QUAD_SHIFT))
                    used = used + 4
                    left = left & ~mask_bits(lines == splat(line, 4 * taps))
        stream.used = used


def quad_texels(taps: int, place: Value) -> Value:
    """The addresses of a quad's texels: those of each pixel's first, then the others."""
    whole = vec(i32, 4 * taps)
    if taps == 1:
        return load(whole, place)
    together = alloca(whole)
    for number in range(taps):
        store(together + number * _QUAD_BYTES, load(vec(i32, 4), place + number * _LANE_BYTES))
    return load(whole, together)
