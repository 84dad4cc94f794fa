"""Draws are added to frames: prepared once, and found again by their state and numbers.

The same draw with vertices at other places is the same prepared draw with other addresses in its
shader records.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vc4lab.driver.draws.frame_draws import Vertices
from vc4lab.driver.draws.lowering import DrawLowering
from vc4lab.driver.draws.pipeline import MAX_KNOWN
from vc4lab.mesa.state.pipe import buffer_offsets

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
_kind = attrgetter("mode", "instances", "start_instance", "restart_index", "indexed", "primitive_restart")
"""The same without what says which vertices it has."""


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
    is_moved
        Whether the last draw was added with vertices of its own: with others it is the same, too.
    """

    def __init__(self, memory: GpuMemory, compiler: Compiler, report: Callable[[str, str], None]) -> None:
        self.memory = memory
        self.lowering = DrawLowering(memory, compiler, report)
        self.pipeline: Pipeline | None = None
        self.repeats: PreparedDraw | None = None
        self.is_moved = False

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
            self._add(job, made, (0, 0), ((), ()), None)
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
        offsets = buffer_offsets(moved or shared.state)
        vertices = Vertices(draw.start, draw.count, draw.index_bias, offsets)
        kind = _kind(draw)
        known: PreparedDraw | None = shared.moving.get(kind)
        if known is not None and known.moves:
            if self._add_known(job, known, uniforms, whole, vertices=vertices):
                return True
        key = _numbers(draw), None if moved is None else offsets
        made: PreparedDraw | None = shared.prepared.get(key)
        lasts = True
        if made is None or not made.is_valid:
            made, lasts = self._prepare(job.target, moved or shared.state, draw)
            if made.moves:
                _keep(shared.moving, kind, made)
                if self._add_known(job, made, uniforms, whole, vertices=vertices):
                    return True
                if draw.primitive_restart:
                    made, lasts = self._prepare(job.target, moved or shared.state, draw, may_move=False)
            if lasts and not made.moves:
                _keep(shared.prepared, key, made)
        return self._add_known(job, made, uniforms, whole, lasts=lasts)

    def _add_known(
        self,
        job: FrameJob,
        made: PreparedDraw,
        uniforms: Uniforms,
        whole: Whole,
        *,
        lasts: bool = True,
        vertices: Vertices | None = None,
    ) -> bool:
        """Add a prepared draw with its uniforms; whether anything is drawn.

        vertices: those of the draw, where they may be other ones than it was prepared with.
        """
        if made.draws_nothing:
            return False
        vertex, fragment = uniforms
        constants = None
        if made.late:
            state = whole()
            constants = state.vertex.constants, state.fragment.constants
        blocks = vertex[0] if vertex else 0, fragment[0] if fragment else 0
        if not self._add(job, made, blocks, constants, vertices):
            return False
        self.is_moved = vertices is not None
        if lasts and not made.late and self.is_moved == made.moves:
            self.repeats = made
        return True

    def _add(
        self,
        job: FrameJob,
        made: PreparedDraw,
        blocks: tuple[int, int],
        constants: Any,
        vertices: Vertices | None,
    ) -> bool:
        """Add a draw; whether its vertices are where they may be."""
        self.pipeline = made.pipeline
        placed = made.placed
        if made.late:
            changed = made.late_words(constants, self.memory)
            # Native code has the words in memory before they go.
            head, _words = made.plan.with_words(changed)
            placed.put_head(head)
            job.changes()
            try:
                added = job.add(placed, blocks, vertices)
            finally:
                job.changes()
                placed.put_head(made.plan.head)
        else:
            added = job.add(placed, blocks, vertices)
        if added:
            job.depth(made)
        return added

    def _prepare(
        self, target: FrameTarget, state: PipeState, draw: Draw, *, may_move: bool = True
    ) -> tuple[PreparedDraw, bool]:
        """A draw, prepared, and whether it lasts: else it has data that last a frame."""
        start = self.memory.arena.next
        made = self.lowering.prepare(target, state, draw, may_move=may_move)
        return made, self.memory.arena.next == start


def _keep(known: dict[Any, Any], key: Any, made: PreparedDraw) -> None:
    """Keep a draw among the known ones; of too many, only this one."""
    if len(known) >= MAX_KNOWN:
        known.clear()
    known[key] = made
