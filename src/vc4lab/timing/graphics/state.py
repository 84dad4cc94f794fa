"""The work of frames as native code reads it; `work.py` fills these tables from a `Frame`."""

from __future__ import annotations

from enum import IntEnum

from vc4lab.simd import Array, Struct, i32, i64, nested, ptr
from vc4lab.timing.compute.state import MAX_CLUSTERS, MAX_QPUS, Figures
from vc4lab.timing.graphics.shaders.state import MAX_SLICES, ShadingFigures


class TaskKind(IntEnum):
    """Names the work of a QPU's thread."""

    COORDINATES = 0
    VERTICES = 1
    FRAGMENTS = 2


class Shader(Struct):
    """A program with its uniforms, as vectors or batches of one draw run it (`shaders/tables.py`).

    code, uniforms: guest addresses. program: its number. threads: 2 if two of them share a QPU.
    first_step, steps: its part of `Work.routes`, the segments (`shader_state.Segment`) that it runs
    through; instructions: of such a run. seen: of each slice the misses of its instruction cache
    when all of the program was in it, plus 1. runs, clocks: threads that ended, and how long they
    took together.
    """

    code = i32
    uniforms = i32
    program = i32
    threads = i32
    instructions = i32
    first_step = i32
    steps = i32
    unused = i32
    seen = Array(i64, MAX_SLICES)
    runs = i64
    clocks = i64


class Batch(Struct):
    """Up to 16 vertices that are shaded together.

    thread: 0 for the binner, 1 for rendering. shader: -1 where vertices are in memory already (NV).
    rows: of the VPM that its attributes or vertices take; shaded_rows: that the shader writes.
    first_fetch, fetches: rows of `Fetch`; words: that the attribute DMA writes to the VPM for them.
    named: vertices named while it was collected. list_read: which read of thread 0's list
    (`BinningList`) brings the last index of it, -1 if none does. made: it has room in the VPM, of
    that cluster. done: set when its vertices are in the VPM.
    """

    thread = i32
    shader = i32
    vertices = i32
    rows = i32
    shaded_rows = i32
    first_fetch = i32
    fetches = i32
    words = i32
    named = i32
    list_read = i32
    made = i32
    done = i32
    cluster = i32
    unused = i32


class Fetch(Struct):
    """A read of the attribute DMA: bytes from a guest address on."""

    location = i64
    bytes = i64


class Vector(Struct):
    """Up to four quads that a fragment program works on together.

    instructions: the most that a block of it executed (more than the shader's: loops). ended: it
    has been written to the tile buffer. began: the clock (low 32 bits) at which it went to a QPU;
    clocks: from then to its end. missed: lines of its texels that were not in the texture cache.
    """

    shader = i32
    tile = i32
    first_quad = i32
    quads = i32
    instructions = i32
    ended = i32
    began = i32
    clocks = i32
    missed = i32


class Quad(Struct):
    """A quad of a vector: its block among those of the frame, its number there, its place in the
    tile (6 bits across, 6 bits down) and its covered pixels (bits 15:12). before: the last vector
    before it that covers one of these, + 1.
    """

    block = i32
    number = i32
    place = i32
    before = i32


class StepKind(IntEnum):
    """Names the effect of a rendering list's step once its records have been read."""

    RECORDS = 0
    TILE = 1
    """Another tile begins: the list may only be so many tiles ahead of the tile buffer."""
    WORK = 2
    """`number`: of a `TileWork`."""
    GROUP = 3
    """`number`: of a group of lists, whose vertices are shaded from now on."""
    LIST = 4
    """`number`: of a `PrimitiveList`."""


class ListStep(Struct):
    """Records of the rendering list or of a tile list, and what they make happen.

    location, lines: of list memory, what is read beyond the step before. bytes, records: that are
    executed. jumps: how often reading goes on elsewhere.
    """

    location = i64
    kind = i32
    number = i32
    bytes = i32
    records = i32
    jumps = i32
    lines = i32


class PrimitiveList(Struct):
    """A compressed list in a tile.

    first, primitives: its rows of `Primitive`, which have pixels. reversed, empty: other primitives
    after the last of these. batch: the last one that it needs, or -1. release: batches before this
    one are used no more when it is done. varyings: of its draw.
    """

    first = i32
    primitives = i32
    reversed = i32
    empty = i32
    draw = i32
    batch = i32
    release = i32
    varyings = i32


class Primitive(Struct):
    """A primitive with pixels.

    reversed, empty: primitives of its list just before it that are faced away or have no pixels.
    batch: the last one that it needs, or -1. quads: that it covers. vectors: that are full, or end,
    with it; the first of them is the one after those of the primitive before. release: as in
    `PrimitiveList`.
    """

    draw = i32
    batch = i32
    release = i32
    reversed = i32
    empty = i32
    quads = i32
    first_vector = i32
    vectors = i32


class TileWorkKind(IntEnum):
    """Names an operation of the tile buffer."""

    LOAD = 0
    DRAW = 1
    """Vectors of the tile may be written until all of them are."""
    STORE = 2
    DONE = 3
    """The last operation of a tile."""


class TileWork(Struct):
    """An operation of the tile buffer.

    vectors: those of the frame before this number are drawn (DRAW), from `first` on. location,
    row_bytes, rows, pitch: what is moved.
    """

    kind = i32
    tile = i32
    vectors = i32
    rows = i32
    location = i64
    pitch = i64
    row_bytes = i32
    first = i32


class DrawTally(Struct):
    """A draw's clocks in a front end.

    first, last: the clock before its first piece and the one after its last. clocks: all those from
    the end of the piece before to the end of a piece of this draw, gaps included. busy: at work.
    """

    first = i64
    last = i64
    clocks = i64
    busy = i64
    setup = i64
    primitives = i64
    quads = i64
    vectors = i64


class Work(Struct):
    """Addresses of the tables; one for the frame that is binned, one for that which is rendered.

    shaders: fragment programs by draw, then vertex programs by draw; of the frame that is binned
    coordinate programs, by draw. vectors: in the order of the front end, 0 being the first of the
    frame; the one after the last has as `first_quad` the number of quads.
    first_request: of each block its first request (i64), and how many there are. first_line: of
    each request its first line (i64), likewise. lines: as `Frame.lines` has them (u32).
    """

    shaders = ptr
    segments = ptr
    routes = ptr
    batches = ptr
    fetches = ptr
    vectors = ptr
    quads = ptr
    first_request = ptr
    first_line = ptr
    lines = ptr
    steps = ptr
    lists = ptr
    primitives = ptr
    tile_work = ptr
    draws = ptr
    step_count = i32
    vector_count = i32
    batch_count = i32
    draw_count = i32


PLACE_BITS = 6
PLACES = 1 << 2 * PLACE_BITS
"""Quads of the largest tile: 128 x 128 pixels."""
PIXELS = 4
"""Pixels of a quad."""


class RasterFigures(Struct):
    """Figures of the rendering list, setup, front end, tile buffer and shader scheduler, in clocks.

    Those that end in _part are in units of 1 / 1024 (`FRACTION`). places: of quads that a tile has,
    the last one's + 1.
    """

    list_byte_part = i64
    list_record_part = i64
    list_line = i32
    list_ahead = i32
    list_tiles = i32
    locks = i32
    whole_quads = i32
    places = i32
    kept = i32
    setup_clocks = i64
    setup_varying_part = i64
    setup_reversed_clocks = i64
    setup_latency = i64
    quad_part = i64
    primitive_clocks = i64
    front_latency = i64
    pixel_quad_part = i64
    tile_clocks = i64
    load_byte_part = i64
    store_byte_part = i64
    burst = i32
    loads_ahead = i32
    shader_launch = i64
    shader_interval = i64


class Scoreboard(Struct):
    """Who may write to the tile buffer of a cluster (`tiles/scoreboard.py`).

    open: vectors before this number may, their tile is in the tile buffer. holders: vectors of each
    slice that hold a lock. entered: vectors that went to QPUs; tile: of the last of them; last: of each pixel
    of it, quad by quad, the last vector that covers it, + 1. waiting: of each QPU the vector that
    it waits for + 1, or -1 if it waits for its tile or until fewer hold a lock.
    """

    open = i64
    entered = i64
    tile = i32
    unused = i32
    holders = Array(i32, 4)
    last = Array(i32, PLACES * PIXELS)
    waiting = Array(i32, MAX_QPUS)


class GraphicsFigures(Struct):
    """Figures that all modules share. They begin with what user programs share.

    scoreboard: of the first cluster; `scoreboards` are those of the others after it.
    dealt: whether a global scheduler deals work out to clusters.
    works: `Work` of the frame that is binned and of that which is rendered.
    threads: of each QPU of the chip the halves in use (a program without `thrsw` takes both).
    released: batches that are used no more, all before this number: of thread 0, and of thread 1 in
    each cluster.
    """

    compute = nested(Figures)
    raster = nested(RasterFigures)
    shading = nested(ShadingFigures)
    scoreboard = nested(Scoreboard)
    scoreboards = Array(i64, (MAX_CLUSTERS - 1) * Scoreboard.size // 8)
    works = Array(ptr, 2)
    threads = Array(i32, MAX_CLUSTERS * MAX_QPUS)
    released = Array(i64, 1 + MAX_CLUSTERS)
    dealt = i32
    unused = i32
