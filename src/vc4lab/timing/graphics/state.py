"""The work of frames as native code reads it; `work.py` fills these tables from a `Frame`."""

from __future__ import annotations

from enum import IntEnum

from vc4lab.simd import Struct, i32, i64, ptr


class TaskKind(IntEnum):
    """What a thread of a QPU does."""

    COORDINATES = 0
    VERTICES = 1
    FRAGMENTS = 2


class Shader(Struct):
    """A program with its uniforms, as one draw uses it.

    code, uniforms: guest addresses. first_segment, segments: its rows among the segments
    (`programs.py`). threads: 2 if two of them share a QPU. instructions: of a run without loops.
    """

    code = i32
    uniforms = i32
    first_segment = i32
    segments = i32
    threads = i32
    instructions = i32
    varyings = i32
    unused = i32


class Batch(Struct):
    """Up to 16 vertices that are shaded together.

    thread: 0 for the binner, 1 for rendering. shader: -1 where vertices are in memory already (NV).
    rows: of the VPM that its attributes or vertices take. first_fetch, fetches: rows of `Fetch`.
    done: set when its vertices are in the VPM.
    """

    thread = i32
    shader = i32
    vertices = i32
    rows = i32
    first_fetch = i32
    fetches = i32
    done = i32
    unused = i32


class Fetch(Struct):
    """A read of the attribute DMA: bytes from a guest address on."""

    location = i64
    bytes = i64


class Vector(Struct):
    """Up to four quads that a fragment program works on together.

    instructions: the most that a block of it executed (more than the shader's: loops).
    """

    shader = i32
    tile = i32
    first_quad = i32
    quads = i32
    instructions = i32
    unused = i32


class Quad(Struct):
    """A quad of a vector: its block among those of the frame, and its number there."""

    block = i32
    number = i32


class Work(Struct):
    """Where the tables are.

    first_request: of each block its first request (i64), and how many there are. first_line: of
    each request its first line (i64), likewise. lines: as `Frame.lines` has them (u32).
    """

    shaders = ptr
    segments = ptr
    batches = ptr
    fetches = ptr
    vectors = ptr
    quads = ptr
    first_request = ptr
    first_line = ptr
    lines = ptr
