"""Which lines of memory the texels of a request lie in, quad by quad, for pipelines that record.

A line has 64 bytes: that is what the texture cache holds, and a whole utile. Of each quad that has
a pixel in the request, every line is noted once, in the order in which its pixels need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from vc4lab.memory.streams import Stream
from vc4lab.simd import (
    Function,
    Value,
    alloca,
    call,
    const,
    i32,
    i32x16,
    load,
    mask_bits,
    popcount_,
    ptr,
    select,
    splat,
    staged,
    store,
    vec,
)

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
        """The same for some lanes."""
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
