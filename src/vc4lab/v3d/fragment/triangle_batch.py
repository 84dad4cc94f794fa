"""The triangles of a list, eight at a time: set up together, traced one after the other."""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    alloca,
    call,
    call_pointer,
    const,
    f64,
    i1,
    i32,
    load,
    popcount_,
    ptr,
    staged,
    var,
)
from vc4lab.v3d.fragment.block import Primitive
from vc4lab.v3d.fragment.coverage import for_each_block
from vc4lab.v3d.fragment.primitives import PrimitiveTracer, depth_offset, depth_range
from vc4lab.v3d.fragment.quad_queue import FULL, QuadQueue, shade_queue
from vc4lab.v3d.fragment.samples import separate_samples
from vc4lab.v3d.fragment.setup import (
    ROW_BYTES,
    Box,
    Edge,
    PositionSource,
    Vertex,
    triangle_planes,
)
from vc4lab.v3d.fragment.tile_context import (
    BATCH,
    CORNERS,
    MAX_DELTAS,
    SETUPS,
    STATUS_NEEDS_SETUP,
    FragmentKey,
    TriangleBatch,
)


def setup_number(key: FragmentKey) -> int:
    """Which element of `TileContext.setups` a draw calls."""
    return SETUPS.index((key.index_bits, separate_samples(key)))


@staged
def setup_function(tracer: Any) -> Value:
    """The compiled setup of the draw's kind of list; 0, and a status, if there is none yet."""
    number = setup_number(tracer.key)
    function = load(ptr, tracer.shader.context.field_ptr("setups") + 8 * number)
    if function == 0:
        tracer.shader.status.set(STATUS_NEEDS_SETUP + number)
    return function


def fill(tracer: PrimitiveTracer, function: Value, batch: Any) -> None:
    """Sets up the next triangles of the list."""
    places = (tracer.shader.context.pointer, tracer.shader.params.pointer, batch.pointer)
    call_pointer(function, None, (ptr, ptr, ptr), *places, float_mode="keep")


@staged
def draw_triangles(tracer: Any, address: Value) -> Value:
    """Draws the triangles of the list at `address`; the decoder's last status."""
    batch: Any = open_batch(tracer, address)
    function = setup_function(tracer)
    more = function != 0
    while more:
        fill(tracer, function, batch)
        count = batch.count
        more = count == BATCH
        if count > 0:
            turned = batch.turned
            tracer.shader.count("primitives_reversed", turned)
            if tracer.key.counting:
                tracer.shader.count("primitives_valid", count - turned)
                tracer.shader.count("primitives_empty", count - turned)
            live = batch.live
            while live != 0:
                lane = popcount_((live & -live) - 1)
                quads = tracer.shader.counted("quads_valid")
                tracer.run(read_triangle(tracer, batch, lane))
                if tracer.key.counting:
                    if tracer.shader.counted("quads_valid") != quads:
                        tracer.shader.count("primitives_empty", const(i32, -1))
                live = live & (live - 1)
                if tracer.shader.running() is not None:
                    if ~tracer.shader.running():
                        live = const(i32, 0)
                        more = const(i1, False)
    return batch.status


@staged
def draw_packed(tracer: Any, address: Value) -> Value:
    """As `draw_triangles`, with the quads of several triangles together."""
    context, key = tracer.shader.context, tracer.key
    batch: Any = open_batch(tracer, address)
    function = setup_function(tracer)
    queue = QuadQueue(key)
    shade = shade_queue(key, tracer.shader.constants.program)
    quads, records, live = const(i32, 0), const(i32, 0), const(i32, 0)
    more = function != 0
    going = more
    while going:
        if live == 0:
            fill(tracer, function, batch)
            live = batch.live
            more = batch.count == BATCH
            tracer.shader.count("primitives_reversed", batch.turned)
        while (live != 0) & (quads < FULL):
            lane = popcount_((live & -live) - 1)
            before = quads
            quads = queue_triangle(tracer, batch, lane, queue, records, quads)
            records = records + (quads != before).zext(i32)
            live = live & (live - 1)
        going = more | (live != 0)
        if (quads >= FULL) | ~going:
            outcome = call(
                shade, context.pointer, tracer.shader.params.pointer, queue.quads, queue.owners,
                queue.records, quads,
            )  # fmt: skip
            tracer.shader.status.set(tracer.shader.status.get() | (outcome & 0xFF))
            tracer.shader.suspect(outcome.shr(16) != 0)
            quads, records = const(i32, 0), const(i32, 0)
    return batch.status


def queue_triangle(
    tracer: PrimitiveTracer, batch: Any, lane: Value, queue: QuadQueue, record: Value, quads: Value
) -> Value:
    """Puts the quads of one lane's triangle into the queue; the number of quads then."""
    primitive = read_triangle(tracer, batch, lane)
    offset = queue.write(record, primitive)
    count = var(i32, quads)
    for_each_block(
        primitive.box,
        primitive.edges,
        primitive.x0,
        primitive.y0,
        lambda dy: None,
        lambda block: count.set(queue.push(count.get(), offset, block)),
        lambda: None,
    )
    return count.get()


def open_batch(tracer: PrimitiveTracer, address: Value) -> Any:
    """A `TriangleBatch` on the stack, at the beginning of a list."""
    key = tracer.key
    batch: Any = TriangleBatch.at(alloca(TriangleBatch.size))
    rows = key.first_varying + key.n_varyings
    batch.fresh = 1
    batch.cursor = address
    batch.status = 0
    batch.clip_scratch = alloca(rows * ROW_BYTES + 64)
    batch.first_row, batch.end_row = key.first_varying * ROW_BYTES, rows * ROW_BYTES
    if isinstance(tracer.source, PositionSource):
        batch.scratch = tracer.source.scratch
    return batch


def read_triangle(tracer: PrimitiveTracer, batch: Any, lane: Value) -> Primitive:
    """The triangle of one lane, with its planes."""

    places = {size: batch.pointer + lane * size for size in (4, 8)}

    def member(name: str, number: int = 0, kind: Any = i32) -> Value:
        size = kind.bits // 8
        return load(kind, places[size] + (TriangleBatch.offset(name) + number * BATCH * size))

    def pointer(name: str, number: int = 0) -> Value:
        return member(name, number, ptr)

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
    reverse = (batch.forward.shr(lane) & 1) == 0
    return Primitive(
        box, edges, x2, y2, (a, b, base.c[0]), (base.a[1], base.b[1], base.c[1]),
        varyings, low, high, depth_offset(tracer, a, b, high), reverse,
    )  # fmt: skip
