"""From a draw with its state to records, shader records and uniform streams of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.driver.compiler.keys import Primitives
from vc4lab.driver.draws.pipeline import IdentityCache, Pipeline, kind_of, make_pipeline
from vc4lab.driver.draws.primitives import Batch, batches
from vc4lab.driver.draws.programs import Programs
from vc4lab.driver.draws.sampled import SampledTextures
from vc4lab.driver.draws.state_records import clip_window, state_records, viewport_of
from vc4lab.driver.draws.uniforms import StreamValues, uniform_stream
from vc4lab.driver.draws.vertices import attributes, sources
from vc4lab.mesa.store.resources import Refused
from vc4lab.records import states
from vc4lab.records.shader import ATTRIBUTE_SIZE, EXTENDED_STRIDES, GL_FIXED_SIZE, MAX_ATTRIBUTES

if TYPE_CHECKING:
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.driver.frames.job import FrameJob
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.driver.queue.commands import Draw
    from vc4lab.mesa.state.pipe import PipeState

MAX_INSTANCES = 1 << 16
ZEROS = 64
"""Bytes, for vertex inputs that have no buffer."""
SHADER_STATES = [
    int(states.GlShaderState.make(attributes=count & 7)) for count in range(MAX_ATTRIBUTES + 1)
]
"""Record 64 without its address, by the number of arrays."""
EXTENDED_STATE = int(states.GlShaderState.make(extended=1))
assert GL_FIXED_SIZE + MAX_ATTRIBUTES * ATTRIBUTE_SIZE <= EXTENDED_STRIDES


class DrawLowering:
    """Adds draws to frames.

    Attributes
    ----------
    programs
        What was compiled.
    """

    def __init__(self, memory: GpuMemory, compiler: Compiler) -> None:
        self.memory = memory
        self.programs = Programs(memory, compiler)
        self.textures = SampledTextures(memory)
        self._pipelines = IdentityCache()
        self._records = IdentityCache()
        self._nothing = memory.store(bytes(ZEROS))

    def forget(self) -> None:
        """A resource went: nothing must keep it."""
        self._pipelines.clear()
        self.textures.forget()

    def reads(self, state: PipeState) -> list[Any]:
        """The resources that a draw reads."""
        bound = [
            *state.vertex_buffers, *state.vertex.views, *state.fragment.views, state.index_buffer
        ]  # fmt: skip
        return [one.resource for one in bound if one is not None]

    def add(self, job: FrameJob, state: PipeState, draw: Draw) -> bool:
        """Add a draw to a frame; whether anything of it is drawn.

        Raises Refused, CompileError, OutOfMemory.
        """
        rasterizer, dsa = state.rasterizer, state.dsa
        if rasterizer is None or dsa is None or state.vertex_elements is None:
            raise Refused("GL-015", "rasterizer, depth state or vertex elements are not bound")
        if draw.instances > MAX_INSTANCES:
            raise Refused("GL-006", f"{draw.instances} instances")
        if rasterizer.rasterizer_discard:
            return False
        target = job.target
        viewport = viewport_of(state)
        window = clip_window(state, viewport, target)
        if window.is_empty:
            return False
        parts = batches(draw, state.index_buffer, self.memory)
        if not parts:
            return False
        kind = kind_of(draw.mode)
        pipeline = self._pipeline(state, job, kind)
        records = self._records.get(
            (rasterizer, dsa, viewport, pipeline),
            (window, kind is Primitives.TRIANGLES, target.depth is not None),
            lambda: state_records(
                rasterizer, dsa, viewport, window, pipeline.fragment.shader.varyings,
                is_triangles=kind is Primitives.TRIANGLES, has_depth=target.depth is not None,
            ),
        )  # fmt: skip
        body = self._shaded(state, draw, pipeline, parts, target.order)
        job.add(records, body)
        job.draws += 1
        job.uses_depth |= pipeline.fragment_key.writes_z
        job.writes_depth |= bool(pipeline.stencil) or (
            pipeline.fragment_key.writes_z and dsa.depth_writemask
        )
        return True

    def _pipeline(self, state: PipeState, job: FrameJob, kind: Primitives) -> Pipeline:
        objects = (
            state.blend, state.rasterizer, state.dsa, state.vertex_elements, state.stencil_ref,
            state.vertex.shader, state.vertex.views, state.vertex.samplers,
            state.fragment.shader, state.fragment.views, state.fragment.samplers,
        )  # fmt: skip
        target = job.target
        made: Pipeline = self._pipelines.get(
            objects,
            (target.order, target.depth is not None, target.has_stencil, kind),
            lambda: make_pipeline(state, target, kind, self.programs),
        )
        return made

    def _shaded(
        self, state: PipeState, draw: Draw, pipeline: Pipeline, parts: list[Batch], order: str
    ) -> bytes:
        """Shader state and primitive records."""
        uniforms = self._uniforms(state, pipeline, order)
        slots = pipeline.vertex.compiled.attributes
        arrays = sources(state, slots)
        head = pipeline.records.head(uniforms)
        shader_state = SHADER_STATES[len(slots)]
        out = bytearray()
        for instance in range(draw.instances):
            for batch in parts:
                places = attributes(
                    slots, arrays, batch, draw.start_instance + instance, self.memory, self._nothing
                )
                data = pipeline.records.record(head, places)
                is_extended = len(data) > EXTENDED_STRIDES
                state_of = EXTENDED_STATE if is_extended else shader_state
                out.append(states.GlShaderState.id)
                out += (state_of | self.memory.keep(data, 16)).to_bytes(4, "little")
                out += batch.record
        return bytes(out)

    def _uniforms(self, state: PipeState, pipeline: Pipeline, order: str) -> tuple[int, int, int]:
        """The streams of fragment, vertex and coordinate program: their addresses."""
        viewport = viewport_of(state)
        fragment = StreamValues(
            constants=state.fragment.constants,
            textures=self.textures.of_stage(state.fragment),
            viewport=viewport,
            blend_color=state.blend_color,
            order=order or "rgba",
            alpha_ref=state.dsa.alpha_ref_value if state.dsa is not None else 0.0,
            stencil=pipeline.stencil,
            clip_planes=state.ucp,
        )
        vertex = StreamValues(
            constants=state.vertex.constants,
            textures=self.textures.of_stage(state.vertex),
            viewport=viewport,
            clip_planes=state.ucp,
        )
        return (
            uniform_stream(self.memory, pipeline.streams[0], fragment),
            uniform_stream(self.memory, pipeline.streams[1], vertex),
            uniform_stream(self.memory, pipeline.streams[2], vertex),
        )
