"""Prepared draws into a frame, natively: their plans into memory, their records into its list.

`Placed` is what of a prepared draw is the same each time, `Sink` the frame that is being made.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.driver.draws.plans import HEAD, PLAN_WORDS
from vc4lab.driver.gpu.memory import OutOfMemory
from vc4lab.memory.pointers import host
from vc4lab.records import states
from vc4lab.simd import (
    Array,
    NativeFunction,
    Struct,
    Value,
    build,
    const,
    i1,
    i8,
    i32,
    i32x16,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
    store,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.driver.draws.plans import DrawPlan
    from vc4lab.driver.gpu.memory import GpuMemory

SHADER_STATE = int(states.GlShaderState.id)
SHADER_STATE_BYTES = 5
KNOWN = 256
"""Records by their ids."""
FIRST_BODY = 1 << 16
"""Bytes of a frame's binning list that there is room for at first."""
_KNOWN_BYTES = 4 * KNOWN
MOST_VALUES = 1 << 14
_PIECE = struct.Struct("<2iQ2i")


class Piece(Struct):
    """A record of a draw: a state record with its id and the number of its value, or a primitive
    record, with the shader state before it (without an address) and its shader record's place."""

    first = i32
    second = i32
    data = ptr
    length = i32
    spare = i32


class Move(Struct):
    """An array of a draw, of which the offset of its vertex buffer is another one each time."""

    word = i32
    """Of the plan: the array's address."""
    buffer = i32
    relative = i32
    """Bytes from the buffer's offset to the first vertex; offsets wrap."""
    base = i32
    """The address of what begins with the first byte of the resource."""
    span = i32
    """Bytes from there to the end of the last vertex."""
    limit = i32
    """The resource's bytes."""


class Seen(Struct):
    """Where the changes of a resource are counted, and how many there were."""

    counter = ptr
    changes = i64


class Placed(Struct):
    """A prepared draw."""

    words = ptr
    relocations = ptr
    """Words that hold a byte of the plan, and become its address."""
    vertex_pairs = ptr
    fragment_pairs = ptr
    word_count = i32
    relocation_count = i32
    vertex_count = i32
    fragment_count = i32
    records = ptr
    batches = ptr
    seen = ptr
    moves = ptr
    record_count = i32
    batch_count = i32
    seen_count = i32
    most_bytes = i32
    """Of its records."""
    number = i32
    """Among those that a queue's draws are looked up in."""
    framebuffer = i32
    """For which it was prepared."""
    job = i32
    """The last one that it was added to."""
    move_count = i32


assert [*Placed.fields][:8] == [
    "words", "relocations", "vertex_pairs", "fragment_pairs", "word_count", "relocation_count",
    "vertex_count", "fragment_count",
]  # fmt: skip
assert HEAD.size == Placed.offset("records")
assert _PIECE.size == Piece.size


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
    aside = i32
    """How many other frames wait: what is in their surfaces must not be looked at yet."""
    known = Array(i32, KNOWN)
    """The values of state records, by their ids; -1: not set."""


@staged
def _words(base: Value, number: Value) -> Value:
    return base + number.zext(i64) * 4


@staged
def _fill(memory: Value, plan: Any, address: Value, blocks: tuple[Value, Value]) -> None:
    """Put a plan at an address. `blocks`: those of constants, 0: none, of which all words are 0."""
    at: Any
    place = host(memory, address)
    for at in range(0, plan.word_count, PLAN_WORDS):
        store(_words(place, at), load(i32x16, _words(plan.words, at)))
    for at in range(plan.relocation_count):
        word = _words(place, load(i32, _words(plan.relocations, at)))
        store(word, load(i32, word) + address)
    for stage in (0, 1):
        block = blocks[stage]
        pairs = plan.fragment_pairs if stage else plan.vertex_pairs
        pair_count = plan.fragment_count if stage else plan.vertex_count
        if block != 0:
            size = load(i32, host(memory, block))
            for at in range(pair_count):
                pair = pairs + at.zext(i64) * 8
                source = load(i32, pair + 4) * 4
                if source + 4 <= size:
                    word = load(i32, host(memory, block + 4 + source))
                    store(_words(place, load(i32, pair)), word)


@staged
def _copy(to: Value, source: Value, length: Value) -> None:
    at: Any
    for at in range(length):
        store(to + at.zext(i64), load(i8, source + at.zext(i64)))


@staged
def _first_byte(move: Any, offsets: Value) -> tuple[Value, Value]:
    """Where an array begins in its resource, and whether its vertices are inside of it."""
    inside = (move.buffer * 4 + 4).ule(load(i32, offsets))
    first = const(i32, 0)
    if inside:
        first = load(i32, _words(offsets + 4, move.buffer)) + move.relative
        inside = first.zext(i64) + move.span.zext(i64) <= move.limit.zext(i64)
    return first, inside


@staged
def place(sink: Value, placed: Value, blocks: tuple[Value, Value], offsets: Value) -> Value:
    """Add a draw; whether there was room, and its vertices are inside of their buffers.

    offsets: the address of a block with those of the vertex buffers; 0: as they were.
    """
    number: Any
    s: Any = Sink.at(sink)
    draw: Any = Placed.at(placed)
    moves = select(offsets == 0, const(i32, 0), draw.move_count)
    at_offsets = host(s.memory, offsets)
    address = (s.arena + 4 * PLAN_WORDS - 1) & -(4 * PLAN_WORDS)
    size = draw.word_count * 4
    has_room = (size <= s.arena_end - address) & (draw.most_bytes <= s.capacity - s.length)
    for number in range(moves):
        move: Any = Move.at(draw.moves + number.zext(i64) * Move.size)
        _, inside = _first_byte(move, at_offsets)
        has_room &= inside
    if has_room:
        _fill(s.memory, draw, address, blocks)
        for number in range(moves):
            moved: Any = Move.at(draw.moves + number.zext(i64) * Move.size)
            first, _ = _first_byte(moved, at_offsets)
            store(_words(host(s.memory, address), moved.word), moved.base + first)
        s.arena = address + size
        length = s.length
        for number in range(draw.record_count):
            piece: Any = Piece.at(draw.records + number.zext(i64) * Piece.size)
            known = _words(s.known, piece.first)
            if load(i32, known) != piece.second:
                store(known, piece.second)
                _copy(s.body + length.zext(i64), piece.data, piece.length)
                length += piece.length
        for number in range(draw.batch_count):
            batch: Any = Piece.at(draw.batches + number.zext(i64) * Piece.size)
            to = s.body + length.zext(i64)
            store(to, const(i8, SHADER_STATE))
            store(to + 1, batch.first | (address + batch.second))
            _copy(to + SHADER_STATE_BYTES, batch.data, batch.length)
            length += batch.length + SHADER_STATE_BYTES
        s.length = length
        s.draws = s.draws + 1
    return has_room


@kernel(args=(ptr, ptr, i32, i32), returns=i1)
def _place_one(sink: Value, placed: Value, vertex: Value, fragment: Value) -> Value:
    return place(sink, placed, (vertex, fragment), const(i32, 0))


@cache
def _native() -> NativeFunction:
    return build("gl_placing", {"place": _place_one}, float_mode="caller", key="gl_placing")[
        "place"
    ]


class Values:
    """Numbers for the bytes of state records: equal ones have the same."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._next = count()

    def number(self, record: bytes) -> int:
        """Its number; after very many others it may get another one."""
        known = self._numbers.get(record)
        if known is None:
            if len(self._numbers) >= MOST_VALUES:
                self._numbers.clear()
            known = self._numbers[record] = next(self._next)
        return known


VALUES = Values()


class PlacedDraw:
    """The native form of a prepared draw (its parts are `PreparedDraw`'s), with its memory."""

    def __init__(
        self,
        plan: DrawPlan,
        states: dict[int, bytes],
        batches: list[tuple[int, int, bytes]],
        seen: tuple[tuple[Any, int], ...],
        moves: Sequence[tuple[int, ...]] = (),
    ) -> None:
        self._plan = plan
        records = [(number, VALUES.number(data), data) for number, data in states.items()]
        self._records, records_at = _pieces(records)
        self._batches, batches_at = _pieces(batches)
        seen_rows = [(ctypes.addressof(one.counter), changes) for one, changes in seen]
        self._seen = np.array(seen_rows, np.uint64)
        self._moves = np.array(moves, np.uint32)
        self.block = Placed(
            moves=self._moves.ctypes.data,
            move_count=len(moves),
            records=records_at,
            batches=batches_at,
            seen=self._seen.ctypes.data,
            record_count=len(records),
            batch_count=len(batches),
            seen_count=len(seen),
            most_bytes=sum(len(data) for *_, data in records)
            + sum(SHADER_STATE_BYTES + len(data) for *_, data in batches),
        )
        self.put_head(plan.head)

    @property
    def address(self) -> int:
        """Of the native form."""
        return self.block.address

    def put_head(self, head: bytes) -> None:
        """The addresses and counts of a plan."""
        ctypes.memmove(self.address, head, len(head))


def _pieces(rows: list[tuple[int, int, bytes]]) -> tuple[Any, int]:
    """Records as native code reads them, followed by their bytes; the address."""
    at = _PIECE.size * len(rows)
    data = b"".join(one[2] for one in rows)
    whole = np.zeros(at + len(data) + 1, np.uint8)
    address = whole.ctypes.data
    parts = []
    for first, second, record in rows:
        parts.append(_PIECE.pack(_signed(first), second, address + at, len(record), 0))
        at += len(record)
    made = b"".join(parts) + data
    whole[: len(made)] = np.frombuffer(made, np.uint8)
    return whole, address


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


class KeptDraws(NamedTuple):
    """The draws of a frame that waits: its records, their number, the number of the frame, and the
    values of state records that count at its end.
    """

    records: bytes
    draws: int
    job: int
    known: bytes


class FrameDraws:
    """The draws of a frame, as they are added. There is one frame at a time."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._native = _native()
        self._body = np.zeros(FIRST_BODY, np.uint8)
        self._jobs = 0
        self.sink = Sink(
            memory=memory.guest.base, body=self._body.ctypes.data, capacity=len(self._body)
        )

    def begin(self, framebuffer: int, kept: KeptDraws | None = None) -> None:
        """Another frame, to a frame buffer with this number, from 1 on; it may have draws."""
        sink = self.sink
        sink.framebuffer = framebuffer
        known = sink.address + Sink.offset("known")
        if kept is None:
            sink.length = sink.draws = 0
            self._jobs = sink.job = self._jobs % MOST_JOBS + 1
            ctypes.memset(known, 0xFF, _KNOWN_BYTES)
        else:
            sink.length, sink.draws, sink.job = len(kept.records), kept.draws, kept.job
            self._body[: sink.length] = np.frombuffer(kept.records, np.uint8)
            ctypes.memmove(known, kept.known, _KNOWN_BYTES)

    def keep(self) -> KeptDraws:
        """What the frame at hand has, for `begin`."""
        sink = self.sink
        known = ctypes.string_at(sink.address + Sink.offset("known"), _KNOWN_BYTES)
        return KeptDraws(self.records, sink.draws, sink.job, known)

    def end(self) -> None:
        """No frame is at hand; its records stay until the next one begins."""
        self.sink.framebuffer = 0

    def take_arena(self) -> None:
        """Native code adds draws next."""
        arena = self._memory.arena
        self.sink.arena, self.sink.arena_end = arena.next, arena.end

    def give_arena(self) -> None:
        """It has added them."""
        self._memory.arena.next = self.sink.arena

    def add(self, placed: PlacedDraw, blocks: tuple[int, int]) -> None:
        """Add a draw with the blocks of its constants, 0: none. Raises OutOfMemory."""
        self.make_room(placed)
        self.take_arena()
        if not self._native(self.sink.address, placed.address, *blocks):
            raise OutOfMemory(f"a draw with {4 * placed.block.word_count} bytes of uniforms")
        self.give_arena()

    def make_room(self, placed: PlacedDraw) -> None:
        """For a draw's records."""
        sink = self.sink
        if sink.capacity - sink.length < placed.block.most_bytes:
            body = np.zeros(2 * sink.capacity + placed.block.most_bytes, np.uint8)
            body[: sink.length] = self._body[: sink.length]
            self._body = body
            sink.body, sink.capacity = body.ctypes.data, len(body)

    @property
    def records(self) -> bytes:
        """What the frame's binning list has of them."""
        return self._body[: self.sink.length].tobytes()


MOST_JOBS = 1 << 30
