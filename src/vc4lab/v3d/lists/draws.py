"""Prepares draws: a distinct render state becomes a pipeline, its parameters, its vertices.

What is fixed for a draw goes into the key of its pipeline (compiled once, cached in memory and on
disk); what is data goes into `DrawParams`. Source: hardware reference 3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.qpu.environment import (
    COMPILERS_LIMITS,
    Unsupported,
    left_text,
)
from vc4lab.qpu.operations import Signal
from vc4lab.records.codes import Compare, CoverageUpdate, ListData
from vc4lab.records.declarations import ConfigurationBits, PrimitiveListFormat
from vc4lab.v3d.fragment.golden_draw import GoldenDraw, register
from vc4lab.v3d.fragment.late_textures import LateTextures
from vc4lab.v3d.fragment.pipeline import Pipeline, fragment_pipeline
from vc4lab.v3d.fragment.texture_state import LevelLayout, same_textures
from vc4lab.v3d.fragment.tile_context import (
    MAX_TEXTURE_REQUESTS,
    PRIMITIVES,
    DrawParams,
    FragmentKey,
)
from vc4lab.v3d.fragment.tile_job import Draw
from vc4lab.v3d.fragment.tile_layout import LAYOUTS, SINGLE, TileLayout
from vc4lab.v3d.geometry.scan_context import EXPANDED
from vc4lab.v3d.job_time import RASTER_LOOKUPS
from vc4lab.v3d.lists.draw_context import MODE_AT, POINT_SIZE_AT, VARYINGS_AT
from vc4lab.v3d.lists.draw_ranges import DrawRanges
from vc4lab.v3d.lists.frame_draws import FrameDraws
from vc4lab.v3d.lists.lint import Lint
from vc4lab.v3d.lists.pipeline_table import parameter_places
from vc4lab.v3d.lists.render_state import EMPTY_WINDOWS, clip_box
from vc4lab.v3d.lists.shader_state import (
    ProgramCache,
    ShaderState,
    read_shader_state,
)
from vc4lab.v3d.lists.vertices import MOST_WAYS, ShadedVertices, VertexStage

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.program import Program
    from vc4lab.v3d.fragment.texture_state import TextureDescriptor, TextureKind
    from vc4lab.v3d.geometry.tile_lists import DrawUse, ScanResult
    from vc4lab.v3d.shader_interrupts import ShaderInterrupts
    from vc4lab.v3d.unknowns import Unknowns

_INDEX_BITS = {1: 16, 2: 24, 3: 32}
"""Record 56, bits 7:4 → bits of a vertex in the compressed list."""

_COVERAGE_POINTS = (1, 4, 16, 16)
"""Record 96, bits 7:6 → points of a pixel that the coverage pipe looks at."""

_FACING = 0x7
"""Record 96, bits 2:0: which faces are drawn, and which winding is forward."""

EXACT_AFTER = 3
"""Frames in which a fast pipeline may give up before its exact twin is used from the start."""
RARE = 1 / 8
"""A frame where it gives up in no more of the tiles does not count: the exact twin takes several
times as long, and drawing these tiles twice costs less.
"""

_MAX_KNOWN = 1024
"""Combinations of program and state whose pipeline is remembered."""

NOTHING = Draw(0, 0)
"""A draw that leaves no trace; for states that cannot be drawn."""


class DrawPreparer:
    """Makes `Draw`s from render states, for one V3D."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        *,
        unknowns: Unknowns,
        engine: str,
        lint: Lint | None = None,
        interrupts: ShaderInterrupts | None = None,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.refused = 0
        """Draws that cannot be drawn, since this was set to 0."""
        self.counting = False
        """Whether pipelines count for the performance counters."""
        self.engine = "interpreter" if engine == "interpreter" else "fast"
        self.fallbacks: Counter[FragmentKey] = Counter()
        self._known: dict[tuple[Any, ...], tuple[Program, FragmentKey, Pipeline]] = {}
        self.programs = ProgramCache(memory, reporter, unknowns)
        self.late = LateTextures(memory.base, reporter, unknowns)
        self._layout, self._layout_number = SINGLE, LAYOUTS.index(SINGLE)
        self._vg_mask = False
        self._mode = 0
        """What pipelines of this frame have in common, as a number."""
        self._expanded = 0
        self.lint = lint or Lint(reporter)
        self._empty_windows = EMPTY_WINDOWS[unknowns["clip_window_empty"]]
        self.ranges = DrawRanges(self.lint.addresses)
        self.vertices = VertexStage(
            memory,
            reporter,
            self.programs,
            unknowns=unknowns,
            engine=engine,
            interrupts=interrupts,
        )
        self._draws = FrameDraws(
            memory,
            self.vertices,
            self.lint.addresses,
            self.prepare,
            self._reached,
            self._draw,
            rht_moved=unknowns["rht_boundary_offset"] == "moved",
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
        if layout is not self._layout:
            self._layout, self._layout_number = layout, LAYOUTS.index(layout)
        self._vg_mask = vg_mask
        self._expanded = scan.expanded
        mode = self._mode = self._layout_number << 2 | vg_mask << 1 | self.counting
        self._draws.fill(scan, native=not self.lint.addresses.used.subscriptions, mode=mode)
        return self._draws

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
        key, pipeline = self._pipeline(use, shader, program, kinds, same_textures(descriptors))
        if self.fallbacks and self.fallbacks[key] >= EXACT_AFTER:
            pipeline = pipeline.exact
        vertices = self.vertices.shade(use, shader)
        params = self._params(use, shader, vertices, descriptors)
        quad = params.instructions, params.lookups = quad_work(program, key)
        golden = None
        if key.engine == "interpreter":
            golden = GoldenDraw(key, self.memory, self._compiled(program, key))
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

    def _pipeline(
        self,
        use: DrawUse,
        shader: ShaderState,
        program: Program,
        kinds: tuple[TextureKind | None, ...],
        texture_of: tuple[int, ...],
    ) -> tuple[FragmentKey, Pipeline]:
        """`fragment_pipeline` and its key, without comparing whole programs for every draw."""
        state: Any = use.state
        short = (
            id(program),
            shader.varyings,
            shader.point_size,
            shader.vector_graphics,
            state.config,
            state.flat_flags,
            state.list_format,
            kinds,
            texture_of,
            self._layout,
            self._vg_mask,
            self.counting,
        )
        known = self._known.get(short)
        if known is None:
            key = self._key(use, shader, program, kinds, texture_of)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[short] = program, *self._made(program, key)
        return known[1:]

    def _compiled(self, program: Program, key: FragmentKey) -> Callable[[], int] | None:
        """What gives the compiled entry point for an interpreted draw; None if it was refused."""
        if self.engine != "interpreter" or len(program.learned) > MOST_WAYS:
            return None
        return lambda: fragment_pipeline(replace(key, engine="exact")).address

    def _made(self, program: Program, key: FragmentKey) -> tuple[FragmentKey, Pipeline]:
        """The pipeline of a key, that of the interpreter if nothing else can run the program."""
        interpreted = replace(key, engine="interpreter")
        if len(program.learned) > MOST_WAYS:
            return interpreted, fragment_pipeline(interpreted)
        try:
            return key, fragment_pipeline(key)
        except Unsupported as refusal:
            if refusal.code not in COMPILERS_LIMITS:
                raise
            text = f"a fragment shader: {refusal}"
            self.reporter.report("QPU-057", text, address=program.address)
            return interpreted, fragment_pipeline(interpreted)

    def _key(
        self,
        use: DrawUse,
        shader: ShaderState,
        program: Program,
        kinds: tuple[TextureKind | None, ...],
        texture_of: tuple[int, ...],
    ) -> FragmentKey:
        state: Any = use.state
        config = ConfigurationBits(state.config & 0xFFFFFF)
        form = PrimitiveListFormat(state.list_format & 0xFF)
        if int(form.type) >= len(PRIMITIVES) or int(form.data) not in _INDEX_BITS:
            raise Unsupported("CLE-018", f"primitive list format 0x{form.value:02x}")
        if shader.vector_graphics and int(form.data) != ListData.XY:
            raise Unsupported(
                "CLE-038", "a list of vertex numbers (record 56) with a VG shader state"
            )
        reads = any(word >> 60 == Signal.LOAD_COVERAGE for word in program.words)
        if self._layout.multisample and (config.coverage_pipe or reads):
            self.reporter.report("FRG-004", "coverage of paths in a 4x multisample frame")
        if config.coverage_pipe:  # no program runs
            return FragmentKey(
                program=(),
                primitive=PRIMITIVES[int(form.type)],
                point_size_in_vertex=shader.point_size,
                index_bits=_INDEX_BITS[int(form.data)],
                multisample=self._layout.multisample,
                wide_colour=self._layout.wide,
                coverage=CoverageUpdate(int(config.coverage_update)).name.lower(),
                coverage_points=_COVERAGE_POINTS[int(config.oversample) & 3],
                counting=self.counting,
                unknowns=self.unknowns,
                engine=self.engine,
            )
        return FragmentKey(
            program=program.words,
            primitive=PRIMITIVES[int(form.type)],
            n_varyings=shader.varyings,
            flat_flags=state.flat_flags & ((1 << shader.varyings) - 1),
            depth_function=self._depth_function(int(config.depth_test)),
            z_update=bool(config.z_update),
            depth_offset=bool(config.enable_depth_offset),
            point_size_in_vertex=shader.point_size,
            textures=kinds,
            texture_of=texture_of,
            index_bits=_INDEX_BITS[int(form.data)],
            code_address=program.address if program.has_branches else 0,
            code_layout=program.layout,
            vg_mask=self._vg_mask,
            coverage_mask=reads and bool(config.coverage_read_mask),
            coverage_leave=reads and bool(config.coverage_read_leave),
            multisample=self._layout.multisample,
            wide_colour=self._layout.wide,
            oversample=not self._layout.multisample or bool(config.oversample),
            counting=self.counting,
            unknowns=self.unknowns,
            engine=self.engine,
        )

    def _depth_function(self, code: int) -> int:
        passes = code == Compare.NEVER and self.unknowns["depth_never"] == "passes"
        return int(Compare.ALWAYS) if passes else code

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
        params.rht_boundary = state.rht_boundary
        if self.unknowns["rht_boundary_offset"] == "moved":
            params.rht_boundary += state.viewport_x
        for number, descriptor in enumerate(descriptors):
            if descriptor is not None:
                params.textures[number] = descriptor.address
        params.late = self.late.table.address if None in descriptors else 0
        return params


def quad_work(program: Program, key: FragmentKey) -> tuple[int, int]:
    """What a quad costs the QPUs and the texture units, for `job_time`: instructions and lookups.

    A loop counts once. A lookup in a raster texture, if that is known, counts as several.
    """
    direct = len(program.texture_requests) - len(key.textures)
    known = [kind for kind in key.textures if kind is not None]
    raster = sum(kind.layout is LevelLayout.RASTER for kind in known)
    return len(key.program), direct + len(key.textures) + (RASTER_LOOKUPS - 1) * raster


def _upper_half(bits: int) -> float:
    """A float whose upper 16 bits are the low 16 of ``bits`` ("1-8-7")."""
    return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])
