"""Draws are added to frames: prepared once, and found again by their state and numbers.

The same draw with vertices at other places is the same prepared draw with other addresses in its
shader records.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vc4lab.driver.draws.lowering import DrawLowering
from vc4lab.driver.draws.pipeline import MAX_KNOWN
from vc4lab.driver.draws.vertices import ShaderRecords, attributes, moves, sources
from vc4lab.mesa.state.pipe import offsets_of

if TYPE_CHECKING:
    from vc4lab.driver.draws.pipeline import Pipeline
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.driver.frames.job import FrameJob
    from vc4lab.driver.frames.target import FrameTarget
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.driver.queue.block_reader import SharedState, Uniforms
    from vc4lab.driver.queue.commands import Draw
    from vc4lab.mesa.state.pipe import PipeState

Whole = Callable[[], "PipeState"]
_numbers = attrgetter(
    "mode", "start", "count", "instances", "start_instance", "index_bias", "restart_index",
    "indexed", "primitive_restart",
)  # fmt: skip
"""All of a draw but what is only a hint, and where its state is."""


class DrawAdder:
    """Adds draws to frames.

    Attributes
    ----------
    lowering
        Prepares those that are not known.
    pipeline
        Programs and records of the last draw.
    repeats
        The last draw, if with the same state and numbers it is the same again.
    """

    def __init__(
        self, memory: GpuMemory, compiler: Compiler, report: Callable[[str, str], None]
    ) -> None:
        self.memory = memory
        self.lowering = DrawLowering(memory, compiler, report)
        self.pipeline: Pipeline | None = None
        self.repeats: PreparedDraw | None = None

    def add(
        self, job: FrameJob, state: PipeState, draw: Draw, made: PreparedDraw | None
    ) -> PreparedDraw | None:
        """Add a draw without constants to a frame; what adds it again, if that lasts.

        made: that of the time before. Raises Refused, CompileError, OutOfMemory.
        """
        lasts = True
        if made is None or not made.is_valid:
            made, lasts = self._prepare(job.target, state, draw)
        if not made.draws_nothing:
            self._add(job, made, (0, 0), ((), ()), {})
        return made if lasts else None

    def add_shared(
        self,
        job: FrameJob,
        shared: SharedState,
        uniforms: Uniforms,
        draw: Draw,
        whole: Whole,
        moved: PipeState | None = None,
    ) -> bool:
        """The same of a draw whose state may come again with other uniforms.

        whole: gives the state with its uniforms. moved: the state with the draw's own offsets of
        vertex buffers. `repeats` is what the same draw adds again.
        """
        self.repeats = None
        key = _numbers(draw)
        if moved is not None:
            own, stays, words = self._moving(job, shared, moved, draw, key)
            return self._add_known(job, own, uniforms, whole, words, lasts=stays)
        made: PreparedDraw | None = shared.prepared.get(key)
        lasts, others = True, None
        if made is None and key not in shared.prepared:
            made = shared.elsewhere.get(key)
            if made is not None and made.is_valid:
                others = self._moved(made, shared.state)
            if others is None:
                made = None
            else:
                # If it comes again, it is worth being kept.
                lasts = False
                shared.prepared[key] = None
        if made is None or not made.is_valid:
            made, lasts = self._prepare(job.target, shared.state, draw)
            if lasts:
                _keep(shared.prepared, key, made)
                if made.arrays:
                    _keep(shared.elsewhere, key, made)
        return self._add_known(job, made, uniforms, whole, others or {}, lasts=lasts)

    def _moving(
        self, job: FrameJob, shared: SharedState, moved: PipeState, draw: Draw, key: Any
    ) -> tuple[PreparedDraw, bool, dict[int, int]]:
        """A draw with offsets of its own: prepared; whether that lasts; words of its plan."""
        known: PreparedDraw | None = shared.moving.get(key)
        if known is not None and known.is_valid:
            words = self._moved(known, moved)
            if words is not None:
                return known, True, words
        own = key, offsets_of(moved.vertex_buffers)
        known = shared.moving.get(own)
        if known is not None and known.is_valid:
            return known, False, {}
        made, lasts = self._prepare(job.target, moved, draw)
        if not lasts:
            return made, False, {}
        if not made.arrays:  # nothing, or not the same with other offsets
            _keep(shared.moving, own, made)
            return made, False, {}
        _keep(shared.moving, key, made)
        slots = made.pipeline.vertex.compiled.attributes
        for batch, _, place in made.arrays:
            first = place // 4 + ShaderRecords.FIRST_ARRAY
            made.moves += [
                (first + ShaderRecords.ARRAY_WORDS * number, *more)
                for number, *more in moves(moved, slots, batch)
            ]
        return made, True, {}

    def _add_known(
        self,
        job: FrameJob,
        made: PreparedDraw,
        uniforms: Uniforms,
        whole: Whole,
        changed: dict[int, int],
        *,
        lasts: bool,
    ) -> bool:
        """Add a prepared draw with its uniforms; whether anything is drawn."""
        if made.draws_nothing:
            return False
        if lasts and not made.late:
            self.repeats = made
        vertex, fragment = uniforms
        constants = None
        if made.late:
            state = whole()
            constants = state.vertex.constants, state.fragment.constants
        blocks = vertex[0] if vertex else 0, fragment[0] if fragment else 0
        self._add(job, made, blocks, constants, changed)
        return True

    def _moved(self, made: PreparedDraw, state: PipeState) -> dict[int, int] | None:
        """Words of a draw's plan with vertices that lie elsewhere; None: it is another draw.

        Raises Refused.
        """
        slots = made.pipeline.vertex.compiled.attributes
        arrays = sources(state, slots)
        words: dict[int, int] = {}
        assert made.arrays is not None
        for batch, instance, place in made.arrays:
            places = attributes(slots, arrays, batch, instance, self.memory, self.lowering.fixed)
            if tuple(stride for _, stride in places) != made.strides:
                return None
            first = place // 4 + ShaderRecords.FIRST_ARRAY
            for number, (address, _) in enumerate(places):
                words[first + ShaderRecords.ARRAY_WORDS * number] = address
        return words

    def _add(
        self,
        job: FrameJob,
        made: PreparedDraw,
        blocks: tuple[int, int],
        constants: Any,
        changed: dict[int, int],
    ) -> None:
        """Add a draw; `changed`: words of its plan that are its own."""
        self.pipeline = made.pipeline
        placed = made.placed
        if made.late:
            changed |= made.late_words(constants, self.memory)
        if changed:
            # Native code has the words in memory before they go.
            head, _words = made.plan.with_words(changed)
            placed.put_head(head)
            try:
                job.add(placed, blocks)
            finally:
                placed.put_head(made.plan.head)
        else:
            job.add(placed, blocks)
        job.depth(uses=made.uses_depth, writes=made.writes_depth)

    def _prepare(
        self, target: FrameTarget, state: PipeState, draw: Draw
    ) -> tuple[PreparedDraw, bool]:
        """A draw, prepared, and whether it lasts: else it has data that last a frame."""
        start = self.memory.arena.next
        made = self.lowering.prepare(target, state, draw)
        return made, self.memory.arena.next == start


def _keep(known: dict[Any, Any], key: Any, made: PreparedDraw) -> None:
    """Keep a draw among the known ones; of too many, only this one."""
    if len(known) >= MAX_KNOWN:
        known.clear()
    known[key] = made
