"""Data shared between the native walker of binning lists and its Python side."""

from __future__ import annotations

from vc4lab.records.payload import BINNING
from vc4lab.records.use import ids_of
from vc4lab.simd import Array, Struct, i8, i32, i64, ptr
from vc4lab.v3d.ptb.context import RECORD_SLOT
from vc4lab.v3d.vertex.shader_lookup import ShaderLookup

WALKED = ids_of(native=BINNING)
"""Records the walker executes, if it can."""

GOES_ON, OTHER, INTERRUPTED, FLUSHED = 0, 1, 2, 3
"""What the walker does with a record: executes it · leaves it to Python · has begun to draw, but
the binner stopped with the status in `WalkContext.status` · has flushed, with that status."""

CONFIGURED, BEGUN, ARMED = 1, 2, 4
"""Bits of `WalkContext.events`: records 112, 6 and 7 were executed since Python looked."""

WORK_PER_CALL = 1 << 20
"""Records, draws (`DRAW_WORK` each), indices and batches of vertices one call looks at."""
DRAW_WORK = 64


MOST_NOTES = 1024
"""Notes the walker makes before Python looks at them."""


class Note(Struct):
    """A draw that the walker has done, or a record 112: what Python needs to name its memory."""

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


class WalkContext(ShaderLookup):
    """Where the walker is, what it may do, and the native code it calls."""

    binner = ptr  # BinContext
    nv = ptr  # NvContext
    used = ptr  # MAX_VERTICES bytes, all zero between two draws
    output = ptr  # room for the coordinates of one draw
    here = i32  # guest address of the next record
    end = i32
    notes = ptr  # Note each, of records that name memory; for those who listen
    note_room = i32  # 0: no one does
    note_count = i32
    configured = i32  # record 112 has given a grid of tiles
    started = i32  # record 6 was executed, no flush since
    ended = i32  # a flush was executed, neither record 6 nor 112 since
    events = i32
    flushed_all = i32  # the flush was a record 5
    clipping_disabled = i32  # register BXCF
    drawn = i32  # primitive records executed since Python looked
    status = i32
    work = i32
    first = i32  # vertices of the draw
    last = i32
    indices = i64  # of all draws of this list
    format_record = Array(i8, RECORD_SLOT)  # a record 56 that no list has
    # native functions of other modules; 0: Python has not needed them yet
    bytes_used = ptr  # range and used map of indices of 8 bits
    shorts_used = ptr  # of 16 bits
    copy_nv = ptr
    configure = ptr
    finish = ptr
    outcodes = ptr
    binners = Array(ptr, 3)  # by primitive type of the list
