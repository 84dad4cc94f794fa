"""The beginning and the end of a frame of tile lists: record 112, records 4 and 5.

Source: hardware reference 3.2, 3.4, 3.9.
"""

from __future__ import annotations

from vc4lab.memory.pointers import host
from vc4lab.records.declarations import TileBinningMode
from vc4lab.simd import Value, call, const, i8, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import RETURN, close_list, write_state
from vc4lab.v3d.ptb.overwritten import keep
from vc4lab.v3d.ptb.state_records import limits
from vc4lab.v3d.vertex.shader_lookup import field

_SMALLEST_BLOCK = 32
"""Bytes of a block of tile list memory whose code is 0; each next code doubles them."""


@kernel(args=(ptr, ptr), returns=None)
def configure(context: Value, payload: Value) -> None:
    """Record 112, whose payload is at a host address: the grid of tiles and their memory.

    There is room for its tiles. `pool_missing` says whether the memory is too small for them.
    """
    c = BinnerContext.at(context)
    m = TileBinningMode
    c.width = field(payload, m.tiles_x)
    c.height = field(payload, m.tiles_y)
    multisample = field(payload, m.multisample)
    halved = field(payload, m.double_buffer) & c.halves & (multisample ^ 1)
    halved = halved | field(payload, m.colour64)
    c.shift_x = 10 - multisample  # 64 or 32 pixels
    c.shift_y = 10 - multisample - halved
    initial = const(i32, _SMALLEST_BLOCK) << field(payload, m.initial_block)
    block = const(i32, _SMALLEST_BLOCK) << field(payload, m.block)
    c.initial_bytes = initial
    c.block_bytes = block
    base = field(payload, m.address)
    lists = (c.width * c.height).zext(i64) * initial.zext(i64)
    pool = base.zext(i64) + lists + (block - 1).zext(i64)
    pool = pool & (const(i64, 0) - block.zext(i64))
    left = field(payload, m.memory_size).zext(i64) - (pool - base.zext(i64))
    c.pool_address = pool.trunc(i32)
    c.pool_bytes = left.trunc(i32)
    c.pool_missing = select(left < 0, const(i32, 1), const(i32, 0))
    c.lists = base
    keep(c, base, lists.trunc(i32))
    c.spill_used = 0
    if c.format_told != 0:  # only a record 56 of this binning list makes it unnecessary
        c.format_in_force = -1
    _reset_tiles(c, base, initial)
    _add_counters(c)
    limits(c)


@staged
def _reset_tiles(c: BinnerContext, base: Value, initial: Value) -> None:
    """Every list begins in the fixed area: block y * width + x of `initial` bytes.

    After the last tile stands a state without a list, for what has no tile (`window.py`).
    """
    tiles = c.width * c.height
    for k in range(tiles):
        t = TileState.at(c.tiles + k * TileState.size)
        t.cursor = base + k * initial
        t.limit = base + k * initial + (initial - pc.LINK_RESERVE)
        t.seen = 0
        t.key = 0
        t.newest = 0
    none = TileState.at(c.tiles + tiles * TileState.size)
    none.newest = 0
    c.stamp = 0


@staged
def _add_counters(c: BinnerContext) -> None:
    """What was counted so far goes into the totals."""
    now, totals = c.field_ptr(pc.COUNTERS[0]), c.earlier
    for k in range(len(pc.COUNTERS)):
        total = totals + k * 8
        store(total, load(i64, total) + load(i32, now + k * 4).zext(i64))
        store(now + k * 4, const(i32, 0))


@kernel(args=(ptr, ptr, i32), returns=i32)
def finish_tile(context: Value, tile: Value, everything: Value) -> Value:
    """End a tile's list with Return (18), after all state if `everything` is not 0; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    if everything != 0:
        status = call(write_state, context, tile, 1)
    if status == pc.DONE:
        close_list(c, t)
        store(host(c.memory, t.cursor), const(i8, RETURN))
        t.cursor = t.cursor + 1
    return status


@kernel(args=(ptr, i32), returns=i32)
def finish_all(context: Value, everything: Value) -> Value:
    """End the lists of all tiles from the resume point (`primitive`) on; a status."""
    c = BinnerContext.at(context)
    status = const(i32, pc.DONE)
    k = c.primitive
    while (k < c.width * c.height) & (status == pc.DONE):
        status = call(finish_tile, context, c.tiles + k * TileState.size, everything)
        if status == pc.DONE:
            k = k + 1
    c.primitive = k
    if status == pc.DONE:  # what changed so far is prefix state of the next list
        c.counter = 0
        c.drawn = 0
        changed = c.changed
        for kind in range(len(pc.STATE_KINDS)):
            if load(i32, changed + kind * 4) != pc.NEVER_SET:
                store(changed + kind * 4, const(i32, 0))
    return status
