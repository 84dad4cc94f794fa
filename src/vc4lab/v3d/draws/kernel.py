"""Prepares draws natively: render state to pipeline, parameters and shaded vertices.

Done are draws whose programs, state and textures Python has prepared before; anything unknown, and
whatever needs a message, is left to `preparation.py`, which does the same. Source: as there.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.pointers import host
from vc4lab.records.declarations import GlShaderState, NvShaderState
from vc4lab.records.shader import GlShaderRecord, NvShaderRecord
from vc4lab.simd import (
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
    POINT_SIZE_AT,
    PREPARED,
    PYTHON,
    ROOM,
    VARYINGS_AT,
    PipelineEntry,
    PrepareContext,
    ProgramEntry,
)
from vc4lab.v3d.draws.pipeline_table import HASH_PRIME, HASH_SHIFT, HASH_START
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.state.render_state import RenderState, rht_boundary
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
def _fill(c: Any, target: Value, state: Value, uniforms: Value, entry: Value) -> None:
    """`DrawParams` from the render state and the textures; vertices come later."""
    p: Any = DrawParams.at(target)
    s: Any = RenderState.at(state)
    p.lists = select((s.list_format & EXPANDED) != 0, c.expanded, const(ptr, 0))
    p.uniforms = uniforms
    p.viewport_x = s.viewport_x
    p.viewport_y = s.viewport_y
    p.clip_left = s.clip_left
    p.clip_bottom = s.clip_bottom
    p.clip_right = s.clip_left + s.clip_width
    p.clip_top = s.clip_bottom + s.clip_height
    p.facing = s.config & FACING
    p.z_min = s.z_min
    p.z_max = s.z_max
    store(p.field_ptr("depth_factor"), s.depth_offset << 16)
    store(p.field_ptr("depth_units"), s.depth_offset & -0x10000)
    p.point_size = s.point_size
    p.line_width = s.line_width
    p.rht_boundary = rht_boundary(s, c.rht_moved)
    p.callback_id = 0
    e: Any = PipelineEntry.at(entry)
    textures = p.field_ptr("textures")
    p.instructions = e.instructions
    p.lookups = e.lookups
    for k in range(e.texture_count):
        store(textures + k * 8, load(ptr, e.textures + k * 8))


@staged
def _shade(c: Any, draw: Any, shader: Value, rows: Value, output: Value) -> Value:
    """Shades the vertices of a draw (`shader`: ShaderEntry, 0: NV) to `output`; whether done."""
    done: Any = const(i1, True)
    pitch = rows * ROW_BYTES
    if shader == 0:
        n: Any = NvContext.at(c.nv)
        n.output = output
        n.used = draw.used
        n.rows = rows
        n.pitch = pitch
        n.first = draw.first
        n.last = draw.last
        call_pointer(c.copy_nv, None, (ptr,), c.nv)
    else:
        done = shade_range(c, shader, output, draw.used, draw.first, draw.last, pitch)
    return done


@kernel(args=(ptr, ptr, i32), returns=i32)
def prepare_draw(context: Value, place: Value, number: Value) -> Value:
    """Draw `number` of the frame, a DrawEntry of the scan: PREPARED, PYTHON or ROOM."""
    c: Any = PrepareContext.at(context)
    draw: Any = DrawEntry.at(place)
    s: Any = RenderState.at(place)
    is_gl = s.shader_kind == GlShaderState.id
    where = select(is_gl, s.shader_word & ~(RECORD_ALIGNMENT - 1), s.shader_word)
    record = host(c.memory, where)
    inside = (where & MEMORY_MASK) <= MEMORY_SIZE - LARGEST_RECORD
    ready: Any = is_gl | ((s.shader_kind == NvShaderState.id) & (c.copy_nv != 0))
    ready = ready & inside & ((where & (RECORD_ALIGNMENT - 1)) == 0) & ((where & MEMORY_MASK) != 0)
    ready = ready & (s.clip_width != 0) & (s.clip_height != 0) & is_named(c, where, const(i64, 16))
    gl, nv = GlShaderRecord, NvShaderRecord
    varyings = select(is_gl, field(record, gl.fs_varyings), field(record, nv.varyings))
    point_size = select(is_gl, field(record, gl.point_size), field(record, nv.point_size))
    code = select(is_gl, field(record, gl.fs_code), field(record, nv.code))
    uniforms = select(is_gl, field(record, gl.fs_uniforms), field(record, nv.uniforms))
    rows = varyings + point_size + PSE_WORDS
    entry, shader = const(ptr, 0), const(ptr, 0)
    if ready:
        program = _program(c, code, uniforms)
        if program != 0:
            key = (varyings << VARYINGS_AT) | (point_size << POINT_SIZE_AT) | (c.mode << MODE_AT)
            entry = _pipeline(c, program, place, key, uniforms)
    ready = entry != 0
    vertices = draw.first <= draw.last
    if ready & is_gl:
        chosen = (field(record, gl.vs_attributes) != 0) & (field(record, gl.cs_attributes) != 0)
        ready = chosen
        if vertices & chosen:
            shader = call(gl_pipeline, context, s.shader_word, rows, const(i32, 1))
            ready = shader != 0
            if ready:
                ready = arrays_named(c, shader, draw.first, draw.last)
    elif ready:
        n: Any = NvContext.at(c.nv)
        start = field(record, nv.vertices)
        header = field(record, nv.clip_header)
        n.stride = field(record, nv.stride)
        n.base = start + header * (4 * CLIP_HEADER_WORDS)
        ready = (header == 0) | ((start & (RECORD_ALIGNMENT - 1)) == 0)
        if vertices:
            size = (draw.last - draw.first + 1).zext(i64) * n.stride.zext(i64)
            ready = ready & is_named(c, start + draw.first * n.stride, size)
    status = select(ready, const(i32, PREPARED), const(i32, PYTHON))
    p: Any = DrawParams.at(c.params + number * DrawParams.size)
    p.vertices = const(ptr, 0)
    p.batch_pitch = 0
    p.first_vertex = 0
    p.vertex_count = 0
    if ready & vertices:
        pitch = rows * ROW_BYTES
        c.needed = ((draw.last >> 4) - (draw.first >> 4) + 1) * pitch
        if c.room + c.needed.zext(i64) > c.room_end:
            status = const(i32, ROOM)
        else:
            output = (c.room - (draw.first >> 4).zext(i64) * pitch.zext(i64)).bitcast(ptr)
            p.vertices = output
            p.batch_pitch = pitch
            p.first_vertex = draw.first
            p.vertex_count = draw.last - draw.first + 1
            if _shade(c, draw, shader, rows, output):
                c.room = c.room + c.needed.zext(i64)
            else:
                status = const(i32, PYTHON)
    if status == PREPARED:
        _fill(c, p.pointer, place, uniforms, entry)
        e: Any = PipelineEntry.at(entry)
        result: Any = Result.at(c.results + number * Result.size)
        result.function = e.function
        result.params = p.pointer
        store(c.found + number * 8, entry)
    return status


@kernel(args=(ptr,), returns=i32)
def prepare(context: Value) -> Value:
    """Prepares the draws from `draw` on; PREPARED, or why it stopped at `draw`."""
    c: Any = PrepareContext.at(context)
    status: Any = const(i32, PREPARED)
    while (status == PREPARED) & (c.draw < c.draw_count):
        status = call(prepare_draw, context, c.draws + c.draw * DrawEntry.size, c.draw)
        if status == PREPARED:
            c.draw = c.draw + 1
    return status
