"""Structures of a tile function: the tile buffer of a worker thread, a draw's parameters, its key.

The tile buffer keeps 2x2 quads together (`frame_mode.py`), so that any 4x4 pixel block at even x
and y is a few whole pieces. Lane order in a block: lane & 1 = x, lane & 2 = y of the quad, quads in
raster order (hardware reference 7.6).

The Structs of work are records of a stream (`memory/native.py`); each thread has its own streams, of which
the tile loop marks the part of each chain. So the records of a frame are those of its chains, in their
order, whatever thread ran them, and a chain that had to run again leaves those of its last run.
`events.FrameWork` has them; `timing/frames/` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from vc4lab.memory.native import Stream
from vc4lab.qpu.program.program import NO_LAYOUT, Layout, Program
from vc4lab.simd import Array, Struct, f32, i16, i32, i64, nested, ptr
from vc4lab.v3d.state.frame_mode import TILE_WORDS, TileLayout
from vc4lab.v3d.tmu.requests import MAX_REQUESTS
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns

if TYPE_CHECKING:
    from vc4lab.v3d.tmu.texture_state import TextureKind

TILE_PAD_WORDS = 512
"""Words after a tile buffer that a block at its edge may touch (it writes back what it read)."""

MAX_TEXTURE_REQUESTS = MAX_REQUESTS
"""Texture requests (S writes that are not direct lookups) of one fragment program."""

MAX_VARYINGS = 32
"""Varyings of a fragment program; the flat-shade flags have a bit for each."""

MAX_INTERPOLANTS = MAX_VARYINGS + 2
"""With the implicit coordinates of points."""

STATUS_OK = 0
STATUS_DEOPT = 1
"""Float values appeared that only the exact pipeline treats as the chip does: render again."""
STATUS_BAD_LIST = 2
"""The compressed primitive list does not end or branches in a circle."""
STATUS_UNSUPPORTED = 3
"""A program reached something this simulator does not do; the Python side knows the text."""
STATUS_NEEDS_TRANSFER = 4
"""A tile is to be loaded or stored in a way that is not compiled yet."""
STATUS_ENDLESS = 5
"""A program used up `TileContext.budget`."""
STATUS_LEFT = 6
"""Execution left a program."""
STATUS_UNPROVEN = 7
"""An interpreted program may never end: compiled code finds out (`TerminationTrial`)."""
STATUS_NEEDS_SETUP = 16
"""16 + number: this one of `TileContext.setups` is not compiled yet."""

TRIANGLE_SETUPS = tuple((bits, separate) for bits in (16, 24, 32) for separate in (False, True))
"""Triangle setups: index bits of the lists, and whether samples have a coverage of their own."""

COUNTERS = (
    "primitives_reversed",
    "primitives_valid",
    "primitives_empty",
    "quads_stencil_failed",
    "quads_depth_failed",
    "quads_depth_passed",
    "quads_uncovered",
    "quads_covered",
    "texture_quads",
    "quads_valid",
    "tiles_moved",
    "bytes_moved",
    "primitives",
    "fragment_instructions",
    "lookups",
)
"""Names of `TileContext.counters`, in order. From `primitives_valid` to `texture_quads` they need
`FragmentKey.counting`; the others are always counted.
"""

DETAILED_COUNTERS = COUNTERS[COUNTERS.index("primitives_valid") : COUNTERS.index("quads_valid")]
"""Counters that need `FragmentKey.counting`."""

FIRST_WORK_COUNTER = COUNTERS.index("quads_valid")
WORK_COUNTERS = COUNTERS[FIRST_WORK_COUNTER:]
"""Counters that determine the time of a frame: `job_time`."""


QUEUED_BLOCKS = 512
"""Blocks of a draw that the reference interpreter runs together."""


class FragmentQueue(Struct):
    """Blocks of a draw that wait for the reference interpreter; as many `FragmentBatch` follow."""

    count = i32
    reserved = Array(i32, 15)


class FragmentBatch(Struct):
    """One 4x4 block on its way through the reference interpreter; all lanes as 16 words.

    `flags` are what colour writes take, `asked` what MS_FLAGS says.
    """

    x = Array(i32, 16)
    y = Array(i32, 16)
    flags = Array(i32, 16)
    asked = Array(i32, 16)
    w = Array(i32, 16)
    z = Array(i32, 16)
    reverse = i32
    valid = i32
    uniforms = i32
    place = i32
    n_varyings = i32
    z_steps = Array(i32, 4)
    stencil = Array(i32, 8)
    varyings_vp = Array(i32, 16 * MAX_INTERPOLANTS)
    varyings_c = Array(i32, MAX_INTERPOLANTS)


QUEUE_BYTES = FragmentQueue.size + QUEUED_BLOCKS * FragmentBatch.size

CLEAN_COLOUR, CLEAN_ZS, CLEAN_MASK = 1, 2, 4


class TileContext(Struct):
    """State of one worker thread: where the tile lies, its buffers, what happened to it.

    `batch` is a `FragmentQueue`, which `callback` empties (reference interpreter only).
    `mode` is a number of `frame_mode.LAYOUTS`; `resolved` holds a multisample tile with one sample
    on its way to or from memory; `mask` is the VG mask plane, a byte in each word. `budget`:
    instructions in loops that a program may execute for a block. `interrupts` is the place of
    the byte that a program sets with HOST_INT; `left`: the address for which execution left one.
    `drew`: not 0 if the chain has called a pipeline, which may have counted something. `clean`:
    bits of the buffers (`CLEAN_…`) that hold nothing but what the `clean_…` members say, from a
    clear on. `held_colour`, `held_zs`: 1 + surfaces whose loads are put off, 0: none
    (`tiles/loop.py`). `work`: a `TileWork`, for pipelines that record.
    """

    memory = ptr
    tile_x = i32
    tile_y = i32
    tile_width = i32
    tile_height = i32
    frame_width = i32
    frame_height = i32
    draw = i32
    mode = i32
    budget = i32
    left = i32
    drew = i32
    held_colour = i32
    held_zs = i32
    interrupts = ptr
    callback = ptr
    batch = ptr
    setups = Array(ptr, len(TRIANGLE_SETUPS))
    clean = i32
    clean_low = i32
    clean_high = i32
    clean_zs = i32
    clean_mask = i32
    counters = Array(i32, len(COUNTERS))
    totals = Array(i64, len(COUNTERS))
    colour = Array(i32, TILE_WORDS + TILE_PAD_WORDS)
    zs = Array(i32, TILE_WORDS + TILE_PAD_WORDS)
    mask = Array(i32, TILE_WORDS + TILE_PAD_WORDS)
    resolved = Array(i32, TILE_WORDS // 2 + TILE_PAD_WORDS)
    work = ptr


class DrawParams(Struct):
    """Parameters that one draw (a distinct render state) fixes, besides what its pipeline was compiled for.

    `lists` is what list addresses are relative to, 0 for guest memory.
    `vertices` is the address that vertex 0 would have in the shaded vertex buffer; only vertices
    `first_vertex` … `first_vertex + vertex_count - 1` exist, other indices are clamped into the
    range. `instructions` and `lookups` are those of the program for a quad, for `job_time`.
    Viewport offsets are 12.4 fixed point, the clip window is in pixels, `facing` is bits 2:0
    of record 96; `depth_factor` and `depth_units` are record 101 as floats; `rht_boundary` is 12.4,
    the viewport offset (if it counts) already added.
    """

    lists = ptr
    vertices = ptr
    batch_pitch = i32
    first_vertex = i32
    vertex_count = i32
    uniforms = i32
    viewport_x = i32
    viewport_y = i32
    clip_left = i32
    clip_bottom = i32
    clip_right = i32
    clip_top = i32
    facing = i32
    z_min = f32
    z_max = f32
    depth_factor = f32
    depth_units = f32
    point_size = f32
    line_width = f32
    rht_boundary = i32
    callback_id = i32
    instructions = i32
    lookups = i32
    late = ptr  # LateTable
    textures = Array(ptr, MAX_TEXTURE_REQUESTS)


PRIMITIVES = ("points", "lines", "triangles", "rht")
"""Primitive types in the order of record 56 bits 3:0."""


VERTICES = {"points": 1, "lines": 2, "triangles": 3, "rht": 2}
"""Vertices of the primitives that are drawn."""


@dataclass(frozen=True)
class FragmentKey:
    """Everything a fragment pipeline is compiled for; equal keys share one native function.

    Attributes
    ----------
    program
        The fragment shader's 64-bit words.
    primitive
        One of `PRIMITIVES`.
    n_varyings
        Varyings in the vertex data (implicit point and line coordinates not counted).
    flat_flags
        Record 97, bits at and above `n_varyings` cleared.
    depth_function, z_update, depth_offset
        Record 96 bits 14:12, 15 and 3.
    point_size_in_vertex
        Shader-record flag bit 1: word 3 of a vertex is the point size.
    textures
        Kind of each texture request, in the order of the S writes, without direct lookups. None:
        its parameters are only known while the program runs (`../tmu/late_textures.py`).
    texture_of
        For each request the number of the first one with the same parameters; empty if no two have.
    index_bits
        16 or 24 (record 56 data type 1, 2), or 32 for x/y lists (data type 3).
    code_layout
        `Program.layout`.
    code_address
        `Program.fixed_address`.
    multisample, wide_colour
        Frame mode: 4x multisample, 64-bit colour.
    oversample
        Multisample frames only: samples have a coverage of their own (record 96 bits 7:6 not 0).
    vg_mask
        There is a VG mask plane (record 113 bit 72); without it reads give 0.
    coverage, coverage_points
        Draws of the coverage pipe (record 96 bit 8): the update rule, "nonzero", "odd", "or" or
        "zero", and at how many points a pixel is looked at (16, 4 or 1). Else empty.
    coverage_mask, coverage_leave
        What signal 7 of the program reads and leaves: record 96 bits 5 and 11.
    counting
        Count what only performance counters want to know.
    recording
        Record blocks of pixels and texture requests (`TileWork`); counts, too.
    unknowns
        Settings of undocumented behaviour.
    engine
        "fast", "exact" or "interpreter".
    """

    program: tuple[int, ...]
    primitive: str = "triangles"
    n_varyings: int = 0
    flat_flags: int = 0
    depth_function: int = 7
    z_update: bool = False
    depth_offset: bool = False
    point_size_in_vertex: bool = False
    textures: tuple[TextureKind | None, ...] = ()
    texture_of: tuple[int, ...] = ()
    index_bits: int = 16
    code_address: int = 0
    code_layout: Layout = NO_LAYOUT
    multisample: bool = False
    wide_colour: bool = False
    oversample: bool = True
    vg_mask: bool = False
    coverage: str = ""
    coverage_points: int = 16
    coverage_mask: bool = False
    coverage_leave: bool = False
    counting: bool = False
    unknowns: Unknowns = DEFAULT_UNKNOWNS
    engine: str = "fast"
    recording: bool = field(default=False, repr=False)

    @cached_property
    def whole_program(self) -> Program:
        """The fragment program."""
        program = Program(self.program, self.code_address)
        return program.laid_out(self.code_layout).under(self.unknowns)

    @property
    def layout(self) -> TileLayout:
        """How the tile buffer is arranged."""
        return TileLayout(self.multisample, self.wide_colour)

    @property
    def one_flag(self) -> bool:
        """Whether only bit 0 of MS_FLAGS is there."""
        return not self.multisample and self.unknowns["ms_flags_single"] == "one"

    @property
    def accesses(self) -> FragmentKey:
        """A key with nothing but what accesses to the tile buffer depend on."""
        return FragmentKey(
            (),
            depth_function=self.depth_function,
            z_update=self.z_update,
            multisample=self.multisample,
            wide_colour=self.wide_colour,
            vg_mask=self.vg_mask,
            counting=self.counting,
            coverage_mask=self.coverage_mask,
            coverage_leave=self.coverage_leave,
            unknowns=self.unknowns,
        )

    @property
    def first_varying(self) -> int:
        """Word of a shaded vertex where varying 0 stands."""
        return 4 if self.point_size_in_vertex else 3


LIST_COUNTERS = COUNTERS[: COUNTERS.index("quads_valid") + 1]
"""Counters of `ListWork.counters`."""

DIRECT_LOOKUP = -1
"""`RequestWork.number` of a direct lookup."""


class TileWork(Struct):
    """The streams of one thread; their order is that of `ChainWork`."""

    lists = nested(Stream)
    blocks = nested(Stream)
    requests = nested(Stream)
    lines = nested(Stream)


STREAMS = tuple(TileWork.fields)


class ChainWork(Struct):
    """Work of one chain: the thread that ran it last, and its part (bytes) of each stream."""

    start = Array(i64, len(STREAMS))
    end = Array(i64, len(STREAMS))
    thread = i32
    reserved = i32


class ListWork(Struct):
    """A compressed list drawn into a tile.

    Attributes
    ----------
    segment
        Its number among the lists of the frame.
    blocks
        How many `BlockWork` it has.
    counters
        What drawing it counted, by the names in `LIST_COUNTERS`.
    """

    segment = i32
    blocks = i32
    counters = Array(i32, len(LIST_COUNTERS))


class BlockWork(Struct):
    """A 4x4 block of pixels that a primitive covers: up to four quads. Lanes are bits.

    Attributes
    ----------
    primitive
        Number among those of its list that have blocks, from 0 on.
    position
        Number among all of its list.
    place
        Its corner in the tile: x in 7:0, y in 15:8; whether the primitive faces backwards: 16.
    covered
        Lanes that any sample covers; a quad without one is not there.
    flags
        Those of them between the Z planes (for any sample).
    passed
        Those of these that pass the depth test when the block is drawn: what a front end with an
        exact depth buffer would let through. `flags` where nothing is tested, or where the reference
        interpreter runs the program.
    requests
        How many `RequestWork` it has.
    instructions
        How many its program executed; 0 without one, and in the reference interpreter.
    """

    primitive = i32
    position = i32
    place = i32
    covered = i16
    flags = i16
    passed = i16
    reserved = i16
    requests = i32
    instructions = i32


class RequestWork(Struct):
    """A texture request of a block.

    `number`: of its S write among those of the program (`DIRECT_LOOKUP`: a direct one); `lines`:
    how many words it has in the stream of lines (`memory/native.py`), none where the
    texture's parameters are only known while the program runs.
    """

    number = i32
    lines = i32
