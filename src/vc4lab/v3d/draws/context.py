"""Data shared between the native preparation of draws and its Python side."""

from __future__ import annotations

from vc4lab.simd import Struct, i32, i64, ptr
from vc4lab.v3d.vertex.shader_lookup import ShaderLookup

PREPARED, PIPELINE, VERTICES, ROOM = range(4)
"""What the kernel returns: all draws are prepared, or a request for the draw at `draw`: a pipeline,
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
