"""Draws that a stream has in a row, as native code hands them on (`walk.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.protocol.work_commands import DrawVbo
from vc4lab.mesa.state import walk

if TYPE_CHECKING:
    from vc4lab.mesa.state.pipe import PipeState

KEPT_WORDS = 16
"""Words that a screen keeps of each state."""
STATES = 1 << 12
ROWS = 1 << 12
"""Draws of a run, at most."""


class DrawRun(NamedTuple):
    """Draws that follow each other in a stream, with only settings and uniforms between them.

    Attributes
    ----------
    states
        What rows name by number: the states, without constants.
    kept
        Of each state KEPT_WORDS words for the screen's own use, zero at first.
    rows, length
        The address of the draws (`walk.Row`), and their number.
    data, address
        The stream; places of rows are words of it. Its address.
    constants
        Those of the vertex and of the fragment stage, where a row has none of its own.
    """

    states: list[PipeState]
    kept: Any
    rows: int
    length: int
    data: bytes
    address: int
    constants: tuple[tuple[bytes, ...], tuple[bytes, ...]]

    def draws(self) -> Iterator[tuple[PipeState, DrawVbo]]:
        """Each with its whole state, as objects."""
        for number in range(self.length):
            row: Any = walk.Row.python.from_address(self.rows + number * walk.Row.size)
            state = self.states[row.state]
            vertex = self._constants(0, row.vertex, row.vertex_words)
            fragment = self._constants(1, row.fragment, row.fragment_words)
            yield (
                replace(
                    state,
                    vertex=replace(state.vertex, constants=vertex),
                    fragment=replace(state.fragment, constants=fragment),
                ),
                DrawVbo.decode(self.data, row.draw * WORD, walk.DRAW_WORDS),
            )

    def _constants(self, stage: int, place: int, words: int) -> tuple[bytes, ...]:
        if place < 0:
            return self.constants[stage]
        return (self.data[place * WORD : (place + words) * WORD],)
