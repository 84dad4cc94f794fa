"""Writes tile lists into guest memory: blocks, links, state records, compressed primitives.

A block keeps LINK_RESERVE bytes free, so a list can always be ended and linked to the next block:
by the 3-byte relative branch inside compressed data, by Branch (16) outside. Nothing is marked as
written before it is, so after running out of memory the same call is repeated. Source: AG100-R
pp. 52-53 and 75-79, recorded lists.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.memory.native import host
from vc4lab.records.declarations import Branch, Return
from vc4lab.records.primitives import ESCAPE_ABSOLUTE, ESCAPE_BRANCH, ESCAPE_END
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import i1, i8, i16, i32, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import usub_sat
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.ptb.context import BinnerContext, TileState
from vc4lab.v3d.ptb.overwritten import keep
from vc4lab.v3d.state.native_records import RECORD_SLOT
from vc4lab.v3d.tile_lists.primitive_decoder import CLIPPED_LIST, COMPRESSED_LIST

BRANCH, RETURN = Branch.id, Return.id


@kernel(args=(ptr, i32), returns=i32)
def allocate(context: Value, size: Value) -> Value:
    """Take `size` bytes from the pool or the overspill block; their address, 0 if empty."""
    c = BinnerContext.at(context)
    if c.pool_bytes.ult(size):
        if c.spill_bytes != 0:
            start = (c.spill_address + 31) & ~31
            c.pool_bytes = usub_sat(c.spill_bytes, start - c.spill_address)
            c.pool_address = start
            c.spill_bytes = 0
            c.spill_used = c.spill_used + 1
    address = const(i32, 0)
    if c.pool_bytes.uge(size):
        address = c.pool_address
        c.pool_address = address + size
        c.pool_bytes = c.pool_bytes - size
        keep(c, address, size)
        address = select(address == 0, const(i32, 1 << 30), address)  # the same place, but not 0
    return address


@kernel(args=(ptr, ptr), returns=i32)
def link(context: Value, tile: Value) -> Value:
    """Continue the tile's list in a new block."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.OUT_OF_MEMORY)
    block = call(allocate, context, c.block_bytes)
    if block != 0:
        status = const(i32, pc.DONE)
        c.blocks = c.blocks + 1
        cursor = t.cursor
        here = host(c.memory, cursor)
        target = block
        steps = ((block & ~31) - (cursor & ~31)) >> 5
        if (t.key != 0) & ((block & 31) == 0) & (steps == steps.trunc(i16).sext(i32)):
            store(here, const(i8, ESCAPE_BRANCH))
            store(here + 1, steps.trunc(i16))
        else:
            branch = here
            if t.key != 0:
                store(here, const(i8, ESCAPE_END))
                branch = here + 1
                store(host(c.memory, block), const(i8, COMPRESSED_LIST))
                target = block + 1
                t.p0 = pc.FAR_INDEX
                t.p1 = pc.FAR_INDEX
                t.p2 = pc.FAR_INDEX
            store(branch, const(i8, BRANCH))
            store(branch + 1, block)
        t.cursor = target
        t.limit = block + (c.block_bytes - pc.LINK_RESERVE)
    return status


@staged
def close_list(c: BinnerContext, t: TileState) -> None:
    """End an open compressed list; its byte may stand in the reserve (a branch still fits)."""
    if t.key != 0:
        store(host(c.memory, t.cursor), const(i8, ESCAPE_END))
        t.cursor = t.cursor + 1
        t.key = 0
        t.newest = 0


@staged
def _copy_record(target: Value, source: Value, size: Value) -> None:
    """Copy 2 to 9 bytes without touching more."""
    store(target, load(i8, source))
    if size == 9:
        store(target + 1, load(i64, source + 1))
    elif size == 5:
        store(target + 1, load(i32, source + 1))
    elif size == 4:
        store(target + 1, load(i16, source + 1))
        store(target + 3, load(i8, source + 3))
    elif size == 3:
        store(target + 1, load(i16, source + 1))
    else:
        store(target + 1, load(i8, source + 1))


@kernel(args=(ptr, ptr, i32), returns=i32)
def write_state(context: Value, tile: Value, everything: Value) -> Value:
    """Write the state this tile has not seen (or all state); the list is closed first."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    close_list(c, t)
    seen = t.seen
    wrote_format = const(i1, False)
    changed = c.changed
    sizes = c.record_bytes
    records = c.records
    for position in range(len(pc.STATE_KINDS)):
        kind: Value = position + c.first_kind
        kind = select(kind < len(pc.STATE_KINDS), kind, kind - len(pc.STATE_KINDS))
        change = load(i32, changed + kind * 4)
        wanted = (change > seen) | ((everything != 0) & (change >= 0))
        wanted = wanted | ((kind == pc.SHADER_KIND) & wrote_format & (change >= 0))
        if wanted & (status == pc.DONE):
            size = load(i32, sizes + kind * 4)
            if t.limit - t.cursor < size:
                status = call(link, context, tile)
            if status == pc.DONE:
                _copy_record(host(c.memory, t.cursor), records + kind * RECORD_SLOT, size)
                t.cursor = t.cursor + size
                wrote_format = wrote_format | (kind == pc.FORMAT_KIND)
    if status == pc.DONE:
        t.seen = c.counter
    return status


@kernel(args=(ptr, ptr, i32), returns=i32)
def open_list(context: Value, tile: Value, clip: Value) -> Value:
    """Bring a tile's state up to date and start a list: 49 with the word `clip`, 48 if 0."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    if t.seen != c.counter:
        status = call(write_state, context, tile, 0)
    close_list(c, t)
    # a clipped list and its first primitive must stay together
    need = select(clip != 0, const(i32, 12), const(i32, 8))
    if (status == pc.DONE) & (t.limit - t.cursor < need):
        status = call(link, context, tile)
    if status == pc.DONE:
        here = host(c.memory, t.cursor)
        if clip != 0:
            store(here, const(i8, CLIPPED_LIST))
            store(here + 1, clip)
            t.cursor = t.cursor + 5
        else:
            store(here, const(i8, COMPRESSED_LIST))
            t.cursor = t.cursor + 1
        t.key = c.key
        t.p0 = pc.FAR_INDEX
        t.p1 = pc.FAR_INDEX
        t.p2 = pc.FAR_INDEX
    return status


@staged
def ready(context: Value, tile: Value, clip: Value) -> Value:
    """A list of the wanted format is open (opens it if not); a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    if (t.key != c.key) | (clip != 0):
        status = call(open_list, context, tile, clip)
    return status


@staged
def room(context: Value, tile: Value, size: Value) -> Value:
    """`size` bytes are free in the tile's block (links a new one if not); a status."""
    t = TileState.at(tile)
    status = const(i32, pc.DONE)
    if t.limit - t.cursor < size:
        status = call(link, context, tile)
    return status


def fits(value: Value, low: int, high: int) -> Value:
    """low <= value <= high in one unsigned comparison."""
    return (value - low).ule(high - low)


@staged
def append_triangle(context: Value, tile: Value, i0: Value, i1_: Value, i2: Value) -> Value:
    """Add a triangle to the open list in the shortest coding; a status."""
    return call(append_coded, context, tile, i0, i1_, i2)


@kernel(args=(ptr, ptr, i32, i32, i32), returns=i32)
def append_coded(context: Value, tile: Value, i0: Value, i1_: Value, i2: Value) -> Value:
    """`append_triangle`, a function of its own: it is long, and several places need it."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    word, size = triangle_coding(previous(t), (i0, i1_, i2))
    status = room(context, tile, size)
    if status == pc.DONE:
        if (t.p0 == pc.FAR_INDEX) & (size < 4):  # the link started a new list: nothing to refer to
            word, size = absolute_coding(i0, i1_, i2), const(i32, 7)
            status = room(context, tile, size)
    if status == pc.DONE:
        here = host(c.memory, t.cursor)
        if t.limit - t.cursor >= 8 - pc.LINK_RESERVE:
            store(here, word)  # eight bytes end inside the block, and only the coding's count
        else:
            store(here, word.trunc(i8))
        t.cursor = t.cursor + size
        remember(t, i0, i1_, i2)
    return status


@staged
def previous(t: TileState) -> tuple[Value, Value, Value]:
    """The indices of the tile's newest triangle; of three in a row only the first is kept."""
    p0, p1, p2 = t.p0, t.p1, t.p2
    row = t.newest > 0
    return p0, select(row, p0 + 1, p1), select(row, p0 + 2, p2)


def remember(t: TileState, i0: Value, i1_: Value, i2: Value) -> None:
    """These are the indices of the tile's newest triangle."""
    t.p0 = i0
    t.p1 = i1_
    t.p2 = i2
    row = (i1_ - i0 == 1) & (i2 - i0 == 2)
    t.newest = select(row, t.key, const(i32, 0))


@staged
def triangle_coding(before: Sequence[Value], indices: Sequence[Value]) -> tuple[Value, Value]:
    """The shortest coding of a triangle after the previous one: bytes (i64), their number.

    The vertex numbers may be vectors, a triangle in each lane.
    """
    p0, p1, p2 = before
    i0, i1_, i2 = indices
    delta = i2 - p2
    d1, d2 = i1_ - i0, i2 - i0
    first, second = (i0 == p2) & (i1_ == p1), (i0 == p0) & (i1_ == p2)
    strip = (first | second | ((i0 == p1) & (i1_ == p0))) & fits(delta, -31, 31)
    near = fits(i0 - p0, -8, 7) & fits(i1_ - p1, -8, 7) & fits(delta, -8, 7)
    fan = fits(d1, -31, 31) & fits(d2, -31, 31)
    kind = (~first).zext(i32) + (~(first | second)).zext(i32)
    short = select(
        near,
        (((i0 - p0) & 15) << 4) | (((i1_ - p1) & 15) << 8) | ((delta & 15) << 12) | 3,
        ((d1 & 63) << 4) | ((d2 & 63) << 10) | (i0 << 16) | 15,
    )
    short = select(strip, kind | (delta << 2), short)
    one, two, four, seven = (const(i0.type, size) for size in (1, 2, 4, 7))
    size = select(strip, one, select(near, two, select(fan, four, seven)))
    word = select(size == 7, absolute_coding(i0, i1_, i2), short.zext(i64))
    return word, size


def absolute_coding(i0: Value, i1_: Value, i2: Value) -> Value:
    """A triangle as it stands anywhere: seven bytes (i64)."""
    indices = i0.zext(i64) | (i1_.zext(i64) << 16) | (i2.zext(i64) << 32)
    return (indices << 8) | ESCAPE_ABSOLUTE


@staged
def append_line(context: Value, tile: Value, i0: Value, i1_: Value) -> Value:
    """Add a line to the open list; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    p0, p1 = t.p0, t.p1
    delta = i1_ - p1
    span = i1_ - i0
    size = const(i32, 5)
    word = const(i32, 0)
    if ((i0 == p1) | (i0 == p0)) & fits(delta, -31, 31):
        word = select(i0 == p1, const(i32, 0), const(i32, 1)) | (delta << 2)
        size = const(i32, 1)
    elif fits(i0 - p0, -8, 7) & fits(delta, -8, 7):
        word = (((i0 - p0) & 15) << 4) | ((delta & 15) << 8) | 3
        size = const(i32, 2)
    elif fits(span, -31, 31):
        word = ((span & 63) << 2) | (i0 << 8) | 2
        size = const(i32, 3)
    status = room(context, tile, size)
    if status == pc.DONE:
        if (t.p1 == pc.FAR_INDEX) & (size < 3):
            size = const(i32, 5)
            status = room(context, tile, size)
        here = host(c.memory, t.cursor)
        if size == 1:
            store(here, word.trunc(i8))
        elif size == 2:
            store(here, word.trunc(i16))
        elif size == 3:
            store(here, word.trunc(i16))
            store(here + 2, word.shr(16).trunc(i8))
        else:
            store(here, (i0 << 8) | ESCAPE_ABSOLUTE | (i1_ << 24))
            store(here + 4, i1_.shr(8).trunc(i8))
        t.cursor = t.cursor + size
        t.p0 = i0
        t.p1 = i1_
    return status


@staged
def append_point(context: Value, tile: Value, index: Value) -> Value:
    """Add a point to the open list; a status."""
    c = BinnerContext.at(context)
    t = TileState.at(tile)
    delta = index - t.p0
    size = const(i32, 3)
    word = const(i32, 0)
    if fits(delta, -31, 31):
        word = delta << 2
        size = const(i32, 1)
    elif fits(delta, -8191, 8191):
        word = (delta << 2) | 3
        size = const(i32, 2)
    status = room(context, tile, size)
    if status == pc.DONE:
        if (t.p0 == pc.FAR_INDEX) & (size < 3):
            size = const(i32, 3)
            status = room(context, tile, size)
        here = host(c.memory, t.cursor)
        if size == 1:
            store(here, word.trunc(i8))
        elif size == 2:
            store(here, word.trunc(i16))
        else:
            store(here, ((index << 8) | ESCAPE_ABSOLUTE).trunc(i16))
            store(here + 2, index.shr(8).trunc(i8))
        t.cursor = t.cursor + size
        t.p0 = index
    return status
