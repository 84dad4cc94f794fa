"""Data a native vertex pipeline works on, and the rows of shaded vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.qpu.program.program import NO_LAYOUT, Layout
from vc4lab.simd import Array, Struct, i32, ptr
from vc4lab.v3d.tmu.requests import MAX_REQUESTS
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns

if TYPE_CHECKING:
    from vc4lab.v3d.tmu.texture_state import TextureKind

MAX_ARRAYS = 8
MAX_GROUPS = 64
"""Groups of words that are fetched together; each fills a row of the VPM at least."""
VERTEX_BATCH = 16

COORDINATE_ROWS = 7
"""Words a coordinate shader writes: Xc Yc Zc Wc, Ys:Xs, Zs, 1/Wc (and a point size)."""

DONE, DEOPT, ENDLESS, REFUSED, LEFT, STARVES = range(6)
"""Results of native shading: finished, redo a chunk exactly, a shader that does not end, a VPM
setup that is not a generic access, a shader that leaves its program, or one that reads a row for
which no VPM set-up asked."""

CHUNK = 64
"""Batches that are shaded again exactly when the fast build saw a special value in one of them."""

EXACT_AFTER_CHUNKS = 4
"""Chunks that may fail in the fast build before a job stays with the exact one."""


class VertexContext(Struct):
    """Inputs and outputs of one shading job."""

    fetched = Array(i32, VERTEX_BATCH * (MAX_GROUPS + 3))  # words of vertices, a row each
    memory = ptr  # host address of guest address 0
    output = ptr  # row r of vertex i: (i >> 4) * pitch + r * 64 + (i & 15) * 4
    used = ptr  # one byte per vertex, non-zero = wanted; 0: all of first..last
    uniforms = i32  # guest address
    bases = Array(i32, MAX_ARRAYS)  # guest address of each attribute array
    strides = Array(i32, MAX_ARRAYS)
    first = i32  # vertex indices, inclusive
    last = i32
    next_batch = i32  # where to go on
    until = i32  # where to stop
    wild = i32  # lanes the fast build could not compute were seen
    stopped = i32  # 0, or the status that ended a shader early
    batches = i32  # batches shaded
    left = i32  # the address for which execution left the program
    deopts = i32  # chunks that only the exact build could shade
    wanted = i32  # lanes of the batch that is shaded, as bits
    interrupts = ptr  # the byte that a shader sets by writing HOST_INT
    late = ptr  # LateTable, for textures whose kind is None
    textures = Array(ptr, MAX_REQUESTS)  # TextureDescriptor of each request


@dataclass(frozen=True)
class VertexKey:
    """Everything a vertex pipeline is compiled for.

    Attributes
    ----------
    words
        The program, from its entry to its last delay slot.
    attributes
        (array number, bytes, byte offset in the VPM column) of each array this stage selects.
    total_size
        Total attribute size of the shader record in bytes: what lies beyond is not loaded.
    rows
        Words per shaded vertex: 7 (8 with point size) for a coordinate shader, 3 + varyings (+ 1).
    engine
        "jit", "exact" (JIT without fast paths) or "interpreter"; "uncompiled": the interpreter,
        because the compiler refused the program.
    code_address
        `Program.fixed_address`.
    code_layout
        `Program.layout`.
    textures
        Kind of each texture request, in the order of the S writes, without direct lookups. None:
        its parameters are only known while the program runs.
    forgiving
        Whether a row for which no VPM set-up asked is 0; else the shader goes no further.
    """

    words: tuple[int, ...]
    attributes: tuple[tuple[int, int, int], ...]
    total_size: int
    rows: int
    engine: str = "jit"
    unknowns: Unknowns = DEFAULT_UNKNOWNS
    code_address: int = 0
    code_layout: Layout = NO_LAYOUT
    textures: tuple[TextureKind | None, ...] = ()
    forgiving: bool = False

    @property
    def rows_in(self) -> int:
        """Rows of attributes in the VPM."""
        return min((self.total_size + 3) // 4, 64)

    @property
    def pitch(self) -> int:
        """Bytes per batch of 16 shaded vertices."""
        return self.rows * 4 * VERTEX_BATCH


def buffer_bytes(rows: int, last: int) -> int:
    """Bytes of an output buffer for the vertices up to index `last`."""
    return ((last >> 4) + 1) * rows * 4 * VERTEX_BATCH


class NvContext(Struct):
    """One copying job."""

    memory = ptr
    output = ptr
    used = ptr  # one byte per vertex; 0: all of first..last
    base = i32  # guest address of word 0 of vertex 0
    stride = i32
    rows = i32
    pitch = i32
    first = i32
    last = i32
