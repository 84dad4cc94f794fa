"""From a draw with its state to records, shader records and uniform streams in a frame.

A draw is prepared once, and found again by its state and numbers. The same draw with vertices at other
places is the same prepared draw with other addresses in its shader records.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.compiler.interface import Primitives
from vc4lab.driver.draws.frame_draws import Moving, Vertices
from vc4lab.driver.draws.pipeline import IdentityCache, Pipeline, kind_of, make_pipeline
from vc4lab.driver.draws.plans import ARRAYS, INDEXED
from vc4lab.driver.draws.polygons import drawn_as, flat_varyings, without
from vc4lab.driver.draws.prepared import PreparedDraw
from vc4lab.driver.draws.primitives import LEAST, Batch, batches
from vc4lab.driver.draws.programs import Programs
from vc4lab.driver.draws.state_records import clip_window, state_records, viewport_of
from vc4lab.driver.draws.textures import SampledTextures
from vc4lab.driver.draws.uniforms import STIPPLE_ROWS, StreamValues
from vc4lab.driver.draws.vertices import FixedArrays, Instance, ShaderRecords, attributes, moves, sources
from vc4lab.mesa.state.pipe import buffer_offsets
from vc4lab.mesa.store.resources import Refused
from vc4lab.records import states
from vc4lab.records.shader import ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, MAX_ATTRIBUTES

if TYPE_CHECKING:
    from vc4lab.driver.commands.commands import Draw
    from vc4lab.driver.commands.stored_blocks import SharedState, Uniforms
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.driver.frames.job import FrameJob
    from vc4lab.driver.frames.target import FrameTarget
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.protocol.objects import RasterizerState
    from vc4lab.mesa.state.pipe import PipeState

MAX_INSTANCES = 1 << 16
SHADER_STATES = [int(states.GlShaderState.make(attributes=count & 7)) for count in range(MAX_ATTRIBUTES + 1)]
"""Record 64 without its address, by the number of arrays."""
EXTENDED_STATE = int(states.GlShaderState.make(extended=1))
assert GL_FIXED_SIZE + MAX_ATTRIBUTES * ATTRIBUTE_SIZE <= EXTENDED_STRIDES


class DrawLowering:
    """Prepares draws.

    Attributes
    ----------
    programs
        The compiled programs.
    fixed
        The values that vertex inputs without a buffer read.
    """

    def __init__(self, memory: GpuMemory, compiler: Compiler, report: Callable[[str, str], None]) -> None:
        self.memory = memory
        self._report = report
        self.programs = Programs(memory, compiler)
        self.textures = SampledTextures(memory)
        self._pipelines = IdentityCache()
        self._records = IdentityCache()
        self.fixed = FixedArrays(memory)

    def forget(self) -> None:
        """A resource went: nothing must keep it."""
        self._pipelines.clear()
        self.textures.forget()

    def prepare(
        self, target: FrameTarget, state: PipeState, draw: Draw, *, may_move: bool = True
    ) -> PreparedDraw:
        """A draw without its constants. Raises Refused, CompileError, OutOfMemory.

        may_move: what is prepared of a draw with restarts may serve `moving` ones only.
        """
        rasterizer, dsa = state.rasterizer, state.dsa
        if rasterizer is None or dsa is None or state.vertex_elements is None:
            raise Refused("GL-015", "rasterizer, depth state or vertex elements are not bound")
        if draw.instances > MAX_INSTANCES:
            raise Refused("GL-006", f"{draw.instances} instances")
        if rasterizer.rasterizer_discard:
            return NOTHING
        viewport = viewport_of(state)
        window = clip_window(state, viewport, target)
        if window.is_empty:
            return NOTHING
        kind = kind_of(drawn_as(draw.mode, rasterizer))
        is_outline = kind is not kind_of(draw.mode)
        pipeline = self._pipeline(state, target, kind, is_outline=is_outline)
        is_first_flat = rasterizer.flatshade_first and is_flat(pipeline, rasterizer)
        as_one = may_move and not (is_outline or is_first_flat)
        parts = batches(
            draw, rasterizer, state.index_buffer, self.memory,
            is_first_flat=is_first_flat, as_one=as_one,
        )  # fmt: skip
        used = self.memory.arena.next
        indices: list[Any] = []
        if draw.indexed and state.index_buffer is not None:
            indices.append(state.index_buffer.resource)
        if not parts:
            return replace(NOTHING, seen=_as_seen(indices))
        records = self._records.get(
            (rasterizer, dsa, viewport, pipeline),
            (window, kind is Primitives.TRIANGLES, target.depth is not None, target.is_sampled),
            lambda: state_records(
                rasterizer, dsa, viewport, window, pipeline.fragment.shader.varyings,
                is_triangles=kind is Primitives.TRIANGLES, has_depth=target.depth is not None,
                is_sampled=target.is_sampled,
            ),
        )  # fmt: skip
        writes_z = pipeline.fragment_key.writes_z
        made = PreparedDraw(
            records, writes_z, bool(pipeline.stencil) or (writes_z and dsa.depth_writemask), pipeline=pipeline
        )
        places = self._shaded(made, state, draw, pipeline, parts, target.order)
        made.plan.close()
        copied = _as_seen(self.textures.copied(state))
        made.seen = (*copied, *_as_seen(indices))
        if self.memory.arena.next == used:
            made.moving = self._moving(made, state, draw, parts, places, copied)
        if as_one and draw.indexed and draw.primitive_restart and made.moving is None:
            return self.prepare(target, state, draw, may_move=False)
        return made

    def _moving(
        self,
        made: PreparedDraw,
        state: PipeState,
        draw: Draw,
        parts: list[Batch],
        places: list[tuple[Instance, int]],
        seen: tuple[tuple[Any, int], ...],
    ) -> Moving | None:
        """Find what other draws of the state may have otherwise; None: each is lowered for itself.

        places: of the shader records of instances in the plan.
        """
        if len(parts) != 1 or not parts[0].is_whole:
            return None
        slots = made.pipeline.vertex.compiled.attributes
        found_at = sources(state, slots)
        arrays: list[tuple[int, ...]] = []
        for instance, place in places:
            rows = moves(state, slots, found_at, instance, place, self.fixed)
            if rows is None:
                return None
            arrays += rows
        least, buffers = LEAST[draw.mode], len(state.vertex_buffers)
        if not draw.indexed or state.index_buffer is None:
            return Moving(ARRAYS, least, arrays, buffers, seen=seen)
        resource, size, _ = state.index_buffer
        found: Any = resource
        used = ctypes.addressof(found.used)
        restart = draw.restart_index if draw.primitive_restart else None
        return Moving(INDEXED, least, arrays, buffers, size, found.address, found.size, used, restart, seen)

    def _pipeline(
        self, state: PipeState, target: FrameTarget, kind: Primitives, *, is_outline: bool
    ) -> Pipeline:
        objects = (
            state.blend, state.rasterizer, state.dsa, state.vertex_elements, state.stencil_ref,
            state.sample_mask,
            state.vertex.shader, state.vertex.views, state.vertex.samplers,
            state.fragment.shader, state.fragment.views, state.fragment.samplers,
        )  # fmt: skip
        made: Pipeline = self._pipelines.get(
            objects,
            (
                *(target.order, target.is_srgb, target.is_sampled),
                *(target.depth is not None, target.has_stencil),
                *(kind, is_outline),
            ),
            lambda: self._new_pipeline(state, target, kind, is_outline=is_outline),
        )
        return made

    def _new_pipeline(
        self, state: PipeState, target: FrameTarget, kind: Primitives, *, is_outline: bool
    ) -> Pipeline:
        assert state.rasterizer is not None
        made = make_pipeline(state, target, kind, self.programs)
        for text in without(state.rasterizer, kind):
            self._report("GL-018", text)
        if is_outline and is_flat(made, state.rasterizer):
            self._report("GL-018", "flat colours of polygons as lines and points are of their own ends")
        return made

    def _shaded(
        self,
        made: PreparedDraw,
        state: PipeState,
        draw: Draw,
        pipeline: Pipeline,
        parts: list[Batch],
        order: str,
    ) -> list[tuple[Instance, int]]:
        """Streams, shader records and primitive records: where the shader records are in the plan,
        each with its instance.
        """
        fragment, values = self._streams(made, state, pipeline, order)
        slots = pipeline.vertex.compiled.attributes
        arrays = sources(state, slots)
        head = b""
        records: list[tuple[Instance, int]] = []
        shader_state = SHADER_STATES[len(slots)]
        for number in range(draw.instances):
            if not number or pipeline.numbers_instances:
                streams = made.add_vertex_streams(pipeline, replace(values, instance=number))
                head = pipeline.records.head((fragment, *streams))
            instance = Instance(number, draw.start_instance)
            for batch in parts:
                places = attributes(slots, arrays, batch, instance, self.memory, self.fixed)
                data = pipeline.records.record(head, places)
                is_extended = len(data) > EXTENDED_STRIDES
                words = np.frombuffer(data + bytes(-len(data) % 4), np.uint32)
                place = made.plan.add(words, ShaderRecords.UNIFORMS)
                records.append((instance, place))
                state_of = EXTENDED_STATE if is_extended else shader_state
                made.batches.append((state_of, place, batch.record))
        return records

    def _streams(
        self, made: PreparedDraw, state: PipeState, pipeline: Pipeline, order: str
    ) -> tuple[int, StreamValues]:
        """The place of the fragment program's stream in the plan; what those of vertices have."""
        viewport = viewport_of(state)
        fragment = StreamValues(
            textures=self.textures.of_stage(state.fragment),
            viewport=viewport,
            blend_color=state.blend_color,
            order=order or "rgba",
            alpha_ref=state.dsa.alpha_ref_value if state.dsa is not None else 0.0,
            stencil=pipeline.stencil,
            stipple=self._stipple(state) if pipeline.fragment_key.is_stippled else 0,
        )
        vertex = StreamValues(
            textures=self.textures.of_stage(state.vertex), viewport=viewport, clip_planes=state.ucp
        )
        return made.add_fragment_stream(pipeline, fragment), vertex

    def _stipple(self, state: PipeState) -> int:
        """The polygon stipple as shaders look it up: its address, until the frame is drawn."""
        rows = np.zeros((STIPPLE_ROWS, 4), np.uint32)
        rows[: len(state.stipple), 0] = state.stipple
        return self.memory.keep(rows.tobytes())


def is_flat(pipeline: Pipeline, rasterizer: RasterizerState) -> bool:
    """Whether any colour comes from one vertex."""
    return bool(flat_varyings(rasterizer, pipeline.fragment.shader.varyings))


NOTHING = PreparedDraw({}, uses_depth=False, writes_depth=False)
"""Prepared for draws of which nothing is drawn, whatever is in their buffers."""


def _as_seen(resources: Iterable[Any]) -> tuple[tuple[Any, int], ...]:
    """List what a draw looked at, for `PreparedDraw.seen`."""
    return tuple((one, one.changes) for one in resources)


Whole = Callable[[], "PipeState"]
_numbers = attrgetter(
    "mode", "start", "count", "instances", "start_instance", "index_bias", "restart_index",
    "indexed", "primitive_restart",
)  # fmt: skip
"""All of a draw but what is only a hint, and where its state is."""
_kind = attrgetter("mode", "instances", "start_instance", "restart_index", "indexed", "primitive_restart")
"""As `_numbers`, without what says which vertices it has."""


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
        """Add a draw whose state may come again with other uniforms.

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
                shared.moving[kind] = made
                if self._add_known(job, made, uniforms, whole, vertices=vertices):
                    return True
                if draw.primitive_restart:
                    made, lasts = self._prepare(job.target, moved or shared.state, draw, may_move=False)
            if lasts and not made.moves:
                shared.prepared[key] = made
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
