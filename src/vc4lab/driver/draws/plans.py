"""A draw's memory as a plan: uniform streams and shader records, put in place by native code.

What a draw has in memory besides its records is the same from frame to frame, except for uniforms
and for where it lies. A plan holds the words that stay, which of them are addresses inside of the
plan, and which are uniforms. Native code (`placing.py`) puts it where there is room.

Native code is given `Placed` of a prepared draw and `Sink` of the frame at hand. `frame_draws.py` makes
both; `placing.py` puts the one into the other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.simd import Array, Struct, i32, i64, ptr

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


KNOWN = 256
"""Records by their ids."""


class Piece(Struct):
    """A record of a draw: a state record with its id and the number of its value, or a primitive
    record, with the shader state before it (without an address) and its shader record's place."""

    first = i32
    second = i32
    data = ptr
    length = i32
    spare = i32


class Move(Struct):
    """An array of a draw whose vertices are others each time."""

    word = i32
    """The word of the plan that has the array's address."""
    buffer = i32
    """Its vertex buffer; -1: it has none, and is where it is."""
    relative = i32
    """Bytes from the buffer's offset to vertex 0; offsets wrap."""
    base = i32
    """The resource's address."""
    stride = i32
    vertex_bytes = i32
    """Bytes of a vertex that are read."""
    limit = i32
    """The resource's bytes."""
    spare = i32
    used = ptr
    """Bytes of it that waiting draws read (`Used`); 0: it is never written."""


class Used(Struct):
    """The bytes of a buffer that waiting draws read: from the first to the last of all of them."""

    turn = i32
    """The turn of the frames in which they do."""
    low = i32
    high = i32


class LookUp(Struct):
    """A word of the plan for memory look-ups of constant buffer 0."""

    word = i32
    value = i32
    """Byte of the buffer."""
    is_limit = i32
    """Whether it is the largest offset from that byte that is inside; else its address."""
    is_fragment = i32


FIXED, ARRAYS, INDEXED = range(3)
"""Ways in which a draw may change: not; where its vertices are, and how many; that with indices.
"""


class Seen(Struct):
    """A counter of a resource's changes, and how many there were."""

    counter = ptr
    changes = i64


class Placed(Struct):
    """A prepared draw."""

    words = ptr
    relocations = ptr
    """Words that hold a byte of the plan, and become its address."""
    vertex_pairs = ptr
    fragment_pairs = ptr
    look_ups = ptr
    word_count = i32
    relocation_count = i32
    vertex_count = i32
    fragment_count = i32
    look_up_count = i32
    spare = i32
    records = ptr
    batches = ptr
    seen = ptr
    moves = ptr
    record_count = i32
    batch_count = i32
    seen_count = i32
    most_bytes = i32
    """Bytes of its records, at most."""
    number = i32
    """Among those that a queue's draws are looked up in."""
    framebuffer = i32
    """For which it was prepared."""
    job = i32
    """The last one that it was added to."""
    moving_seen_count = i32
    """Those of what was looked at that count although the draw moves."""
    move_count = i32
    kind = i32
    """FIXED, ARRAYS or INDEXED: each primitive record is that of an instance then."""
    least = i32
    """Vertices without which nothing is drawn."""
    index_size = i32
    index_base = i32
    """Address and bytes of the indices' resource."""
    index_limit = i32
    buffer_count = i32
    """Vertex buffers: after their offsets a draw has that of its index buffer."""
    restarts = i32
    """Whether primitives end at indices that are `restart`."""
    restart = i32
    spare2 = i32
    serial = i32
    """Another one for each prepared draw, never 0."""
    index_used = ptr
    """As `Move.used`."""


assert [*Placed.fields][:11] == [
    "words", "relocations", "vertex_pairs", "fragment_pairs", "look_ups", "word_count",
    "relocation_count", "vertex_count", "fragment_count", "look_up_count", "spare",
]  # fmt: skip
assert HEAD.size == Placed.offset("records")


class Sink(Struct):
    """The frame that draws are added to."""

    memory = ptr
    body = ptr
    capacity = i32
    length = i32
    """Bytes of its records."""
    arena = i32
    arena_end = i32
    framebuffer = i32
    job = i32
    draws = i32
    changes = i32
    """Changes of state in its list, which the chip's binner counts."""
    batch = i32
    """The draw's first primitive record that no frame has yet; 0: all have one."""
    zeros = i32
    """The address of a word that is 0."""
    turn = i32
    """The turn of the frames that wait: another one when all are drawn."""
    last = i32
    """The serial number of the list's last draw, if that may come again with its plan; 0: none."""
    last_address = i32
    """The address of its plan."""
    aside = i32
    """How many other frames wait: what is in their surfaces must not be looked at yet."""
    known = Array(i32, KNOWN)
    """The values of state records, by their ids; -1: not set."""
