"""Prepares draws: from a render state to its pipeline, parameters and shaded vertices.

Programs, states and textures that were met before are found in tables. What native code cannot do
alone it requests (`context.py`); `preparation.py` does that, and the same draw goes on. Source:
hardware reference 3.6-3.8, 7.2-7.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.pointers import host
from vc4lab.records.declarations import GlShaderState, NvShaderState
from vc4lab.records.shader import GlShaderRecord, NvShaderRecord
from vc4lab.simd import (
    Function,
    Value,
    call,
    call_pointer,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.v3d.checks.addresses import ALIGNMENT
from vc4lab.v3d.checks.hints import RECORD_ALIGNMENT
from vc4lab.v3d.draws.context import (
    MODE_AT,
    PIPELINE,
    POINT_SIZE_AT,
    PREPARED,
    ROOM,
    VARYINGS_AT,
    VERTICES,
    PipelineEntry,
    PrepareContext,
    ProgramEntry,
)
from vc4lab.v3d.draws.pipeline_table import HASH_PRIME, HASH_SHIFT, HASH_START
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.state.render_state import RenderState, clip_box, rht_boundary
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, DrawEntry
from vc4lab.v3d.tiles.job import DrawEntry as Result
from vc4lab.v3d.vertex.nv import CLIP_HEADER_WORDS, PSE_WORDS, NvContext
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


class _Shader(NamedTuple):
    """The shader record of a draw: its host and guest address, and what all draws need of it.

    `shape` is that of `PipelineEntry.shader`, `rows` the words of a shaded vertex.
    """

    record: Value
    where: Value
    is_gl: Value
    uniforms: Value
    shape: Value
    rows: Value


def _shader(c: Any, state: Value) -> _Shader:
    s: Any = RenderState.at(state)
    is_gl = s.shader_kind == GlShaderState.id
    where = select(is_gl, s.shader_word & ~(RECORD_ALIGNMENT - 1), s.shader_word)
    record = select(c.record != 0, c.record, host(c.memory, where))
    common = GlShaderRecord  # NV shader records begin with the same three words
    varyings, point_size = field(record, common.fs_varyings), field(record, common.point_size)
    shape = (varyings << VARYINGS_AT) | (point_size << POINT_SIZE_AT) | (c.mode << MODE_AT)
    uniforms = field(record, common.fs_uniforms)
    return _Shader(record, where, is_gl, uniforms, shape, varyings + point_size + PSE_WORDS)


def _mix(code: Value, word: Value) -> Value:
    return (code ^ word) * HASH_PRIME


def _settle(code: Value) -> Value:
    return code ^ code.shr(HASH_SHIFT)


@staged
def _program(c: Any, code: Value, uniforms: Value) -> Value:
    """The ProgramEntry of the program at a guest address; 0 if Python has to look."""
    slot = _settle(_mix(const(i32, HASH_START), code)) & c.program_mask
    entry: Any = ProgramEntry.at(c.programs + slot * ProgramEntry.size)
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
            if _leads_there(c, entry, uniforms):
                found = entry.pointer
    return found


@staged
def _leads_there(c: Any, program: Any, uniforms: Value) -> Value:
    """Whether the words that a program makes its pointer lead where they are known to."""
    same: Any = const(i1, True)
    k: Any = const(i32, 0)
    while same & (k < program.pointer_count):
        place = program.pointers + k * 8
        word = load(i32, host(c.memory, uniforms + load(i32, place)))
        same = word - uniforms == load(i32, place + 4)
        k = k + 1
    return same


@staged
def _is_it(
    c: Any, place: Value, program: Value, state: Value, shader: Value, uniforms: Value
) -> Value:
    """Whether a PipelineEntry is that of a program, a state and the textures in the uniforms."""
    e: Any = PipelineEntry.at(place)
    p: Any = ProgramEntry.at(program)
    s: Any = RenderState.at(state)
    same: Any = (e.program == program) & (e.config == s.config) & (e.flat_flags == s.flat_flags)
    same = same & (e.list_format == s.list_format) & (e.shader == shader)
    k: Any = const(i32, 0)
    while same & (k < p.word_count):
        word = load(i32, host(c.memory, uniforms + load(i32, p.places + k * 4)))
        same = word == load(i32, e.words + k * 4)
        k = k + 1
    return same


@staged
def _pipeline(c: Any, program: Value, state: Value, shader: Value, uniforms: Value) -> Value:
    """The PipelineEntry for a program and a state; 0 if Python has to make it."""
    s: Any = RenderState.at(state)
    p: Any = ProgramEntry.at(program)
    code = const(i32, HASH_START)
    for word in (p.where, s.config, s.flat_flags, s.list_format, shader):
        code = _mix(code, word)
    k: Any
    for k in range(p.word_count):
        code = _mix(code, load(i32, host(c.memory, uniforms + load(i32, p.places + k * 4))))
    slot = _settle(code) & c.pipeline_mask
    place = c.pipelines + slot * PipelineEntry.size
    while (load(ptr, place) != 0) & (
        _is_it(c, place, program, state, shader, uniforms) == const(i1, False)
    ):
        slot = (slot + 1) & c.pipeline_mask
        place = c.pipelines + slot * PipelineEntry.size
    return select(load(ptr, place) != 0, place, const(ptr, 0))


@staged
def _known(c: Any, state: Value, shader: _Shader) -> Value:
    """The PipelineEntry of a draw that was met before, without anything to report; else 0."""
    s: Any = RenderState.at(state)
    where = shader.where
    fine = shader.is_gl | ((s.shader_kind == NvShaderState.id) & (c.copy_nv != 0))
    fine = fine & ((where & MEMORY_MASK) <= MEMORY_SIZE - LARGEST_RECORD)
    fine = fine & ((where & (RECORD_ALIGNMENT - 1)) == 0) & ((where & MEMORY_MASK) != 0)
    fine = fine & (s.clip_width != 0) & (s.clip_height != 0) & is_named(c, where, const(i64, 16))
    found = const(ptr, 0)
    if fine:
        program = _program(c, field(shader.record, GlShaderRecord.fs_code), shader.uniforms)
        if program != 0:
            found = _pipeline(c, program, state, shader.shape, shader.uniforms)
    return found


@staged
def _vertices_named(c: Any, draw: Any, shader: _Shader, vertex_shader: Value) -> Value:
    """Whether there is nothing to report about where the vertices of a draw come from."""
    record = shader.record
    wanted = draw.first <= draw.last
    if shader.is_gl:
        arrays = field(record, GlShaderRecord.vs_attributes)
        named = (arrays != 0) & (field(record, GlShaderRecord.cs_attributes) != 0)
        named = named & ((vertex_shader != 0) | ~wanted)
        if named & wanted:
            named = arrays_named(c, vertex_shader, draw.first, draw.last)
    else:
        start, stride = field(record, NvShaderRecord.vertices), field(record, NvShaderRecord.stride)
        named = field(record, NvShaderRecord.clip_header) == 0
        named = named | ((start & (RECORD_ALIGNMENT - 1)) == 0)
        if wanted:
            size = (draw.last - draw.first + 1).zext(i64) * stride.zext(i64)
            named = named & is_named(c, start + draw.first * stride, size)
    return named


@staged
def _shade(c: Any, draw: Any, shader: _Shader, vertex_shader: Any, output: Value) -> Value:
    """Shades the vertices of a draw to `output`: PREPARED, or VERTICES if native code cannot.

    `vertex_shader`: a ShaderEntry, 0 or None if it is not known.
    """
    status: Any = const(i32, PREPARED)
    pitch = shader.rows * ROW_BYTES
    if shader.is_gl:
        done = const(i1, False)
        if vertex_shader is not None:
            if vertex_shader != 0:
                done = shade_range(
                    c, vertex_shader, output, draw.used, draw.first, draw.last, pitch
                )
        status = select(done, status, const(i32, VERTICES))
    elif c.copy_nv != 0:  # VG draws have no vertices
        _copy_nv(c, draw, shader, output, pitch)
    return status


def _copy_nv(c: Any, draw: Any, shader: _Shader, output: Value, pitch: Value) -> None:
    n: Any = NvContext.at(c.nv)
    header = field(shader.record, NvShaderRecord.clip_header)
    n.stride = field(shader.record, NvShaderRecord.stride)
    n.base = field(shader.record, NvShaderRecord.vertices) + header * (4 * CLIP_HEADER_WORDS)
    n.output = output
    n.used = draw.used
    n.rows = shader.rows
    n.pitch = pitch
    n.first = draw.first
    n.last = draw.last
    call_pointer(c.copy_nv, None, (ptr,), c.nv)


@staged
def _vertices(c: Any, p: Any, draw: Any, shader: _Shader, vertex_shader: Any) -> Value:
    """The vertices of a draw, in memory and in its DrawParams; PREPARED or a request."""
    status: Any = const(i32, PREPARED)
    output, pitch, count = const(ptr, 0), const(i32, 0), const(i32, 0)
    if draw.first <= draw.last:
        pitch, before = shader.rows * ROW_BYTES, draw.first >> 4
        count = draw.last - draw.first + 1
        output = (c.room - before.zext(i64) * pitch.zext(i64)).bitcast(ptr)
        c.needed = ((draw.last >> 4) - before + 1) * pitch
        c.output = output
        c.rows = shader.rows
        after = c.room + c.needed.zext(i64)
        if after > c.room_end:
            status = const(i32, ROOM)
        elif c.shaded == 0:
            status = _shade(c, draw, shader, vertex_shader, output)
        if status == PREPARED:
            c.room = after
    p.vertices = output
    p.batch_pitch = pitch
    p.vertex_count = count
    p.first_vertex = select(count != 0, draw.first, count)
    return status


_STATE = ("viewport_x", "viewport_y", "z_min", "z_max", "point_size", "line_width")
_PIPELINE = ("callback_id", "instructions", "lookups", "late")
"""Members of DrawParams that are those of the RenderState, and of the PipelineEntry."""


def _fill(c: Any, p: Any, state: Value, uniforms: Value) -> None:
    """DrawParams from the render state and the pipeline; the vertices are there already."""
    s: Any = RenderState.at(state)
    e: Any = PipelineEntry.at(c.entry)
    for source, names in ((s, _STATE), (e, _PIPELINE)):
        for name in names:
            setattr(p, name, getattr(source, name))
    p.lists = select((s.list_format & EXPANDED) != 0, c.expanded, const(ptr, 0))
    p.uniforms = uniforms
    p.clip_left, p.clip_bottom, p.clip_right, p.clip_top = clip_box(s, c.empty_windows)
    p.facing = s.config & FACING
    store(p.field_ptr("depth_factor"), s.depth_offset << 16)  # floats of 16 bits, "1-8-7"
    store(p.field_ptr("depth_units"), s.depth_offset & -0x10000)
    p.rht_boundary = rht_boundary(s, c.rht_moved)
    _copy_pointers(p.field_ptr("textures"), e.textures, e.texture_count)


@staged
def _copy_pointers(target: Value, source: Value, count: Any) -> None:
    for k in range(count):
        store(target + k * 8, load(ptr, source + k * 8))


@staged
def _look_up(c: Any, place: Value, draw: Any, shader: _Shader) -> Value:
    """Finds the pipeline (`entry`) and the ShaderEntry of a draw, 0 where Python has to look."""
    vertex_shader = const(ptr, 0)
    is_new = c.entry == 0
    if is_new:
        c.entry = _known(c, place, shader)
    if (c.entry != 0) & shader.is_gl & (draw.first <= draw.last):
        word = RenderState.at(place).shader_word
        vertex_shader = call(gl_pipeline, c.pointer, word, shader.rows, const(i32, 1))
    if is_new & (c.entry != 0):
        if ~_vertices_named(c, draw, shader, vertex_shader):
            c.entry = const(ptr, 0)
    return vertex_shader


@staged
def _prepare(c: Any, lookups: bool) -> Value:
    """The draw at hand: PREPARED or a request."""
    place = c.draws + c.draw * DrawEntry.size
    draw: Any = DrawEntry.at(place)
    p: Any = DrawParams.at(c.params + c.draw * DrawParams.size)
    shader = _shader(c, place)
    vertex_shader = _look_up(c, place, draw, shader) if lookups else None
    status: Any = const(i32, PIPELINE)
    if c.entry != 0:
        status = _vertices(c, p, draw, shader, vertex_shader)
    if status == PREPARED:
        _fill(c, p, place, shader.uniforms)
        result: Any = Result.at(c.results + c.draw * Result.size)
        result.function = PipelineEntry.at(c.entry).function
        result.params = p.pointer
        store(c.found + c.draw * 8, c.entry)
    return status


def make_prepare(lookups: bool) -> Function:
    """What prepares the draws from `draw` on; it returns PREPARED or a request.

    Without `lookups` it requests the pipeline and the vertices of every draw, which is compiled in
    a fraction of the time.
    """

    @kernel(args=(ptr,), returns=i32)
    def prepare(context: Value) -> Value:
        c: Any = PrepareContext.at(context)
        status: Any = const(i32, PREPARED)
        while (status == PREPARED) & (c.draw < c.draw_count):
            status = _prepare(c, lookups)
            if status == PREPARED:
                c.entry = const(ptr, 0)
                c.record = const(ptr, 0)
                c.shaded = 0
                c.draw = c.draw + 1
        return status

    return prepare
