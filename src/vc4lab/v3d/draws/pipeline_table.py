"""Shared between the native preparation of draws (`kernel.py`) and Python: its data, tables of pipelines."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.records.states import RenderState
from vc4lab.simd import Struct, i32, i64, ptr
from vc4lab.v3d.state.render_state import known_places
from vc4lab.v3d.tile_lists.scan_context import FNV_PRIME, FNV_START
from vc4lab.v3d.vertex.shader_lookup import ShaderLookup

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.program.uniform_stream import StreamLayout
    from vc4lab.v3d.draws.refining import Refined
    from vc4lab.v3d.fragment.pipeline import Pipeline
    from vc4lab.v3d.reference.draw import ReferenceDraw
    from vc4lab.v3d.state.tile_context import FragmentKey
    from vc4lab.v3d.tmu.texture_state import TextureDescriptor

PREPARED, PIPELINE, VERTICES, ROOM = range(4)
"""Results of the kernel: all draws are prepared, or a request for the draw at `draw`: a pipeline,
and reports of whatever there is to report (reply: `entry` and `record_copy`) · vertices, shaded to
`output` (`shaded`) · `needed` bytes for shaded vertices (`room` and `room_end`)."""

VARYINGS_AT, POINT_SIZE_AT, MODE_AT = 0, 8, 16
"""Bits of `PipelineEntry.shader`."""


class ProgramEntry(Struct):
    """A fragment program that Python has decoded; layout of a hash table."""

    where = i32  # guest address; 0: free
    code_bytes = i32
    code = ptr  # copy of the program
    places = ptr  # i32 each: byte offset of a texture parameter in the uniform stream
    word_count = i32  # of them
    reads_uniforms = i32
    pointers = ptr  # pairs of i32: where a word lies that becomes the pointer, where it leads
    pointer_count = i32  # of pairs; all count from the start of the stream


class PipelineEntry(Struct):
    """A compiled fragment pipeline; layout of a hash table."""

    program = ptr  # ProgramEntry; 0: free
    config = i32  # records 96, 97, 56
    flat_flags = i32
    list_format = i32
    shader = i32  # VARYINGS_AT …
    function = ptr
    words = ptr  # texture parameters, as many as the program has
    textures = ptr  # addresses of the descriptors made from them, 0: only known to the program
    texture_count = i32
    instructions = i32  # of the program, for a quad: DrawParams
    lookups = i32
    callback_id = i32  # of the interpreter: DrawParams
    late = ptr  # LateTable: DrawParams


class PrepareContext(ShaderLookup):
    """A frame's draws, the tables, and where the results go."""

    draws = ptr  # scan_context.DrawEntry
    draw_count = i32
    draw = i32  # resume point
    results = ptr  # tiles.job.DrawCall each
    params = ptr  # DrawParams each
    found = ptr  # i64 each: the PipelineEntry, 0 if the draw is left out
    entry = ptr  # of the draw at hand, once it is known
    shaded = i32  # whether its vertices are
    output = ptr  # where its vertex 0 would be
    rows = i32  # words of each
    programs = ptr
    program_mask = i32
    pipeline_mask = i32
    pipelines = ptr
    expanded = ptr  # host address of lists made of primitive records
    room = i64  # host addresses: free memory for shaded vertices
    room_end = i64
    needed = i32
    mode = i32  # of the frame, part of a pipeline's key
    empty_windows = i32  # which clip windows without pixels set no limit: EMPTY_WINDOWS
    rht_moved = i32  # -1: the viewport offset moves the boundary of record 100
    nv = ptr  # NvContext
    copy_nv = ptr  # 0: Python has not needed it yet


PROGRAMS, PIPELINES = 1024, 8192
"""Places in the tables; at most half of them are taken."""

HASH_START, HASH_PRIME, HASH_SHIFT = FNV_START, FNV_PRIME, 15
"""FNV-1a over words."""


def hash_of(words: Iterable[int]) -> int:
    """Hash a key to the place where native code looks first, before masking."""
    code = HASH_START & 0xFFFFFFFF
    for word in words:
        code = (code ^ word & 0xFFFFFFFF) * HASH_PRIME & 0xFFFFFFFF
    return code ^ code >> HASH_SHIFT


S = TypeVar("S", bound=Struct)


class _Table(Generic[S]):
    """A native open-addressing hash table of Structs."""

    def __init__(self, kind: type[S], slots: int) -> None:
        self.kind, self.slots = kind, slots
        self.data = (ctypes.c_char * (slots * kind.size))()
        self.places: dict[tuple[int, ...], int] = {}
        self.taken: set[int] = set()

    @property
    def full(self) -> bool:
        """Half of the places are taken."""
        return len(self.places) >= self.slots // 2

    def known(self, key: tuple[int, ...]) -> S | None:
        """The entry of a key, None if there is none."""
        place = self.places.get(key)
        return None if place is None else self._at(place)

    def entry(self, key: tuple[int, ...]) -> S:
        """A new entry; words of the key are hashed as native code does."""
        place = hash_of(key) & (self.slots - 1)
        while place in self.taken:
            place = (place + 1) & (self.slots - 1)
        self.places[key] = place
        self.taken.add(place)
        return self._at(place)

    def _at(self, place: int) -> S:
        return self.kind.python.from_buffer(self.data, place * self.kind.size)

    def clear(self) -> None:
        """Forgets everything."""
        ctypes.memset(self.data, 0, ctypes.sizeof(self.data))
        self.places.clear()
        self.taken.clear()


@dataclass(frozen=True)
class MadePipeline:
    """Keeps alive what a PipelineEntry was made from.

    `code` is the guest address of the program. `textures`: of each request, None where its
    parameters are only known to the program.
    """

    key: FragmentKey
    code: int
    pipeline: Pipeline
    reference: ReferenceDraw | None
    textures: Sequence[TextureDescriptor | None]
    keep: object


class PipelineTable:
    """Fragment programs by address and pipelines by program, state and textures.

    `made` says what a native PipelineEntry (by its host address) was made from.
    """

    def __init__(self) -> None:
        self._programs = _Table(ProgramEntry, PROGRAMS)
        self._pipelines = _Table(PipelineEntry, PIPELINES)
        self._keep: dict[int, Any] = {}
        self.made: dict[int, MadePipeline] = {}
        self.stale = False
        """All entries are rebuilt from the next frame on."""

    def attach(self, context: PrepareContext) -> None:
        """Makes the tables those of a native `PrepareContext`."""
        context.programs = ctypes.addressof(self._programs.data)
        context.program_mask = PROGRAMS - 1
        context.pipelines = ctypes.addressof(self._pipelines.data)
        context.pipeline_mask = PIPELINES - 1

    def renew(self) -> None:
        """Drops stale entries in a new frame, when those of the last one are unused."""
        self.stale = False
        for table in (self._programs, self._pipelines):
            table.clear()
        self._keep.clear()
        self.made.clear()

    def replace(self, refined: Refined) -> None:
        """Entries get other builds of their pipelines, between two frames."""
        for place, made in self.made.items():
            found = refined.get(id(made.pipeline))
            if found is not None:
                PipelineEntry.python.from_address(place).function = found.address
                self.made[place] = replace(made, pipeline=found)

    def enter(
        self,
        program: Program,
        address: int,
        state: RenderState,
        shader: int,
        layout: StreamLayout,
        words: Sequence[int],
    ) -> PipelineEntry | None:
        """A new entry that native code finds from now on, to be filled in.

        None if native code has to request it each time: the entry is known but could not be used,
        the layout of the uniform stream changes each time, or there is no room.

        Parameters
        ----------
        program, address
            The fragment program, at a guest address.
        state, shader
            Render state and `PipelineEntry.shader`.
        layout, words
            Where the texture parameters are, and what they are in the order of `parameter_places`.
        """
        code = b"".join(word.to_bytes(8, "little") for word in program.words)
        if not address or (address & MEMORY_MASK) + len(code) > MEMORY_SIZE:
            return None
        places = parameter_places(program, layout)
        if places is None or layout.absolute:
            return None
        program_key = (address,)
        known = self._programs.known(program_key)
        changed = known is not None and self._keep[known.address][0] != code
        self.stale |= changed or self._programs.full or self._pipelines.full
        if self.stale or (known and self._keep[known.address][1] != layout):
            return None
        entry = known or self._programs.entry(program_key)
        if known is None:
            copy = ctypes.create_string_buffer(code, len(code))
            offsets = (ctypes.c_int32 * max(len(places), 1))(*places)
            flat = [word for pair in layout.pointers for word in pair]
            pointers = (ctypes.c_uint32 * max(len(flat), 1))(*flat)
            entry.where, entry.code_bytes = address, len(code)
            entry.code, entry.places = ctypes.addressof(copy), ctypes.addressof(offsets)
            entry.word_count, entry.reads_uniforms = len(places), bool(program.uniform_sites)
            entry.pointers, entry.pointer_count = ctypes.addressof(pointers), len(layout.pointers)
            self._keep[entry.address] = code, layout, copy, offsets, pointers
        fields = (state.config, state.flat_flags, state.list_format, shader)
        key = (address, *fields, *words)
        if self._pipelines.known(key) is not None:
            return None
        found = self._pipelines.entry(key)
        copied = (ctypes.c_uint32 * max(len(words), 1))(*words)
        found.program, found.words = entry.address, ctypes.addressof(copied)
        found.config, found.flat_flags, found.list_format, found.shader = fields
        self._keep[found.address] = copied
        return found


def parameter_places(program: Program, layout: StreamLayout) -> list[int] | None:
    """Byte offsets in the uniform stream of all texture parameters, request by request; None if
    one is not known."""
    requests = [r for r in program.texture_requests if not r.is_direct]
    places = [known_places(layout.places, request) for request in requests]
    known = [place for place in places if place is not None]
    return [n for place in known for n in place] if len(known) == len(places) else None
