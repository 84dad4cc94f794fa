"""Draws that are lowered: what they add to a frame, but for uniforms and the place in memory.

The same state and the same numbers give the same prepared draw, as long as the textures and indices
that it looked at do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.draws.frame_draws import Moving, PlacedDraw
from vc4lab.driver.draws.plans import DrawPlan
from vc4lab.driver.draws.uniforms import late_word, stream_words

if TYPE_CHECKING:
    from vc4lab.driver.compiler.interface import Uniform
    from vc4lab.driver.draws.pipeline import Pipeline
    from vc4lab.driver.draws.uniforms import StreamPlan, StreamValues
    from vc4lab.driver.gpu.memory import GpuMemory


@dataclass(eq=False)
class PreparedDraw:
    """Adds a draw to frames.

    Attributes
    ----------
    records
        State records by their ids.
    plan
        Uniform streams and shader records.
    batches
        For each primitive record: the shader state without its address, the shader record's place
        in the plan, the record.
    late
        Words of the plan that follow from constant buffers: stage 0 is that of vertices.
    uses_depth, writes_depth
        Whether the frame must load and store depth.
    moving
        The part that other draws of the state may have otherwise; None: its vertices are fixed.
    seen
        Resources that were looked at, and their `changes` then.
    pipeline
        Its programs; None: nothing is drawn.
    """

    records: dict[int, bytes]
    uses_depth: bool
    writes_depth: bool
    plan: DrawPlan = field(default_factory=DrawPlan)
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    late: list[tuple[int, int, Uniform]] = field(default_factory=list)
    moving: Moving | None = None
    seen: tuple[tuple[Any, int], ...] = ()
    pipeline: Any = None

    @property
    def uses_stencil(self) -> bool:
        """Whether it may write the stencil buffer."""
        return self.pipeline is not None and bool(self.pipeline.stencil)

    @cached_property
    def placed(self) -> PlacedDraw:
        """As native code adds it; after everything else is there."""
        return PlacedDraw(self.plan, self.records, self.batches, self.seen, self.moving)

    @property
    def draws_nothing(self) -> bool:
        """Whether it adds nothing to a frame."""
        return self.pipeline is None

    @property
    def is_valid(self) -> bool:
        """Whether what was looked at is as it was."""
        return all(one.changes == changes for one, changes in self.seen)

    @property
    def moves(self) -> bool:
        """Whether it may be added with other vertices."""
        moving = self.moving
        return moving is not None and all(one.changes == changes for one, changes in moving.seen)

    def add_fragment_stream(self, pipeline: Pipeline, values: StreamValues) -> int:
        """The stream of the fragment program: its place in the plan."""
        return self._add_stream(pipeline.streams[0], values, of_vertex=False)

    def add_vertex_streams(self, pipeline: Pipeline, values: StreamValues) -> tuple[int, int]:
        """The streams of vertex and coordinate program: their places in the plan."""
        vertex, coordinate = (self._add_stream(one, values, of_vertex=True) for one in pipeline.streams[1:])
        return vertex, coordinate

    def _add_stream(self, stream: StreamPlan, values: StreamValues, *, of_vertex: bool) -> int:
        words = stream_words(stream, values)
        if not len(words):
            words = np.zeros(1, np.uint32)
        place = self.plan.size
        for number in stream.own_addresses:
            words[number] = place
        for number, one in stream.late:
            self.late.append((place // 4 + number, 0 if of_vertex else 1, one))
        return self.plan.add(words, stream.own_addresses, stream.pairs, stream.look_ups, of_vertex=of_vertex)

    def late_words(
        self, constants: tuple[tuple[bytes, ...], tuple[bytes, ...]], memory: GpuMemory
    ) -> dict[int, int]:
        """Words of the plan that follow from constant buffers. Raises OutOfMemory."""
        words: dict[tuple[int, Uniform], int] = {}  # instances have the same
        for _, stage, one in self.late:
            if (stage, one) not in words:
                words[stage, one] = late_word(one, constants[stage], memory)
        return {place: words[stage, one] for place, stage, one in self.late}
