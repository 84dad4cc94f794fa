"""Draws and clears of a stream become those of the queue, by native code, with uniforms beside it.

It writes what `BlockWriter` and `encode_command` would: words of a command by the declarations of
both, blocks as `blocks.py` has them. Where a state lies, it gets from `BlockWriter`.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.queue.blocks import STAGE_PARTS
from vc4lab.driver.queue.commands import Clear, Draw
from vc4lab.memory.pointers import host
from vc4lab.mesa.protocol import work_commands as work
from vc4lab.mesa.protocol.limits import VERTEX_BUFFERS
from vc4lab.mesa.protocol.work_commands import DrawVbo
from vc4lab.mesa.state import draw_run as runs
from vc4lab.mesa.state.pipe import index_offset_of, offsets_of
from vc4lab.mesa.state.walk import BUFFER_WORDS, INDICES_WORDS, OFFSET_WORD, Row
from vc4lab.simd import (
    NativeFunction,
    Struct,
    Value,
    build,
    const,
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
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.driver.queue.block_writer import BlockWriter
    from vc4lab.mesa.state.pipe import PipeState

PARTS = len(STAGE_PARTS)
NAMES = {"instances": "instance_count"}
"""Words of a draw in the queue that Gallium calls otherwise."""
DRAW_BYTES = 4 * (1 + Draw.fixed)
BLOCKS_OF_DRAW = 256
"""Bytes of what a draw has beside the queue, at most, but for its constants."""
ALIGNMENT = 16


_KEPT = struct.Struct(f"<4I{2 * PARTS}I2I{1 + VERTEX_BUFFERS}I")
"""A screen's words of a state (`runs.DrawRun`): the generation of the writer's blocks, the turn of
the queue that has a draw with it, the addresses of its pipe state, of its frame buffer and of its
stages' parts, whether it has an index buffer and the offset of that in the pipe state, the number
of its vertex buffers and their offsets there."""
GENERATION, TURN, PIPE_BLOCK, FRAMEBUFFER, STAGES = range(5)
HAS_INDICES = STAGES + 2 * PARTS
INDICES, BUFFERS = HAS_INDICES + 1, HAS_INDICES + 2
assert _KEPT.size <= 4 * runs.KEPT_WORDS


class Run(Struct):
    """Draws on their way to the queue."""

    memory = ptr
    data = ptr
    rows = ptr
    kept = ptr
    out = ptr
    fresh = ptr
    """States that the queue had no draw with yet."""
    count = i32
    next = i32
    """The first row that is not in the queue."""
    length = i32
    """Bytes that were written."""
    fresh_count = i32
    arena = i32
    generation = i32
    turn = i32
    vertex_count = i32
    """Constant buffers of a stage, 0 or 1; the address of the block."""
    vertex_block = i32
    fragment_count = i32
    fragment_block = i32
    vertex_place = i32
    """Whose constants these are, as in `Row`."""
    fragment_place = i32
    state = i32
    """Of the shader state that was written last; -1: none."""
    shader_state = i32
    before = ptr
    """Vertex buffers where a row has none, as words of the stream have them."""
    index_offset = i32
    """Of the index buffer, where a row has none."""
    buffers_place = i32
    """Of which the offsets were written last, and for which state; -1: none."""
    indices_place = i32
    buffers_state = i32
    vertices = i32
    """Where they are; 0: they are those of the pipe state."""


def _words_of_draw() -> list[list[tuple[int, int]]]:
    """For each word of a draw in the queue: words of Gallium's draw, and how far they go left."""
    words: list[list[tuple[int, int]]] = [[] for _ in range(Draw.fixed)]
    for name, spec in Draw.specs.items():
        if not spec.ref:
            source = DrawVbo.specs[NAMES.get(name, name)]
            assert source.form == spec.form or spec.is_flag
            assert source.below == 2 or not spec.is_flag
            words[spec.at].append((source.at, spec.lo if spec.form == "b" else 0))
    return words


WORDS_OF_DRAW = _words_of_draw()
PIPE_STATE, SHADER_STATE, VERTICES = (
    Draw.specs[name].at for name in ("pipe_state", "shader_state", "vertices")
)


_CLEAR_WORDS = tuple(range(work.Clear.fixed))
CLEAR_AT = Clear.specs["buffers"].at
"""The words of Gallium's clear stand together in the queue's, from this one on."""
assert all(
    (spec.at, spec.form) == (Clear.specs[name].at - CLEAR_AT, Clear.specs[name].form)
    for name, spec in work.Clear.specs.items()
)


@staged
def _word(place: Value, number: Value | int) -> Value:
    offset = number.zext(i64) * 4 if isinstance(number, Value) else 4 * number
    return place + offset


@staged
def _take(c: Any, size: Value) -> Value:
    """Bytes of the arena: their address."""
    address: Value = (c.arena + ALIGNMENT - 1) & -ALIGNMENT
    c.arena = address + size
    return address


@staged
def _constants(c: Any, place: Value, words: Value) -> Value:
    """A block with words of the stream; its address."""
    number: Any
    address = _take(c, 4 + 4 * words)
    to, source = host(c.memory, address), _word(c.data, place)
    store(to, words * 4)
    for number in range(words):
        store(_word(to + 4, number), load(i32, _word(source, number)))
    return address


@staged
def _shader_state(c: Any, kept: Value) -> Value:
    """A shader state block; its address."""
    address = _take(c, const(i32, 4 * (1 + 2 * (PARTS + 2))))
    start = host(c.memory, address)
    to = start + 4
    for stage in (0, 1):
        for number in range(PARTS):
            store(to + 4 * number, load(i32, kept + 4 * (STAGES + stage * PARTS + number)))
        count = c.fragment_count if stage else c.vertex_count
        store(to + 4 * PARTS, count)
        to = to + 4 * (PARTS + 1)
        if count != 0:
            store(to, c.fragment_block if stage else c.vertex_block)
            to = to + 4
    store(start, (PARTS + 1) * 8 + 4 * (c.vertex_count + c.fragment_count))
    return address


@staged
def _vertices(c: Any, place: Value, indices_place: Value, kept: Value) -> Value:
    """A block with the offsets of vertex buffers, and after them that of the index buffer; 0 if
    they are those of the pipe state.
    """
    number: Any
    source = select(place < 0, c.before, _word(c.data, place)) + 4 * OFFSET_WORD
    count = load(i32, kept + 4 * BUFFERS)
    known = kept + 4 * (BUFFERS + 1)
    differs = const(i32, 0)
    for number in range(count):
        offset = load(i32, _word(source, number * BUFFER_WORDS))
        differs |= offset ^ load(i32, _word(known, number))
    has_indices = load(i32, kept + 4 * HAS_INDICES)
    index_offset = c.index_offset
    if indices_place >= 0:
        index_offset = load(i32, _word(c.data, indices_place) + 4 * (INDICES_WORDS - 1))
    if has_indices != 0:
        differs |= index_offset ^ load(i32, kept + 4 * INDICES)
    address = const(i32, 0)
    if differs != 0:
        address = _take(c, 8 + 4 * count)
        to = host(c.memory, address)
        store(to, (count + has_indices) * 4)
        store(_word(to + 4, count), index_offset)
        for number in range(count):
            offset = load(i32, _word(source, number * BUFFER_WORDS))
            store(_word(to + 4, number), offset)
    return address


@kernel(args=(ptr,), returns=None)
def _write(context: Value) -> None:
    c: Any = Run.at(context)
    number = c.next
    going = number < c.count
    while going:
        row: Any = Row.at(c.rows + number.zext(i64) * Row.size)
        kept = c.kept + row.state.zext(i64) * (4 * runs.KEPT_WORDS)
        going = load(i32, kept + 4 * GENERATION) == c.generation
        if going:
            if load(i32, kept + 4 * TURN) != c.turn:
                store(kept + 4 * TURN, c.turn)
                store(_word(c.fresh, c.fresh_count), row.state)
                c.fresh_count = c.fresh_count + 1
            to = c.out + c.length.zext(i64)
            draw = _word(c.data, row.draw)
            if (load(i32, draw - 4) & 0xFF) == work.Clear.number:
                store(to, const(i32, Clear.number | Clear.fixed << 8))
                store(to + 4, load(i32, kept + 4 * FRAMEBUFFER))
                for at in _CLEAR_WORDS:
                    store(to + 4 * (1 + CLEAR_AT + at), load(i32, draw + 4 * at))
                c.length = c.length + 4 * (1 + Clear.fixed)
            else:
                if row.vertex != c.vertex_place:
                    c.vertex_place = row.vertex
                    c.vertex_block = _constants(c, row.vertex, row.vertex_words)
                    c.vertex_count = 1
                    c.state = -1
                if row.fragment != c.fragment_place:
                    c.fragment_place = row.fragment
                    c.fragment_block = _constants(c, row.fragment, row.fragment_words)
                    c.fragment_count = 1
                    c.state = -1
                if row.state != c.state:
                    c.state = row.state
                    c.shader_state = _shader_state(c, kept)
                others = (row.buffers ^ c.buffers_place) | (row.indices ^ c.indices_place)
                if (others | (row.state ^ c.buffers_state)) != 0:
                    c.buffers_place = row.buffers
                    c.indices_place = row.indices
                    c.buffers_state = row.state
                    c.vertices = _vertices(c, row.buffers, row.indices, kept)
                store(to, const(i32, Draw.number | Draw.fixed << 8))
                for at, sources in enumerate(WORDS_OF_DRAW):
                    word: Any = None
                    for source, shift in sources:
                        part = load(i32, draw + 4 * source) << shift
                        word = part if word is None else word | part
                    if word is not None:
                        store(to + 4 * (1 + at), word)
                store(to + 4 * (1 + VERTICES), c.vertices)
                store(to + 4 * (1 + PIPE_STATE), load(i32, kept + 4 * PIPE_BLOCK))
                store(to + 4 * (1 + SHADER_STATE), c.shader_state)
                c.length = c.length + DRAW_BYTES
            number += 1
            going = number < c.count
    c.next = number


@cache
def _native() -> NativeFunction:
    return build("gl_draw_runs", {"write": _write}, float_mode="caller", key="gl_draw_runs")[
        "write"
    ]


class DrawRuns:
    """Writes runs of draws to the queue."""

    def __init__(self, memory: GpuMemory, writer: BlockWriter) -> None:
        self._memory, self._writer = memory, writer
        self._native = _native()
        self._out = np.zeros(runs.ROWS * DRAW_BYTES, np.uint8)
        self._fresh = np.zeros(runs.STATES, np.int32)
        self._run = Run(
            memory=memory.guest.base,
            out=self._out.ctypes.data,
            fresh=self._fresh.ctypes.data,
        )
        self._take_offsets(())

    def _take_offsets(self, offsets: tuple[int, ...]) -> None:
        """Those of the vertex buffers of rows that have none."""
        self._offsets = offsets
        self._before = np.zeros((len(offsets) + 1, BUFFER_WORDS), np.uint32)
        self._before[:-1, OFFSET_WORD] = offsets
        self._run.before = self._before.ctypes.data

    @staticmethod
    def room(run: runs.DrawRun) -> int:
        """Bytes of the arena for a run, at most."""
        return len(run.data) + run.length * BLOCKS_OF_DRAW

    def write(self, run: runs.DrawRun, turn: int) -> tuple[bytes, list[PipeState]]:
        """The draws and clears as bytes of the queue, and the states that are new to it.

        turn: another number for each queue. Raises OutOfMemory.
        """
        here = self._run
        here.data, here.rows, here.count = run.address, run.rows, run.length
        here.kept, here.turn = run.kept.ctypes.data, turn
        here.next = here.fresh_count = here.length = 0
        here.vertex_place = here.fragment_place = here.state = here.buffers_state = -1
        if run.offsets != self._offsets:
            self._take_offsets(run.offsets)
        here.index_offset = _signed(run.index_offset)
        here.vertex_count, here.vertex_block = self._block(run.constants[0])
        here.fragment_count, here.fragment_block = self._block(run.constants[1])
        here.generation = self._writer.generation
        arena = self._memory.arena
        while True:
            here.arena = arena.next
            self._native(here.address)
            arena.next = here.arena
            if here.next >= here.count:
                break
            row: Any = Row.python.from_address(run.rows + here.next * Row.size)
            self._place(run, row.state)
            here.generation = self._writer.generation
        fresh = [run.states[one] for one in self._fresh[: here.fresh_count].tolist()]
        return ctypes.string_at(here.out, here.length), fresh

    def _block(self, constants: tuple[bytes, ...]) -> tuple[int, int]:
        """How many constant buffers these are, and the address of the block."""
        if not constants:
            return 0, 0
        return 1, self._writer.frame_block(constants[0]) if constants[0] else 0

    def _place(self, run: runs.DrawRun, number: int) -> None:
        """Puts a state's blocks into memory."""
        state, writer = run.states[number], self._writer
        pipe_state = writer.pipe_state(state)
        stages = writer.stage_words(state.vertex) + writer.stage_words(state.fragment)
        offsets = offsets_of(state.vertex_buffers)
        data = _KEPT.pack(
            *(writer.generation, 0, pipe_state, writer.framebuffer(state.framebuffer)),
            *struct.unpack(f"<{2 * PARTS}I", stages),
            *(state.index_buffer is not None, index_offset_of(state.index_buffer)),
            *(len(offsets), *offsets, *[0] * (VERTEX_BUFFERS - len(offsets))),
        )
        row = run.kept[number].view(np.uint8)
        row[: len(data)] = np.frombuffer(data, np.uint8)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
