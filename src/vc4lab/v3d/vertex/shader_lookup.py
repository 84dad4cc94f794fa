"""From a shader record in guest memory to a compiled vertex pipeline, natively.

Python enters a pipeline once, by what it was compiled for: address and layout of its
attributes. Every use compares the program's bytes with those that were compiled, because guest
memory may have changed. Where things stand in a shader record: `records.shader`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.bits import Bits
from vc4lab.memory import BUS_PERIPHERALS, MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.native import host
from vc4lab.records.shader import (
    ATTRIBUTE_SIZE,
    EXTENDED_STRIDES,
    GL_FIXED_SIZE,
    MAX_ATTRIBUTES,
    AttributeRecord,
    GlShaderRecord,
    gl_record_size,
)
from vc4lab.records.states import GlShaderState
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import i1, i8, i16, i32, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.team import TeamState
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import any_, umin
from vc4lab.v3d.checks.addresses import ALIGNMENT, BOTH_ALIASES, PAGE_SHIFT, UNCACHED_ALIAS
from vc4lab.v3d.events import Use
from vc4lab.v3d.vertex.context import DONE, VertexContext
from vc4lab.v3d.vertex.driver import MIN_WORK_PER_HELPER, SharedShading, Sharing

if TYPE_CHECKING:
    from vc4lab.simd.team import Team
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.vertex.pipeline import VertexPipeline

OCCUPIED = 1 << 63
"""Set in the first word of every key: a word of 0 is a free slot."""

SIZE_AT, SELECTED_AT, ROWS_AT, VERTEX_AT = 32, 40, 48, 56
"""Bits of the first word of a key, above the code address: attribute bytes, arrays, rows per
vertex, 1 for a vertex shader (0: coordinate shader)."""

LARGEST_RECORD = gl_record_size(MAX_ATTRIBUTES, True)

_BLOCK = vec(i64, 8)
_BLOCK_BYTES = 64


class ShaderEntry(Struct):
    """A compiled pipeline; layout of the hash table."""

    key = i64  # code address and SIZE_AT …
    sizes = i64  # bytes - 1 of each array, one byte an array
    offsets = i64  # its place in the VPM column
    first = ptr  # entry points of the fast and of the exact build (0: not compiled)
    exact = ptr
    code = ptr  # copy of the program
    code_bytes = i32
    reads_uniforms = i32


class ShaderLookup(Struct):
    """State of a lookup; contexts of kernels that look up begin with it."""

    memory = ptr
    shaders = ptr  # ShaderEntry table
    shader_mask = i32  # its size - 1, a power of two - 1
    vertex = ptr  # the VertexContext that is filled in
    record_copy = ptr  # host address of a copy of the shader record; 0: it is in guest memory
    pages = ptr  # `AddressCheck.pages`
    ram_bytes = i64
    shared = ptr  # SharedShading
    instructions = i64  # of shaders: batches times the program's length, for `job_time`


def field(record: Value, bits: Bits) -> Value:
    """A field of a record at a host address, as i32: whole words or bytes, or bits of one byte."""
    at, low = divmod(bits.lo, 8)
    kind = {16: i16, 32: i32}.get(bits.width, i8)
    value = load(kind, record + at)
    if kind is i32:
        return value
    value = value.zext(i32)
    return value if bits.width in (8, 16) else value.shr(low) & ((1 << bits.width) - 1)


@staged
def is_named(t: ShaderLookup, address: Value, size: Value) -> Value:
    """Whether a range needs no check by Python: `AddressCheck` has seen its first page under the
    same kind of alias, and it ends inside the RAM. `size` is an i64."""
    place = address & MEMORY_MASK
    seen = load(i8, t.pages + place.shr(PAGE_SHIFT).zext(i64)).zext(i32)
    same = (seen == UNCACHED_ALIAS + 1) == (address.shr(30) == UNCACHED_ALIAS)
    inside = (place.zext(i64) + size).ule(t.ram_bytes) & (address.shr(24) != BUS_PERIPHERALS)
    return (seen != 0) & (seen != BOTH_ALIASES) & same & inside


@staged
def arrays_named(t: ShaderLookup, entry: Value, first: Value, last: Value) -> Value:
    """`is_named` for the arrays of vertices `first` … `last` of a ShaderEntry."""
    e = ShaderEntry.at(entry)
    v = VertexContext.at(t.vertex)
    bases, strides = v.bases, v.strides
    known = const(i1, True)
    k: Any
    for k in range(MAX_ATTRIBUTES):
        at = k.zext(i64)
        if ((e.key.shr(SELECTED_AT) >> at) & 1) != 0:
            stride = load(i32, strides + k * 4)
            size = (e.sizes.shr(at * 8) & 0xFF) + 1
            size = size + (last - first).zext(i64) * stride.zext(i64)
            known = known & is_named(t, load(i32, bases + k * 4) + first * stride, size)
    return known


@staged
def shader_slot(key: Value, sizes: Value, offsets: Value) -> Value:
    """Choose the slot at which a key is looked for first, before masking; `slot` in `shader_table`."""
    mixed = (key ^ (sizes * 31) ^ (offsets * 17)) * 0x61C8864680B583EB
    return mixed.shr(40).trunc(i32)


@staged
def same_code(memory: Value, address: Value, copy: Value, size: Value) -> Value:
    """Whether `size` bytes at a guest address are those of `copy`."""
    place = host(memory, address)
    same: Any = const(i1, True)
    done = const(i32, 0)
    while (done + _BLOCK_BYTES <= size) & same:
        same = not any_(load(_BLOCK, place + done) != load(_BLOCK, copy + done))
        done = done + _BLOCK_BYTES
    while (done < size) & same:
        same = load(i64, place + done) == load(i64, copy + done)
        done = done + 8
    found: Value = same
    return found


@staged
def shade_range(
    t: ShaderLookup, shader: Value, output: Value, used: Value, first: Value, last: Value
) -> Value:
    """Shades vertices `first` … `last` by a ShaderEntry, as `gl_pipeline` left it; whether done.

    `output`: where vertex 0 would be; `used`: a byte for each vertex.
    """
    entry = ShaderEntry.at(shader)
    v = VertexContext.at(t.vertex)
    v.output = output
    v.used = used
    v.first = first
    v.last = last
    v.next_batch = first >> 4
    v.until = (last >> 4) + 1
    v.stopped = 0
    v.batches = 0
    length = entry.code_bytes.shr(3)
    s = SharedShading.at(t.shared)
    helpers = const(i32, 0)
    if s.shade != 0:
        team = TeamState.at(s.team)
        helpers = umin(team.helpers, ((v.until - v.next_batch) * length).udiv(MIN_WORK_PER_HELPER))
    done = const(i1, False)
    if helpers != 0:
        types = (ptr, ptr, ptr, i32)
        arguments = (t.shared, entry.first, entry.exact, helpers)
        done = call_pointer(s.shade, i32, types, *arguments) != 0
    else:
        done = call_pointer(entry.first, i32, (ptr, ptr), t.vertex, entry.exact) == DONE
    if done:
        t.instructions = t.instructions + (v.batches * length).zext(i64)
    return done


@kernel(args=(ptr, i32, i32, i32), returns=ptr)
def gl_pipeline(context: Value, word: Value, rows: Value, vertex: Value) -> Value:
    """The ShaderEntry for the record that `word` (record 64) names, 0 if Python has to look.

    Fills uniforms and arrays of the VertexContext. `rows` counts the words of a shaded
    vertex; `vertex` is 1 for the vertex shader, 0 for the coordinate shader.
    """
    t = ShaderLookup.at(context)
    extended = (word & GlShaderState.extended.mask) != 0
    count = word & GlShaderState.attributes.mask
    if extended | (count == 0):
        count = const(i32, MAX_ATTRIBUTES)
    found = const(ptr, 0)
    if (t.record_copy != 0) | ((word & MEMORY_MASK) <= MEMORY_SIZE - LARGEST_RECORD):
        record = select(t.record_copy != 0, t.record_copy, host(t.memory, word & ~15))
        is_vertex = vertex != 0
        r = GlShaderRecord
        code = select(is_vertex, field(record, r.vs_code), field(record, r.cs_code))
        uniforms = select(is_vertex, field(record, r.vs_uniforms), field(record, r.cs_uniforms))
        bits = select(is_vertex, field(record, r.vs_attributes), field(record, r.cs_attributes))
        total = select(is_vertex, field(record, r.vs_size), field(record, r.cs_size))
        v = VertexContext.at(t.vertex)
        v.uniforms = uniforms
        bases, strides = v.bases, v.strides
        sizes, offsets, selected = const(i64, 0), const(i64, 0), const(i32, 0)
        k: Any
        for k in range(count):
            if ((bits >> k) & 1) != 0:
                array = record + GL_FIXED_SIZE + k * ATTRIBUTE_SIZE
                a = AttributeRecord
                place = select(is_vertex, field(array, a.vs_offset), field(array, a.cs_offset))
                shift = (k * 8).zext(i64)
                sizes = sizes | (field(array, a.size_minus_1).zext(i64) << shift)
                offsets = offsets | (place.zext(i64) << shift)
                selected = selected | (const(i32, 1) << k)
                stride = field(array, a.stride)
                if extended:
                    stride = stride | (load(i32, record + EXTENDED_STRIDES + k * 4) & ~0xFF)
                store(bases + k * 4, field(array, a.address))
                store(strides + k * 4, stride)
        layout = (total << (SIZE_AT - 32)) | (selected << (SELECTED_AT - 32))
        layout = layout | (rows << (ROWS_AT - 32)) | (vertex << (VERTEX_AT - 32)) | (1 << 31)
        key = code.zext(i64) | (layout.zext(i64) << 32)
        slot = shader_slot(key, sizes, offsets) & t.shader_mask
        entry = ShaderEntry.at(t.shaders + slot * ShaderEntry.size)
        other = (entry.key != key) | (entry.sizes != sizes) | (entry.offsets != offsets)
        while (entry.key != 0) & other:  # the table is never full
            slot = (slot + 1) & t.shader_mask
            entry = ShaderEntry.at(t.shaders + slot * ShaderEntry.size)
            other = (entry.key != key) | (entry.sizes != sizes) | (entry.offsets != offsets)
        record_at, one = word & ~15, const(i64, 1)
        named = is_named(t, record_at, one) & is_named(t, code, one)
        zero = ((record_at & MEMORY_MASK) == 0) | ((code & MEMORY_MASK) == 0)
        aligned = (code & (ALIGNMENT[Use.CODE] - 1)) == 0
        if entry.reads_uniforms != 0:
            named = named & is_named(t, uniforms, one)
            aligned = aligned & ((uniforms & (ALIGNMENT[Use.UNIFORMS] - 1)) == 0)
        if (entry.key != 0) & named & aligned & (zero == const(i1, False)):
            if same_code(t.memory, code, entry.code, entry.code_bytes):
                found = entry.pointer
    return found


SLOTS = 2048
"""Places in the table."""

MAX_PIPELINES = SLOTS // 2
"""Pipelines kept; with one more the table is emptied."""

_WORD = (1 << 64) - 1
_MULTIPLIER = 0x61C8864680B583EB


def slot(key: int, sizes: int, offsets: int) -> int:
    """The slot at which native code looks first (`shader_lookup.shader_slot`)."""
    mixed = ((key ^ sizes * 31 ^ offsets * 17) & _WORD) * _MULTIPLIER & _WORD
    return (mixed >> 40) & (SLOTS - 1)


class ShaderTable:
    """Compiled pipelines by the contents of their shader records."""

    def __init__(self, team: Team) -> None:
        self._entries = (ctypes.c_char * (SLOTS * ShaderEntry.size))()
        self._places: dict[tuple[int, int, int], int] = {}
        self._keep: dict[int, Any] = {}
        self.vertex = VertexContext()
        self.sharing = Sharing(team, self.vertex.address)
        self._context: ShaderLookup | None = None

    def attach(self, context: ShaderLookup, memory_base: int, addresses: AddressCheck) -> None:
        """Makes the table that of a native context (`ShaderLookup`)."""
        context.pages, context.ram_bytes = addresses.pages, addresses.ram_bytes
        context.memory = self.vertex.memory = memory_base
        context.shaders = ctypes.addressof(self._entries)
        context.shader_mask = SLOTS - 1
        context.vertex = self.vertex.address
        context.shared = self.sharing.state.address
        self._context = context

    @property
    def instructions(self) -> int:
        """Count the instructions of the batches that native code has shaded by itself since the start."""
        return 0 if self._context is None else int(self._context.instructions)

    def enter(self, pipeline: VertexPipeline, address: int, *, vertex: bool) -> None:
        """Native code may use the pipeline of the program at `address` from now on.

        Left to Python are the interpreter, programs with findings to be reported, with textures,
        and what lies across the end of memory.
        """
        key, native = pipeline.key, pipeline.native
        code = b"".join(word.to_bytes(8, "little") for word in key.words)
        whole = (address & MEMORY_MASK) + len(code) <= MEMORY_SIZE
        whole &= not pipeline.program.pieces
        if native is None or pipeline.warnings or key.textures or not whole:
            return
        selected = sizes = offsets = 0
        for number, size, offset in key.attributes:
            selected |= 1 << number
            sizes |= (size - 1) << 8 * number
            offsets |= offset << 8 * number
        first = OCCUPIED | vertex << VERTEX_AT | key.rows << ROWS_AT | selected << SELECTED_AT
        first |= key.total_size << SIZE_AT | address & 0xFFFFFFFF
        entry = self._entry((first, sizes, offsets))
        copy = ctypes.create_string_buffer(code, len(code))
        entry.first, entry.exact = native.address, pipeline.exact_address
        entry.code, entry.code_bytes = ctypes.addressof(copy), len(code)
        entry.reads_uniforms = bool(pipeline.program.uniform_sites)
        self._keep[entry.address] = pipeline, copy

    def clear(self) -> None:
        """Empties the table; what is still used is entered again."""
        ctypes.memset(self._entries, 0, ctypes.sizeof(self._entries))
        self._places.clear()
        self._keep.clear()

    def _entry(self, words: tuple[int, int, int]) -> ShaderEntry:
        """The table's entry with this key, made if new."""
        place = self._places.get(words)
        size = ShaderEntry.size
        if place is None:
            if len(self._places) >= MAX_PIPELINES:
                self.clear()
            taken = set(self._places.values())
            place = slot(*words)
            while place in taken:
                place = (place + 1) & (SLOTS - 1)
            self._places[words] = place
        entry = ShaderEntry.python.from_buffer(self._entries, place * size)
        entry.key, entry.sizes, entry.offsets = words
        return entry
