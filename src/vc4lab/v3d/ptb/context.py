"""Data shared between the native binner (PTB) and its Python side."""

from __future__ import annotations

from vc4lab.records import primitives
from vc4lab.records.control import STATE_SLOTS
from vc4lab.records.states import GlShaderState, PrimitiveListFormat
from vc4lab.simd import Array, Struct, f32, i8, i32, i64, ptr
from vc4lab.v3d.state.native_records import RECORD_SLOT

STATE_KINDS = STATE_SLOTS
"""Kinds of state the binner caches, in the order it writes them into a tile list."""

KIND_OF_RECORD: dict[int, int] = {
    identifier: kind for kind, identifiers in enumerate(STATE_KINDS) for identifier in identifiers
}
FORMAT_KIND = KIND_OF_RECORD[PrimitiveListFormat.id]
SHADER_KIND = KIND_OF_RECORD[GlShaderState.id]

NEVER_SET = -1
"""Change counter of a kind of state that was never programmed."""

FAR_INDEX = 0x40000000
"""`previous index` of a fresh list: no relative coding can match it."""

LINK_RESERVE = 6
"""Bytes kept free at the end of a block: end of list (1) and a branch (5)."""

DONE, OUT_OF_MEMORY, PAUSED, BAD_INDEX = 0, 1, 2, 3
"""Results of native binning; after 1 and 2 it can be called again to go on."""

VG_END, VG_DUMMY = primitives.VG_TERMINATOR - (1 << 32), primitives.VG_DUMMY - (1 << 32)
"""Codes among the vertices of a VG list, as signed words: end of the list, primitive left out."""

STATE_LIMIT = 0x1EF0
"""Changes of state after which the hardware's counter is near its overflow (HW-2116)."""
WORK_PER_CALL = 1 << 20
"""Primitives and tile rows one call of a binning kernel handles, before it is PAUSED."""

GUARD_BAND = 32752.0
"""Largest |Xs|, |Ys| in 1/16 pixel a vertex may have without being cut (s12.4 ends at 32767)."""

CLIP_PLANES = 7
MAX_POLYGON = 3 + CLIP_PLANES
"""A triangle cut by n planes has at most 3 + n corners."""


STAMP_BIT = 1 << 31
"""Set in stamps: no `key` has it."""

COUNTERS = ("rejected", "clipped", "degenerate", "outside", "entries", "blocks")
"""Members of `BinnerContext` that count since the last record 112, side by side."""


class TileState(Struct):
    """The place at which a tile's list is being written; layout of the tiles array (32 bytes per tile)."""

    cursor = i32  # guest address of the next byte
    limit = i32  # last cursor that leaves LINK_RESERVE bytes in the block
    seen = i32  # state counter value up to which this tile got its state
    key = i32  # counter and format of the open compressed list, 0 = none open
    p0 = i32  # indices of the previous primitive of the open list
    p1 = i32
    p2 = i32
    newest = i32  # of the triangle p0..p2: `key` = three vertices in a row, or its stamp, or 0


class BinnerContext(Struct):
    """Everything the native binner reads and writes."""

    memory = ptr
    tiles = ptr
    tile_room = i32  # so many of them
    vertices = ptr  # coordinate buffer, SoA batches of 16
    codes = ptr  # one outcode byte per vertex
    state = ptr  # RenderState
    pitch = i32  # bytes per batch
    xy_row = i32  # byte offsets of rows in a batch
    size_row = i32  # -1: no point size per vertex
    clipping = i32  # 0: only the screen coordinates are used
    # the frame
    width = i32  # in tiles
    height = i32
    shift_x = i32  # log2 of the tile size in 1/16 pixel
    shift_y = i32
    first_x = i32  # tiles that can be touched at all (frame and clip window)
    last_x = i32
    first_y = i32
    last_y = i32
    # current state
    viewport_x = i32
    viewport_y = i32
    point_size = f32
    line_width = f32
    half_width = f32  # record 105, 1/16 pixel
    half_height = f32
    guard_x = f32  # largest |Xs|, |Ys| before a primitive is cut
    guard_y = f32
    z_scale = f32  # record 106
    z_offset = f32
    counter = i32
    drawn = i32  # something was drawn since the last change of state
    full = i32  # the counter has come to STATE_LIMIT since Python looked
    format_in_force = i32  # record 56; -1: none yet
    clip_used = i32  # choices: the binner minds the clip window
    format_told = i32  # the first list of a tile says its format, whatever the frame before had
    empty_windows = i32  # which clip windows without pixels set no limit: EMPTY_WINDOWS
    guard_follows = i32  # the guard band is the viewport
    offset_first = i32  # record 106 begins with the offset
    rht_moved = i32  # -1: the viewport offset moves the boundary of record 100
    first_kind = i32  # the kind of state that a tile list gets first
    leave_facing = i32  # triangles that face the wrong way are left out
    weights_projected = i32  # weights of clip records are for varyings divided by Wc
    keep_far = i32  # nothing is cut at the far plane
    halves = i32  # double buffering halves tiles
    key = i32  # counter << 2 | primitive type, + 1 so that it is never 0
    changed = Array(i32, len(STATE_KINDS))
    record_bytes = Array(i32, len(STATE_KINDS))
    records = Array(i8, RECORD_SLOT * len(STATE_KINDS))
    # the pool of list blocks
    pool_address = i32
    pool_bytes = i32  # unsigned
    spill_address = i32
    spill_bytes = i32
    spill_used = i32
    pool_missing = i32  # record 112 gives less memory than its tiles need
    lists = i32  # bus address of the first tile's list
    initial_bytes = i32  # of a tile's first block
    block_bytes = i32
    # what lay there before (`overwritten.py`)
    kept_places = ptr  # a bus address each
    kept_bytes = ptr
    kept = i32  # pieces
    kept_room = i32  # 0: nothing is kept
    # the draw
    mode = i32
    index_type = i32
    index_address = i32
    first_index = i32
    length = i32
    max_index = i32
    first_vertex = i32  # vertices in the coordinate buffer
    last_vertex = i32
    primitive_count = i32
    close_first = i32  # a line loop's last line: 1 = (first, last), 0 = (last, first)
    primitive = i32  # resume point: primitive, part of a clipped one, tile
    part = i32
    tile_x = i32  # -1: start of the primitive
    tile_y = i32
    clip_record = i32  # clip record of the part being written
    # VG lists
    vg_first = i32  # vertices that a strip or fan keeps
    vg_second = i32
    vg_held = i32  # they are there (2: from the fan that this list continues)
    vg_keep_second = i32  # a continued fan's second vertex is the list's own
    vg_fan = i32  # the VG list before was a fan
    vg_odd = i32  # the next triangle of a strip has its first two vertices exchanged
    vg_restart = i32  # a strip or fan begins again after VG_DUMMY
    rht_boundary = i32  # viewport offset included
    stamp = i32  # the last that a triangle got (`window.py`)
    work = i32  # primitives and tile entries left before PAUSED
    # counters, since the last configure()
    rejected = i32  # all vertices outside one plane, or not finite
    clipped = i32
    degenerate = i32  # no area
    outside = i32  # no tile touched
    entries = i32  # primitives written into tile lists
    blocks = i32  # blocks taken from the pool
    earlier = Array(i64, len(COUNTERS))  # what was counted before
    # clipper scratch
    bad_index = i32


class DirectContext(BinnerContext):
    """A draw of the rendering list, whose primitives go to no tiles."""

    output = ptr  # host address of what is written next
