"""From a render state to what it draws with: its shader record, programs, textures.

Everything here is read from guest memory again for each frame, because a guest may change any of it
between frames; programs are only decoded again when their bytes changed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.qpu.program.program import Program, TextureRequest
from vc4lab.qpu.program.reader import program_at, reach
from vc4lab.qpu.program.uniform_stream import StreamLayout, stream_layout
from vc4lab.records.shader import (
    GlShader,
    NvShaderRecord,
    attribute_count,
    gl_record_size,
    parse_gl_state,
    parse_vg,
)
from vc4lab.records.states import GlShaderState, NvShaderState, VgInlineShader, VgShaderState
from vc4lab.v3d.tmu.state import TextureDescriptor, TextureKind, describe_texture
from vc4lab.v3d.tmu.texture_slots import padded

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns


@dataclass(frozen=True)
class ShaderRecord:
    """What all kinds of shader record have; ``gl`` or ``nv`` has the rest (neither: VG mode).

    ``data`` is the record as it was read, once; that of VG mode in the form of NV mode.
    """

    address: int
    code: int
    uniforms: int
    varyings: int
    point_size: bool
    clipping: bool
    data: bytes
    gl: GlShader | None = None
    nv: NvShaderRecord | None = None

    @property
    def vector_graphics(self) -> bool:
        """VG mode: vertices stand in the list and have no varyings."""
        return self.gl is None and self.nv is None


def read_shader_record(memory: GuestMemory, kind: int, word: int, uniforms: int = 0) -> ShaderRecord | None:
    """The shader record named by record ``kind`` (64-67) with payload ``word``.

    ``uniforms`` is the second word of record 67. Returns None if there is no shader state at all.
    """
    word &= 0xFFFFFFFF
    if kind == GlShaderState.id:
        address, size = _gl_place(word)
        return _gl_state(word, memory.read(address, size))
    if kind == NvShaderState.id:
        data = memory.read(word, NvShaderRecord.bit_width // 8)
        nv = NvShaderRecord.from_bytes(data)
        return ShaderRecord(
            word, nv.code, nv.uniforms, nv.varyings, bool(nv.point_size), bool(nv.clipping), data, nv=nv
        )
    if kind == VgShaderState.id:
        vg = parse_vg(memory.read, word)
        return _vg_state(word, vg.code, vg.uniforms)
    if kind == VgInlineShader.id:
        return _vg_state(word, VgInlineShader(word).code, uniforms & 0xFFFFFFFF)
    return None


def _vg_state(word: int, code: int, uniforms: int) -> ShaderRecord:
    data = NvShaderRecord.make(code=code, uniforms=uniforms).to_bytes()
    return ShaderRecord(word, code, uniforms, 0, False, False, data)


Textures = tuple[tuple[TextureKind | None, ...], tuple[TextureDescriptor | None, ...]]
"""Of each request; None where the parameters are only known while the program runs."""

KNOWN_PROGRAMS = 512
"""Programs that are remembered after others took their places in memory."""
KNOWN_LAYOUTS = 8
"""Layouts of the uniform stream that are remembered of one program."""


@lru_cache(maxsize=1024)
def _gl_place(word: int) -> tuple[int, int]:
    """Address and bytes of the shader record that a record 64 names."""
    state = GlShaderState(word)
    return state.address, gl_record_size(attribute_count(state), bool(state.extended))


@lru_cache(maxsize=1024)
def _gl_state(word: int, data: bytes) -> ShaderRecord:
    """Cached: draws of a frame share shader records, and both list threads read them."""
    state = GlShaderState(word)
    gl = parse_gl_state(lambda _address, _size: data, state)
    return ShaderRecord(
        state.address,
        gl.record.fs_code,
        gl.record.fs_uniforms,
        gl.record.fs_varyings,
        bool(gl.record.point_size),
        bool(gl.record.clipping),
        data,
        gl=gl,
    )


class ProgramCache:
    """Programs by address and their textures, decoded again only when guest memory changed."""

    def __init__(self, memory: GuestMemory, reporter: Reporter, unknowns: Unknowns) -> None:
        self.memory = memory
        self.unknowns = unknowns
        self.reporter = reporter
        self._programs: dict[int, Program] = {}
        self._met: dict[Program, Program] = {}
        """The same program gives the same object, by which its pipelines are remembered."""
        self._textures: dict[tuple[Any, ...], tuple[Program, Textures]] = {}
        self._layouts: dict[int, tuple[Program, deque[tuple[int, StreamLayout]]]] = {}

    def clear(self) -> None:
        """Forgets all."""
        for known in (self._programs, self._met, self._textures, self._layouts):
            known.clear()

    def get(self, address: int) -> Program:
        """The program at a guest address; oddities of its shape are reported once."""
        known = self._programs.get(address)
        if known is not None and known.lies_in(self.memory):
            return known
        program = program_at(self.memory, address, settings=self.unknowns)
        if len(self._met) >= KNOWN_PROGRAMS:
            self._met.clear()
        program = self._met.setdefault(program, program)
        for problem in program.problems:
            if problem.code == "QPU-047":  # reported where the program is compiled
                continue
            self.reporter.report(problem.code, problem.message, address=problem.address)
        if len(self._programs) >= 4096:
            self._programs.clear()
        self._programs[address] = program
        return program

    def reached(self, address: int, target: int) -> Program | None:
        """The program at a guest address, whose execution went on at `target`; None if that is
        known already, or no code can lie there.
        """
        grown = reach(self.get(address), self.memory.read, target)
        if grown is not None:
            self._programs[address] = grown
        return grown

    def textures(self, program: Program, uniforms: int, unknowns: Unknowns) -> Textures:
        """Kinds and descriptors of a program's texture requests, from its uniform stream.

        Both are in the order of the S writes; direct memory lookups are left out. They are made
        again when the parameters changed.
        """
        requests = [r for r in program.texture_requests if not r.is_direct]
        if not requests:
            return (), ()
        stream = self.layout(program, uniforms).places
        places = [known_places(stream, request) for request in requests]
        words = [place and tuple([self.memory.u32(uniforms + n) for n in place]) for place in places]
        key = (id(program), *words)
        known = self._textures.get(key)
        if known is None:
            kinds: list[TextureKind | None] = []
            descriptors: list[TextureDescriptor | None] = []
            for place, parameters in zip(places, words, strict=True):
                kind = descriptor = None
                if place and parameters:
                    kind, descriptor = describe_texture(
                        *padded(parameters),
                        len(parameters),
                        unknowns=unknowns,
                        reporter=self.reporter,
                        address=(uniforms + place[0]) & 0xFFFFFFFF,
                    )
                kinds.append(kind)
                descriptors.append(descriptor)
            if len(self._textures) >= 1024:
                self._textures.clear()
            known = self._textures[key] = program, (tuple(kinds), tuple(descriptors))
        return known[1]

    def layout(self, program: Program, uniforms: int) -> StreamLayout:
        """Where the texture parameters of a program lie, whose uniforms begin at `uniforms`."""
        known = self._layouts.get(id(program))
        if known is None:
            if len(self._layouts) >= 1024:
                self._layouts.clear()
            known = self._layouts[id(program)] = program, deque(maxlen=KNOWN_LAYOUTS)
        for start, layout in known[1]:
            if (start == uniforms or not layout.absolute) and all(
                (self.memory.u32(uniforms + at) - uniforms) & 0xFFFFFFFF == leads_to
                for at, leads_to in layout.pointers
            ):
                return layout
        layout = stream_layout(program, self.memory.u32, uniforms)
        known[1].append((uniforms, layout))
        return layout


def known_places(stream: tuple[int | None, ...], request: TextureRequest) -> tuple[int, ...] | None:
    """Places of a request's parameters in the stream; None if one is not known."""
    places = tuple([place for n in request.uniforms[:4] if (place := stream[n]) is not None])
    return places if len(places) == len(request.uniforms[:4]) else None
