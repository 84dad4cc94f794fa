"""Shades the vertices of a draw: coordinates for the binner, whole vertices for the renderer.

GL mode runs the coordinate or vertex shader over the attribute arrays, NV mode copies vertices that
the program shaded itself. Both leave batches of 16 in host memory. Here is what native code
(`shader_lookup.py`) cannot do by itself: new programs, textures, the interpreter. Source: hardware
reference 3.7, 3.8, 5.7.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from vc4lab.bounded import Bounded
from vc4lab.qpu.run.environment import COMPILER_ONLY_CODES, Unsupported, left_text
from vc4lab.v3d.checks.shaders import lint_program
from vc4lab.v3d.events import ProgramKind
from vc4lab.v3d.services import VERTICES, Services
from vc4lab.v3d.tmu.late_textures import LateTextures
from vc4lab.v3d.tmu.requests import MAX_REQUESTS
from vc4lab.v3d.vertex.context import ENDLESS, LEFT
from vc4lab.v3d.vertex.pipeline import VertexKey, VertexPipeline, vertex_pipeline
from vc4lab.v3d.vertex.shader_lookup import ShaderTable
from vc4lab.v3d.vpm.errors import Errors

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.qpu.program.program import Program
    from vc4lab.records.shader import GlShader
    from vc4lab.v3d.state.render_state import ProgramCache
    from vc4lab.v3d.tmu.texture_state import TextureDescriptor

_ALIGNMENT = 64

MAX_WAYS = 128
"""Targets of its branches to registers for which a shader is compiled again, before it is left to
the interpreter.
"""

_MAX_PIPELINES = 1024
"""Shader records whose preparation is cached."""

_ERROR_BITS = {"VTX-003": Errors.VPMERNA.mask, "VTX-006": Errors.VPMEWNA.mask}
"""Bits by which ERRSTAT shows findings about a shader."""


K = TypeVar("K")
P = TypeVar("P")


def runnable_pipeline(
    program: Program, make: Callable[[K], P], key: K, interpreted: K, reporter: Reporter, kind: str
) -> tuple[K, P]:
    """Let `make` make the pipeline for a key, or for `interpreted` where only the interpreter can run it."""
    if len(program.learned) <= MAX_WAYS:
        try:
            return key, make(key)
        except Unsupported as refusal:
            if refusal.code not in COMPILER_ONLY_CODES:
                raise
            reporter.report("QPU-057", f"{kind}: {refusal}", address=program.address)
    return interpreted, make(interpreted)


class Arena:
    """Host memory for shaded vertices, reused from frame to frame."""

    def __init__(self) -> None:
        self._blocks: list[tuple[tuple[int, int], Any]] = []
        self._block = 0
        self.window = 0, 0
        """Host addresses: what is free in a row, from a multiple of 64 on."""

    def reset(self) -> None:
        """Everything handed out is free again."""
        if self._blocks:
            self._block, self.window = 0, self._blocks[0][0]

    def gather(self) -> None:
        """Nothing handed out is in use any more: makes room for as much in one piece."""
        if len(self._blocks) > 1:
            size = sum(end - start for (start, end), _ in self._blocks)
            self._blocks.clear()
            self.window = 0, 0
            self.reserve(size)
        self.reset()

    def take_up_to(self, address: int) -> None:
        """Marks the window before a host address as used."""
        self.window = (address + _ALIGNMENT - 1) & -_ALIGNMENT, self.window[1]

    def reserve(self, size: int) -> None:
        """Makes sure that the window has ``size`` bytes."""
        while self.window[1] - self.window[0] < size:
            if self._block + 1 < len(self._blocks):
                self._block += 1
                self.window = self._blocks[self._block][0]
                continue
            room = max(size, 1 << 20)
            buffer = (ctypes.c_char * (room + _ALIGNMENT))()
            start = (ctypes.addressof(buffer) + _ALIGNMENT - 1) & -_ALIGNMENT
            self._block, self.window = len(self._blocks), (start, start + room)
            self._blocks.append((self.window, buffer))


class VertexStage:
    """Runs the shaders of one stage (`VERTICES`, `COORDINATES`) that native code cannot run alone.

    Of vertices, `arena` is where native code puts what it has shaded.
    """

    def __init__(self, services: Services, programs: ProgramCache, stage: int) -> None:
        self.listeners = services.listeners
        self._is_vertex = stage == VERTICES
        self.reporter = services.reporter
        self.programs = programs
        self.unknowns = services.unknowns
        self.engine = services.options.engine
        self.forgiving = services.options.forgiving
        self.lints = 0
        """How many more programs are checked by the lint when they are met for the first time."""
        self.arena = Arena()
        self.late = LateTextures(services.memory.base, self.reporter, self.unknowns)
        self._pipelines: Bounded[tuple[Any, ...], tuple[Program, VertexPipeline]] = Bounded(_MAX_PIPELINES)
        self.shaders = ShaderTable(services.team)
        """Pipelines that native code may use by itself."""
        self.shaders.vertex.interrupts = services.interrupts.place(stage)
        self.endless: dict[int, Program] = {}
        """Programs, by id, that did not end in the list at hand: one overrun of each is enough. To
        be emptied when a list starts."""
        self.errors = 0
        """Bits of ERRSTAT that shaders have caused."""
        self._instructions = 0

    def forget(self) -> None:
        """Programs that were met are met for the first time from now on; between two lists."""
        self.programs.clear()
        self._pipelines.clear()
        self.shaders.clear()

    @property
    def instructions(self) -> int:
        """Instructions of all batches shaded since the start; a loop counts once."""
        return self._instructions + self.shaders.instructions

    def shade(self, shader: GlShader, rows: int, first: int, last: int, used: int, output: int) -> None:
        """Shades the vertices `first` … `last` of a draw, whose pipeline native code may use then.

        `rows`: words of a shaded vertex; `used`: host address of a byte per vertex, 0 for all;
        `output`: where batch 0 would be, only those of the range exist. Raises Unsupported.
        """
        record, context, vertex = shader.record, self.shaders.vertex, self._is_vertex
        code = record.vs_code if vertex else record.cs_code
        context.output, context.used = output, used
        context.first, context.last = first, last
        for number, attribute in enumerate(shader.attributes):
            context.bases[number] = attribute.address
            context.strides[number] = attribute.stride
        pipeline, status = self._shade(shader, code, rows)
        while status == LEFT:
            target = context.left
            if self.programs.reached(code, target) is None:
                text = f"in a vertex or coordinate shader, {left_text(target)}"
                raise Unsupported("QPU-042", text, address=code)
            pipeline, status = self._shade(shader, code, rows)
        self.shaders.enter(pipeline, code, vertex=vertex)

    def _pipeline(self, program: Program, key: VertexKey) -> VertexPipeline:
        """`vertex_pipeline`, without comparing whole programs each time."""
        short = (id(program), key.attributes, key.total_size, key.rows, key.textures)
        known = self._pipelines.get(short)
        if known is None:
            known = self._pipelines[short] = program, self._made(program, key)
            if not self.forgiving:
                for code, text in known[1].findings:
                    self.reporter.report(code, text, address=program.address)
        return known[1]

    def _made(self, program: Program, key: VertexKey) -> VertexPipeline:
        """The pipeline of a key, that of the interpreter if nothing else can run the program."""
        kind = ProgramKind.VERTEX if self._is_vertex else ProgramKind.COORDINATE
        if self.lints > 0:
            self.lints -= 1
            lint_program(program, f"{kind.name.lower()} shader", self.reporter)
        interpreted, what = replace(key, engine="uncompiled"), "a vertex or coordinate shader"
        start = perf_counter()
        _, pipeline = runnable_pipeline(program, vertex_pipeline, key, interpreted, self.reporter, what)
        if pipeline.native is not None:
            self.listeners.compiled(kind, program, start)
        return pipeline

    def key_of(
        self, shader: GlShader, code: int, rows: int
    ) -> tuple[Program, VertexKey, Sequence[TextureDescriptor | None]]:
        """A draw's program, what its pipeline is made for, and its textures. Raises Unsupported."""
        record, vertex = shader.record, self._is_vertex
        uniforms = record.vs_uniforms if vertex else record.cs_uniforms
        program = self.programs.get(code)
        kinds, textures = self.programs.textures(program, uniforms, self.unknowns)
        if len(textures) > MAX_REQUESTS:
            raise Unsupported("VTX-002", f"{len(textures)} texture lookups in a vertex shader")
        key = VertexKey(
            program.words,
            _selected(shader, record.vs_attributes if vertex else record.cs_attributes, vertex),
            record.vs_size if vertex else record.cs_size,
            rows,
            self.engine,
            self.unknowns,
            program.fixed_address,
            program.layout,
            kinds,
            self.forgiving,
        )
        return program, key, textures

    def _shade(self, shader: GlShader, code: int, rows: int) -> tuple[VertexPipeline, int]:
        """Shades vertices with what is known of the program; DONE, or LEFT for `context.left`."""
        record, context, vertex = shader.record, self.shaders.vertex, self._is_vertex
        program, key, textures = self.key_of(shader, code, rows)
        pipeline = self._pipeline(program, key)
        for warning, text in pipeline.warnings:
            self.errors |= _ERROR_BITS.get(warning, 0)
            self.reporter.report(warning, text, address=code)
        if id(program) in self.endless:
            raise endless(code, vertex)
        context.uniforms = record.vs_uniforms if vertex else record.cs_uniforms
        context.batches = 0
        for number, texture in enumerate(textures):
            context.textures[number] = 0 if texture is None else texture.address
        if None in textures:
            self.late.begin()
            context.late = self.late.table.address
        status = pipeline.shade(context)
        if self.late.met:
            self.late.report()
        self._instructions += context.batches * len(program.words)
        if status == ENDLESS:
            self.endless[id(program)] = program
            self.shaders.clear()  # native code must not try again with every draw
            raise endless(code, vertex)
        return pipeline, status


def endless(code: int, vertex: bool) -> Unsupported:
    """The verdict on a shader that ran over its budget."""
    kind = "vertex" if vertex else "coordinate"
    text = f"a {kind} shader does not end; draws with it are left out of this list"
    return Unsupported("VTX-005", text, address=code)


def _selected(shader: GlShader, bits: int, vertex: bool) -> tuple[tuple[int, int, int], ...]:
    """(array, bytes, offset in the VPM column) of the arrays a stage selects."""
    return tuple(
        (number, attribute.size, attribute.vs_offset if vertex else attribute.cs_offset)
        for number, attribute in enumerate(shader.attributes)
        if bits >> number & 1
    )
