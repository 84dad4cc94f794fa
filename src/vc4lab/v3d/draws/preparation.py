"""Prepares draws: a distinct render state becomes a pipeline, its parameters, its vertices.

What is fixed for a draw goes into the key of its pipeline (`pipelines.py`; compiled once,
cached in memory and on disk); what is data goes into `DrawParams`. Native code (`kernel.py`) does
it; here is what it requests: pipelines of states that are new, messages, shaders that it cannot run
by itself. Source: hardware reference 3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import TYPE_CHECKING

from vc4lab.listeners import AnyListener
from vc4lab.qpu.run.environment import Unsupported, left_text
from vc4lab.records.states import PrimitiveListFormat, VgInlineShader
from vc4lab.v3d.checks.draw_ranges import DrawRanges
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.draws.frame_draws import Found, FrameDraws
from vc4lab.v3d.draws.pipeline_table import (
    MODE_AT,
    POINT_SIZE_AT,
    VARYINGS_AT,
    MadePipeline,
    PipelineEntry,
    parameter_places,
)
from vc4lab.v3d.draws.pipelines import DrawPipelines, quad_work
from vc4lab.v3d.draws.refining import Refiner
from vc4lab.v3d.events import DrawPrepared
from vc4lab.v3d.fragment.pipeline import Pipeline
from vc4lab.v3d.reference.draw import ReferenceDraw, register
from vc4lab.v3d.services import VERTICES, Services
from vc4lab.v3d.state.frame_mode import LAYOUTS, SINGLE, TileLayout
from vc4lab.v3d.state.render_state import (
    ProgramCache,
    ShaderRecord,
    empty_windows,
    read_shader_record,
    rht_movement,
)
from vc4lab.v3d.state.tile_context import MAX_TEXTURE_REQUESTS, FragmentKey
from vc4lab.v3d.tiles.job import Draw
from vc4lab.v3d.tmu.late_textures import LateTextures
from vc4lab.v3d.tmu.texture_state import same_textures
from vc4lab.v3d.vertex.shading import VertexStage

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.records.states import RenderState
    from vc4lab.v3d.tile_lists.scan_context import DrawUse, ScanResult

EXACT_AFTER_FRAMES = 3
"""Frames in which a fast pipeline may give up before its exact twin is used from the start."""
RARE_SHARE = 1 / 8
"""A frame where it gives up in no more of the tiles does not count: the exact twin takes several
times as long, and drawing these tiles twice costs less.
"""


class DrawPreparer:
    """Makes `Draw`s from render states, for one V3D."""

    def __init__(self, services: Services, lint: Lint) -> None:
        self.listeners = listeners = services.listeners
        self._any_listener = AnyListener(listeners.frame_work, listeners.draw_prepared, lint.addresses.used)
        self.memory, self.reporter = memory, reporter = services.memory, services.reporter
        self.unknowns = unknowns = services.unknowns
        self.refused = 0
        """Draws that cannot be drawn, since this was set to 0."""
        self.fallbacks: Counter[FragmentKey] = Counter()
        self.pipelines = DrawPipelines(services)
        self.refiner = Refiner()
        self.programs = ProgramCache(memory, reporter, unknowns)
        self.late = LateTextures(memory.base, reporter, unknowns)
        self._layout_number = LAYOUTS.index(SINGLE)
        self._mode = 0
        """The part of the mode that pipelines of this frame have in common, as a number."""
        self.lint = lint
        self._empty_windows = empty_windows(unknowns)
        self.ranges = DrawRanges(lint.addresses, self.programs, binning=False)
        self.vertices = VertexStage(services, self.programs, VERTICES)
        self._draws = FrameDraws(
            memory,
            self.vertices,
            self.lint.addresses,
            self,
            empty_windows=self._empty_windows,
            rht_moved=rht_movement(unknowns),
        )

    def forget(self) -> None:
        """Programs that were met are met for the first time from now on; between two frames."""
        self.pipelines.forget()
        self._draws.forget()
        self.vertices.forget()
        self.ranges.forget()

    def prepare_all(self, scan: ScanResult, layout: TileLayout = SINGLE, vg_mask: bool = False) -> FrameDraws:
        """The draws of one frame; those of the frame before are given up, with their vertices.

        `layout` is that of the tile buffer, which has a VG mask if `vg_mask`.
        """
        self.vertices.arena.gather()
        refiner = self.refiner
        refiner.left -= 1
        if not refiner.left:
            refined = refiner.look(self._draws.drawn_with())
            if refined:
                self.pipelines.replace(refined)
                self._draws.pipelines.replace(refined)
                refiner.let_go(refined)
        if self.late.met:
            self.late.begin()
        pipelines = self.pipelines
        if layout is not pipelines.layout:
            pipelines.layout, self._layout_number = layout, LAYOUTS.index(layout)
        pipelines.vg_mask = vg_mask
        observed = self._any_listener.present
        recording = pipelines.recording = observed and bool(self.listeners.frame_work.subscriptions)
        mode = recording << 4 | self._layout_number << 2 | vg_mask << 1 | pipelines.counting
        self._mode = mode
        self._draws.fill(scan, mode=mode)
        if observed:
            self._emit_prepared(scan)
        return self._draws

    def _emit_prepared(self, scan: ScanResult) -> None:
        """Each draw and its memory, for listeners."""
        if self.lint.addresses.used.subscriptions:
            self._announce(scan)
        if self.listeners.draw_prepared.subscriptions:
            self._report_prepared(scan)

    def _report_prepared(self, scan: ScanResult) -> None:
        """Each draw, for listeners."""
        records = scan.first_records()
        for number, (use, draw) in enumerate(zip(scan.draws, self._draws, strict=True)):
            shader, made, state = self.shader(use), draw.keep, use.state
            address = None if shader is None else shader.address
            if shader is not None and state.shader_kind == VgInlineShader.id:
                address = shader.code
            event = DrawPrepared(
                records.get(number),
                address,
                PrimitiveListFormat(state.list_format & 0xFF).type,
                use.primitives,
                use.vertices,
                None if made is None else made.pipeline,
            )
            self.listeners.draw_prepared.emit(event)

    def _announce(self, scan: ScanResult) -> None:
        """Reports the memory of draws whose pipelines were not requested."""
        for number in self._draws.without_request():
            use = scan.draw(number)
            shader, kind = self.shader(use), use.state.shader_kind
            self.ranges.announce(shader, kind, use.first, use.last)

    def shader(self, use: DrawUse) -> ShaderRecord | None:
        """The shader record of a draw, if there is one."""
        state = use.state
        kind, word = state.shader_kind, state.shader_word
        return read_shader_record(self.memory, kind, word, state.shader_uniforms)

    def find(self, use: DrawUse) -> Found | None:
        """The pipeline for a distinct render state; None (and a message) if there is none."""
        shader = self.shader(use)
        if shader is None:
            self.reporter.report("CLE-013", "primitives are drawn, but no shader state record precedes them")
            self.refused += 1
            return None
        self.lint.draw(use.state, shader, self._empty_windows)
        if shader.nv is not None:
            self.lint.nv_vertices(shader.nv, self.memory, use.first, use.last)
        try:
            return self._find(use, shader)
        except Unsupported as refusal:
            self._refuse(refusal, shader)
            return None

    def shade(self, use: DrawUse, rows: int, output: int) -> bool:
        """Shades the vertices of a draw; False (and a message) if that cannot be done."""
        shader = self.shader(use)
        assert shader is not None
        assert shader.gl is not None
        try:
            self.vertices.shade(shader.gl, rows, use.first, use.last, use.used, output)
        except Unsupported as refusal:
            self._refuse(refusal, shader)
            return False
        return True

    def _refuse(self, refusal: Unsupported, shader: ShaderRecord) -> None:
        """A draw that is left out."""
        address = shader.code if refusal.address is None else refusal.address
        self.reporter.report(refusal.code, refusal.message, address=address)
        self.refused += 1

    def report_unsupported(self, draw: Draw) -> None:
        """Reports what a pipeline could not do at run time; the interpreter knows what it was."""
        reference = None if draw.keep is None else draw.keep.reference
        failure = None if reference is None else reference.failure
        if isinstance(failure, Unsupported):
            self.reporter.report(failure.code, failure.message)
        elif failure is not None:
            raise failure
        else:
            self.reporter.report("FRG-001", "a fragment program used an unsupported feature")

    def report_stopped(self, draw: Draw, left_for: int | None = None) -> None:
        """A program ran over its budget, or went to an address where no code can lie."""
        code, text = "QPU-041", "a fragment shader does not end; draws with it are left out"
        if left_for is not None:
            code, text = "QPU-042", f"in a fragment shader, {left_text(left_for)}"
        self.reporter.report(code, text, address=draw.program[0])

    def reached(self, use: DrawUse, target: int, before: Draw) -> bool:
        """Whether a fragment program was extended, now that it has gone on at an address."""
        shader = self.shader(use)
        if shader is None:
            return False
        more = self.programs.reached(shader.code, target) is not None
        if more:
            self._draws.pipelines.stale = True  # the next frame must not begin with what it was
        program = self.programs.get(shader.code)  # another draw may have met it before
        return more or (before.program is not None and before.program[2] != program.layout)

    def _find(self, use: DrawUse, shader: ShaderRecord) -> Found:
        program, state = self.programs.get(shader.code), use.state
        kind = state.shader_kind
        self.ranges.draw(shader, kind, use.first, use.last)
        kinds, textures = self.programs.textures(program, shader.uniforms, self.unknowns)
        if len(textures) > MAX_TEXTURE_REQUESTS:
            raise Unsupported("FRG-001", f"a fragment program makes {len(textures)} lookups")
        key, pipeline = self.pipelines.find(use, shader, program, kinds, same_textures(textures))
        if self.fallbacks and self.fallbacks[key] >= EXACT_AFTER_FRAMES:
            pipeline = pipeline.exact
        reference: ReferenceDraw | None = None
        entry: PipelineEntry | None = None
        if key.engine == "interpreter":
            reference = ReferenceDraw(key, self.memory, self.pipelines.compiled(program, key))
        elif not shader.vector_graphics and not program.pieces:
            entry = self._entered(state, shader, program)
        addresses = (ctypes.c_uint64 * max(len(textures), 1))(
            *(0 if texture is None else texture.address for texture in textures)
        )
        made = MadePipeline(key, program.address, pipeline, reference, textures, addresses)
        if entry is not None:
            self._draws.pipelines.made[entry.address] = made
        else:
            entry = PipelineEntry()
        entry.function = pipeline.address
        entry.textures, entry.texture_count = ctypes.addressof(addresses), len(textures)
        entry.instructions, entry.lookups = quad_work(program, key)
        entry.callback_id = 0 if reference is None else register(reference)
        entry.late = self.late.table.address if None in textures else 0
        return Found(entry, made, shader.data)

    def draw(self, function: int, params: int, made: MadePipeline) -> Draw:
        """The Python side of a draw."""
        key = made.key
        return Draw(
            function,
            params,
            fallback=lambda share: self._fall_back(key, made.pipeline, share),
            keep=made,
            program=(made.code, key.program, key.code_layout),
        )

    def _entered(self, state: RenderState, shader: ShaderRecord, program: Program) -> PipelineEntry | None:
        """A new entry for draws with this state, program and textures; None if impossible."""
        layout = self.programs.layout(program, shader.uniforms)
        places = parameter_places(program, layout)
        if places is None:
            return None
        shape = shader.varyings << VARYINGS_AT | shader.point_size << POINT_SIZE_AT
        return self._draws.pipelines.enter(
            program,
            shader.code,
            state,
            shape | self._mode << MODE_AT,
            layout,
            [self.memory.u32(shader.uniforms + place) for place in places],
        )

    def _fall_back(self, key: FragmentKey, pipeline: Pipeline, share: float) -> int:
        """The exact entry point, because the fast one met a value it cannot compute."""
        if share > RARE_SHARE:
            self.fallbacks[key] += 1
            self._draws.pipelines.stale |= self.fallbacks[key] == EXACT_AFTER_FRAMES
        return pipeline.exact.address
