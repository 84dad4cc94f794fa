"""Eight triangles on their way into tile lists: indices, outcodes, positions, tiles, codings.

Vectors fetch what belongs to eight triangles and find those that are rejected, those that touch one
tile and those that need a closer look. How a triangle is coded behind the one before it is found
here as well, for all at once; it holds where both go to the same tile, as neighbours mostly do.
"""

from __future__ import annotations

from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Array,
    Struct,
    Value,
    const,
    f64,
    gather,
    i32,
    i64,
    iota,
    load,
    mask_bits,
    max_,
    min_,
    popcount_,
    select,
    shuffle,
    splat,
    staged,
    store,
    vec,
)
from vc4lab.v3d.geometry.clipper import OUT_BAD, OUT_CUT, OUT_VOLUME
from vc4lab.v3d.geometry.list_writer import append_triangle, ready, triangle_coding
from vc4lab.v3d.geometry.primitive_decoder import host
from vc4lab.v3d.geometry.ptb_context import DONE, INDEX_8, INDEX_ARRAY, BinContext, TileState
from vc4lab.v3d.geometry.ptb_tiles import away

BATCH = 8
"""Triangles in a window."""

TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = 4, 5, 6

_i32x8 = vec(i32, BATCH)
SHIFTED = [0, *range(BATCH - 1)]
"""For each lane the one before it; lane 0 has none."""


class TriangleWindow(Struct):
    """Eight triangles: vertex numbers, packed positions, outcodes of any corner, tile offsets.

    `coding` and `size_`: bytes of a triangle behind the one in the lane before (lane 0: behind the
    first tile's last one) and their number; they hold for the lanes in `chained`.
    """

    coding = Array(i64, BATCH)
    i0 = Array(i32, BATCH)
    i1 = Array(i32, BATCH)
    i2 = Array(i32, BATCH)
    w0 = Array(i32, BATCH)
    w1 = Array(i32, BATCH)
    w2 = Array(i32, BATCH)
    some = Array(i32, BATCH)
    tile = Array(i32, BATCH)
    second = Array(i32, BATCH)
    size_ = Array(i32, BATCH)
    rejected = i32  # lanes that no tile sees, as bits: outside a plane or not finite,
    outside = i32  # beyond all tiles,
    degenerate = i32  # without area,
    hidden = i32  # facing the wrong way, if the binner minds that
    bad = i32  # an index above the record's maximum
    single = i32  # lanes with one tile
    pair = i32  # lanes with two, side by side: each has a corner
    chained = i32  # lanes whose coding holds in the first tile, above them those in the second
    alike = i32  # lanes with the one tile of the lane before


@staged
def window_indices(c: Any, first: Value) -> Any:
    """Vertex numbers of the triangles from number `first` on, within the coordinate buffer.

    The fourth result: the largest of each triangle as the list has it.
    """
    number = splat(first, BATCH) + iota(BATCH)
    odd = number & splat(select(c.mode == TRIANGLE_STRIP, const(i32, 1), const(i32, 0)), BATCH)
    base = number * splat(select(c.mode == TRIANGLES, const(i32, 3), const(i32, 1)), BATCH)
    anchor = splat(select(c.mode == TRIANGLE_FAN, const(i32, 0), const(i32, -1)), BATCH)
    positions = ((base + odd) & anchor, base + 1 - odd, base + 2)
    j0, j1, j2 = positions
    if c.index_type == INDEX_ARRAY:
        start = splat(c.first_index, BATCH)
        j0, j1, j2 = (start + p for p in positions)
    elif c.index_type == INDEX_8:
        start = splat(c.index_address, BATCH)
        j0, j1, j2 = (gather(i32, c.memory, (start + p) & MEMORY_MASK) & 0xFF for p in positions)
    else:
        start = splat(c.index_address, BATCH)
        j0, j1, j2 = (gather(i32, c.memory, (start + (p << 1)) & MEMORY_MASK) for p in positions)
    low, high = splat(c.first_vertex, BATCH), splat(c.last_vertex, BATCH)
    clamped = [max_(min_(j & 0xFFFF, high), low) for j in (j0, j1, j2)]
    return (*clamped, max_(clamped[0], max_(clamped[1], clamped[2])))


@staged
def packed_positions(c: Any, first: Value, i0: Value, i1_: Value, i2: Value) -> Any:
    """Ys:Xs of the three corners of each triangle."""
    rows = c.vertices + c.xy_row
    start = c.first_index + first * 3
    inside = (start >= c.first_vertex) & (start + (3 * BATCH - 1) <= c.last_vertex)
    plain = (c.mode == TRIANGLES) & (c.index_type == INDEX_ARRAY) & ((start & 7) == 0)
    if plain & inside:  # 24 vertices in a row
        places = [start + 8 * k for k in range(3)]
        parts = [load(_i32x8, rows + v.shr(4) * c.pitch + ((v & 15) << 2)) for v in places]
        low = shuffle(parts[0], parts[1], list(range(16)))
        high = shuffle(parts[2], parts[2], list(range(16)))
        w0, w1, w2 = (shuffle(low, high, list(range(k, 24, 3))) for k in (0, 1, 2))
    else:
        pitch = splat(c.pitch, BATCH)
        corners = (i0, i1_, i2)
        w0, w1, w2 = (gather(i32, rows, i.shr(4) * pitch + ((i & 15) << 2)) for i in corners)
    return w0, w1, w2


@staged
def look(c: Any, window: Any, first: Value, count: Value) -> None:
    """Fill the window with `count` triangles from number `first` on."""
    i0, i1_, i2, highest = window_indices(c, first)
    store(window.field_ptr("i0"), i0)
    store(window.field_ptr("i1"), i1_)
    store(window.field_ptr("i2"), i2)
    here = iota(BATCH) < splat(count, BATCH)
    some = const(_i32x8, 0)
    every = const(_i32x8, 0)
    if c.clipping != 0:
        codes = [gather(i32, c.codes, index) & 0xFF for index in (i0, i1_, i2)]
        some = codes[0] | codes[1] | codes[2]
        every = codes[0] & codes[1] & codes[2]
    store(window.field_ptr("some"), some)
    rejected = ((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0)

    words = packed_positions(c, first, i0, i1_, i2)
    for name, word in zip(("w0", "w1", "w2"), words, strict=True):
        store(window.field_ptr(name), word)
    x = [((word << 16) >> 16) + splat(c.viewport_x, BATCH) for word in words]
    y = [(word >> 16) + splat(c.viewport_y, BATCH) for word in words]
    shift_x, shift_y = splat(c.shift_x, BATCH), splat(c.shift_y, BATCH)
    low_x = min_(x[0], min_(x[1], x[2])) >> shift_x
    high_x = max_(x[0], max_(x[1], x[2])) >> shift_x
    low_y = min_(y[0], min_(y[1], y[2])) >> shift_y
    high_y = max_(y[0], max_(y[1], y[2])) >> shift_y
    left, right = max_(low_x, splat(c.first_x, BATCH)), min_(high_x, splat(c.last_x, BATCH))
    bottom, top = max_(low_y, splat(c.first_y, BATCH)), min_(high_y, splat(c.last_y, BATCH))
    # Products of 12.4 differences are exact in doubles.
    x1, x2 = (x[1] - x[0]).to_float(f64), (x[2] - x[0]).to_float(f64)
    y1, y2 = (y[1] - y[0]).to_float(f64), (y[2] - y[0]).to_float(f64)
    flat = x1 * y2 == x2 * y1

    bad = here & highest.ugt(splat(c.max_index, BATCH))
    usual = here & ~bad & ~rejected & ((some & OUT_CUT) == 0)
    outside = (left > right) | (bottom > top)
    hidden = const(_i32x8, 0)
    if c.leave_facing != 0:
        turn = x1 * y2 - x2 * y1
        hidden = select(away(c, turn < 0.0, turn > 0.0), const(_i32x8, 1), 0)
    shown = usual & (hidden == 0)
    across, up = right - left, top - bottom
    single = shown & ~flat & ((across | up) == 0)
    whole = (low_x == left) & (high_x == right) & (low_y == bottom) & (high_y == top)
    pair = shown & ~flat & whole & (across + up == 1) & ~outside
    width = splat(c.width * TileState.size, BATCH)
    tile = bottom * width + left * TileState.size
    second = tile + select(up != 0, width, splat(const(i32, TileState.size), BATCH))
    store(window.field_ptr("tile"), tile)
    store(window.field_ptr("second"), second)
    window.bad = mask_bits(bad)
    window.rejected = mask_bits(here & ~bad & rejected)
    window.outside = mask_bits(usual & outside)
    window.degenerate = mask_bits(usual & ~outside & flat)
    window.hidden = mask_bits(usual & (hidden != 0))
    window.single = mask_bits(single)
    window.pair = mask_bits(pair)
    code(c, window, tile, second, (i0, i1_, i2))


@staged
def code(c: Any, window: Any, tile: Value, second: Value, indices: Any) -> None:
    """How each triangle is coded behind the one before it, and in which tiles that stands there."""
    singles, pairs = window.single, window.pair
    plain = singles | pairs
    own: Any = TileState.at(c.tiles + select((plain & 1) != 0, tile[0], const(i32, 0)))
    last = (own.p0, own.p1, own.p2)
    before = [shuffle(i, SHIFTED) for i in indices]
    before = [values.insert(0, p) for values, p in zip(before, last, strict=True)]
    words, sizes = triangle_coding(before, indices)
    store(window.field_ptr("coding"), words)
    store(window.field_ptr("size_"), sizes)
    tile_before, second_before = shuffle(tile, SHIFTED), shuffle(second, SHIFTED)
    same = mask_bits(tile == tile_before)
    first_met = same & (plain << 1) | (mask_bits(tile == second_before) & (pairs << 1))
    second_met = mask_bits(second == tile_before) & (plain << 1)
    second_met = second_met | (mask_bits(second == second_before) & (pairs << 1))
    ready = select(own.key == c.key, const(i32, 1), const(i32, 0))
    first_met = (first_met & ~1 | ready) & plain
    window.chained = first_met | (second_met & pairs & ~1) << BATCH
    window.alike = same & singles & (singles << 1)


@staged
def append_run(c: Any, window: Any, lane: Value) -> Value:
    """Append the triangle of `lane`, whose coding holds, and those in the same tile behind it.

    It ends where there is no room; their number.
    """
    place = window.pointer + lane * 4
    t: Any = TileState.at(c.tiles + load(i32, place + TriangleWindow.offset("tile")))
    rest = window.alike.shr(lane) | 1
    count = popcount_((~rest & (rest + 1)) - 1)
    cursor, limit = t.cursor, t.limit
    codings = window.pointer + lane * 8
    k = const(i32, 0)
    while (k < count) & (limit - cursor >= 8):  # always eight bytes: they stay inside the block
        word = load(i64, codings + k * 8 + TriangleWindow.offset("coding"))
        store(host(c.memory, cursor), word)
        cursor = cursor + load(i32, place + k * 4 + TriangleWindow.offset("size_"))
        k = k + 1
    if k > 0:
        newest = place + (k - 1) * 4
        t.cursor = cursor
        t.p0 = load(i32, newest + TriangleWindow.offset("i0"))
        t.p1 = load(i32, newest + TriangleWindow.offset("i1"))
        t.p2 = load(i32, newest + TriangleWindow.offset("i2"))
    return k


@staged
def append_lane(context: Value, window: Any, lane: Value, tiles: Value) -> Value:
    """Append the triangle of `lane` to its one or two tiles; a status.

    When memory runs out before the second, `tile_x` and `tile_y` say where to go on.
    """
    c: Any = BinContext.at(context)
    place = window.pointer + lane * 4
    i0 = load(i32, place + TriangleWindow.offset("i0"))
    i1_ = load(i32, place + TriangleWindow.offset("i1"))
    i2 = load(i32, place + TriangleWindow.offset("i2"))
    known = window.chained.shr(lane)
    status = const(i32, DONE)
    part = const(i32, 0)
    while (part < tiles) & (status == DONE):
        offset = load(i32, place + part * (4 * BATCH) + TriangleWindow.offset("tile"))
        tile = c.tiles + offset.sext(i64)
        t: Any = TileState.at(tile)
        if ((known & 1) != 0) & (t.limit - t.cursor >= 8):
            word = window.pointer + lane * 8 + TriangleWindow.offset("coding")
            store(host(c.memory, t.cursor), load(i64, word))
            t.cursor = t.cursor + load(i32, place + TriangleWindow.offset("size_"))
            t.p0 = i0
            t.p1 = i1_
            t.p2 = i2
        else:
            status = ready(context, tile, const(i32, 0))
            if status == DONE:
                status = append_triangle(context, tile, i0, i1_, i2)
        if status == DONE:
            c.entries = c.entries + 1
            known = known.shr(BATCH)
            part = part + 1
        elif part > 0:
            number = offset.udiv(TileState.size)
            c.tile_y = number.udiv(c.width)
            c.tile_x = number.urem(c.width)
    c.work = c.work - (tiles - 1)
    return status
