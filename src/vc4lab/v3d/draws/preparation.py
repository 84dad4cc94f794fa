"""Prepares draws: a distinct render state becomes a pipeline, its parameters, its vertices.

What is fixed for a draw goes into the key of its pipeline (`pipelines.py`; compiled once,
cached in memory and on disk); what is data goes into `DrawParams`. Source: hardware reference
3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.qpu.run.environment import (
    Unsupported,
    left_text,
)
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.draws.context import MODE_AT, POINT_SIZE_AT, VARYINGS_AT
from vc4lab.v3d.draws.frame_draws import FrameDraws
from vc4lab.v3d.draws.pipeline_table import parameter_places
from vc4lab.v3d.draws.pipelines import DrawPipelines, quad_work
from vc4lab.v3d.fragment.pipeline import Pipeline
from vc4lab.v3d.golden.draw import GoldenDraw, register
from vc4lab.v3d.state.render_state import clip_box, empty_windows, rht_boundary, rht_movement
from vc4lab.v3d.state.shader_state import (
    ProgramCache,
    ShaderState,
    read_shader_state,
)
from vc4lab.v3d.state.tile_context import (
    MAX_TEXTURE_REQUESTS,
    DrawParams,
    FragmentKey,
)
from vc4lab.v3d.state.tile_layout import LAYOUTS, SINGLE, TileLayout
from vc4lab.v3d.tile_lists.scan_context import EXPANDED
from vc4lab.v3d.tiles.job import Draw
from vc4lab.v3d.tmu.late_textures import LateTextures
from vc4lab.v3d.tmu.state import same_textures
from vc4lab.v3d.vertex.shading import ShadedVertices, VertexStage

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions
    from vc4lab.qpu.program.program import Program
    from vc4lab.simd.team import Team
    from vc4lab.v3d.shader_interrupts import ShaderInterrupts
    from vc4lab.v3d.tile_lists.contents import DrawUse, ScanResult
    from vc4lab.v3d.tmu.state import TextureDescriptor

_FACING = 0x7
"""Record 96, bits 2:0: which faces are drawn, and which winding is forward."""

EXACT_AFTER = 3
"""Frames in which a fast pipeline may give up before its exact twin is used from the start."""
RARE = 1 / 8
"""A frame where it gives up in no more of the tiles does not count: the exact twin takes several
times as long, and drawing these tiles twice costs less.
"""

NOTHING = Draw(0, 0)
"""A draw that leaves no trace; for states that cannot be drawn."""


class DrawPreparer:
    """Makes `Draw`s from render states, for one V3D."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        options: GpuOptions,
        *,
        team: Team,
        lint: Lint | None = None,
        interrupts: ShaderInterrupts | None = None,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns = options.unknowns
        self.refused = 0
        """Draws that cannot be drawn, since this was set to 0."""
        self.fallbacks: Counter[FragmentKey] = Counter()
        self.pipelines = DrawPipelines(reporter, options)
        self.programs = ProgramCache(memory, reporter, unknowns)
        self.late = LateTextures(memory.base, reporter, unknowns)
        self._layout_number = LAYOUTS.index(SINGLE)
        self._mode = 0
        """What pipelines of this frame have in common, as a number."""
        self._expanded = 0
        self.lint = lint or Lint(reporter)
        self._empty_windows = empty_windows(unknowns)
        self.ranges = DrawRanges(self.lint.addresses)
        self.vertices = VertexStage(
            memory,
            reporter,
            self.programs,
            options,
            team=team,
            interrupts=interrupts,
        )
        self._draws = FrameDraws(
            memory,
            self.vertices,
            self.lint.addresses,
            self.prepare,
            self._reached,
            self._draw,
            rht_moved=rht_movement(unknowns),
        )

    def prepare_all(
        self, scan: ScanResult, layout: TileLayout = SINGLE, vg_mask: bool = False
    ) -> FrameDraws:
        """The draws of one frame; those of the frame before are given up, with their vertices.

        `layout` is that of the tile buffer, which has a VG mask if `vg_mask`.
        """
        self.vertices.arena.gather()
        if self.late.met:
            self.late.begin()
        pipelines = self.pipelines
        if layout is not pipelines.layout:
            pipelines.layout, self._layout_number = layout, LAYOUTS.index(layout)
        pipelines.vg_mask = vg_mask
        self._expanded = scan.expanded
        mode = self._mode = self._layout_number << 2 | vg_mask << 1 | pipelines.counting
        self._draws.fill(scan, mode=mode)
        if self.lint.addresses.used.subscriptions:
            self._tell(scan)
        return self._draws

    def _tell(self, scan: ScanResult) -> None:
        """What draws name that needed no Python."""
        for number in self._draws.done_natively():
            use = scan.draw(number)
            state: Any = use.state
            kind = state.shader_kind
            shader = read_shader_state(self.memory, kind, state.shader_word, state.shader_uniforms)
            self.ranges.announce(shader, kind, self.programs, use.first, use.last, binning=False)

    def prepare(self, use: DrawUse) -> Draw:
        """The draw for a distinct render state; `NOTHING` (and a message) if it cannot be drawn."""
        state: Any = use.state
        shader = read_shader_state(
            self.memory, state.shader_kind, state.shader_word, state.shader_uniforms
        )
        if shader is None:
            self.reporter.report(
                "CLE-013", "primitives are drawn, but no shader state record precedes them"
            )
            self.refused += 1
            return NOTHING
        self.lint.draw(state, shader, self._empty_windows)
        try:
            return self._prepare(use, shader)
        except Unsupported as refusal:
            address = shader.code if refusal.address is None else refusal.address
            self.reporter.report(refusal.code, refusal.message, address=address)
            self.refused += 1
            return NOTHING

    def report_unsupported(self, draw: Draw) -> None:
        """A pipeline met at run time what it cannot do; the interpreter knows what it was."""
        golden = next((item for item in draw.keep or () if isinstance(item, GoldenDraw)), None)
        failure = golden.failure if golden is not None else None
        if isinstance(failure, Unsupported):
            self.reporter.report(failure.code, failure.message)
        elif failure is not None:
            raise failure
        else:
            self.reporter.report("FRG-001", "a fragment program did what is not simulated")

    def report_stopped(self, draw: Draw, left_for: int | None = None) -> None:
        """A program ran over its budget, or went to an address where no code can lie."""
        code, text = "QPU-041", "a fragment shader does not end; what is drawn with it is left out"
        if left_for is not None:
            code, text = "QPU-042", f"in a fragment shader, {left_text(left_for)}"
        self.reporter.report(code, text, address=draw.program[0] or None)

    def _reached(self, use: DrawUse, number: int, target: int) -> Draw | None:
        """A draw whose fragment program has gone on at an address, with what is known of it now."""
        state: Any = use.state
        shader = read_shader_state(
            self.memory, state.shader_kind, state.shader_word, state.shader_uniforms
        )
        if shader is None:
            return None
        if self.programs.reached(shader.code, target) is None:
            program, before = self.programs.get(shader.code), self._draws[number].program
            if before is None or before[2] == program.layout:
                return None  # else another draw has met it before
        return self.prepare(use)

    def _prepare(self, use: DrawUse, shader: ShaderState) -> Draw:
        program = self.programs.get(shader.code)
        kind = use.state.shader_kind
        self.ranges.draw(shader, kind, self.programs, use.first, use.last, binning=False)
        kinds, descriptors = self.programs.textures(program, shader.uniforms, self.unknowns)
        if len(descriptors) > MAX_TEXTURE_REQUESTS:
            raise Unsupported("FRG-001", f"a fragment program makes {len(descriptors)} lookups")
        texture_of = same_textures(descriptors)
        key, pipeline = self.pipelines.find(use, shader, program, kinds, texture_of)
        if self.fallbacks and self.fallbacks[key] >= EXACT_AFTER:
            pipeline = pipeline.exact
        vertices = self.vertices.shade(use, shader)
        params = self._params(use, shader, vertices, descriptors)
        quad = params.instructions, params.lookups = quad_work(program, key)
        golden = None
        if key.engine == "interpreter":
            golden = GoldenDraw(key, self.memory, self.pipelines.compiled(program, key))
            params.callback_id = register(golden)
        elif not shader.vector_graphics and not program.pieces:
            self._enter(use.state, shader, program, descriptors, (key, pipeline), quad)
        keep = (params, golden, vertices, descriptors, pipeline)
        return self._draw(pipeline.address, params.address, (key, pipeline), keep)

    def _draw(
        self,
        function: int,
        params: int,
        made: tuple[FragmentKey, Pipeline],
        keep: tuple[Any, ...] = (),
    ) -> Draw:
        key = made[0]
        return Draw(
            function,
            params,
            fallback=lambda share: self._fall_back(*made, share),
            keep=keep or made,
            program=(key.code_address, key.program, key.code_layout),
        )

    def _enter(
        self,
        state: Any,
        shader: ShaderState,
        program: Program,
        descriptors: tuple[TextureDescriptor | None, ...],
        made: tuple[FragmentKey, Pipeline],
        quad: tuple[int, int],
    ) -> None:
        """Draws with this state, program and textures need no Python from the next one on."""
        layout = self.programs.layout(program, shader.uniforms)
        places = parameter_places(program, layout)
        if places is None:
            return
        shape = shader.varyings << VARYINGS_AT | shader.point_size << POINT_SIZE_AT
        textures = [descriptor for descriptor in descriptors if descriptor is not None]
        self._draws.pipelines.enter(
            program,
            shader.code,
            state,
            shape | self._mode << MODE_AT,
            layout,
            [self.memory.u32(shader.uniforms + place) for place in places],
            textures,
            made[1].address,
            made,
            quad,
        )
        self._draws.provide(nv=shader.nv is not None)

    def _fall_back(self, key: FragmentKey, pipeline: Pipeline, share: float) -> int:
        """The exact entry point, because the fast one met a value it cannot compute."""
        if share > RARE:
            self.fallbacks[key] += 1
            self._draws.pipelines.stale |= self.fallbacks[key] == EXACT_AFTER
        return pipeline.exact.address

    def _params(
        self,
        use: DrawUse,
        shader: ShaderState,
        vertices: ShadedVertices,
        descriptors: tuple[TextureDescriptor | None, ...],
    ) -> DrawParams:
        state: Any = use.state
        params: Any = DrawParams()
        params.vertices = vertices.address_of_zero
        params.batch_pitch = vertices.pitch
        params.lists = self._expanded if state.list_format & EXPANDED else 0
        params.first_vertex = vertices.first
        params.vertex_count = vertices.count
        params.uniforms = signed32(shader.uniforms)
        params.viewport_x, params.viewport_y = state.viewport_x, state.viewport_y
        box = clip_box(state, self._empty_windows)
        params.clip_left, params.clip_bottom, params.clip_right, params.clip_top = box
        params.facing = state.config & _FACING
        params.z_min, params.z_max = state.z_min, state.z_max
        params.depth_factor = _upper_half(state.depth_offset)
        params.depth_units = _upper_half(state.depth_offset >> 16)
        params.point_size, params.line_width = state.point_size, state.line_width
        params.rht_boundary = rht_boundary(state, rht_movement(self.unknowns))
        for number, descriptor in enumerate(descriptors):
            if descriptor is not None:
                params.textures[number] = descriptor.address
        params.late = self.late.table.address if None in descriptors else 0
        return params


def _upper_half(bits: int) -> float:
    """A float whose upper 16 bits are the low 16 of ``bits`` ("1-8-7")."""
    return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])
