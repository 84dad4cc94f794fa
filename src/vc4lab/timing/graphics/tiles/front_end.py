"""Front end pipe: rasterises primitives, rejects quads by early Z, makes vectors of four quads."""

from __future__ import annotations

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, max_, ptr, select, staged
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.event_scheduler import Engine, count_busy, number_of, wake_self
from vc4lab.timing.graphics.kinds import GraphicsQueue
from vc4lab.timing.graphics.state import DrawTally, GraphicsFigures, Primitive, Work
from vc4lab.timing.graphics.tiles.scheduler import work_of
from vc4lab.timing.queues import first_piece, may_take, queue_at, remove_piece, write_piece


class FrontEnd(Struct):
    """primitive: the one at work + 1, or 0; vector: its next vector. free_at: when the next vector
    can begin. ended: when the last primitive did.
    """

    primitive = i32
    vector = i32
    free_at = i64
    began = i64
    ended = i64
    primitives = i64
    quads = i64
    vectors = i64


@staged
def _primitive_at(work: Work, number: Value) -> Primitive:
    return Primitive.at(work.primitives + (number - 1).sext(i64) * Primitive.size, 4)


@staged
def _tally(front: FrontEnd, work: Work, primitive: Primitive, clocks: Value) -> None:
    """A primitive is through: its draw has taken the clocks since the one before."""
    tally = DrawTally.at(work.draws + primitive.draw.sext(i64) * DrawTally.size, 8)
    end = front.free_at
    tally.first = select(tally.primitives == 0, front.began, tally.first)
    tally.last = max_(tally.last, end)
    tally.clocks = tally.clocks + (end - front.ended)
    tally.busy = tally.busy + clocks
    tally.primitives = tally.primitives + 1
    tally.quads = tally.quads + primitive.quads.sext(i64)
    tally.vectors = tally.vectors + primitive.vectors.sext(i64)
    front.ended = end
    front.primitives = front.primitives + 1
    front.quads = front.quads + primitive.quads.sext(i64)


@staged
def _advance(engine: Engine, front: FrontEnd, work: Work, primitive: Primitive, clock: Value) -> None:
    """The next vector of a primitive, or all of one that fills none."""
    raster = GraphicsFigures.at(engine.chip).raster
    moved = primitive.quads.sext(i64) * raster.quad_part
    count, number = primitive.vectors, front.vector
    total: Value = max_(raster.primitive_clocks + (moved >> FRACTION), const(i64, 1))
    wrote: Value = const(i32, 1)
    clocks: Value = total
    if count > 0:
        many = count.sext(i64)
        before = total * number.sext(i64) // many
        clocks = max_(total * (number + 1).sext(i64) // many - before, const(i64, 1))
        vectors = queue_at(engine, GraphicsQueue.VECTORS, number_of(engine))
        place = (primitive.first_vector + number).sext(i64)
        wrote = call(
            write_piece,
            engine.pointer, vectors.pointer, clock, clock + clocks + raster.front_latency,
            const(i64, 0), place, const(i64, 0),
        )  # fmt: skip
        front.vectors = front.vectors + wrote.sext(i64)
    if wrote != 0:
        front.vector = number + 1
        front.free_at = clock + clocks
        count_busy(engine, clocks)
        wake_self(engine, front.free_at)
        if number + 1 >= count:
            front.primitive = const(i32, 0)
            _tally(front, work, primitive, total)


@kernel(args=(ptr, ptr, i64))
def step_front_end(address: Value, state: Value, clock: Value) -> None:
    """Takes a primitive, or hands its next vector on."""
    engine, front = Engine.at(address), FrontEnd.at(state)
    work = work_of(GraphicsFigures.at(engine.chip), const(i32, 1))
    if front.primitive == 0:
        queue = queue_at(engine, GraphicsQueue.SET_UP, number_of(engine))
        if may_take(engine, queue, front.free_at, clock) != 0:
            front.primitive = first_piece(queue).place.trunc(i32) + 1
            front.vector = const(i32, 0)
            front.began = clock
            call(remove_piece, address, queue.pointer, clock)
    if front.primitive != 0:
        if clock < front.free_at:
            wake_self(engine, front.free_at)
        else:
            _advance(engine, front, work, _primitive_at(work, front.primitive), clock)
