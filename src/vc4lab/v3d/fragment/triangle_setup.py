"""Setup of up to eight triangles at once: decoding, facing, box, exact edges, plane weights.

Compiled once for each kind of list and sampling, not for each draw state: the pipelines call it for
every eight triangles (`triangle_batch.py`). Half of a closed model faces away: eight such triangles
cost little more than one. Source: hardware reference 7.2-7.6.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vc4lab.simd import (
    Function,
    NativeFunction,
    Value,
    build,
    const,
    f64,
    floor_,
    fmax_,
    fmin_,
    gather,
    i1,
    i32,
    i64,
    iota,
    load,
    mask_bits,
    max_,
    min_,
    popcount_,
    ptr,
    select,
    splat,
    staged,
    store,
    umin,
    vec,
)
from vc4lab.v3d.fragment.samples import Raster
from vc4lab.v3d.fragment.setup import (
    CLOCKWISE_IS_FORWARD,
    EDGE_LIMIT,
    ENABLE_FORWARD,
    ENABLE_REVERSE,
    VertexSource,
    substitute_clipped,
    window,
)
from vc4lab.v3d.fragment.tile_context import (
    BATCH,
    CORNERS,
    MAX_DELTAS,
    DrawParams,
    TileContext,
    TriangleBatch,
)
from vc4lab.v3d.geometry.primitive_decoder import RUN, TRIANGLES, Decoder, runs, take_run

INDEX_CODES = {16: 1, 24: 2, 32: 3}
"""Index bits → data type of record 56."""

_CELLS = ("i0", "i1", "i2", "clip_record", "clipped", "status", "budget")
"""Cells of a `Decoder` that `TriangleBatch` keeps from one batch to the next, besides `cursor`."""

_i32x8, _i64x8, _f64x8 = vec(i32, BATCH), vec(i64, BATCH), vec(f64, BATCH)


@lru_cache(maxsize=16)
def triangle_setup(
    index_bits: int, raster: Raster, target: Any = None, weights: str = "plain"
) -> NativeFunction:
    """Native `(context, params, batch)`: fills the `TriangleBatch` with what comes next.

    It leaves the float mode alone: pipelines call it in theirs. weights: as for
    `setup.substitute_clipped`.
    """

    def body(context: Value, params: Value, batch: Value) -> None:
        next_batch(context, params, batch, index_bits, raster, weights)

    functions = {"setup": Function(args=(ptr, ptr, ptr), returns=None, body=body)}
    key = f"triangles-{index_bits}-{raster}-{weights}"
    return build("setup", functions, target=target, float_mode="default", key=key)["setup"]


@staged
def next_batch(
    context_pointer: Value,
    params_pointer: Value,
    batch_pointer: Value,
    index_bits: Any,
    raster: Any,
    weights: Any,
) -> None:
    """Sets up the next triangles of a list; `count` is 0 behind the last one.

    They were decoded a call ago: what is written in small pieces cannot be read at once as a whole.
    """
    context: Any = TileContext.at(context_pointer)
    params: Any = DrawParams.at(params_pointer)
    batch: Any = TriangleBatch.at(batch_pointer)
    lists = select(params.lists != 0, params.lists, context.memory)
    fresh = batch.fresh != 0
    going = const(i1, True)
    while going:
        more = fresh
        if ~fresh:
            count, flags = batch.ahead_count, batch.ahead_flags
            for number in range(CORNERS):
                set_corner(batch, "index", corner(batch, "ahead", number), number)
            batch.count = count
            batch.live = 0
            batch.turned = 0
            if count > 0:
                source = VertexSource.load(context, params)
                locate(source, batch, index_bits == 32)
                if flags != 0:  # the list's first triangle has substitutes
                    substitute_first(context.memory, batch, flags, weights)
                set_up(source, window(context, params), params.facing, raster, batch)
            more = count == BATCH
        if more:
            decode(lists, batch, index_bits)
        going = fresh
        fresh = const(i1, False)


@staged
def decode(lists: Value, batch: Any, index_bits: Any) -> None:
    """Decodes the next triangles of a list into `ahead`."""
    decoder = Decoder(lists, TRIANGLES, INDEX_CODES[index_bits])
    if batch.fresh != 0:
        decoder.open(batch.cursor)
        batch.fresh = 0
    else:
        decoder.address.set(batch.cursor)
        for name in _CELLS:
            getattr(decoder, name).set(getattr(batch, name))
    count = const(i32, 0)
    flags = const(i32, 0)
    more = const(i1, True)
    quick = index_bits == 16
    while more & (count < BATCH):
        place = batch.field_ptr("ahead") + count * 4
        together = const(i1, False)
        if quick:
            together = (count <= BATCH - RUN) & runs(decoder)
        if together:
            before, steps = take_run(decoder)
            for number, (start, step) in enumerate(zip(before, steps, strict=True)):
                indices = splat(start, RUN) + (iota(RUN) + 1) * splat(step, RUN)
                store(place + number * 4 * BATCH, indices & 0xFFFF)
            count = count + RUN
        else:
            more = decoder.next()
            if more:
                store(place, decoder.i0.get())
                store(place + 4 * BATCH, decoder.i1.get())
                store(place + 8 * BATCH, decoder.i2.get())
                flags = flags | decoder.flags.get()
                count = count + 1
    batch.cursor = decoder.address.get()
    for name in _CELLS:
        setattr(batch, name, getattr(decoder, name).get())
    batch.ahead_count = count
    batch.ahead_flags = flags


def corner(batch: Any, member: str, number: int = 0, kind: Any = _i32x8) -> Value:
    """All lanes of corner (edge, weight) `number` of a member."""
    return load(kind, _corner_ptr(batch, member, number, kind))


def set_corner(batch: Any, member: str, value: Value, number: int = 0) -> None:
    """Writes all lanes of corner `number` of a member."""
    store(_corner_ptr(batch, member, number, value.type), value)


def _corner_ptr(batch: Any, member: str, number: int, kind: Any) -> Value:
    place: Value = batch.field_ptr(member)
    return place + number * BATCH * (kind.elem.bits // 8)


def locate(source: VertexSource, batch: Any, positions_in_list: bool) -> None:
    """Where the corners' words are, and their packed positions."""
    if positions_in_list:
        words = splat(load(i64, batch.field_ptr("scratch")), BATCH)
        for number in range(CORNERS):
            set_corner(batch, "position", corner(batch, "index", number), number)
            set_corner(batch, "words", words, number)
        set_corner(batch, "flat_words", words)
        return
    base = splat(source.address, BATCH)
    first, limit = splat(source.first, BATCH), splat(source.limit, BATCH)
    offsets = base
    for number in range(CORNERS):
        index = corner(batch, "index", number)
        slot = umin(index - first, limit) + first
        offsets = slot.shr(4).zext(i64) * splat(source.pitch, BATCH)
        offsets = offsets + ((slot & 15) << 2).zext(i64)
        set_corner(batch, "words", base + offsets, number)
        packed = gather(i32, source.vertices, offsets, compact=True)
        set_corner(batch, "position", packed, number)
    set_corner(batch, "flat_words", base + offsets)


@staged
def substitute_first(memory: Value, batch: Any, flags: Value, weights: Any) -> None:
    """Puts the vertices of a clip record in the place of the first triangle's."""
    words = batch.field_ptr("words")
    scratch = batch.clip_scratch
    originals = [load(ptr, words + number * 8 * BATCH) for number in (0, 1, 2)]
    rows = (batch.first_row, batch.end_row)
    substitute_clipped(memory, scratch, batch.clip_record, flags, originals, rows, weights)
    for number in (0, 1, 2):
        if (flags.shr(number) & 1) != 0:
            store(words + number * 8 * BATCH, scratch + 4 * number)
            place = batch.field_ptr("position") + number * 4 * BATCH
            store(place, load(i32, scratch + 4 * number))


@staged
def set_up(source: Any, window: Any, facing: Value, raster: Raster, batch: Any) -> None:
    """Fills the batch in: what to trace, and with which edges, box and weights."""
    packed = [corner(batch, "position", number) for number in range(CORNERS)]
    x = [((p << 16) >> 16) + splat(source.offset_x, BATCH) for p in packed]
    y = [(p >> 16) + splat(source.offset_y, BATCH) for p in packed]
    # Products of 12.4 differences are exact in doubles.
    x02, x12 = ((x[k] - x[2]).to_float(f64) for k in (0, 1))
    y02, y12 = ((y[k] - y[2]).to_float(f64) for k in (0, 1))
    area = x02 * y12 - x12 * y02
    negative, some = area < 0.0, area != 0.0
    forward = ~(negative ^ splat((facing & CLOCKWISE_IS_FORWARD) != 0, BATCH))
    enabled = (forward & splat((facing & ENABLE_FORWARD) != 0, BATCH)) | (
        ~forward & splat((facing & ENABLE_REVERSE) != 0, BATCH)
    )
    here = some & (iota(BATCH) < splat(batch.count, BATCH))

    up, down = 15 - raster.highest, raster.lowest
    left = max_((min_(min_(x[0], x[1]), x[2]) + up) >> 4, splat(window.left, BATCH))
    top = max_((min_(min_(y[0], y[1]), y[2]) + up) >> 4, splat(window.top, BATCH))
    right = min_(((max_(max_(x[0], x[1]), x[2]) - down) >> 4) + 1, splat(window.right, BATCH))
    bottom = min_(((max_(max_(y[0], y[1]), y[2]) - down) >> 4) + 1, splat(window.bottom, BATCH))
    members = {"left": left, "top": top, "right": right, "bottom": bottom, "x2": x[2], "y2": y[2]}
    for name, value in members.items():
        set_corner(batch, name, value)
    batch.live = mask_bits(here & enabled & (left < right) & (top < bottom))
    batch.forward = mask_bits(forward)
    batch.turned = popcount_(mask_bits(here & ~enabled))

    if batch.live != 0:  # neighbours often face away together
        sign = select(negative, const(_i32x8, -1), const(_i32x8, 0))
        corners = list(zip(x, y, strict=True))
        start = (left & ~1, top & ~1)
        scale = const(f64, 16.0) / select(some, area, 1.0)
        weights = [difference * scale for difference in (y12, 0.0 - y02, 0.0 - x12, x02)]
        set_slopes(batch, sign, corners, start, weights, raster)


def set_slopes(
    batch: Any, sign: Value, corners: Any, start: Any, weights: list[Value], raster: Raster
) -> None:
    """Edges and weights; `sign` is -1 where a triangle winds the other way."""
    for number in range(CORNERS):
        a, b = corners[number], corners[(number + 1) % CORNERS]
        edge = (((b[0] - a[0]) ^ sign) - sign, ((b[1] - a[1]) ^ sign) - sign)
        set_edge(batch, number, edge, a, start, raster)
    for number, weight in enumerate(weights):
        set_corner(batch, "weights", weight, number)


def set_edge(
    batch: Any, number: int, edge: tuple[Value, Value], a: tuple[Value, Value],
    start: tuple[Value, Value], raster: Raster,
) -> None:  # fmt: skip
    """Eight edges with direction `edge` from `a`, as `setup.oriented_edge` makes one."""
    dx, dy = edge
    fx, fy = dx.to_float(f64), dy.to_float(f64)
    horizontal = (dx > 0) if raster.top_left else (dx < 0)
    inclusive = (dy < 0) | ((dy == 0) & horizontal)
    bias = select(inclusive, const(_f64x8, 0.0), const(_f64x8, -1.0))
    values: list[Value] = []
    for px, py in raster.points:
        at_sample = fx * (py - a[1]).to_float(f64) - fy * (px - a[0]).to_float(f64)
        value = floor_((at_sample + bias) * 0.0625)
        value = fmin_(fmax_(value, float(-EDGE_LIMIT)), float(EDGE_LIMIT))
        values.append(value._convert("fptosi", _i32x8))
    for k, value in enumerate(values[1:]):
        set_corner(batch, "deltas", value - values[0], number * MAX_DELTAS + k)
    set_corner(batch, "edge_start", values[0] + start[1] * dx - start[0] * dy, number)
    set_corner(batch, "step_x", -dy, number)
    set_corner(batch, "step_y", dx, number)
