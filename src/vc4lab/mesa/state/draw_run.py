"""Draws and clears that a stream has in a row, as native code hands them on (`walk.py`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.protocol.work_commands import Clear, DrawVbo
from vc4lab.mesa.state import walk
from vc4lab.mesa.state.pipe import buffer_offsets, with_index_offset, with_offsets

if TYPE_CHECKING:
    from vc4lab.mesa.state.pipe import PipeState

KEPT_WORDS = 48
"""Words that a screen keeps of each state."""
STATES = 1 << 12
ROWS = 1 << 12
"""Draws of a run, at most."""
_WORD = struct.Struct("<I")


def offsets_at(data: bytes, place: int, count: int) -> tuple[int, ...]:
    """The offsets of so many vertex buffers, whose words begin with this word of a stream."""
    size = walk.BUFFER_WORDS
    words = struct.unpack_from(f"<{size * count}I", data, place * WORD)
    return words[walk.OFFSET_WORD :: size]


def index_offset_at(data: bytes, place: int) -> int:
    """The offset of the index buffer whose words begin with this word of a stream."""
    (found,) = _WORD.unpack_from(data, (place + walk.INDICES_WORDS - 1) * WORD)
    return int(found)


class DrawRun(NamedTuple):
    """Draws and clears that follow each other in a stream, with only settings and uniforms between.

    Attributes
    ----------
    states
        The states that rows name by number, without constants, and with any offsets of buffers.
    kept
        KEPT_WORDS words of each state for the screen's own use, zero at first.
    rows, length
        The address of the draws and clears (`walk.Row`), and their number.
    data, address
        The stream; places of rows are words of it. Its address.
    constants
        Those of the vertex and of the fragment stage, where a row has none of its own; none where
        every draw has.
    offsets, index_offset
        Those of vertex buffers and of the index buffer in bytes, likewise.
    """

    states: list[PipeState]
    kept: Any
    rows: int
    length: int
    data: bytes
    address: int
    constants: tuple[tuple[bytes, ...], tuple[bytes, ...]]
    offsets: tuple[int, ...]
    index_offset: int

    def commands(self) -> Iterator[tuple[PipeState, DrawVbo | Clear]]:
        """Each with its whole state, as objects."""
        for number in range(self.length):
            row: Any = walk.Row.python.from_address(self.rows + number * walk.Row.size)
            state = self._state(row)
            place = row.draw * WORD
            if self.data[place - WORD] == Clear.number:
                yield state, Clear.decode(self.data, place, walk.CLEAR_WORDS)
                continue
            vertex, fragment = self.constants_of(row)
            yield (
                replace(
                    state,
                    vertex=replace(state.vertex, constants=vertex),
                    fragment=replace(state.fragment, constants=fragment),
                ),
                DrawVbo.decode(self.data, place, walk.DRAW_WORDS),
            )

    def offsets_of(self, row: Any) -> tuple[int, ...]:
        """`pipe.buffer_offsets` of a row."""
        state, offsets, index_offset = self.states[row.state], self.offsets, self.index_offset
        if row.buffers >= 0:
            offsets = offsets_at(self.data, row.buffers, len(state.vertex_buffers))
        if row.indices >= 0:
            index_offset = index_offset_at(self.data, row.indices)
        return *offsets, 0 if state.index_buffer is None else index_offset

    def constants_of(self, row: Any) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Those of the vertex and of the fragment stage of a row."""
        vertex, fragment = self.constants
        if row.vertex >= 0:
            end = row.vertex + row.vertex_words
            vertex = (self.data[row.vertex * WORD : end * WORD],)
        if row.fragment >= 0:
            end = row.fragment + row.fragment_words
            fragment = (self.data[row.fragment * WORD : end * WORD],)
        return vertex, fragment

    def _state(self, row: Any) -> PipeState:
        """The state of a row, with its buffers where they are."""
        state: PipeState = self.states[row.state]
        offsets = self.offsets_of(row)
        if offsets == buffer_offsets(state):
            return state
        return replace(
            state,
            vertex_buffers=with_offsets(state.vertex_buffers, offsets[:-1]),
            index_buffer=with_index_offset(state.index_buffer, offsets[-1]),
        )
