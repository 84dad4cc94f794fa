"""Prepared draws into a frame, natively: their plans into memory, their records into its list.

`Placed` is what of a prepared draw is the same each time, `Sink` the frame that is being made;
`frame_draws.py` makes both.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.driver.draws.plans import HEAD, PLAN_WORDS
from vc4lab.memory.pointers import host, word_at
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
    pass

SHADER_STATE = int(states.GlShaderState.id)
SHADER_STATE_BYTES = 5
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
def _fill(memory: Value, plan: Any, address: Value, blocks: tuple[Value, Value]) -> None:
    """Put a plan at an address. `blocks`: those of constants, 0: none, of which all words are 0."""
    at: Any
    place = host(memory, address)
    for at in range(0, plan.word_count, PLAN_WORDS):
        store(word_at(place, at), load(i32x16, word_at(plan.words, at)))
    for at in range(plan.relocation_count):
        word = word_at(place, load(i32, word_at(plan.relocations, at)))
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
                    store(word_at(place, load(i32, pair)), word)


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
        first = load(i32, word_at(offsets + 4, move.buffer)) + move.relative
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
            store(word_at(host(s.memory, address), moved.word), moved.base + first)
        s.arena = address + size
        length = s.length
        for number in range(draw.record_count):
            piece: Any = Piece.at(draw.records + number.zext(i64) * Piece.size)
            known = word_at(s.known, piece.first)
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
def native_place() -> NativeFunction:
    """`place` for Python: (sink, placed, blocks of vertices' and fragments' constants)."""
    return build("gl_placing", {"place": _place_one}, float_mode="caller", key="gl_placing")[
        "place"
    ]
