"""Setup of up to eight triangles at once: facing, box, exact edges and the weights of their planes.

A list is decoded eight triangles at a time; what the batch's vectors find is kept in a
`TriangleBatch`, and those that face the right way and have a box are traced one after the other, in
their order. Half of a closed model faces away: eight such triangles cost little more than one.
Source: hardware reference 7.2-7.6.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Array,
    Struct,
    Value,
    alloca,
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
from vc4lab.v3d.fragment.block import Primitive
from vc4lab.v3d.fragment.primitives import PrimitiveTracer, depth_offset, depth_range
from vc4lab.v3d.fragment.samples import Raster
from vc4lab.v3d.fragment.setup import (
    CLOCKWISE_IS_FORWARD,
    EDGE_LIMIT,
    ENABLE_FORWARD,
    ENABLE_REVERSE,
    ROW_BYTES,
    Box,
    Edge,
    PositionSource,
    Vertex,
    substitute_clipped,
    triangle_planes,
)

BATCH = 8
CORNERS = 3
MAX_DELTAS = 3
"""Samples of a pixel besides the first."""

_i32x8, _i64x8, _f64x8 = vec(i32, BATCH), vec(i64, BATCH), vec(f64, BATCH)


class TriangleBatch(Struct):
    """Eight triangles, one in each lane of every member; corner or edge 0, 1, 2 one after another.

    `words`: host addresses of the corners' word 0, `flat_words` of the provoking vertex's own.
    `edge_start` is that of the first block of the box; `weights` are those of `triangle_planes`.
    """

    words = Array(i64, CORNERS * BATCH)
    flat_words = Array(i64, BATCH)
    index = Array(i32, CORNERS * BATCH)
    position = Array(i32, CORNERS * BATCH)
    x2 = Array(i32, BATCH)
    y2 = Array(i32, BATCH)
    left = Array(i32, BATCH)
    top = Array(i32, BATCH)
    right = Array(i32, BATCH)
    bottom = Array(i32, BATCH)
    edge_start = Array(i32, CORNERS * BATCH)
    step_x = Array(i32, CORNERS * BATCH)
    step_y = Array(i32, CORNERS * BATCH)
    deltas = Array(i32, CORNERS * MAX_DELTAS * BATCH)
    weights = Array(f64, 4 * BATCH)


@staged
def draw_triangles(tracer: Any, decoder: Any) -> None:
    """Draws the triangles of an opened list."""
    batch: Any = TriangleBatch.at(alloca(TriangleBatch.size))
    scratch = clip_scratch(tracer)
    more = const(i1, True)
    for corner in (0, 1, 2):
        store(batch.field_ptr("index") + corner * 4 * BATCH, const(_i32x8, 0))
    while more:
        count = const(i32, 0)
        flags = const(i32, 0)
        while more & (count < BATCH):
            more = decoder.next()
            if more:
                place = batch.field_ptr("index") + count * 4
                store(place, decoder.i0.get())
                store(place + 4 * BATCH, decoder.i1.get())
                store(place + 8 * BATCH, decoder.i2.get())
                flags = flags | decoder.flags.get()
                count = count + 1
        if count > 0:
            locate(tracer.source, batch)
            if flags != 0:  # the list's first triangle has substitutes
                substitute_first(tracer, batch, scratch, decoder.clip_record.get(), flags)
            live, forward, turned = set_up(tracer, batch, count)
            tracer.shader.count("primitives_reversed", turned)
            if tracer.key.counting:
                tracer.shader.count("primitives_valid", count - turned)
                tracer.shader.count("primitives_empty", count - turned)
            while live != 0:
                lane = popcount_((live & -live) - 1)
                quads = tracer.shader.counted("quads_valid")
                trace_triangle(tracer, batch, lane, (forward.shr(lane) & 1) == 0)
                if tracer.key.counting:
                    if tracer.shader.counted("quads_valid") != quads:
                        tracer.shader.count("primitives_empty", const(i32, -1))
                live = live & (live - 1)
                if tracer.shader.running() is not None:
                    if ~tracer.shader.running():
                        live = const(i32, 0)
                        more = const(i1, False)


def clip_scratch(tracer: PrimitiveTracer) -> Value:
    """Room for the words of three substituted vertices, side by side."""
    rows = tracer.key.first_varying + tracer.key.n_varyings
    return alloca(rows * ROW_BYTES + 64)


def corner(batch: Any, member: str, number: int, kind: Any = _i32x8) -> Value:
    """All lanes of corner (edge, weight) `number` of a member."""
    return load(kind, _corner_ptr(batch, member, number, kind))


def set_corner(batch: Any, member: str, number: int, value: Value) -> None:
    """Writes all lanes of corner `number` of a member."""
    store(_corner_ptr(batch, member, number, value.type), value)


def _corner_ptr(batch: Any, member: str, number: int, kind: Any) -> Value:
    place: Value = batch.field_ptr(member)
    return place + number * BATCH * (kind.elem.bits // 8)


def locate(source: Any, batch: Any) -> None:
    """Where the corners' words are, and their packed positions."""
    if isinstance(source, PositionSource):
        for number in range(CORNERS):
            set_corner(batch, "position", number, corner(batch, "index", number))
            for lane in range(BATCH):
                place = batch.field_ptr("words") + (number * BATCH + lane) * 8
                store(place, source.scratch)
        set_corner(batch, "flat_words", 0, corner(batch, "words", 0, _i64x8))
        return
    base = splat(source.address, BATCH)
    first, limit = splat(source.first, BATCH), splat(source.limit, BATCH)
    offsets = base
    for number in range(CORNERS):
        index = corner(batch, "index", number)
        slot = umin(index - first, limit) + first
        offsets = slot.shr(4).zext(i64) * splat(source.pitch, BATCH)
        offsets = offsets + ((slot & 15) << 2).zext(i64)
        set_corner(batch, "words", number, base + offsets)
        packed = gather(i32, source.vertices, offsets, compact=True)
        set_corner(batch, "position", number, packed)
    set_corner(batch, "flat_words", 0, base + offsets)


@staged
def substitute_first(tracer: Any, batch: Any, scratch: Value, record: Value, flags: Value) -> None:
    """Puts the vertices of a clip record in the place of the first triangle's."""
    words = batch.field_ptr("words")
    originals = [load(ptr, words + number * 8 * BATCH) for number in (0, 1, 2)]
    end = tracer.key.first_varying + tracer.key.n_varyings
    rows = (tracer.key.first_varying, end)
    memory = tracer.shader.constants.memory
    substitute_clipped(memory, scratch, record, flags, originals, rows)
    for number in (0, 1, 2):
        if (flags.shr(number) & 1) != 0:
            store(words + number * 8 * BATCH, scratch + 4 * number)
            place = batch.field_ptr("position") + number * 4 * BATCH
            store(place, load(i32, scratch + 4 * number))


def set_up(tracer: PrimitiveTracer, batch: Any, count: Value) -> tuple[Value, Value, Value]:
    """Fills the batch in; lanes to trace, lanes that face forward, number that face away."""
    source, window, raster = tracer.source, tracer.window, tracer.raster
    packed = [corner(batch, "position", number) for number in range(CORNERS)]
    x = [((p << 16) >> 16) + splat(source.offset_x, BATCH) for p in packed]
    y = [(p >> 16) + splat(source.offset_y, BATCH) for p in packed]
    # Products of 12.4 differences are exact in doubles.
    x02, x12 = ((x[k] - x[2]).to_float(f64) for k in (0, 1))
    y02, y12 = ((y[k] - y[2]).to_float(f64) for k in (0, 1))
    area = x02 * y12 - x12 * y02
    negative, some = area < 0.0, area != 0.0
    forward = ~(negative ^ splat((tracer.facing & CLOCKWISE_IS_FORWARD) != 0, BATCH))
    enabled = (forward & splat((tracer.facing & ENABLE_FORWARD) != 0, BATCH)) | (
        ~forward & splat((tracer.facing & ENABLE_REVERSE) != 0, BATCH)
    )
    here = some & (iota(BATCH) < splat(count, BATCH))

    up, down = 15 - raster.highest, raster.lowest
    left = max_((min_(min_(x[0], x[1]), x[2]) + up) >> 4, splat(window.left, BATCH))
    top = max_((min_(min_(y[0], y[1]), y[2]) + up) >> 4, splat(window.top, BATCH))
    right = min_(((max_(max_(x[0], x[1]), x[2]) - down) >> 4) + 1, splat(window.right, BATCH))
    bottom = min_(((max_(max_(y[0], y[1]), y[2]) - down) >> 4) + 1, splat(window.bottom, BATCH))
    live = here & enabled & (left < right) & (top < bottom)
    for name, value in (
        ("left", left), ("top", top), ("right", right), ("bottom", bottom), ("x2", x[2]),
        ("y2", y[2]),
    ):  # fmt: skip
        set_corner(batch, name, 0, value)

    sign = select(negative, const(_i32x8, -1), const(_i32x8, 0))
    for number in range(CORNERS):
        a, b = number, (number + 1) % CORNERS
        edge = (((x[b] - x[a]) ^ sign) - sign, ((y[b] - y[a]) ^ sign) - sign)
        set_edge(batch, number, edge, (x[a], y[a]), (left & ~1, top & ~1), raster)
    scale = const(f64, 16.0) / select(some, area, 1.0)
    for number, difference in enumerate((y12, 0.0 - y02, 0.0 - x12, x02)):
        set_corner(batch, "weights", number, difference * scale)
    turned = popcount_(mask_bits(here & ~enabled))
    return mask_bits(live), mask_bits(forward), turned


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
        set_corner(batch, "deltas", number * MAX_DELTAS + k, value - values[0])
    set_corner(batch, "edge_start", number, values[0] + start[1] * dx - start[0] * dy)
    set_corner(batch, "step_x", number, -dy)
    set_corner(batch, "step_y", number, dx)


def trace_triangle(tracer: PrimitiveTracer, batch: Any, lane: Value, reverse: Value) -> None:
    """Shades the triangle of one lane."""

    def member(name: str, number: int = 0, kind: Any = i32) -> Value:
        size = kind.bits // 8
        return load(kind, batch.field_ptr(name) + (lane * size + number * BATCH * size))

    def pointer(name: str, number: int = 0) -> Value:
        return load(ptr, batch.field_ptr(name) + (lane * 8 + number * BATCH * 8))

    box = Box(*(member(name) for name in ("left", "top", "right", "bottom")))
    x2, y2 = member("x2"), member("y2")
    others = len(tracer.raster.points) - 1
    edges = [
        Edge(
            member("edge_start", k), member("step_x", k), member("step_y", k),
            [member("deltas", k * MAX_DELTAS + d) for d in range(others)], from_box=True,
        )
        for k in range(CORNERS)
    ]  # fmt: skip
    vertices = [Vertex(pointer("words", k), x2, y2) for k in range(CORNERS)]
    weights = tuple(member("weights", k, f64) for k in range(4))
    base, varyings, suspect = triangle_planes(
        vertices, weights, tracer.rows, tracer.flat, pointer("flat_words")
    )
    tracer.shader.suspect(suspect)
    low, high = depth_range(vertices)
    a, b = base.a[0], base.b[0]
    assert a is not None
    assert b is not None
    tracer.run(
        Primitive(
            box, edges, x2, y2, (a, b, base.c[0]), (base.a[1], base.b[1], base.c[1]),
            varyings, low, high, depth_offset(tracer, a, b), reverse,
        )
    )  # fmt: skip
