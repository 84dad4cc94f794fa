"""Keeps what lay where the binner has written lists: the renderer may look before the chip is done.

A binning list is executed at once, but takes guest time. Where there is guest time each block of
tile memory is kept before it is written: the fixed area by record 112, other blocks and clip
records as they are taken from the pool. A frame that begins before the binner's time is over is
drawn with these bytes back in memory. Source: hardware reference 1.2, 3.9.
"""

from __future__ import annotations

import ctypes
import mmap

from vc4lab.memory.native import host
from vc4lab.simd import Value, const, i8, i32, kernel, load, ptr, select, staged, store, vec
from vc4lab.v3d.ptb.context import BinnerContext

PIECE = 32
"""Bytes that are kept at a time: blocks and clip records are multiples of it."""
MAX_PIECES = 1 << 17
"""4 MiB of tile lists; what is written beyond is seen too early."""

_PIECE = vec(i8, PIECE)


@staged
def keep(c: BinnerContext, address: Value, size: Value) -> None:
    """Keeps `size` bytes at a bus address, which are about to be written."""
    count = select(c.kept_room == 0, const(i32, 0), size.shr(5))
    for k in range(count):
        if c.kept < c.kept_room:
            place = address + k * PIECE
            store(c.kept_places + c.kept * 4, place)
            store(c.kept_bytes + c.kept * PIECE, load(_PIECE, host(c.memory, place)))
            c.kept = c.kept + 1


@kernel(args=(ptr, i32), returns=None)
def exchange(context: Value, backward: Value) -> None:
    """Exchanges what is kept with what is in memory, from the last piece on if `backward`."""
    c = BinnerContext.at(context)
    for k in range(c.kept):
        number = select(backward != 0, c.kept - 1 - k, k)
        memory = host(c.memory, load(i32, c.kept_places + number * 4))
        piece = c.kept_bytes + number * PIECE
        before = load(_PIECE, piece)
        store(piece, load(_PIECE, memory))
        store(memory, before)


class KeptMemory:
    """Room for what is kept; its pages cost nothing until they are used."""

    def __init__(self, context: BinnerContext) -> None:
        self._memory = mmap.mmap(-1, MAX_PIECES * (PIECE + 4))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        context.kept_bytes, context.kept_places = start, start + MAX_PIECES * PIECE
        context.kept, context.kept_room = 0, MAX_PIECES
