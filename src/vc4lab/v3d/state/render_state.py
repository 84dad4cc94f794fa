"""The state a primitive is drawn with, and what a draw with it is made of: programs, textures, numbers.

The classes of records (`records/states.py`) say which members of `RenderState` they set and where each
stands in the record; native code follows the table made of that (`records.use.STATE_FIELDS`).
Source: AG100-R Tables 42-45; defaults as drivers rely on them (Zmin 0, Zmax 1, point size and line
width 1, everything else zero).

Shader records and programs are read from guest memory again for each frame, because a guest may change
any of it between frames; programs are only decoded again when their bytes changed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.qpu.program.program import Program, TextureRequest
from vc4lab.qpu.program.reader import program_at, reach
from vc4lab.qpu.program.uniform_stream import StreamLayout, stream_layout
from vc4lab.records.codes import IndexType, PrimitiveMode
from vc4lab.records.control import DEFAULTS, STATE_FIELDS, ids_of
from vc4lab.records.payload import ShaderState
from vc4lab.records.shader import (
    GlShader,
    NvShaderRecord,
    attribute_count,
    gl_record_size,
    parse_gl_state,
    parse_vg,
)
from vc4lab.records.states import GlShaderState, NvShaderState, RenderState, VgInlineShader, VgShaderState
from vc4lab.simd import Value, i8, i16, i32, load, staged, store
from vc4lab.v3d.tmu.texture_slots import padded
from vc4lab.v3d.tmu.texture_state import TextureDescriptor, TextureKind, describe_texture
from vc4lab.v3d.unknowns import Unknowns

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.simd.members import Whole

SHADERS = ids_of(ShaderState)
SHADER_MEMBERS = {item.name for number in SHADERS for item in STATE_FIELDS[number]}
ENABLE_FORWARD, ENABLE_REVERSE, CLOCKWISE_IS_FORWARD = 1, 2, 4
"""Bits 2:0 of record 96."""


EMPTY_WINDOWS = {"nothing": 0, "both": 1, "each": 2, "wraps": 3}
"""The unknown "clip_window_empty" as a number."""
NO_CLIP_LIMIT = 1 << 16
"""A side of the clip window that no frame reaches."""


def empty_windows(unknowns: Unknowns) -> int:
    """Say what clip windows without pixels limit: an `EMPTY_WINDOWS`."""
    return EMPTY_WINDOWS[unknowns["clip_window_empty"]]


def rht_movement(unknowns: Unknowns) -> int:
    """-1 if the viewport offset moves the boundary of record 100, else 0."""
    return -int(unknowns["rht_boundary_offset"] == "moved")


def rht_boundary(state: RenderState, movement: Value | int) -> Whole:
    """The other side of right-hand trapezoids, of numbers or staged values."""
    return state.rht_boundary + (state.viewport_x & movement)


def unlimited(start: Any, size: Any, other: Any, empty_windows: Any) -> Any:
    """Whether the clip window sets no limit in the direction in which it has `size` pixels.

    Of numbers a bool, of staged values an i1. `start`: its first pixel in this direction; `other`:
    its size in the other one.
    """
    return (size == 0) & (
        ((empty_windows == 3) & (start == 0)) | (empty_windows == 2) | ((empty_windows == 1) & (other == 0))
    )


@staged
def clip_box(state: RenderState, empty_windows: Any) -> tuple[Any, Any, Any, Any]:
    """Left, bottom, right and top of the pixels that a state's clip window leaves.

    Of numbers or staged values.
    """
    width, height = state.clip_width, state.clip_height
    left: Any = state.clip_left
    right: Any = state.clip_left + width
    bottom: Any = state.clip_bottom
    top: Any = state.clip_bottom + height
    if unlimited(left, width, height, empty_windows):
        left, right = 0, NO_CLIP_LIMIT
    if unlimited(bottom, height, width, empty_windows):
        bottom, top = 0, NO_CLIP_LIMIT
    return left, bottom, right, top


STATE_WORDS = len(RenderState.fields)
STATE_BYTES = STATE_WORDS * 4


def default_state() -> RenderState:
    """A fresh state with the values a thread starts with."""
    state = RenderState()
    for name, value in DEFAULTS.items():
        setattr(state, name, value)
    return state


def state_bytes(state: RenderState) -> bytes:
    """The state's words as bytes: equal bytes mean equal states."""
    import ctypes

    return ctypes.string_at(state.address, STATE_BYTES)


def state_from_bytes(data: bytes) -> RenderState:
    """The inverse of `state_bytes`."""
    import ctypes

    state = RenderState()
    ctypes.memmove(state.address, data[:STATE_BYTES].ljust(STATE_BYTES, b"\0"), STATE_BYTES)
    return state


def _unsaid(shader: int) -> list[str]:
    """Members that this record of shader state leaves to others of its kind: they become 0."""
    return sorted(SHADER_MEMBERS - {item.name for item in STATE_FIELDS[shader]})


@staged
def apply_record_native(state: Value, identifier: int, payload: Value) -> None:
    """Applies a state record with this id to `state`; reads 4 bytes at most past a field."""
    where = RenderState.at(state)
    for item in STATE_FIELDS[identifier]:
        source = payload + item.offset
        if item.width == 4:
            store(where.field_ptr(item.name), load(i32, source))
        elif item.width == 3:
            store(where.field_ptr(item.name), load(i32, source) & 0xFFFFFF)
        elif item.width == 2 and item.signed:
            store(where.field_ptr(item.name), load(i16, source).sext(i32))
        elif item.width == 2:
            store(where.field_ptr(item.name), load(i16, source).zext(i32))
        else:
            store(where.field_ptr(item.name), load(i8, source).zext(i32))
    if identifier in SHADERS:
        where.shader_kind = identifier
        for name in _unsaid(identifier):
            setattr(where, name, 0)


@dataclass(frozen=True)
class ShaderRecord:
    """The part that all kinds of shader record have; ``gl`` or ``nv`` has the rest (neither: VG mode).

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
"""A kind and a descriptor for each request; None where parameters are known only while the program runs."""

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
        self._programs: Bounded[int, Program] = Bounded(4096)
        self._met: dict[Program, Program] = {}
        """Equal programs are one object, by which its pipelines are remembered."""
        self._textures: Bounded[tuple[Any, ...], tuple[Program, Textures]] = Bounded(1024)
        self._layouts: Bounded[int, tuple[Program, deque[tuple[int, StreamLayout]]]] = Bounded(1024)

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
            known = self._textures[key] = program, (tuple(kinds), tuple(descriptors))
        return known[1]

    def layout(self, program: Program, uniforms: int) -> StreamLayout:
        """Find the texture parameters of a program whose uniforms begin at `uniforms`."""
        known = self._layouts.get(id(program))
        if known is None:
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


INDEX_ARRAY, INDEX_8, INDEX_16 = 0, *(1 + int(width) for width in IndexType)
"""Sources of vertex indices: consecutive, or 8 / 16-bit indices in guest memory."""

MAX_LENGTH = 1 << 24
"""Vertices of one draw, and of all draws of a binning list, that are looked at; what is longer is
cut with a message. A board needs half a second for so many."""

PRIMITIVE_TYPE = tuple(int(mode.list_primitive) for mode in PrimitiveMode)
"""List primitive type (record 56, bits 3:0) of each primitive mode."""


def closes_from_first(unknowns: Unknowns) -> bool:
    """Whether the last line of a line loop goes from the first vertex to the last."""
    return unknowns["line_loop_end"] == "first_last"


def restarts_at_dummy(unknowns: Unknowns) -> bool:
    """Whether a VG strip or fan begins again after a vertex that leaves a primitive out."""
    return unknowns["vg_dummy"] == "restart"


def keeps_own_second(unknowns: Unknowns) -> bool:
    """Whether a VG fan that continues another takes only the hub from it, no second vertex."""
    return unknowns["vg_continuation"] == "one"


def double_buffer_halves(unknowns: Unknowns) -> bool:
    """Whether tiles have half the rows with double buffering (records 112 and 113)."""
    return unknowns["double_buffer_tile"] == "half"
