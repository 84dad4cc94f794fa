"""A draw's memory as a plan: uniform streams and shader records, put in place by native code.

What a draw has in memory besides its records is the same from frame to frame, except for uniforms
and for where it lies. A plan holds the words that stay, which of them are addresses inside of the
plan, and which are uniforms. `Fills` collects plans of a frame with their places; one native call
puts all of them there.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.memory import MEMORY_SIZE
from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    build,
    i32,
    i32x16,
    i64,
    kernel,
    load,
    ptr,
    store,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vc4lab.driver.gpu.memory import GpuMemory

PIECE_WORDS = 4
"""Streams and shader records begin with a multiple of 16 bytes."""
PLAN_WORDS = 16
"""Plans are moved by 64 bytes."""
_ADDRESSES = MEMORY_SIZE - 1


class Fill(Struct):
    """A plan and its place. Pairs are a word of the plan and a word of constant buffer 0."""

    words = ptr
    relocations = ptr
    """Words that hold a byte of the plan, and become its address."""
    vertex_pairs = ptr
    fragment_pairs = ptr
    word_count = i32
    relocation_count = i32
    vertex_count = i32
    fragment_count = i32
    place = i32
    """In GPU memory."""
    vertex_block = i32
    """Addresses of the blocks of constants, 0: none, of which all words are 0."""
    fragment_block = i32
    spare = i32


_STAYS = struct.Struct("<4Q4i")
_CHANGES = struct.Struct("<4I")
assert _STAYS.size + _CHANGES.size == Fill.size


class DrawPlan:
    """Words of a draw, as its pieces are added.

    Attributes
    ----------
    size
        Bytes.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[NDArray[np.uint32]] = []
        self._relocations: list[int] = []
        self._pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
        self._words: NDArray[np.uint32] | None = None
        self.head = b""

    def add(
        self,
        words: NDArray[np.uint32],
        relocations: Sequence[int] = (),
        pairs: Sequence[tuple[int, int]] = (),
        *,
        of_vertex: bool = True,
    ) -> int:
        """A stream or a record; its first byte in the plan.

        relocations: words of it that hold bytes of the plan, to become addresses. pairs: words of
        it, and of the stage's constant buffer 0, which they are.
        """
        first = self.size // 4
        padding = -len(words) % PIECE_WORDS
        self._parts.append(np.append(words, np.zeros(padding, np.uint32)).astype(np.uint32))
        self._relocations += [first + one for one in relocations]
        self._pairs[0 if of_vertex else 1].extend((first + at, source) for at, source in pairs)
        self.size += 4 * (len(words) + padding)
        return 4 * first

    def close(self) -> None:
        """No more is added."""
        padding = np.zeros(-(self.size // 4) % PLAN_WORDS, np.uint32)
        self._words = np.concatenate([*self._parts, padding])
        self.size = self._words.nbytes
        self._tables = [
            np.array(one, np.int32).reshape(-1) for one in (self._relocations, *self._pairs)
        ]
        self.head = self._head(self._words)

    def _head(self, words: NDArray[np.uint32]) -> bytes:
        places, vertex, fragment = self._tables
        return _STAYS.pack(
            words.ctypes.data, places.ctypes.data, vertex.ctypes.data, fragment.ctypes.data,
            len(words), len(places), len(vertex) // 2, len(fragment) // 2,
        )  # fmt: skip

    def with_words(self, changed: dict[int, int]) -> tuple[bytes, NDArray[np.uint32]]:
        """Head and words with some words of this draw's own."""
        assert self._words is not None
        words = self._words.copy()
        for place, value in changed.items():
            words[place] = value & 0xFFFFFFFF
        return self._head(words), words


class Fills:
    """Plans and their places, until they are put there."""

    def __init__(self) -> None:
        self._rows = bytearray()
        self._kept: list[Any] = []

    def add(
        self, head: bytes, kept: object, address: int, vertex_block: int, fragment_block: int
    ) -> None:
        """A plan's head, what keeps its words alive, its place and the uniforms of its stages."""
        self._rows += head
        self._rows += _CHANGES.pack(address, vertex_block, fragment_block, 0)
        self._kept.append(kept)

    def run(self, memory: GpuMemory) -> None:
        """Put all of them into memory."""
        if self._kept:
            rows = np.frombuffer(self._rows, np.uint8)
            _native()(memory.guest.base, rows.ctypes.data, len(self._kept))
            del rows
            self._kept.clear()
            self._rows = bytearray()


@cache
def _native() -> NativeFunction:
    module = build("draw_plans", {"fill": _fill}, float_mode="caller", key="draw_plans")
    return module["fill"]


@kernel(args=(ptr, ptr, i32), returns=None)
def _fill(memory: Value, rows: Value, count: Value) -> None:
    number: Any
    at: Any
    for number in range(count):
        row: Any = Fill.at(rows + number.zext(i64) * Fill.size)
        place = memory + (row.place & _ADDRESSES).zext(i64)
        for at in range(0, row.word_count, PLAN_WORDS):
            offset = at.zext(i64) * 4
            store(place + offset, load(i32x16, row.words + offset))
        for at in range(row.relocation_count):
            word = place + load(i32, row.relocations + at.zext(i64) * 4).zext(i64) * 4
            store(word, load(i32, word) + row.place)
        for stage in (0, 1):
            block = row.fragment_block if stage else row.vertex_block
            pairs = row.fragment_pairs if stage else row.vertex_pairs
            pair_count = row.fragment_count if stage else row.vertex_count
            if block != 0:
                size = load(i32, memory + (block & _ADDRESSES).zext(i64))
                for at in range(pair_count):
                    pair = pairs + at.zext(i64) * 8
                    source = load(i32, pair + 4) * 4
                    if source + 4 <= size:
                        from_ = memory + ((block + 4 + source) & _ADDRESSES).zext(i64)
                        store(place + load(i32, pair).zext(i64) * 4, load(i32, from_))
