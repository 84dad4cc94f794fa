"""Triangles on their way into tile lists, many at a time: which tiles they go to, in list order.

Vectors fetch the positions of sixteen triangles and find those that are rejected, those that touch
one tile or two side by side, and those that need a closer look. What is to be written becomes a row
of entries without a branch; `lines_and_triangles.py` then writes them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.memory.native import host
from vc4lab.records.codes import PrimitiveMode
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import Array, i8x16, i16, i16x16, i32, i32x16, i64
from vc4lab.simd.memory import gather, load, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.types import mask16, vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import compress, iota, mask_bits, max_, min_, popcount_, shuffle
from vc4lab.v3d.ptb.clipper import OUT_BAD, OUT_CUT, OUT_VOLUME
from vc4lab.v3d.ptb.context import STAMP_BIT, BinnerContext, TileState
from vc4lab.v3d.ptb.list_writer import triangle_coding
from vc4lab.v3d.ptb.tiles import away
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_ARRAY
from vc4lab.v3d.vertex.fetch import deinterleave

LANES = 16
"""Triangles that are looked at together."""
WINDOW = 64
"""Triangles in a window."""

TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN = (
    int(mode) for mode in (PrimitiveMode.TRIANGLES, PrimitiveMode.TRIANGLE_STRIP, PrimitiveMode.TRIANGLE_FAN)
)

TILE_MASK, NUMBER_AT = 0xFFFF, 16
SECOND, SPECIAL = 1 << 24, 1 << 25
"""An entry: tile in bits 15:0, triangle of the window in 21:16; the second tile of a triangle; one
that is to be clipped, has many tiles or a bad index. None has a negative one."""

_HALVES = vec(i16, 2 * LANES)
Corners = tuple[Value, Value, Value]
"""Three vectors of sixteen triangles, one for each corner."""

FIRST_HALVES = [n // 2 + LANES * (n % 2) for n in range(LANES)]
SECOND_HALVES = [n + LANES // 2 for n in FIRST_HALVES]
"""Lanes of two vectors one by one: a, b, a, b, …"""


class TriangleWindow(Struct):
    """Collects what is to be written for the triangles of a window, their vertices, and the others.

    Triangle k of a window has the stamp `BinnerContext.stamp` + k + 1 in the tiles it went to.
    Tiles that have the stamp before it take its `coding`.
    """

    entries = Array(i32, 2 * WINDOW + 2 * LANES)  # with room at the end for whole vectors
    where = Array(i32, 2 * WINDOW + 2 * LANES)  # byte offset of the entry's tile; special: no tile
    vertex = Array(i32, 2 * WINDOW + 2 * LANES)  # first vertex of a triangle of a plain window
    coding = Array(i64, WINDOW)  # other windows: a triangle's bytes after the one before it
    bytes_ = Array(i32, WINDOW)  # and their number
    i0 = Array(i32, WINDOW)
    i1 = Array(i32, WINDOW)
    i2 = Array(i32, WINDOW)
    scratch = Array(i32, LANES)
    rejected = i64  # triangles that no tile sees, as bits: outside a plane or not finite,
    outside = i64  # beyond all tiles,
    degenerate = i64  # without area
    count = i32  # of entries
    plain = i32  # vertices follow each other in lists of three: nothing else to look at


@staged
def index_row(c: BinnerContext, window: TriangleWindow, position: Value) -> Value:
    """Vertex numbers at 16 positions of the draw, held within the coordinate buffer."""
    if c.index_type == INDEX_ARRAY:
        row = splat(c.first_index + position, LANES) + iota(LANES)
    else:
        wide = select(c.index_type == INDEX_8, const(i32, 0), const(i32, 1))
        start = (c.index_address + (position << wide)) & MEMORY_MASK
        if start > MEMORY_SIZE - 2 * LANES:  # round the end of memory
            k: Any
            for k in range(LANES):
                place = host(c.memory, start + (k << wide))
                store(window.scratch + k * 4, load(i16, place).zext(i32))
            row = load(i32x16, window.scratch)
        elif wide == 0:
            row = load(i8x16, c.memory + start.zext(i64)).zext(i32)
        else:
            row = load(i16x16, c.memory + start.zext(i64)).zext(i32)
        row = row & select(wide == 0, const(i32, 0xFF), const(i32, 0xFFFF))
    return max_(min_(row & 0xFFFF, c.last_vertex), c.first_vertex)


@staged
def window_indices(c: BinnerContext, window: TriangleWindow, plain: Value, first: Value) -> Corners:
    """Vertex numbers of 16 triangles from number `first` on."""
    if plain:
        i0 = splat(c.first_index + first * 3, LANES) + const(i32x16, list(range(0, 48, 3)))
        i1_, i2 = i0 + 1, i0 + 2
    elif c.mode == TRIANGLES:
        at = first * 3
        i0, i1_, i2 = deinterleave([index_row(c, window, at + LANES * k) for k in (0, 1, 2)])
    else:
        i0, i1_ = index_row(c, window, first), index_row(c, window, first + 1)
        i2 = index_row(c, window, first + 2)
        if c.mode == TRIANGLE_FAN:
            i0 = splat(index_row(c, window, const(i32, 0))[0], LANES)
        else:
            odd = ((splat(first, LANES) + iota(LANES)) & 1) != 0
            i0, i1_ = select(odd, i1_, i0), select(odd, i0, i1_)
    return i0, i1_, i2


@staged
def packed_positions(c: BinnerContext, plain: Value, i0: Value, i1_: Value, i2: Value) -> Corners:
    """Ys:Xs of the three corners of each triangle."""
    rows = c.vertices + c.xy_row
    start = i0[0]
    if plain & ((start & (LANES - 1)) == 0):  # 48 vertices in a row
        last: Value = c.last_vertex >> 4
        batches = [min_((start >> 4) + k, last) for k in (0, 1, 2)]
        w0, w1, w2 = deinterleave([load(i32x16, rows + k * c.pitch) for k in batches])
    else:
        pitch, last = splat(c.pitch, LANES), splat(c.last_vertex, LANES)
        of = [min_(i, last) for i in (i0, i1_, i2)]  # after the draw there may be no memory
        w0, w1, w2 = (gather(i32, rows, i.shr(4) * pitch + ((i & 15) << 2)) for i in of)
    return w0, w1, w2


def _least(words: Corners, combine: Callable[[Value, Value], Value]) -> Value:
    """The smallest (or largest) X and Y of three packed positions, both halves at once."""
    a, b, e = (word.bitcast(_HALVES) for word in words)
    return combine(combine(a, b), e).bitcast(i32x16)


@staged
def differences(words: Corners) -> tuple[Value, Value, Value, Value]:
    """Edges 0-1 and 0-2 as X and Y; they hold while no difference has more than 16 bits."""
    w0, w1, w2 = (word.bitcast(_HALVES) for word in words)
    one, two = (w1 - w0).bitcast(i32x16), (w2 - w0).bitcast(i32x16)
    return (one << 16) >> 16, one >> 16, (two << 16) >> 16, two >> 16


@staged
def facing(c: BinnerContext, words: Corners) -> Value:
    """Whether the binner leaves out triangles of at most two tiles, for how they face."""
    x1, y1, x2, y2 = differences(words)
    turn = x1 * y2 - x2 * y1
    return away(c, turn < 0, turn > 0)


@staged
def find_tiles(c: BinnerContext, words: Corners) -> tuple[Value, ...]:
    """Masks of the triangles that are beyond all tiles, near (in one tile or two side by side),
    in two, flat (if near); the tiles of those that are near.
    """
    low, high = _least(words, min_), _least(words, max_)
    view_x, view_y = splat(c.viewport_x, LANES), splat(c.viewport_y, LANES)
    shift_x, shift_y = splat(c.shift_x, LANES), splat(c.shift_y, LANES)
    low_x = (((low << 16) >> 16) + view_x) >> shift_x
    high_x = (((high << 16) >> 16) + view_x) >> shift_x
    low_y = ((low >> 16) + view_y) >> shift_y
    high_y = ((high >> 16) + view_y) >> shift_y
    left, right = max_(low_x, splat(c.first_x, LANES)), min_(high_x, splat(c.last_x, LANES))
    bottom, top = max_(low_y, splat(c.first_y, LANES)), min_(high_y, splat(c.last_y, LANES))
    cropped = (low_x ^ left) | (high_x ^ right) | (low_y ^ bottom) | (high_y ^ top)
    across, up = right - left, top - bottom
    beyond = (across | up) < 0
    near = (across + up).ule(1) & (cropped == 0) & ~beyond
    # two tiles, each with a corner of the triangle: edges are shorter than 16 bits
    x1, y1, x2, y2 = differences(words)
    flat = x1 * y2 == x2 * y1
    tile = bottom * splat(c.width, LANES) + left
    second = tile + select(up != 0, splat(c.width, LANES), splat(const(i32, 1), LANES))
    return beyond, near, (across | up) == 1, flat, tile, second


@staged
def look(c: BinnerContext, window: TriangleWindow, first: Value, count: Value) -> None:
    """Fill the window with `count` triangles from number `first` on."""
    start = c.first_index + first * 3
    inside = (start >= c.first_vertex) & (start + 3 * count - 1 <= c.last_vertex)
    inside = inside & (c.last_vertex <= 0xFFFF) & c.last_vertex.ule(c.max_index)
    plain = inside & (c.mode == TRIANGLES) & (c.index_type == INDEX_ARRAY)
    window.plain = select(plain, const(i32, 1), const(i32, 0))
    c.stamp = (c.stamp + 2 * WINDOW) | STAMP_BIT
    previous = (const(i32x16, 0), const(i32x16, 0), const(i32x16, 0))
    part = const(i32, 0)
    entries = const(i32, 0)
    rejected, outside, degenerate = const(i64, 0), const(i64, 0), const(i64, 0)
    while part < count:
        i0, i1_, i2 = window_indices(c, window, plain, first + part)
        for name, index in (("i0", i0), ("i1", i1_), ("i2", i2)):
            store(window.field_ptr(name) + part * 4, index, align=64)
        if ~plain:
            code(window, part, previous, (i0, i1_, i2))
        previous = (i0, i1_, i2)
        here = iota(LANES) < splat(count - part, LANES)
        bad, gone, cut = find_outside(c, plain, here, i0, i1_, i2)
        usual = here & ~(bad | gone | cut)
        words = packed_positions(c, plain, i0, i1_, i2)
        beyond, near, pair, flat, tile, second = find_tiles(c, words)
        special = bad | cut | (usual & ~beyond & ~near)
        beyond, flat = beyond & usual, flat & near & usual
        normal = near & usual & ~flat
        if c.leave_facing != 0:
            normal = normal & ~facing(c, words)
        if (part == 0) & (c.tile_x >= 0):  # the first goes on where memory ran out
            one = const(mask16, [1] + [0] * (LANES - 1))
            special = special | (normal & one)
            normal = normal & ~one
        numbers = (iota(LANES) + splat(part, LANES)) << NUMBER_AT
        a = select(special, numbers | SPECIAL, splat(const(i32, -1), LANES))
        a = select(normal, tile | numbers, a)
        b = select(normal & pair, second | numbers | SECOND, splat(const(i32, -1), LANES))
        for order in FIRST_HALVES, SECOND_HALVES:
            both = shuffle(a, b, order)
            store_entries(c, window, first, entries, compress(both, both >= 0))
            entries = entries + popcount_(mask_bits(both >= 0))
        shift = part.zext(i64)
        rejected = rejected | (mask_bits(gone).zext(i64) << shift)
        outside = outside | (mask_bits(beyond).zext(i64) << shift)
        degenerate = degenerate | (mask_bits(flat).zext(i64) << shift)
        part = part + LANES
    window.rejected = rejected
    window.outside = outside
    window.degenerate = degenerate
    window.count = entries


@staged
def code(window: TriangleWindow, part: Value, previous: Corners, indices: Corners) -> None:
    """How each triangle is coded after the one with the number before it."""
    last = [LANES - 1, *range(LANES, 2 * LANES - 1)]
    before = [shuffle(p, i, last) for p, i in zip(previous, indices, strict=True)]
    words, sizes = triangle_coding(before, indices)
    store(window.coding + part * 8, words, align=64)
    store(window.bytes_ + part * 4, sizes, align=64)


@staged
def store_entries(c: BinnerContext, window: TriangleWindow, first: Value, count: Value, entry: Value) -> None:
    """A vector of entries after the `count` that are there, with their tiles and vertices."""
    place = window.pointer + count * 4
    number = (entry >> NUMBER_AT) & (WINDOW - 1)
    tile = select(entry >= SPECIAL, splat(c.width * c.height, LANES), entry & TILE_MASK)
    vertex = (c.first_index + first * 3) + number * 3
    store(place + TriangleWindow.entries.offset, entry)
    store(place + TriangleWindow.where.offset, tile * TileState.size)
    store(place + TriangleWindow.vertex.offset, vertex)


@staged
def find_outside(c: BinnerContext, plain: Value, here: Value, i0: Value, i1_: Value, i2: Value) -> Corners:
    """Masks of triangles with an index above the record's maximum, of those that no tile sees, and
    of those that are to be clipped.
    """
    bad = const(mask16, False)
    if ~plain:
        bad = max_(i0, max_(i1_, i2)).ugt(splat(c.max_index, LANES)) & here
    gone, cut = const(mask16, False), const(mask16, False)
    if c.clipping != 0:
        codes = [gather(i32, c.codes, index) & 0xFF for index in (i0, i1_, i2)]
        some = codes[0] | codes[1] | codes[2]
        every = codes[0] & codes[1] & codes[2]
        gone = (((every & OUT_VOLUME) != 0) | ((some & OUT_BAD) != 0)) & here & ~bad
        cut = ((some & OUT_CUT) != 0) & here & ~bad & ~gone
    return bad, gone, cut
