"""Which pipeline draws a render state: the key that says what is compiled, and what is known of it.

Source: hardware reference 3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.codes import Compare, CoverageUpdate, ListData
from vc4lab.records.states import ConfigurationBits, PrimitiveListFormat
from vc4lab.v3d.checks.shaders import check_varyings, lint_program
from vc4lab.v3d.events import ProgramKind
from vc4lab.v3d.fragment.pipeline import Pipeline, fragment_pipeline
from vc4lab.v3d.job_time import RASTER_LOOKUPS
from vc4lab.v3d.services import Services
from vc4lab.v3d.state.frame_mode import SINGLE, TileLayout
from vc4lab.v3d.state.tile_context import PRIMITIVES, FragmentKey
from vc4lab.v3d.tmu.texture_state import LevelLayout
from vc4lab.v3d.vertex.shading import MAX_WAYS, runnable_pipeline

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.simd import NativeFunction
    from vc4lab.v3d.draws.refining import Refined
    from vc4lab.v3d.state.render_state import ShaderRecord
    from vc4lab.v3d.tile_lists.scan_context import DrawUse
    from vc4lab.v3d.tmu.texture_state import TextureKind

_INDEX_BITS = {1: 16, 2: 24, 3: 32}
"""Record 56, bits 7:4 → bits of a vertex in the compressed list."""

_COVERAGE_POINTS = (1, 4, 16, 16)
"""Record 96, bits 7:6 → points of a pixel that the coverage pipe looks at."""

MAX_KNOWN = 1024
"""Combinations of program and state whose pipeline is remembered."""


class DrawPipelines:
    """Finds the pipelines of draws; `layout` and `vg_mask` are those of the frame's tile buffer."""

    def __init__(self, services: Services) -> None:
        self.listeners = services.listeners
        self.reporter = services.reporter
        self.unknowns = services.unknowns
        self.engine = "interpreter" if services.options.engine == "interpreter" else "fast"
        self._forgiving = services.options.forgiving
        self.lints = 0
        """How many more programs are checked by the lint when they are met for the first time."""
        self.counting = False
        """Whether pipelines count for the performance counters."""
        self.recording = False
        """Whether they record pieces of work, and count."""
        self.layout: TileLayout = SINGLE
        self.vg_mask = False
        self._known: Bounded[tuple[Any, ...], tuple[Program, FragmentKey, Pipeline]] = Bounded(MAX_KNOWN)

    def find(
        self,
        use: DrawUse,
        shader: ShaderRecord,
        program: Program,
        kinds: tuple[TextureKind | None, ...],
        texture_of: tuple[int, ...],
    ) -> tuple[FragmentKey, Pipeline]:
        """`fragment_pipeline` and its key, without comparing whole programs for every draw."""
        state = use.state
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
            self.layout,
            self.vg_mask,
            self.counting,
            self.recording,
        )
        known = self._known.get(short)
        if known is None:
            key = self._key(use, shader, program, kinds, texture_of)
            if key.program and not self._forgiving:
                self._check(key, shader, program)
            known = self._known[short] = program, *self._made(program, key)
        return known[1:]

    def _check(self, key: FragmentKey, shader: ShaderRecord, program: Program) -> None:
        """Reports what does not fit in a draw state that is met for the first time."""
        kind, hints = key.primitive, self.lints > 0
        enough = check_varyings(program, shader.varyings, kind, self.reporter, hints)
        if not enough and self.unknowns["varying_missing"] == "waits":
            text = "the program waits for a varying that never comes; its draws are left out"
            raise Unsupported("FRG-008", text, program.address)
        if self.lints > 0:
            self.lints -= 1
            lint_program(program, "fragment shader", self.reporter)

    def forget(self) -> None:
        """No pipeline is remembered; between two frames."""
        self._known.clear()

    def replace(self, refined: Refined) -> None:
        """From now on other builds of pipelines are found."""
        for short, (program, key, pipeline) in self._known.items():
            found = refined.get(id(pipeline))
            if found is not None:
                self._known[short] = program, key, found

    def compiled(self, program: Program, key: FragmentKey) -> Callable[[], NativeFunction] | None:
        """Give the maker of the compiled entry point for an interpreted draw; None if it was refused."""
        if self.engine != "interpreter" or len(program.learned) > MAX_WAYS:
            return None
        return lambda: fragment_pipeline(replace(key, engine="exact")).draw

    def _made(self, program: Program, key: FragmentKey) -> tuple[FragmentKey, Pipeline]:
        """The pipeline of a key, that of the interpreter if nothing else can run the program."""
        interpreted, what = replace(key, engine="interpreter"), "a fragment shader"
        start = perf_counter()
        made, pipeline = runnable_pipeline(program, fragment_pipeline, key, interpreted, self.reporter, what)
        if key.program and made != interpreted:
            self.listeners.compiled(ProgramKind.FRAGMENT, program, start)
        return made, pipeline

    def _key(
        self,
        use: DrawUse,
        shader: ShaderRecord,
        program: Program,
        kinds: tuple[TextureKind | None, ...],
        texture_of: tuple[int, ...],
    ) -> FragmentKey:
        state = use.state
        config = ConfigurationBits(state.config & 0xFFFFFF)
        form = PrimitiveListFormat(state.list_format & 0xFF)
        if int(form.type) >= len(PRIMITIVES) or int(form.data) not in _INDEX_BITS:
            raise Unsupported("CLE-018", f"primitive list format 0x{form.value:02x}")
        if shader.vector_graphics and int(form.data) != ListData.XY:
            raise Unsupported("CLE-038", "a list of vertex numbers (record 56) with a VG shader state")
        reads = any(word >> 60 == Signal.LOAD_COVERAGE for word in program.words)
        if self.layout.multisample and (config.coverage_pipe or reads):
            self.reporter.report("FRG-004", "coverage of paths in a 4x multisample frame")
        key = FragmentKey(
            program=(),
            primitive=PRIMITIVES[int(form.type)],
            point_size_in_vertex=shader.point_size,
            index_bits=_INDEX_BITS[int(form.data)],
            multisample=self.layout.multisample,
            wide_colour=self.layout.wide,
            counting=self.counting or self.recording,
            unknowns=self.unknowns,
            engine=self.engine,
            recording=self.recording,
        )
        if config.coverage_pipe:  # no program runs
            return replace(
                key,
                coverage=CoverageUpdate(int(config.coverage_update)).name.lower(),
                coverage_points=_COVERAGE_POINTS[int(config.oversample) & 3],
            )
        return replace(
            key,
            program=program.words,
            n_varyings=shader.varyings,
            flat_flags=state.flat_flags & ((1 << shader.varyings) - 1),
            depth_function=self._depth_function(int(config.depth_test)),
            z_update=bool(config.z_update),
            depth_offset=bool(config.enable_depth_offset),
            textures=kinds,
            texture_of=texture_of,
            code_address=program.fixed_address,
            code_layout=program.layout,
            vg_mask=self.vg_mask,
            coverage_mask=reads and bool(config.coverage_read_mask),
            coverage_leave=reads and bool(config.coverage_read_leave),
            oversample=not self.layout.multisample or bool(config.oversample),
        )

    def _depth_function(self, code: int) -> int:
        passes = code == Compare.NEVER and self.unknowns["depth_never"] == "passes"
        return int(Compare.ALWAYS) if passes else code


def quad_work(program: Program, key: FragmentKey) -> tuple[int, int]:
    """Estimate a quad's cost for the QPUs and the texture units, for `job_time`: instructions and lookups.

    A loop counts once. A lookup in a raster texture, if that is known, counts as several.
    """
    direct = len(program.texture_requests) - len(key.textures)
    known = [kind for kind in key.textures if kind is not None]
    raster = sum(kind.layout is LevelLayout.RASTER for kind in known)
    return len(key.program), direct + len(key.textures) + (RASTER_LOOKUPS - 1) * raster
