"""A draw's memory as a plan: uniform streams and shader records, put in place by native code.

What a draw has in memory besides its records is the same from frame to frame, except for uniforms
and for where it lies. A plan holds the words that stay, which of them are addresses inside of the
plan, and which are uniforms. Native code (`placing.py`) puts it where there is room.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PIECE_WORDS = 4
"""Streams and shader records begin with a multiple of 16 bytes."""
PLAN_WORDS = 16
"""Plans are moved by 64 bytes."""


HEAD = struct.Struct("<5Q6i")
"""Addresses of a plan's words, of the words to relocate, of pairs of words of the plan and of
constant buffer 0, for the vertex and the fragment stage, and of look-ups of that buffer
(`placed.LookUp`); how many of each."""


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
        self._look_ups: list[tuple[int, int, int, int]] = []
        self._words: NDArray[np.uint32] | None = None
        self.head = b""

    def add(
        self,
        words: NDArray[np.uint32],
        relocations: Sequence[int] = (),
        pairs: Sequence[tuple[int, int]] = (),
        look_ups: Sequence[tuple[int, int, bool]] = (),
        *,
        of_vertex: bool = True,
    ) -> int:
        """A stream or a record; its first byte in the plan.

        relocations: words of it that hold bytes of the plan, to become addresses. pairs: words of
        it, and of the stage's constant buffer 0, which they are. look_ups: words of it that are
        the address of a byte of that buffer, or the largest offset from there that is inside.
        """
        first = self.size // 4
        padding = -len(words) % PIECE_WORDS
        self._parts.append(np.append(words, np.zeros(padding, np.uint32)).astype(np.uint32))
        self._relocations += [first + one for one in relocations]
        self._pairs[0 if of_vertex else 1].extend((first + at, source) for at, source in pairs)
        self._look_ups += [(first + at, value, is_limit, not of_vertex) for at, value, is_limit in look_ups]
        self.size += 4 * (len(words) + padding)
        return 4 * first

    def close(self) -> None:
        """No more is added."""
        padding = np.zeros(-(self.size // 4) % PLAN_WORDS, np.uint32)
        self._words = np.concatenate([*self._parts, padding])
        self.size = self._words.nbytes
        self._tables = [
            np.array(one, np.int32).reshape(-1) for one in (self._relocations, *self._pairs, self._look_ups)
        ]
        self.head = self._head(self._words)

    def _head(self, words: NDArray[np.uint32]) -> bytes:
        places, vertex, fragment, look_ups = self._tables
        return HEAD.pack(
            *(words.ctypes.data, *(one.ctypes.data for one in self._tables)),
            *(len(words), len(places), len(vertex) // 2, len(fragment) // 2),
            *(len(look_ups) // 4, 0),
        )

    def with_words(self, changed: dict[int, int]) -> tuple[bytes, NDArray[np.uint32]]:
        """Head and words with some words of this draw's own."""
        assert self._words is not None
        words = self._words.copy()
        for place, value in changed.items():
            words[place] = value & 0xFFFFFFFF
        return self._head(words), words
