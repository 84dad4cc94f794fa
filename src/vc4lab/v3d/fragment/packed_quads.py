"""Quads of several triangles share a run of the program: for small triangles and long programs.

A 4x4 block holds four quads, of which a small triangle covers one or two; the program would mostly
compute what is thrown away. Here the covered quads of all triangles wait in a queue, their
triangles' planes in records, and any four of them are shaded together, in their order. Two quads at
the same place may go together if they have no pixel in common: each is written by itself.
"""

from __future__ import annotations

from vc4lab.optimisations import PACKED_QUADS
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.jit.core import looks_back
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import plan
from vc4lab.simd import Value, call, const, i32, i64, load, staged
from vc4lab.simd.trace import current
from vc4lab.v3d.fragment.quad_queue import QUEUE_LIMIT, QuadQueue
from vc4lab.v3d.fragment.quad_shader import shade_queue, signals
from vc4lab.v3d.fragment.triangle_batch import (
    NO_LANE,
    TriangleTracer,
    fill,
    open_batch,
    read_triangle,
    setup_function,
)
from vc4lab.v3d.pse.batch import BlockPlace, CoveredBlock
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.state.tile_layout import SINGLE

MIN_INSTRUCTIONS = 40
"""Instructions from which the program is worth the packing."""

_SIDE_BY_SIDE = (Write.TLB_STENCIL_SETUP, Write.FLAGS, Write.QUAD, Write.ACC5)
_SAME_IN_ANY_QUAD = (Read.UNIFORM, Read.VARYING, Read.NOP, Read.PIXEL_COORD)
"""Reads that do not depend on where in a vector the quad is; unmapped ones give lane numbers."""


def packs_quads(key: FragmentKey, program: Program) -> bool:
    """Whether the quads of a draw are packed.

    It must not matter which quads run together, so nothing crosses lanes; textures are quickest for
    quads side by side; stencil setup and facing are one for all quads.
    """
    plain = key.layout == SINGLE and not (key.vg_mask or key.counting or key.coverage)
    return (
        plain
        and key.engine != "interpreter"
        and len(program.words) >= MIN_INSTRUCTIONS
        and not program.has_branches
        and not key.textures
        and not any(program.writes(register) for register in _SIDE_BY_SIDE)
        and not any(program.reads(k) for k in range(32, 64) if k not in _SAME_IN_ANY_QUAD)
        and not looks_back([plan(word) for word in program.words])
        and not signals(program, (Signal.LOAD_COVERAGE, Signal.LOAD_ALPHA_MASK))
        and not any(getattr(i, "rotation", None) is not None for i in program.instructions)
        and PACKED_QUADS.serves(current().module.target.level)
    )


@staged
def draw_packed(tracer: TriangleTracer, address: Value) -> Value:
    """As `triangle_batch.draw_triangles`, with the quads of several triangles together."""
    context, key = tracer.shader.context, tracer.key
    batch = tracer.batch
    open_batch(tracer, address)
    function = setup_function(tracer)
    queue = QuadQueue(key)
    shade = shade_queue(key, tracer.shader.constants.program)
    quads, records, lane = const(i32, 0), const(i32, 0), const(i32, NO_LANE)
    place, end = const(i64, 0), const(i64, 0)
    more = function != 0
    going = more
    while going:
        if place >= end:
            fill(tracer, function, batch)
            more = batch.result.more != 0
            place, end = const(i64, 0), batch.result.end.zext(i64)
            lane = const(i32, NO_LANE)
        while (place < end) & (quads < QUEUE_LIMIT):
            listed = CoveredBlock.at(tracer.blocks + place, 1)
            where = BlockPlace.of(listed)
            if where.lane != lane:
                lane = where.lane
                primitive = read_triangle(tracer, where)
                primitive.x0, primitive.y0 = (
                    load(i32, origin + lane.zext(i64)) for origin in (batch.origins.x2, batch.origins.y2)
                )
                queue.write(records, primitive)
                records = records + 1
            quads = queue.push(quads, records - 1, listed, where)
            place = place + tracer.step
        going = more | (place < end)
        if (quads >= QUEUE_LIMIT) | ~going:
            outcome = call(
                shade, context.pointer, tracer.shader.params.pointer, queue.quads, queue.owners,
                queue.records, quads,
            )  # fmt: skip
            tracer.shader.status.set(tracer.shader.status.get() | (outcome & 0xFF))
            tracer.shader.suspect(outcome.shr(16) != 0)
            quads, records, lane = const(i32, 0), const(i32, 0), const(i32, NO_LANE)
    return batch.decoder.status
