"""From a render state to what it draws with: the shader record behind it, programs, textures.

Everything here is read from guest memory anew at each frame, because a guest may change any of it
between frames; programs are only decoded again when their bytes changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.qpu.program import Program
from vc4lab.records.declarations import GlShaderState, VgInlineShader
from vc4lab.records.shader import (
    GlShader,
    NvShaderRecord,
    attribute_count,
    gl_record_size,
    parse_gl_state,
    parse_nv,
    parse_vg,
)
from vc4lab.v3d.fragment.texture_state import TextureDescriptor, TextureKind, describe_texture
from vc4lab.v3d.lists.render_state import GL_SHADER, NV_SHADER, VG_INLINE_SHADER, VG_SHADER

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns


@dataclass(frozen=True)
class ShaderState:
    """A shader record in the terms all share; ``gl`` or ``nv`` has the rest (neither: VG mode)."""

    address: int
    code: int
    uniforms: int
    varyings: int
    point_size: bool
    clipping: bool
    gl: GlShader | None = None
    nv: NvShaderRecord | None = None

    @property
    def vector_graphics(self) -> bool:
        """VG mode: vertices stand in the list and have no varyings."""
        return self.gl is None and self.nv is None


def read_shader_state(
    memory: GuestMemory, kind: int, word: int, uniforms: int = 0
) -> ShaderState | None:
    """The shader record named by record ``kind`` (64-67) with payload ``word``.

    ``uniforms`` is the second word of record 67. Returns None if there is no shader state at all.
    """
    word &= 0xFFFFFFFF
    if kind == GL_SHADER:
        address, size = _gl_place(word)
        return _gl_state(word, memory.read(address, size))
    if kind == NV_SHADER:
        nv = parse_nv(memory.read, word)
        return ShaderState(
            word,
            nv.code,
            nv.uniforms,
            nv.varyings,
            bool(nv.point_size),
            bool(nv.clipping),
            nv=nv,
        )
    if kind == VG_SHADER:
        vg = parse_vg(memory.read, word)
        return ShaderState(word, vg.code, vg.uniforms, 0, False, False)
    if kind == VG_INLINE_SHADER:
        inline = VgInlineShader(word)
        return ShaderState(word, inline.code, uniforms & 0xFFFFFFFF, 0, False, False)
    return None


Textures = tuple[tuple[TextureKind, ...], tuple[TextureDescriptor, ...]]


@lru_cache(maxsize=1024)
def _gl_place(word: int) -> tuple[int, int]:
    """Address and bytes of the shader record that a record 64 names."""
    state = GlShaderState(word)
    return state.address, gl_record_size(attribute_count(state), bool(state.extended))


@lru_cache(maxsize=1024)
def _gl_state(word: int, data: bytes) -> ShaderState:
    """Several draws of a frame share a shader record, and both list threads read it."""
    state = GlShaderState(word)
    gl = parse_gl_state(lambda _address, _size: data, state)
    return ShaderState(
        state.address,
        gl.record.fs_code,
        gl.record.fs_uniforms,
        gl.record.fs_varyings,
        bool(gl.record.point_size),
        bool(gl.record.clipping),
        gl=gl,
    )


class ProgramCache:
    """Programs by address and their textures, decoded again only when guest memory changed."""

    def __init__(self, memory: GuestMemory, reporter: Reporter, unknowns: Unknowns) -> None:
        self.memory = memory
        self.unknowns = unknowns
        self.reporter = reporter
        self._programs: dict[int, tuple[bytes, Program]] = {}
        self._textures: dict[tuple[Any, ...], tuple[Program, Textures]] = {}

    def get(self, address: int) -> Program:
        """The program at a guest address; oddities of its shape are reported once."""
        known = self._programs.get(address)
        if known is not None and self.memory.read(address, len(known[0])) == known[0]:
            return known[1]
        program = Program.from_memory(self.memory, address, settings=self.unknowns)
        for problem in program.problems:
            if problem.code == "QPU-047":  # whoever compiles the program says so
                continue
            self.reporter.report(problem.code, problem.message, address=problem.address)
        code = self.memory.read(address, 8 * len(program.words))
        if len(self._programs) >= 4096:
            self._programs.clear()
        self._programs[address] = (code, program)
        return program

    def textures(self, program: Program, uniforms: int, unknowns: Unknowns) -> Textures:
        """Kinds and descriptors of a program's texture requests, from its uniform stream.

        Both are in the order of the S writes; direct memory lookups are left out. They are made
        anew when the parameters changed.
        """
        requests = [r for r in program.texture_requests if not r.is_direct]
        if not requests:
            return (), ()
        places = [request.uniforms[:4] for request in requests]
        words = [tuple([self.memory.u32(uniforms + 4 * n) for n in place]) for place in places]
        key = (id(program), *words)
        known = self._textures.get(key)
        if known is None:
            kinds: list[TextureKind] = []
            descriptors: list[TextureDescriptor] = []
            for place, parameters in zip(places, words, strict=True):
                p0, p1, p2, p3 = (*parameters, 0, 0, 0)[:4]
                kind, descriptor = describe_texture(
                    p0,
                    p1,
                    p2,
                    p3,
                    used_params=len(parameters),
                    unknowns=unknowns,
                    reporter=self.reporter,
                    address=uniforms + 4 * place[0],
                )
                kinds.append(kind)
                descriptors.append(descriptor)
            if len(self._textures) >= 1024:
                self._textures.clear()
            known = self._textures[key] = program, (tuple(kinds), tuple(descriptors))
        return known[1]
