"""Prepares draws: from a render state to its pipeline, parameters and shaded vertices.

Programs, states and textures that were met before are found in tables. What native code cannot do
alone it requests (`pipeline_table.py`); `preparation.py` does that, and the same draw goes on. Source:
hardware reference 3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.native import host
from vc4lab.records.shader import CLIP_HEADER_WORDS, PSE_WORDS, GlShaderRecord, NvShaderRecord
from vc4lab.records.states import GlShaderState, NvShaderState, RenderState
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import i1, i32, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.value import Value, const, select
from vc4lab.v3d.checks.addresses import ALIGNMENT
from vc4lab.v3d.checks.hints import RECORD_ALIGNMENT
from vc4lab.v3d.draws import pipeline_table as dc
from vc4lab.v3d.draws.pipeline_table import (
    HASH_PRIME,
    HASH_SHIFT,
    HASH_START,
    PipelineEntry,
    PrepareContext,
    ProgramEntry,
)
from vc4lab.v3d.events import Use
from vc4lab.v3d.state.render_state import clip_box, rht_boundary
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, DrawEntry
from vc4lab.v3d.tiles.job import DrawCall
from vc4lab.v3d.vertex.context import NvContext
from vc4lab.v3d.vertex.shader_lookup import (
    LARGEST_RECORD,
    arrays_named,
    field,
    gl_pipeline,
    is_named,
    same_code,
    shade_range,
)
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

FACING = 0x7
"""Record 96, bits 2:0: which faces are drawn, and which winding is forward."""


class _Draw(NamedTuple):
    """The draw at hand: the context, the scan's entry, the state, the shader record.

    `record` is a host address, `where` the guest address; `shape` is that of
    `PipelineEntry.shader`, `rows` counts the words of a shaded vertex.
    """

    c: PrepareContext
    use: DrawEntry
    state: RenderState
    is_gl: Value
    record: Value
    where: Value
    uniforms: Value
    shape: Value
    rows: Value


def _draw(c: PrepareContext) -> _Draw:
    place = c.draws + c.draw * DrawEntry.size
    s = RenderState.at(place)
    is_gl = s.shader_kind == GlShaderState.id
    where = select(is_gl, s.shader_word & ~(RECORD_ALIGNMENT - 1), s.shader_word)
    record = select(c.record_copy != 0, c.record_copy, host(c.memory, where))
    common = GlShaderRecord  # NV shader records begin with the same three words
    varyings, point_size = field(record, common.fs_varyings), field(record, common.point_size)
    shape = (varyings << dc.VARYINGS_AT) | (point_size << dc.POINT_SIZE_AT) | (c.mode << dc.MODE_AT)
    rows, uniforms = varyings + point_size + PSE_WORDS, field(record, common.fs_uniforms)
    return _Draw(c, DrawEntry.at(place), s, is_gl, record, where, uniforms, shape, rows)


def _mix(code: Value, word: Value) -> Value:
    return (code ^ word) * HASH_PRIME


def _settle(code: Value) -> Value:
    return code ^ code.shr(HASH_SHIFT)


def _uniform(d: _Draw, place: Value) -> Value:
    """The word of the uniform stream whose byte offset is at a host address."""
    return load(i32, host(d.c.memory, d.uniforms + load(i32, place)))


@staged
def _program(d: _Draw) -> Value:
    """The ProgramEntry of the fragment program; 0 if Python has to look."""
    c, uniforms = d.c, d.uniforms
    code = field(d.record, GlShaderRecord.fs_code)
    slot = _settle(_mix(const(i32, HASH_START), code)) & c.program_mask
    entry = ProgramEntry.at(c.programs + slot * ProgramEntry.size)
    while (entry.where != 0) & (entry.where != code):  # the table is never full
        slot = (slot + 1) & c.program_mask
        entry = ProgramEntry.at(c.programs + slot * ProgramEntry.size)
    found = const(ptr, 0)
    one = const(i64, 1)
    fine = (entry.where != 0) & ((code & MEMORY_MASK) != 0) & is_named(c, code, one)
    fine = fine & ((code & (ALIGNMENT[Use.CODE] - 1)) == 0)
    if entry.reads_uniforms != 0:
        fine = fine & is_named(c, uniforms, one) & ((uniforms & (ALIGNMENT[Use.UNIFORMS] - 1)) == 0)
    if fine:
        if same_code(c.memory, code, entry.code, entry.code_bytes):
            if _leads_there(d, entry):
                found = entry.pointer
    return found


@staged
def _leads_there(d: _Draw, program: ProgramEntry) -> Value:
    """Whether the words that a program loads into its uniform pointer have the known values."""
    same = const(i1, True)
    k = const(i32, 0)
    while same & (k < program.pointer_count):
        place = program.pointers + k * 8
        same = _uniform(d, place) - d.uniforms == load(i32, place + 4)
        k = k + 1
    return same


@staged
def _is_it(d: _Draw, place: Value, program: ProgramEntry) -> Value:
    """Whether a PipelineEntry fits a program, the state and the textures in the uniforms."""
    e, s = PipelineEntry.at(place), d.state
    same: Value = (e.program == program.pointer) & (e.config == s.config) & (e.flat_flags == s.flat_flags)
    same = same & (e.list_format == s.list_format) & (e.shader == d.shape)
    k = const(i32, 0)
    while same & (k < program.word_count):
        same = _uniform(d, program.places + k * 4) == load(i32, e.words + k * 4)
        k = k + 1
    return same


@staged
def _pipeline(d: _Draw, program: ProgramEntry) -> Value:
    """The PipelineEntry for a program and the state; 0 if Python has to make it."""
    c, s = d.c, d.state
    code = const(i32, HASH_START)
    for word in (program.where, s.config, s.flat_flags, s.list_format, d.shape):
        code = _mix(code, word)
    for k in range(program.word_count):
        code = _mix(code, _uniform(d, program.places + k * 4))
    slot = _settle(code) & c.pipeline_mask
    place = c.pipelines + slot * PipelineEntry.size
    while (load(ptr, place) != 0) & ~_is_it(d, place, program):
        slot = (slot + 1) & c.pipeline_mask
        place = c.pipelines + slot * PipelineEntry.size
    return select(load(ptr, place) != 0, place, const(ptr, 0))


@staged
def _known(d: _Draw) -> Value:
    """The PipelineEntry of a draw that was met before, without anything to report; else 0."""
    c, s, where = d.c, d.state, d.where
    fine = d.is_gl | ((s.shader_kind == NvShaderState.id) & (c.copy_nv != 0))
    fine = fine & ((where & MEMORY_MASK) <= MEMORY_SIZE - LARGEST_RECORD)
    fine = fine & ((where & (RECORD_ALIGNMENT - 1)) == 0) & ((where & MEMORY_MASK) != 0)
    fine = fine & (s.clip_width != 0) & (s.clip_height != 0) & is_named(c, where, const(i64, 16))
    found = const(ptr, 0)
    if fine:
        program = _program(d)
        if program != 0:
            found = _pipeline(d, ProgramEntry.at(program))
    return found


@staged
def _vertices_named(d: _Draw, vertex_shader: Value) -> Value:
    """Whether there is nothing to report about where the vertices of a draw come from."""
    c, use, record = d.c, d.use, d.record
    wanted = use.first <= use.last
    if d.is_gl:
        arrays = field(record, GlShaderRecord.vs_attributes)
        named = (arrays != 0) & (field(record, GlShaderRecord.cs_attributes) != 0)
        named = named & ((vertex_shader != 0) | ~wanted)
        if named & wanted:
            named = arrays_named(c, vertex_shader, use.first, use.last)
    else:
        start, stride = field(record, NvShaderRecord.vertices), field(record, NvShaderRecord.stride)
        named = field(record, NvShaderRecord.clip_header) == 0
        named = named | ((start & (RECORD_ALIGNMENT - 1)) == 0)
        if wanted:
            size = (use.last - use.first + 1).zext(i64) * stride.zext(i64)
            named = named & is_named(c, start + use.first * stride, size)
    return named


@staged
def _shade(d: _Draw, vertex_shader: Value, output: Value, pitch: Value) -> Value:
    """Shades the vertices of a draw to `output`: PREPARED, or VERTICES if native code cannot.

    `vertex_shader`: a ShaderEntry, 0 if it is not known.
    """
    c, use = d.c, d.use
    status = const(i32, dc.PREPARED)
    if d.is_gl:
        done = const(i1, False)
        if vertex_shader != 0:
            done = shade_range(c, vertex_shader, output, use.used, use.first, use.last)
        status = select(done, status, const(i32, dc.VERTICES))
    elif c.copy_nv != 0:  # VG draws have no vertices
        _copy_nv(d, output, pitch)
    return status


def _copy_nv(d: _Draw, output: Value, pitch: Value) -> None:
    n = NvContext.at(d.c.nv)
    header = field(d.record, NvShaderRecord.clip_header)
    n.stride = field(d.record, NvShaderRecord.stride)
    n.base = field(d.record, NvShaderRecord.vertices) + header * (4 * CLIP_HEADER_WORDS)
    n.output = output
    n.used, n.first, n.last = d.use.used, d.use.first, d.use.last
    n.rows = d.rows
    n.pitch = pitch
    call_pointer(d.c.copy_nv, None, (ptr,), d.c.nv)


@staged
def _vertices(d: _Draw, p: DrawParams, vertex_shader: Value) -> Value:
    """The vertices of a draw, in memory and in its DrawParams; PREPARED or a request."""
    c, use = d.c, d.use
    status = const(i32, dc.PREPARED)
    output, pitch, count = const(ptr, 0), const(i32, 0), const(i32, 0)
    if use.first <= use.last:
        pitch, before = d.rows * ROW_BYTES, use.first >> 4
        count = use.last - use.first + 1
        output = (c.room - before.zext(i64) * pitch.zext(i64)).bitcast(ptr)
        c.needed = ((use.last >> 4) - before + 1) * pitch
        c.output = output
        c.rows = d.rows
        after = c.room + c.needed.zext(i64)
        if after > c.room_end:
            status = const(i32, dc.ROOM)
        elif c.shaded == 0:
            status = _shade(d, vertex_shader, output, pitch)
        if status == dc.PREPARED:
            c.room = after
    p.vertices = output
    p.batch_pitch = pitch
    p.vertex_count = count
    p.first_vertex = select(count != 0, use.first, count)
    return status


_STATE = ("viewport_x", "viewport_y", "z_min", "z_max", "point_size", "line_width")
_PIPELINE = ("callback_id", "instructions", "lookups", "late")
"""Members of DrawParams that are those of the RenderState, and of the PipelineEntry."""


def _fill(d: _Draw, p: DrawParams, e: PipelineEntry) -> None:
    """DrawParams from the render state and the pipeline; the vertices are there already."""
    c, s = d.c, d.state
    for source, names in ((s, _STATE), (e, _PIPELINE)):
        for name in names:
            setattr(p, name, getattr(source, name))
    p.lists = select((s.list_format & EXPANDED) != 0, c.expanded, const(ptr, 0))
    p.uniforms = d.uniforms
    p.clip_left, p.clip_bottom, p.clip_right, p.clip_top = clip_box(s, c.empty_windows)
    p.facing = s.config & FACING
    store(p.field_ptr("depth_factor"), s.depth_offset << 16)  # floats of 16 bits, "1-8-7"
    store(p.field_ptr("depth_units"), s.depth_offset & -0x10000)
    p.rht_boundary = rht_boundary(s, c.rht_moved)
    _copy_textures(p, e)


@staged
def _copy_textures(p: DrawParams, e: PipelineEntry) -> None:
    for k in range(e.texture_count):
        store(p.textures + k * 8, load(ptr, e.textures + k * 8))


@staged
def _look_up(d: _Draw) -> Value:
    """Finds the pipeline (`entry`) and the ShaderEntry of a draw, 0 where Python has to look."""
    c = d.c
    vertex_shader = const(ptr, 0)
    is_new = c.entry == 0
    if is_new:
        c.entry = _known(d)
    if (c.entry != 0) & d.is_gl & (d.use.first <= d.use.last):
        word = d.state.shader_word
        vertex_shader = call(gl_pipeline, c.pointer, word, d.rows, const(i32, 1))
    if is_new & (c.entry != 0):
        if ~_vertices_named(d, vertex_shader):
            c.entry = const(ptr, 0)
    return vertex_shader


@staged
def _prepare(c: PrepareContext) -> Value:
    """The draw at hand: PREPARED or a request."""
    d = _draw(c)
    p = DrawParams.at(c.params + c.draw * DrawParams.size)
    vertex_shader = _look_up(d)
    status = const(i32, dc.PIPELINE)
    if c.entry != 0:
        status = _vertices(d, p, vertex_shader)
    if status == dc.PREPARED:
        entry = PipelineEntry.at(c.entry)
        _fill(d, p, entry)
        result = DrawCall.at(c.results + c.draw * DrawCall.size)
        result.function = entry.function
        result.params = p.pointer
        store(c.found + c.draw * 8, entry.pointer)
    return status


@kernel(args=(ptr,), returns=i32)
def prepare(context: Value) -> Value:
    """Prepares the draws from `draw` on; PREPARED or a request."""
    c = PrepareContext.at(context)
    status = const(i32, dc.PREPARED)
    while (status == dc.PREPARED) & (c.draw < c.draw_count):
        status = _prepare(c)
        if status == dc.PREPARED:
            c.entry = const(ptr, 0)
            c.record_copy = const(ptr, 0)
            c.shaded = 0
            c.draw = c.draw + 1
    return status
