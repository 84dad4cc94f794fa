"""Keeps what frames repeat of a context's settings: states by number, and the steps between them.

`StreamWalk` has native code (`walk.py`) follow the steps that are known, and learns those that
Python does in its place. What a step names must be the same when it is followed: when a handle of
a client goes, or stands for another object, all steps are forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.state import walk
from vc4lab.mesa.state.draw_run import KEPT_WORDS, ROWS, STATES, DrawRun, index_offset_at, offsets_at
from vc4lab.mesa.state.pipe import index_offset_of, offsets_of, with_index_offset, with_offsets

if TYPE_CHECKING:
    from vc4lab.mesa.state.pipe import IndexBuffer, PipeState, Settings, VertexBuffers
    from vc4lab.mesa.store.screen import Screen

STEPS = 1 << 14
"""Room for steps; half of it is used, so that a free one is near."""
POOL_WORDS = 1 << 17
FEW = 4
"""A step that is followed less often was not worth being learned."""
JUDGED_AFTER = 1 << 10
"""Steps; frames of most programs have fewer different ones."""
FIRST_REST, LONGEST_REST = 1 << 13, 1 << 17
"""Commands that are not learned after such a time."""


class Walked(Protocol):
    """The members of a context that the walk needs (`Context` has them)."""

    screen: Screen
    number: int
    named: set[tuple[int, bool]]

    @property
    def constants(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]: ...
    @property
    def has_plain_constants(self) -> bool: ...
    @property
    def vertex_buffers(self) -> VertexBuffers: ...
    @property
    def index_buffer(self) -> IndexBuffer | None: ...
    def bound_key(self) -> tuple[Any, ...]: ...
    def bound(self) -> Settings: ...
    def put_settings(
        self, settings: Settings, buffers: VertexBuffers, indices: IndexBuffer | None
    ) -> None: ...
    def put_constants(self, stage: Stage, values: bytes) -> None: ...


class StreamWalk:
    """The walk of a context over its streams."""

    def __init__(self, context: Walked) -> None:
        self._context = context
        self._native = walk.native_walk()
        self._kinds = walk.kinds()
        self._rows = np.zeros(ROWS * walk.Row.size, np.uint8)
        self._steps = np.zeros((STEPS, walk.Step.size // WORD), np.int32)
        self._pool = np.zeros(POOL_WORDS, np.uint32)
        self._kept = np.zeros((STATES, KEPT_WORDS), np.uint32)
        self._walk = walk.Walk(
            rows=self._rows.ctypes.data,
            steps=self._steps.ctypes.data,
            pool=self._pool.ctypes.data,
            kinds=self._kinds.ctypes.data,
            context=context.number,
            row_capacity=ROWS,
            mask=STEPS - 1,
        )
        self._states: list[PipeState] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._settings: list[Settings] = []
        """The context's settings for each state, by its number."""
        self._named: set[tuple[int, bool]] = set()
        """Handles that steps name, and whether as objects."""
        self._pool_next = self._learned = 0
        self._rest = self._resting = 0
        self._begun = -1

    def forget(self) -> None:
        """Nothing is known any more."""
        if self._walk.followed < FEW * self._learned:
            # What a client names goes as fast as it is learned.
            self._rest = min(max(2 * self._rest, FIRST_REST), LONGEST_REST)
            self._resting = self._rest
        elif self._learned:
            self._rest = 0
        self._walk.followed = self._learned = self._pool_next = 0
        self._walk.slot = -1
        self._steps[...] = 0
        self._kept[: len(self._states)] = 0
        self._states.clear()
        self._numbers.clear()
        self._settings.clear()
        self._named.clear()

    def gone(self, handle: int, *, is_object: bool) -> None:
        """A handle stands for nothing any more, or for something else."""
        if (handle, is_object) in self._named:
            self.forget()

    def run(self, data: bytes, address: int, start: int) -> int:
        """Draw what is known from byte `start` of a stream on; the byte where Python goes on.

        address: that of `data`.
        """
        context, here = self._context, self._walk
        if self._resting or not context.has_plain_constants:
            self._resting -= self._resting > 0
            here.slot = -1
            return start
        here.data, here.word_count, here.place = address, len(data) // WORD, start // WORD
        here.state = self._begun = self._number()
        here.vertex = here.fragment = here.buffers = here.indices = -1
        before, buffers, indices = context.constants, context.vertex_buffers, context.index_buffer
        offsets, index_offset = offsets_of(buffers), index_offset_of(indices)
        end = walk.ROWS
        while end == walk.ROWS:
            here.row_count = here.needs = 0
            end = self._native(here.address)
            if here.row_count:
                needs = here.needs
                constants = before[0] if needs & 1 else (), before[1] if needs & 2 else ()
                run = DrawRun(
                    *(self._states, self._kept, here.rows, here.row_count, data, address),
                    *(constants, offsets, index_offset),
                )
                context.screen.draw_run(run)
        if here.buffers >= 0:
            buffers = self._states[here.state].vertex_buffers
            buffers = with_offsets(buffers, offsets_at(data, here.buffers, len(buffers)))
        state = self._states[here.state]
        if here.indices >= 0:
            index_offset = index_offset_at(data, here.indices)
        indices = with_index_offset(state.index_buffer, index_offset)
        if here.state != self._begun or here.buffers >= 0 or here.indices >= 0:
            context.put_settings(self._settings[here.state], buffers, indices)
            self._begun = here.state
        for stage, place, words in (
            (Stage.VERTEX, here.vertex, here.vertex_words),
            (Stage.FRAGMENT, here.fragment, here.fragment_words),
        ):  # fmt: skip
            if place >= 0:
                context.put_constants(stage, data[place * WORD : (place + words) * WORD])
        return here.place * WORD

    def learn(self, data: bytes, start: int, after: int) -> None:
        """Python has executed the command in these bytes, where the walk had ended."""
        slot = self._walk.slot
        if slot < 0:
            return
        words = np.frombuffer(data, np.uint32, (after - start) // WORD, start)
        following = self._number()
        if self._walk.slot < 0:  # all was forgotten meanwhile
            return
        if 2 * self._learned >= STEPS or self._pool_next + len(words) > POOL_WORDS:
            self.forget()
            return
        place = self._pool_next
        self._pool[place : place + len(words)] = words
        self._pool_next += len(words)
        self._steps[slot] = len(words), self._begun, place, following
        self._named |= self._context.named
        self._learned += 1
        if self._learned == JUDGED_AFTER and self._walk.followed < FEW * self._learned:
            self.forget()  # settings that are new each time, such as places of streamed vertices

    def _number(self) -> int:
        """The number of the context's state."""
        key = self._context.bound_key()
        number = self._numbers.get(key)
        if number is None:
            if len(self._states) >= STATES:
                self.forget()
            number = self._numbers[key] = len(self._states)
            settings = self._context.bound()
            self._states.append(settings.state())
            self._settings.append(settings)
        return number
