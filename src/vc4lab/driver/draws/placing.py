"""Prepared draws into a frame, natively: their plans into memory, their records into its list."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from vc4lab.driver.draws.index_scan import BLOCK, index_range, shifted, until_restart
from vc4lab.driver.draws.plans import (
    ARRAYS,
    INDEXED,
    PLAN_WORDS,
    LookUp,
    Move,
    Piece,
    Placed,
    Seen,
    Sink,
    Used,
)
from vc4lab.driver.draws.primitives import MAX_INDEX, MAX_VERTICES
from vc4lab.memory.native import host, word_at
from vc4lab.records import declarations as d
from vc4lab.records import states
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import i1, i8, i32, i32x16, i64, ptr
from vc4lab.simd.memory import load, store, var
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import umax, umin
from vc4lab.v3d.ptb.context import STATE_LIMIT

SHADER_STATE = int(states.GlShaderState.id)
SHADER_STATE_BYTES = 5
LENGTH_AT, FIRST_AT, MAXIMUM_AT = (
    1 + field.lo // 8
    for field in (
        d.IndexedPrimitives.length, d.IndexedPrimitives.address, d.IndexedPrimitives.maximum_index
    )
)  # fmt: skip
"""Bytes of primitive records: the number of vertices, the first one or where the indices are, the
highest index."""
assert 1 + d.VertexArrayPrimitives.length.lo // 8 == LENGTH_AT
assert 1 + d.VertexArrayPrimitives.first.lo // 8 == FIRST_AT
MOST_CHANGES = STATE_LIMIT - 16
"""Changes of state in a list; a frame with more becomes several (HW-2116). Some records stand at its
begin."""
MOST_SHIFTED = 256
"""Indices of a draw that are written anew so that its vertices count from where those of the draw
before do: its shader state holds then."""


class Constants(NamedTuple):
    """Constant buffer 0 of a stage: the host's address of its words, 0: there is none, and all are
    0; its bytes; its address in GPU memory, which look-ups need (0: it is not there).
    """

    words: Value
    size: Value
    address: Value


@staged
def _own_words(
    plan: Any, constants: tuple[Constants, Constants], zeros: Value, take: Callable[..., Any]
) -> None:
    """Give each word of a plan that follows from constants to `take`, with its place."""
    at: Any
    for stage, one in enumerate(constants):
        pairs = plan.fragment_pairs if stage else plan.vertex_pairs
        for at in range(plan.fragment_count if stage else plan.vertex_count):
            pair = pairs + at.zext(i64) * 8
            place, source = load(i32, pair), load(i32, pair + 4) * 4
            word = load(i32, word_at(plan.words, place))
            if source + 4 <= one.size:
                word = load(i32, one.words + source.zext(i64))
            take(place, word)
    vertex, fragment = constants
    for at in range(plan.look_up_count):
        look_up: Any = LookUp.at(plan.look_ups + at.zext(i64) * LookUp.size)
        is_fragment = look_up.is_fragment != 0
        address = select(is_fragment, fragment.address, vertex.address)
        left = select(is_fragment, fragment.size, vertex.size) - 4 - look_up.value
        is_inside = (address != 0) & (left >= 0)
        found = select(look_up.is_limit != 0, left, address + look_up.value)
        otherwise = select(look_up.is_limit != 0, const(i32, 0), zeros)
        take(look_up.word, select(is_inside, found, otherwise))


@staged
def _fill(
    memory: Value, plan: Any, address: Value, constants: tuple[Constants, Constants], zeros: Value
) -> None:
    """Put a plan at an address."""
    at: Any
    place = host(memory, address)
    for at in range(0, plan.word_count, PLAN_WORDS):
        store(word_at(place, at), load(i32x16, word_at(plan.words, at)))
    for at in range(plan.relocation_count):
        word = word_at(place, load(i32, word_at(plan.relocations, at)))
        store(word, load(i32, word) + address)
    _own_words(plan, constants, zeros, lambda at, word: store(word_at(place, at), word))


@staged
def _has_same(s: Any, plan: Any, constants: tuple[Constants, Constants]) -> Value:
    """Whether the plan that was placed last has the words that these constants give."""
    differs = var(i32)
    differs.set(const(i32, 0))
    place = host(s.memory, s.last_address)

    def take(at: Value, word: Value) -> None:
        differs.set(differs.get() | (word ^ load(i32, word_at(place, at))))

    _own_words(plan, constants, s.zeros, take)
    return differs.get() == 0


@staged
def _copy(to: Value, source: Value, length: Value) -> None:
    at: Any
    for at in range(length):
        store(to + at.zext(i64), load(i8, source + at.zext(i64)))


class Vertices(NamedTuple):
    """The vertices of a draw that moves, as its command has them.

    Attributes
    ----------
    moves
        Whether they are not those that it was prepared with (i1); the others count only then.
    start, length, bias
        Its first vertex, how many there are, what is added to indices.
    offsets
        The host's address of the offsets of its vertex buffers, and of its index buffer.
    """

    moves: Value
    start: Value
    length: Value
    bias: Value
    offsets: Value


class Named(NamedTuple):
    """The vertices that a draw names.

    Attributes
    ----------
    good
        Whether it can be drawn so (i1).
    lowest, highest
        The lowest and highest number of its vertices.
    base
        The vertex that index 0 is.
    place
        Guest address of its indices.
    low, high
        The lowest and the highest of them; without indices those of its vertices.
    """

    good: Value
    lowest: Value
    highest: Value
    base: Value
    place: Value
    low: Value
    high: Value


@staged
def _named(s: Any, draw: Any, vertices: Vertices) -> Named:
    """The vertices that a draw names; indices of 32 bits count from the lowest one if need be."""
    good = const(i1, True)
    low, high = vertices.start, vertices.start + vertices.length - 1
    base, place = const(i32, 0), const(i32, 0)
    if vertices.moves:
        end = vertices.start.zext(i64) + vertices.length.zext(i64)
        good = draw.least.ule(vertices.length)
        if draw.kind == ARRAYS:
            good &= end <= MAX_VERTICES
        else:
            size, count = draw.index_size, vertices.length
            offset = load(i32, word_at(vertices.offsets, draw.buffer_count))
            end = offset.zext(i64) + count.zext(i64) * size.zext(i64)
            good &= end <= draw.index_limit.zext(i64)
            if good:
                place = draw.index_base + offset
                indices = host(s.memory, place)
                if draw.restarts != 0:
                    low, high = index_range(indices, count, size, draw.restart)
                else:
                    low, high = index_range(indices, count, size)
                good = low.ule(high)
                base = vertices.bias
                if high.ugt(MAX_INDEX):
                    base += low
                    high -= low
                    low = const(i32, 0)
                    good &= high.ule(MAX_INDEX)
    return Named(good, base + low, base + high, base, place, low, high)


@staged
def _ahead(s: Any, draw: Any, vertices: Vertices, named: Named) -> tuple[Value, Value]:
    """Whether the shader state of the draw before holds for the vertices of a draw of the same
    plan and constants, and by how many vertices its arrays begin later than that draw's.
    """
    number: Any
    plan = host(s.memory, s.last_address)
    holds, ahead, is_known = const(i1, True), const(i32, 0), const(i1, False)
    for number in range(draw.move_count):
        move: Any = Move.at(draw.moves + number.zext(i64) * Move.size)
        array = _first_byte(move, vertices) + move.base + named.base * move.stride
        distance = array - load(i32, word_at(plan, move.word))
        if (is_known == 0) & (move.stride != 0):
            ahead = distance // move.stride
            is_known = const(i1, True)
        holds &= distance == ahead * move.stride
    low, high = named.low + ahead, named.high + ahead
    if draw.kind == ARRAYS:
        holds &= (low >= 0) & (high >= 0) & (high < MAX_VERTICES)
    elif ahead != 0:
        holds &= (low >= 0) & (high >= 0) & (high <= MAX_INDEX) & (draw.index_size != 1)
        holds &= vertices.length.ule(MOST_SHIFTED)
    return holds, ahead


@staged
def _use(s: Any, place: Value, first: Value, length: Value) -> None:
    """Bytes of a buffer are read by draws that wait."""
    if place != 0:
        used: Any = Used.at(place)
        is_other = used.turn != s.turn
        low = select(is_other, first, umin(used.low, first))
        high = select(is_other, first + length, umax(used.high, first + length))
        used.turn = s.turn
        used.low = low
        used.high = high


@staged
def _first_byte(move: Any, vertices: Vertices) -> Value:
    """The place of vertex 0 of an array in its resource."""
    begin: Value = move.relative
    if move.buffer >= 0:
        begin += load(i32, word_at(vertices.offsets, move.buffer))
    return begin


@staged
def is_current(sink: Any, draw: Any, count: Value) -> Value:
    """Whether what a draw looked at, so many things, is as it was."""
    number: Any
    changed = const(i64, 0)
    for number in range(count):
        seen: Any = Seen.at(draw.seen + number.zext(i64) * Seen.size)
        changed |= load(i64, seen.counter) ^ seen.changes
    # Others are for the processor, which begins another frame.
    has_room = sink.changes + draw.batch_count <= MOST_CHANGES
    is_here = (draw.framebuffer == sink.framebuffer) & ((sink.aside == 0) | (count == 0))
    found: Value = has_room & is_here & (changed == 0)
    return found


class Runs(NamedTuple):
    """Ways in which primitive records find a draw's vertices: the guest address of its indices as they
    are; the first vertex, or the address of those that are drawn; bytes of one; the highest one.
    """

    indices: Value
    first: Value
    index_bytes: Value
    maximum: Value


@staged
def _add_runs(s: Any, draw: Any, vertices: Vertices, batch: Any, length: Value, runs: Runs) -> Value:
    """A primitive record, or one for each part between restarts; the bytes of records then."""
    run = const(i32, 0)
    going = const(i1, True)
    restarts = vertices.moves & (draw.restarts != 0)
    while going:
        run_length = vertices.length
        if restarts:
            run_length = until_restart(
                host(s.memory, runs.indices), run, vertices.length, draw.index_size, draw.restart
            )
        if (restarts == 0) | draw.least.ule(run_length):
            record = s.body + length.zext(i64)
            _copy(record, batch.data, batch.length)
            if vertices.moves:
                store(record + LENGTH_AT, run_length)
                store(record + FIRST_AT, runs.first + run * runs.index_bytes)
                if draw.kind == INDEXED:
                    store(record + MAXIMUM_AT, runs.maximum)
            length += batch.length
        run += run_length + 1
        going = restarts & run.ult(vertices.length)
    return length


@staged
def place(sink: Value, placed: Value, constants: tuple[Constants, Constants], vertices: Vertices) -> Value:
    """Add a draw; whether there was room, and its vertices are inside of their buffers.

    Where the list has changes of state enough, `Sink.batch` says what is left of it.
    """
    number: Any
    s: Any = Sink.at(sink)
    draw: Any = Placed.at(placed)
    moves = select(vertices.moves, draw.move_count, const(i32, 0))
    address = (s.arena + 4 * PLAN_WORDS - 1) & -(4 * PLAN_WORDS)
    size = draw.word_count * 4
    has_room = (size <= s.arena_end - address) & (draw.most_bytes <= s.capacity - s.length)
    named = _named(s, draw, vertices)
    has_room &= named.good
    if vertices.moves & (draw.restarts != 0):
        records = (vertices.length.udiv(draw.least) + 1).zext(i64) * draw.batch_count.zext(i64)
        left = s.capacity - s.length - draw.most_bytes
        has_room &= records * d.IndexedPrimitives.size <= left.zext(i64)
    lowest, highest = named.lowest, named.highest
    if has_room:
        for number in range(moves):
            move: Any = Move.at(draw.moves + number.zext(i64) * Move.size)
            begin = _first_byte(move, vertices)
            span = (highest - lowest).zext(i64) * move.stride.zext(i64) + move.vertex_bytes.zext(i64)
            begin += lowest * move.stride
            has_room &= begin.zext(i64) + span <= move.limit.zext(i64)
    # With the same uniforms, and arrays where they were or some vertices from there, its shader
    # state holds: it is set already.
    holds = has_room & vertices.moves & (s.last == draw.serial) & (draw.batch_count == 1)
    if holds:
        holds = _has_same(s, draw, constants)
    ahead = const(i32, 0)
    if holds:
        holds, ahead = _ahead(s, draw, vertices, named)
        ahead = select(holds, ahead, const(i32, 0))
    end = select(holds, s.arena, address + size)
    first = select(draw.kind == ARRAYS, named.low + ahead, named.place)
    is_indexed = vertices.moves & (draw.kind == INDEXED)
    is_written = is_indexed & ((draw.index_size == 4) | (ahead != 0))
    if has_room & is_written:
        first = (end + 15) & -16
        taken = vertices.length * 2 + BLOCK
        has_room = vertices.length.ult(s.arena_end - first) & (taken <= s.arena_end - first)
        if has_room:
            less = named.base - vertices.bias - ahead
            shifted(host(s.memory, first), host(s.memory, named.place), vertices.length, less,
                    draw.index_size)  # fmt: skip
            end = first + taken
    if has_room:
        if holds == 0:
            _fill(s.memory, draw, address, constants, s.zeros)
            s.last = select(vertices.moves, draw.serial, const(i32, 0))
            s.last_address = address
        for number in range(moves):
            moved: Any = Move.at(draw.moves + number.zext(i64) * Move.size)
            begin = _first_byte(moved, vertices)
            if holds == 0:
                array = begin + moved.base + named.base * moved.stride
                store(word_at(host(s.memory, address), moved.word), array)
            length = (highest - lowest) * moved.stride + moved.vertex_bytes
            _use(s, moved.used, begin + lowest * moved.stride, length)
        if is_indexed & (is_written == 0):
            _use(s, draw.index_used, first - draw.index_base, vertices.length * draw.index_size)
        s.arena = end
        before = s.length
        length = before
        for number in range(draw.record_count):
            piece: Any = Piece.at(draw.records + number.zext(i64) * Piece.size)
            known = word_at(s.known, piece.first)
            if load(i32, known) != piece.second:
                store(known, piece.second)
                _copy(s.body + length.zext(i64), piece.data, piece.length)
                length += piece.length
        index_bytes = select(is_written, const(i32, 2), draw.index_size)
        runs = Runs(named.place, first, index_bytes, named.high + ahead)
        last = umin(draw.batch_count, s.batch + umax(MOST_CHANGES - s.changes, const(i32, 1)))
        s.changes = s.changes + select(holds, (length != before).zext(i32), last - s.batch)
        next_batch = s.batch
        s.batch = select(last < draw.batch_count, last, const(i32, 0))
        for number in range(next_batch, last):
            batch: Any = Piece.at(draw.batches + number.zext(i64) * Piece.size)
            if holds == 0:
                to = s.body + length.zext(i64)
                store(to, const(i8, SHADER_STATE))
                store(to + 1, batch.first | (address + batch.second))
                length += SHADER_STATE_BYTES
            length = _add_runs(s, draw, vertices, batch, length, runs)
        s.length = length
        s.draws = s.draws + 1
    found: Value = has_room
    return found


@kernel(args=(ptr, ptr, *(ptr, i32, i32) * 2, i32, i32, i32, i32, ptr), returns=i1)
def _place_one(
    sink: Value, placed: Value,
    vertex: Value, vertex_size: Value, vertex_address: Value,
    fragment: Value, fragment_size: Value, fragment_address: Value,
    moves: Value, start: Value, count: Value, bias: Value, offsets: Value,
) -> Value:  # fmt: skip
    constants = (
        Constants(vertex, vertex_size, vertex_address),
        Constants(fragment, fragment_size, fragment_address),
    )
    return place(sink, placed, constants, Vertices(moves != 0, start, count, bias, offsets))


@cache
def native_place() -> NativeFunction:
    """`place` for Python: sink, placed, both stages' `Constants`, `Vertices`."""
    return build("gl_placing", {"place": _place_one}, float_mode="caller", key="gl_placing")["place"]
