"""Data and notes shared between native binning (`binning_kernel.py`) and its Python side."""

from __future__ import annotations

from vc4lab.memory.native import Stream, append
from vc4lab.records.control import ids_of
from vc4lab.records.declarations import TileBinningMode
from vc4lab.records.payload import BINNING
from vc4lab.records.states import RenderState
from vc4lab.simd import Array, Struct, Value, const, i8, i32, i64, load, nested, ptr, select, staged, store
from vc4lab.v3d.ptb.context import COUNTERS, BinnerContext, TileState
from vc4lab.v3d.state.native_records import RECORD_SLOT
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_ARRAY
from vc4lab.v3d.vertex.shader_lookup import ShaderLookup

NATIVE_RECORDS = ids_of(native=BINNING)
"""Records that native code executes, if it can."""

GOES_ON, STOPS, INTERRUPTED, FLUSHED, REPORTS = range(5)
"""Results of an executed record: on with the next one · Python handles `events` first ·
a draw was begun, but the binner stopped with `BinningContext.status` · a flush ended
with that status · Python gives the message `BinningContext.finding`."""

OTHER, PAUSED = 5, 6
"""Results without execution: another kind of record, or the list ends · Python looks first."""

SHADE, NAME, MAKE_TILES, COMPILE, ASK_ARRAY, ASK_WINDOW, ASK_LENGTH = range(7, 14)
"""Requests: the record is executed again when Python has done this.

Shade the vertices `first` … `last` to `output`, and name memory · name the memory · room for so
many tiles (`wanted`) · the native function `wanted` · messages about a long array, an empty clip
window, a draw that is cut."""

SHADED, NAMED, LEFT_OUT, ARRAY_REPORTED, WINDOW_REPORTED, LENGTH_REPORTED = (1 << bit for bit in range(6))
"""Bits of `BinningContext.answers`: what Python did for the record at hand (`LEFT_OUT`: the
shader of the draw cannot be run)."""

(
    BAD_INDEX_TYPE, BAD_MODE, AFTER_FLUSH, NOT_STARTED, NO_GRID, NO_SHADER, NO_VERTICES,
    TOO_MANY, EARLY_START,
) = range(1, 10)  # fmt: skip
"""Findings: why a primitive record is left out; `EARLY_START`: a record 6 without a grid."""

CONFIGURED, SHORT, BEGUN, ARMED, PLACED, ACCEPTED, FULL, FEW = (1 << bit for bit in range(8))
"""Bits of `BinningContext.events`, since Python looked: a record 112 was executed, with less memory
than its tiles need, a 6, a 7, a primitive stood where it may stand, one was binned, the counter of
changes came to its limit, a draw had too few vertices for a primitive."""

OUTCODES, BYTES, SHORTS, COPY_NV = range(3, 7)
"""Native functions of other modules, after those that bin points, lines and triangles."""

WORK_PER_CALL = 1 << 20
"""Records, draws (`DRAW_WORK` each), indices and batches of vertices one call looks at."""
DRAW_WORK = 64


MAX_NOTES = 1024
"""Notes made before Python reads them."""


class Note(Struct):
    """A draw that was executed, or a record 112: what Python needs to name its memory."""

    record = i32  # guest address
    op = i32
    shader_kind = i32  # of a draw
    shader_word = i32
    first = i32  # vertices of a draw
    last = i32
    place = i32  # of the indices of a draw, of the tile memory of a record 112
    byte_count = i32  # of them; 0: no indices
    state = i32  # the tile state array of a record 112
    tiles = i32


class DrawBinned(Struct):
    """A primitive record that was executed, for listeners to `list_binned`.

    Attributes
    ----------
    before
        What the binner had counted since the start, by the names in `ptb.context.COUNTERS`.
    record, op
        Guest address and id.
    mode, length
        Kind of primitive; vertices (words of a VG list).
    index_type, place
        A code of `state.draw_input`, and the guest address of the indices; of an array its first
        vertex; of a VG list where it lies.
    first, last
        The lowest and highest vertex that is used.
    shader_kind, shader_word, config
        Of the render state: records 64 to 67, record 96.
    cursor
        Where the list of the tile `BinningContext.watched` went on before; 0 without a grid.
    """

    before = Array(i64, len(COUNTERS))
    record = i32
    op = i32
    mode = i32
    length = i32
    index_type = i32
    place = i32
    first = i32
    last = i32
    shader_kind = i32
    shader_word = i32
    config = i32
    cursor = i32


class BinningContext(ShaderLookup):
    """The place of execution in the list, what it may do, and the native code it calls."""

    binner = ptr  # BinnerContext
    nv = ptr  # NvContext
    used = ptr  # MAX_VERTICES bytes, all zero between two draws
    output = ptr  # room for the coordinates of one draw, from its first batch on
    here = i32  # guest address of the next record
    end = i32
    record_at = i32  # the record at hand, when Python looks
    notes = ptr  # Note each, of records that name memory; for those who listen
    note_room = i32  # 0: no one does
    note_count = i32
    configured = i32  # record 112 has given a grid of tiles
    started = i32  # record 6 was executed, no flush since
    ended = i32  # a flush was executed, neither record 6 nor 112 since
    events = i32
    answers = i32  # of requests for the record at hand
    wanted = i32  # what a request is for
    finding = i32
    checks_state = i32  # Python looks at tile state that the binner does not initialise
    few_at = i32  # the last draw with too few vertices
    flushed_all = i32  # the flush was a record 5
    clipping_disabled = i32  # register BXCF
    status = i32
    work = i32
    marks = ptr  # `used`, if the draw at hand has indices
    first = i32  # vertices of the draw
    last = i32
    indices = i64  # of all draws of this list
    functions = Array(ptr, COPY_NV + 1)  # 0: not needed yet
    edge = Array(i8, RECORD_SLOT)  # a record that lies across the end of memory
    executed = ptr  # where the variant that records notes the next record
    binned = nested(Stream)  # DrawBinned each, by the variant that notes draws
    watched = i32  # the tile of whose list it notes how long it is


def _note(w: BinningContext, op: Value) -> Note:
    """A new `Note` of the record at hand; there is room for it."""
    made = Note.at(w.notes + w.note_count * Note.size)
    w.note_count = w.note_count + 1
    made.record, made.op = w.here, op
    return made


@staged
def note_draw(
    w: BinningContext, op: Value, s: RenderState, source: Value, start: Value, length: Value
) -> None:
    """The draw at hand, whose vertices are known, and will be drawn."""
    made = _note(w, op)
    made.shader_kind, made.shader_word = s.shader_kind, s.shader_word
    made.first, made.last = w.first, w.last
    made.place = start
    made.byte_count = select(source == INDEX_ARRAY, const(i32, 0), length << (source - INDEX_8))


@staged
def note_mode(w: BinningContext, address: Value, size: Value, state: Value, tiles: Value) -> None:
    """The record 112 at hand, which is executed."""
    made = _note(w, const(i32, TileBinningMode.id))
    made.place, made.byte_count = address, size
    made.state, made.tiles = state, tiles


@staged
def watched_cursor(w: BinningContext, c: BinnerContext) -> Value:
    """The address at which the list of the watched tile goes on."""
    cursor = const(i32, 0)
    if (c.tiles != 0) & w.watched.ult(c.tile_room):
        cursor = TileState.at(c.tiles + w.watched * TileState.size).cursor
    return cursor


class DrawMark:
    """The binner's counts before a draw."""

    def __init__(self, w: BinningContext, c: BinnerContext) -> None:
        self.cursor = watched_cursor(w, c)
        self.totals = [
            load(i32, c.field_ptr(name)).zext(i64) + load(i64, c.earlier + 8 * number)
            for number, name in enumerate(COUNTERS)
        ]

    def finish(self, w: BinningContext, c: BinnerContext, op: Value) -> None:
        """The draw, which is the record at hand, was executed."""
        made = DrawBinned.at(append(w.binned, DrawBinned.size))
        for number, total in enumerate(self.totals):
            store(made.before + 8 * number, total)
        state = RenderState.at(c.state)
        made.record, made.op = w.here, op
        made.mode, made.length, made.index_type = c.mode, c.length, c.index_type
        made.place = select(c.index_type == INDEX_ARRAY, c.first_index, c.index_address)
        made.first, made.last = w.first, w.last
        made.shader_kind, made.shader_word = state.shader_kind, state.shader_word
        made.config, made.cursor = state.config, self.cursor
