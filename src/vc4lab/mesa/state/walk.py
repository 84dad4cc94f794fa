"""Native code that walks over a SUBMIT_CMD's words, as far as it knows what they do.

Frames repeat their commands. A state of a context has a number, and a command that only sets state
leads from one number to another, always the same one as long as its words are the same: such steps
are learned (`steps.py`) and followed here. Uniforms, draws and clears are read here; draws and
clears become rows with their state, a draw also with the places of its uniforms. At everything else
the walk stops, Python executes the command, and the walk goes on after it.

Which commands are of which kind, and what a draw's words may be, comes from their declarations.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from vc4lab.memory.native import word_at
from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol import state_commands as settings
from vc4lab.mesa.protocol import work_commands as work
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.command import BindObject, Command, Nop
from vc4lab.mesa.protocol.commands import COMMANDS
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import i1, i8, i32, i64, ptr
from vc4lab.simd.memory import load
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const, select

SETTINGS: tuple[type[Command], ...] = (
    BindObject,
    settings.SetViewportState,
    settings.SetFramebufferState,
    settings.SetSamplerViews,
    settings.SetStencilRef,
    settings.SetBlendColor,
    settings.SetScissorState,
    settings.BindSamplerStates,
    settings.SetPolygonStipple,
    settings.SetClipState,
    settings.SetSampleMask,
    settings.BindShader,
    settings.LinkShader,
)
"""Commands that only set state, or nothing: equal words in the same state lead to the same one."""
NOTHING: tuple[type[Command], ...] = (Nop, work.EndTransfers)
OTHER, SETTING, SKIPPED, CONSTANTS, DRAW, BUFFERS, INDICES, CLEAR, CONTEXT = range(9)
"""Kinds of command for the walk."""
CLEAR_WORDS = work.Clear.fixed
LONGEST = 64
"""Words of a step."""
DRAW_WORDS = 12
"""Words of a draw that is not indirect."""
CONSTANTS_HEAD = 2
"""Words of SET_CONSTANT_BUFFER before its values: stage and index."""
BUFFER_WORDS, OFFSET_WORD = settings.VertexBuffer.fixed, settings.VertexBuffer.specs["offset"].at
"""Words of a vertex buffer in SET_VERTEX_BUFFERS, and which of them is its offset: where vertices
are streamed it is another one for each draw, and no part of the state's number.
"""
INDICES_WORDS = settings.SetIndexBuffer.specs["offset"].at + 1
"""Words of SET_INDEX_BUFFER, of which the last is its offset: the same holds for that."""
END, STOP, ROWS = range(3)
"""Why the walk ends: the words do, here is what Python does, the rows are full."""
PRIME = 0x9E3779B1 - (1 << 32)
assert (Stage.VERTEX, Stage.FRAGMENT) == (0, 1)
assert settings.SetVertexBuffers.specs["buffers"].at == 0


class Row(Struct):
    """A draw or a clear: its state, where its words are; of a draw the uniforms of both stages, its
    vertex buffers and its index buffer.

    Places are words of the stream; of uniforms and both kinds of buffers -1: those that there were
    when the walk began. The word before a command's words is its header.
    """

    state = i32
    draw = i32
    vertex = i32
    vertex_words = i32
    fragment = i32
    fragment_words = i32
    buffers = i32
    indices = i32


class Step(Struct):
    """A known step: from a state, by words that are kept in the pool, to a state."""

    words = i32
    """Their number, header included; 0: no step."""
    state = i32
    place = i32
    """In words of the pool."""
    following = i32


class Walk(Struct):
    """The walk: what it reads, and how far it is."""

    data = ptr
    rows = ptr
    steps = ptr
    pool = ptr
    kinds = ptr
    word_count = i32
    context = i32
    """The number of the context, which SET_SUB_CTX need not choose again."""
    place = i32
    """The next command, in words."""
    state = i32
    vertex = i32
    """Uniforms, as in `Row`."""
    vertex_words = i32
    fragment = i32
    fragment_words = i32
    buffers = i32
    indices = i32
    needs = i32
    """Stages, as bits, of which draws have the uniforms that there were when the walk began."""
    row_count = i32
    row_capacity = i32
    mask = i32
    """Mask of the steps' numbers."""
    slot = i32
    """The free step where the walk ended at an unknown setting; -1: it did not end at one."""
    followed = i32
    """How many settings and draws it went over."""


@cache
def kinds() -> Any:
    """The kind of each command, by number."""
    found = np.zeros(256, np.uint8)
    for group, kind in (
        (SETTINGS, SETTING),
        (NOTHING, SKIPPED),
        ((settings.SetConstantBuffer,), CONSTANTS),
        ((settings.SetVertexBuffers,), BUFFERS),
        ((settings.SetIndexBuffer,), INDICES),
        ((work.DrawVbo,), DRAW),
        ((work.Clear,), CLEAR),
        ((settings.SetSubCtx,), CONTEXT),
    ):
        for declared in group:
            assert COMMANDS[declared.number] is declared
            found[declared.number] = kind
    return found


def _draw_limits() -> list[tuple[int, int]]:
    """Words of a draw, and what they must be below, by its declaration."""
    found = []
    for spec in work.DrawVbo.specs.values():
        if spec.at >= DRAW_WORDS:
            continue
        if spec.enum is not None:
            values = sorted(int(one) for one in spec.enum)
            assert values == list(range(len(values)))
            found.append((spec.at, len(values)))
        elif spec.below is not None:
            found.append((spec.at, spec.below))
    # A count that the GPU has written itself was not announced.
    return [*found, (work.DrawVbo.specs["count_from_stream_output"].at, 1)]


DRAW_LIMITS = _draw_limits()
assert DRAW_WORDS in work.DrawVbo.lengths


@staged
def _word_of(here: Value, number: Value, kind: Value) -> Value:
    """A word of a setting, header included, as it counts for the step: 0 for a buffer's offset."""
    is_offset = number.urem(BUFFER_WORDS) == (1 + OFFSET_WORD) % BUFFER_WORDS
    is_offset = is_offset & (kind == BUFFERS) | (kind == INDICES) & (number == INDICES_WORDS)
    return select(is_offset, const(i32, 0), load(i32, word_at(here, number)))


@staged
def _find(c: Any, state: Value, here: Value, count: Value, kind: Value) -> Value:
    """The number of the step from a state by `count` words, or of the free one for it."""
    number: Any
    key = (state + 1) * PRIME
    for number in range(count):
        key = (key ^ _word_of(here, number, kind)) * PRIME
        key = key ^ key.shr(15)
    slot = key & c.mask
    looking = const(i1, True)
    while looking:
        step: Any = Step.at(c.steps + slot.zext(i64) * Step.size)
        looking = const(i1, False)
        if step.words != 0:
            same = (step.words == count) & (step.state == state)
            if same:
                word = const(i32, 0)
                kept = word_at(c.pool, step.place)
                while (word < count) & same:
                    same = _word_of(kept, word, kind) == _word_of(here, word, kind)
                    word += 1
            if same == 0:
                slot = (slot + 1) & c.mask
                looking = const(i1, True)
    found: Value = slot
    return found


@staged
def _is_plain_draw(here: Value, count: Value) -> Value:
    """Whether a draw is none that Python has to refuse."""
    plain = count == DRAW_WORDS
    if plain:
        for word, below in DRAW_LIMITS:
            plain &= load(i32, here + 4 * (1 + word)).ult(below)
    return plain


@staged
def _is_plain_buffer(here: Value, count: Value) -> Value:
    """Whether constants are those of buffer 0 of a stage that draws."""
    plain = (count > CONSTANTS_HEAD) & (count - CONSTANTS_HEAD <= limits.CONSTANT_WORDS)
    if plain:
        plain = load(i32, here + 4).ult(2) & (load(i32, here + 8) == 0)
    return plain


@kernel(args=(ptr,), returns=i32)
def _walk(context: Value) -> Value:
    c: Any = Walk.at(context)
    place, state = c.place, c.state
    followed = const(i32, 0)
    end = const(i32, END)
    c.slot = -1
    running = place < c.word_count
    while running:
        here = word_at(c.data, place)
        header = load(i32, here)
        count = header.shr(16)
        known = count < c.word_count - place
        if known:
            kind = load(i8, c.kinds + (header & 0xFF).zext(i64)).zext(i32)
            known = kind == SKIPPED
            is_buffers = (kind == BUFFERS) & (count.urem(BUFFER_WORDS) == 0)
            is_indices = kind == INDICES
            if (kind == SETTING) | is_buffers | is_indices:
                if count < LONGEST:
                    slot = _find(c, state, here, count + 1, kind)
                    step: Any = Step.at(c.steps + slot.zext(i64) * Step.size)
                    known = step.words != 0
                    if known:
                        state = step.following
                        followed += 1
                        c.buffers = select(is_buffers, place + 1, c.buffers)
                        is_bound = is_indices & (count == INDICES_WORDS)
                        c.indices = select(is_bound, place + 1, c.indices)
                    else:
                        c.slot = slot
            elif kind == CONSTANTS:
                known = _is_plain_buffer(here, count)
                if known:
                    followed += 1
                    values, words = place + 1 + CONSTANTS_HEAD, count - CONSTANTS_HEAD
                    if load(i32, here + 4) == int(Stage.VERTEX):
                        c.vertex = values
                        c.vertex_words = words
                    else:
                        c.fragment = values
                        c.fragment_words = words
            elif kind == CONTEXT:
                known = count == settings.SetSubCtx.fixed
                if known:
                    known = load(i32, here + 4) == c.context
            elif (kind == DRAW) | (kind == CLEAR):
                known = count == CLEAR_WORDS
                if kind == DRAW:
                    known = _is_plain_draw(here, count)
                if known & (c.row_count >= c.row_capacity):
                    known = const(i1, False)
                    end = const(i32, ROWS)
                elif known:
                    followed += 1
                    row: Any = Row.at(c.rows + c.row_count.zext(i64) * Row.size)
                    row.state = state
                    row.draw = place + 1
                    row.vertex = c.vertex
                    row.vertex_words = c.vertex_words
                    row.fragment = c.fragment
                    row.fragment_words = c.fragment_words
                    row.buffers = c.buffers
                    row.indices = c.indices
                    c.row_count = c.row_count + 1
                    if kind == DRAW:
                        missing = (c.vertex < 0).zext(i32) | (c.fragment < 0).zext(i32) << 1
                        c.needs = c.needs | missing
        if known:
            place += count + 1
            running = place < c.word_count
        else:
            running = const(i1, False)
            if end == END:
                end = const(i32, STOP)
    c.place = place
    c.state = state
    c.followed = c.followed + followed
    return end


@cache
def native_walk() -> NativeFunction:
    """The walk: gets the address of a `Walk`, gives why it ended."""
    module = build("gl_stream_walk", {"walk": _walk}, float_mode="caller", key="gl_stream_walk")
    return module["walk"]
