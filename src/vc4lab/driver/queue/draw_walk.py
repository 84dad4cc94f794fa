"""Native code that walks over a queue's draws, as far as it knows them.

A draw of the queue with the same numbers, and with blocks of state at the same places, is the same
prepared draw; most are it with other vertices, too (their places in the buffers, their number).
Such draws are looked up here and added to the frame at hand (`draws/placing.py`).
At anything else (another command, another frame buffer, a draw that is not known or that looked at
what has changed since) the walk stops; the processor executes it, and the walk goes on after it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.driver.draws.placing import MOST_CHANGES, Placed, Seen, Sink, Vertices, place
from vc4lab.driver.queue.blocks import STAGE_PARTS
from vc4lab.driver.queue.commands import Draw
from vc4lab.memory.pointers import host, word_at
from vc4lab.simd import (
    Array,
    NativeFunction,
    Struct,
    Value,
    build,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
    store,
)

if TYPE_CHECKING:
    from vc4lab.driver.draws.frame_draws import FrameDraws
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.driver.queue.block_reader import SharedState

ROWS = 1 << 13
"""Room for known draws; half of it is used, so that a free one is near."""
MOST_DRAWN = 1 << 12
PARTS = len(STAGE_PARTS)
HINTS = ("min_index", "max_index", "shader_state", "vertices")
"""Fields of a draw that its prepared form does not depend on, or not as they stand."""
OWN = ("start", "count", "index_bias")
"""Those that say which vertices it has."""
NUMBERS = tuple(sorted({spec.at for name, spec in Draw.specs.items() if name not in HINTS}))
"""The words of a draw that it depends on."""
MOST_OFFSETS = 8
"""Offsets of buffers that belong to a draw that cannot move."""
KIND_WORDS = len(NUMBERS) + 2 * PARTS + 1
"""The last one: how many offsets follow, or MOVES."""
KEY_WORDS = KIND_WORDS + MOST_OFFSETS
MOVES = -1
SHADER_STATE, VERTICES = Draw.specs["shader_state"].at, Draw.specs["vertices"].at
START, COUNT, BIAS = (Draw.specs[name].at for name in OWN)
DRAW_HEADER = Draw.number | Draw.fixed << 8
PRIME = 0x9E3779B1 - (1 << 32)
assert not {Draw.specs[one].at for one in HINTS} & set(NUMBERS)


class Row(Struct):
    """A known draw: its key, and what is added to a frame."""

    placed = ptr
    """0: a free row."""
    key = Array(i32, KEY_WORDS)


class Walk(Struct):
    """The walk: what it reads, and how far it is."""

    memory = ptr
    sink = ptr
    rows = ptr
    fresh = ptr
    """Known draws that the frame had none of before, by their numbers."""
    drawn = ptr
    """The draws that were added, by their numbers in the frame."""
    place = i32
    """The next command, in GPU memory; the end of the queue."""
    end = i32
    draw = i32
    """The number of the next draw in the frame."""
    fresh_count = i32
    drawn_count = i32
    slot = i32
    """Where the draw that the walk stopped at belongs if it moves, and if not; -1: it did not stop
    at one, or has too many offsets."""
    fixed_slot = i32
    key = Array(i32, KEY_WORDS)
    """Of that draw if it moves, and if not."""
    fixed_key = Array(i32, KEY_WORDS)


@staged
def _read_key(c: Any, here: Value, state: Value) -> tuple[Value, Value, Value]:
    """The key of a draw, into the walk: whether it has one; both stages' blocks of constants.

    That of a draw which moves has no numbers of its vertices.
    """
    for number, word in enumerate(NUMBERS):
        is_own = word in (START, COUNT, BIAS)
        value = const(i32, 0) if is_own else load(i32, here + 4 * (1 + word))
        store(c.key + 4 * number, value)
    store(c.key + 4 * (KIND_WORDS - 1), const(i32, MOVES))
    to = c.key + 4 * len(NUMBERS)
    words = load(i32, state).shr(2)
    at: Any = const(i32, 1)
    is_plain = words.ult(2 * (PARTS + 2) + 1)
    blocks = []
    for stage in (0, 1):
        block = const(i32, 0)
        is_plain &= at + PARTS < words + 1
        if is_plain:
            for number in range(PARTS):
                store(to + 4 * (stage * PARTS + number), load(i32, word_at(state, at + number)))
            count = load(i32, word_at(state, at + PARTS))
            at += PARTS + 1
            if count == 1:
                block = load(i32, word_at(state, at))
                at += 1
            is_plain = count.ult(2) & (at <= words + 1)
        blocks.append(block)
    return is_plain & (at == words + 1), blocks[0], blocks[1]


@staged
def _fix_key(c: Any, here: Value) -> Value:
    """The key of a draw that does not move, after the other one is there; whether it has one."""
    for number in range(KIND_WORDS - 1):
        store(c.fixed_key + 4 * number, load(i32, c.key + 4 * number))
    for number, word in enumerate(NUMBERS):
        if word in (START, COUNT, BIAS):
            store(c.fixed_key + 4 * number, load(i32, here + 4 * (1 + word)))
    offsets = load(i32, here + 4 * (1 + VERTICES))
    block = host(c.memory, offsets)
    count = select(offsets == 0, const(i32, 0), load(i32, block).shr(2))
    store(c.fixed_key + 4 * (KIND_WORDS - 1), count)
    for number in range(MOST_OFFSETS):
        is_there = count.ugt(number)
        value = select(is_there, load(i32, block + 4 * (1 + number)), const(i32, 0))
        store(c.fixed_key + 4 * (KIND_WORDS + number), value)
    return count.ule(MOST_OFFSETS)


@staged
def _find(c: Any, place: Value, words: int) -> Value:
    """The number of the row with a key of so many words, or of a free one."""
    key = const(i32, 0)
    for number in range(words):
        key = (key ^ load(i32, place + 4 * number)) * PRIME
        key = key ^ key.shr(15)
    slot = key & (ROWS - 1)
    looking = const(i1, True)
    while looking:
        row: Any = Row.at(c.rows + slot.zext(i64) * Row.size)
        looking = row.placed != 0
        if looking:
            differs = const(i32, 0)
            for number in range(words):
                differs |= load(i32, row.key + 4 * number) ^ load(i32, place + 4 * number)
            looking = differs != 0
            if looking:
                slot = (slot + 1) & (ROWS - 1)
    return slot


@staged
def _is_current(sink: Any, draw: Any, count: Value) -> Value:
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


@kernel(args=(ptr,), returns=None)
def _walk(context: Value) -> None:
    c: Any = Walk.at(context)
    sink: Any = Sink.at(c.sink)
    going = const(i1, True)
    while going:
        going = const(i1, False)
        c.slot = -1
        c.fixed_slot = -1
        if (c.end - c.place >= 4 * (1 + Draw.fixed)) & (c.drawn_count < MOST_DRAWN):
            here = host(c.memory, c.place)
            if load(i32, here) == DRAW_HEADER:
                state = host(c.memory, load(i32, here + 4 * (1 + SHADER_STATE)))
                has_key, vertex, fragment = _read_key(c, here, state)
                if has_key:
                    start, count, bias, offsets = (
                        load(i32, here + 4 * (1 + word)) for word in (START, COUNT, BIAS, VERTICES)
                    )
                    c.slot = _find(c, c.key, KIND_WORDS)
                    placed = Row.at(c.rows + c.slot.zext(i64) * Row.size).placed
                    moves = placed != 0
                    if moves:
                        known: Any = Placed.at(placed)
                        going = _is_current(sink, known, known.moving_seen_count)
                        if going:
                            vertices = Vertices(moves, start, count, bias, offsets)
                            going = place(c.sink, placed, (vertex, fragment), vertices)
                    if going == 0:
                        if _fix_key(c, here):
                            c.fixed_slot = _find(c, c.fixed_key, KEY_WORDS)
                            fixed = Row.at(c.rows + c.fixed_slot.zext(i64) * Row.size).placed
                            if fixed != 0:
                                placed = fixed
                                other: Any = Placed.at(fixed)
                                going = _is_current(sink, other, other.seen_count)
                                if going:
                                    vertices = Vertices(
                                        const(i1, False), start, count, bias, offsets
                                    )
                                    going = place(c.sink, fixed, (vertex, fragment), vertices)
                    if going:
                        draw: Any = Placed.at(placed)
                        if draw.job != sink.job:
                            draw.job = sink.job
                            store(word_at(c.fresh, c.fresh_count), draw.number)
                            c.fresh_count = c.fresh_count + 1
                        store(word_at(c.drawn, c.drawn_count), c.draw)
                        c.drawn_count = c.drawn_count + 1
                        c.draw = c.draw + 1
                        c.place = c.place + 4 * (1 + Draw.fixed)


@cache
def _native() -> NativeFunction:
    return build("gl_draw_walk", {"walk": _walk}, float_mode="caller", key="gl_draw_walk")["walk"]


class Walked(NamedTuple):
    """What the walk has added to a frame.

    Attributes
    ----------
    after
        The address where the processor goes on.
    drawn
        The draws, by their numbers in the frame.
    fresh
        Those that the frame has for the first time, each once: prepared, and their state.
    """

    after: int
    drawn: list[int]
    fresh: list[tuple[PreparedDraw, SharedState]]


class DrawWalk:
    """The walk over queues, and what it knows: at most `MOST` draws."""

    MOST = ROWS // 2

    def __init__(self, memory: GpuMemory, frame: FrameDraws) -> None:
        self._memory, self._frame = memory, frame
        self._native = _native()
        self._rows = np.zeros(ROWS * Row.size, np.uint8)
        self._fresh = np.zeros(ROWS, np.int32)
        self._drawn = np.zeros(MOST_DRAWN, np.int32)
        self._known: list[tuple[PreparedDraw, SharedState]] = []
        self._walk = Walk(
            memory=memory.guest.base,
            sink=frame.sink.address,
            rows=self._rows.ctypes.data,
            fresh=self._fresh.ctypes.data,
            drawn=self._drawn.ctypes.data,
        )
        self._turn = memory.states.turn
        self._walk.slot = self._walk.fixed_slot = -1

    def forget(self) -> None:
        """Nothing is known any more."""
        self._rows[...] = 0
        self._known.clear()
        self._walk.slot = self._walk.fixed_slot = -1

    def begin(self) -> None:
        """Another queue: blocks of state may lie elsewhere."""
        if self._turn != self._memory.states.turn:
            self._turn = self._memory.states.turn
            self.forget()

    def run(self, start: int, end: int, draw: int) -> Walked:
        """Add what is known of a queue from an address on; `draw`: the next draw's number."""
        here = self._walk
        here.place, here.end, here.draw = start, end, draw
        here.fresh_count = here.drawn_count = 0
        self._frame.take_arena()
        self._native(here.address)
        self._frame.give_arena()
        known = self._known
        return Walked(
            here.place,
            self._drawn[: here.drawn_count].tolist(),
            [known[one] for one in self._fresh[: here.fresh_count].tolist()],
        )

    def learn(self, made: PreparedDraw, shared: SharedState, *, moves: bool) -> None:
        """The draw that the walk has stopped at is this one, for the frame at hand.

        moves: also with other vertices.
        """
        here = self._walk
        slot = here.slot if moves else here.fixed_slot
        if slot < 0:
            return
        if len(self._known) >= self.MOST:
            self.forget()
            return
        block = made.placed.block
        block.framebuffer = self._frame.sink.framebuffer
        block.job = self._frame.sink.job
        block.number = len(self._known)
        self._known.append((made, shared))
        row: Any = Row.python.from_address(here.rows + slot * Row.size)
        row.placed = made.placed.address
        row.key = list(here.key if moves else here.fixed_key)
        here.slot = here.fixed_slot = -1
