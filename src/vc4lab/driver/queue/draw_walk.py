"""Native code that walks over a queue's draws, as far as it knows them.

A draw of the queue with the same numbers, and with blocks of state at the same places, is the same
prepared draw: such draws are looked up here and added to the frame at hand (`draws/placing.py`).
At anything else (another command, another frame buffer, a draw that is not known or that looked at
what has changed since) the walk stops; the processor executes it, and the walk goes on after it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.driver.draws.placing import Placed, Seen, Sink, place
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
NUMBERS = tuple(sorted({spec.at for name, spec in Draw.specs.items() if name not in HINTS}))
"""The words of a draw that it depends on."""
KEY_WORDS = len(NUMBERS) + 2 * PARTS + 1
"""The last one: whether it has offsets of vertex buffers of its own."""
SHADER_STATE, VERTICES = Draw.specs["shader_state"].at, Draw.specs["vertices"].at
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
    """Where the draw that the walk stopped at belongs; -1: it did not stop at one."""
    key = Array(i32, KEY_WORDS)


@staged
def _read_key(c: Any, here: Value, state: Value) -> tuple[Value, Value, Value]:
    """The key of a draw, into the walk: whether it has one; both stages' blocks of constants."""
    for number, word in enumerate(NUMBERS):
        store(c.key + 4 * number, load(i32, here + 4 * (1 + word)))
    has_offsets = load(i32, here + 4 * (1 + VERTICES)) != 0
    store(c.key + 4 * (KEY_WORDS - 1), has_offsets.zext(i32))
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
def _find(c: Any) -> Value:
    """The number of the row with the walk's key, or of a free one."""
    key = const(i32, 0)
    for number in range(KEY_WORDS):
        key = (key ^ load(i32, c.key + 4 * number)) * PRIME
        key = key ^ key.shr(15)
    slot = key & (ROWS - 1)
    looking = const(i1, True)
    while looking:
        row: Any = Row.at(c.rows + slot.zext(i64) * Row.size)
        looking = row.placed != 0
        if looking:
            differs = const(i32, 0)
            for number in range(KEY_WORDS):
                differs |= load(i32, row.key + 4 * number) ^ load(i32, c.key + 4 * number)
            looking = differs != 0
            if looking:
                slot = (slot + 1) & (ROWS - 1)
    return slot


@staged
def _is_current(draw: Any) -> Value:
    """Whether what a draw looked at is as it was."""
    number: Any
    changed = const(i64, 0)
    for number in range(draw.seen_count):
        seen: Any = Seen.at(draw.seen + number.zext(i64) * Seen.size)
        changed |= load(i64, seen.counter) ^ seen.changes
    return changed == 0


@kernel(args=(ptr,), returns=None)
def _walk(context: Value) -> None:
    c: Any = Walk.at(context)
    sink: Any = Sink.at(c.sink)
    going = const(i1, True)
    while going:
        going = const(i1, False)
        c.slot = -1
        if (c.end - c.place >= 4 * (1 + Draw.fixed)) & (c.drawn_count < MOST_DRAWN):
            here = host(c.memory, c.place)
            if load(i32, here) == DRAW_HEADER:
                state = host(c.memory, load(i32, here + 4 * (1 + SHADER_STATE)))
                has_key, vertex, fragment = _read_key(c, here, state)
                if has_key:
                    slot = _find(c)
                    c.slot = slot
                    row: Any = Row.at(c.rows + slot.zext(i64) * Row.size)
                    placed = row.placed
                    if placed != 0:
                        draw: Any = Placed.at(placed)
                        going = _is_current(draw)
                        going &= draw.framebuffer == sink.framebuffer
                        going &= (sink.aside == 0) | (draw.seen_count == 0)
                        if going:
                            offsets = load(i32, here + 4 * (1 + VERTICES))
                            going = place(c.sink, placed, (vertex, fragment), offsets)
                        if going:
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
        self._walk.slot = -1

    def forget(self) -> None:
        """Nothing is known any more."""
        self._rows[...] = 0
        self._known.clear()
        self._walk.slot = -1

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

    def learn(self, made: PreparedDraw, shared: SharedState) -> None:
        """The draw that the walk has stopped at is this one, for the frame at hand."""
        here = self._walk
        if here.slot < 0:
            return
        if len(self._known) >= self.MOST:
            self.forget()
            return
        block = made.placed.block
        block.framebuffer = self._frame.sink.framebuffer
        block.job = self._frame.sink.job
        block.number = len(self._known)
        self._known.append((made, shared))
        row: Any = Row.python.from_address(here.rows + here.slot * Row.size)
        row.placed = made.placed.address
        row.key = list(here.key)
        here.slot = -1
