"""Primitive setup engine: planes of each primitive, from its shaded vertices in the VPM."""

from __future__ import annotations

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, max_, min_, ptr, select, staged
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.event_scheduler import Engine, count_busy, number_of, wake_self
from vc4lab.timing.graphics.kinds import GraphicsQueue, shaded_queue
from vc4lab.timing.graphics.state import (
    Batch,
    DrawTally,
    GraphicsFigures,
    Primitive,
    PrimitiveList,
    RasterFigures,
    Work,
)
from vc4lab.timing.graphics.tiles.scheduler import work_of
from vc4lab.timing.graphics.vertices.state import RENDERING
from vc4lab.timing.graphics.vertices.vertex_cache import call_cache, release
from vc4lab.timing.queues import first_piece, is_readable, may_take, queue_at, remove_piece, write_piece


class Setup(Struct):
    """list: the list that is set up + 1, or 0; following: its next primitive. free_at: when the
    next one can begin. starved: since when it waits for a batch + 1, or 0. shaded: batches before
    this number are; begun: how far that was when the primitive before was done; spent: clocks since
    then for those without pixels.
    """

    list = i32
    following = i32
    shaded = i32
    begun = i32
    free_at = i64
    spent = i64
    starved = i64
    waited = i64
    primitives = i64
    reversed = i64
    empty = i64


@staged
def _is_shaded(setup: Setup, work: Work, batch: Value) -> Value:
    """Whether vertices of a batch and of those before it are in the VPM."""
    going = const(i32, 1)
    while going != 0:
        going = const(i32, 0)
        if setup.shaded <= batch:
            at = work.batches + setup.shaded.sext(i64) * Batch.size
            if Batch.at(at, 4).done != 0:
                setup.shaded = setup.shaded + 1
                going = const(i32, 1)
    return setup.shaded > batch


@staged
def _clocks(raster: RasterFigures, reversed_: Value, others: Value, varyings: Value) -> Value:
    """For primitives that are faced away, and for others."""
    each = raster.setup_clocks + (varyings.sext(i64) * raster.setup_varying_part >> FRACTION)
    return reversed_.sext(i64) * raster.setup_reversed_clocks + others.sext(i64) * each


@staged
def _work_for(engine: Engine, work: Work, draw: Value, clocks: Value) -> None:
    """The engine is at work for a draw."""
    count_busy(engine, clocks)
    tally = DrawTally.at(work.draws + draw.sext(i64) * DrawTally.size, 8)
    tally.setup = tally.setup + clocks


@staged
def _primitive(engine: Engine, setup: Setup, work: Work, list_: PrimitiveList, clock: Value) -> None:
    """Sets the next primitive up, with those before it that have no pixels."""
    raster = GraphicsFigures.at(engine.chip).raster
    number = setup.following
    primitive = Primitive.at(work.primitives + number.sext(i64) * Primitive.size, 4)
    hidden = _clocks(raster, primitive.reversed, primitive.empty, list_.varyings)
    if ~_is_shaded(setup, work, primitive.batch):
        _starve(setup, clock)
        _go_on(engine, setup, work, primitive.draw, hidden, primitive.batch, clock)
    else:
        own = _clocks(raster, const(i32, 0), const(i32, 1), list_.varyings)
        clocks = hidden - setup.spent + own
        queue = queue_at(engine, GraphicsQueue.SET_UP, number_of(engine))
        wrote = call(
            write_piece,
            engine.pointer, queue.pointer, clock, clock + clocks + raster.setup_latency,
            const(i64, 0), number.sext(i64), const(i64, 0),
        )  # fmt: skip
        if wrote != 0:
            setup.primitives = setup.primitives + 1
            setup.reversed = setup.reversed + primitive.reversed.sext(i64)
            setup.empty = setup.empty + primitive.empty.sext(i64)
            setup.following = number + 1
            _done(engine, setup, work, primitive.draw, clocks, clock)
            release(engine, RENDERING, primitive.release, clock, number_of(engine))


@staged
def _end(engine: Engine, setup: Setup, work: Work, list_: PrimitiveList, clock: Value) -> None:
    """Primitives after the last one with pixels; the list is done."""
    raster = GraphicsFigures.at(engine.chip).raster
    clocks = _clocks(raster, list_.reversed, list_.empty, list_.varyings)
    if ~_is_shaded(setup, work, list_.batch):
        _starve(setup, clock)
        _go_on(engine, setup, work, list_.draw, clocks, list_.batch, clock)
    else:
        setup.reversed = setup.reversed + list_.reversed.sext(i64)
        setup.empty = setup.empty + list_.empty.sext(i64)
        setup.list = const(i32, 0)
        _done(engine, setup, work, list_.draw, clocks - setup.spent, clock)
        release(engine, RENDERING, list_.release, clock, number_of(engine))


@staged
def _done(engine: Engine, setup: Setup, work: Work, draw: Value, clocks: Value, clock: Value) -> None:
    """Have primitive set-up be done after some clocks with the work at hand."""
    _fed(setup, clock)
    setup.begun = setup.shaded
    setup.spent = const(i64, 0)
    setup.free_at = clock + max_(clocks, const(i64, 1))
    _work_for(engine, work, draw, clocks)
    wake_self(engine, setup.free_at)


@staged
def _go_on(
    engine: Engine, setup: Setup, work: Work, draw: Value, hidden: Value, batch: Value,
    clock: Value,
) -> None:  # fmt: skip
    """While a batch is missing: primitives without pixels whose vertices are there.

    They stand at equal distances between the last batch that was needed and this one, and what they
    were the last to need is let go.
    """
    there = (setup.shaded - setup.begun).sext(i64)
    due = hidden * there // (batch + 1 - setup.begun).sext(i64)
    clocks = due - setup.spent
    if clocks > 0:
        _fed(setup, clock)
        setup.spent = due
        setup.free_at = clock + clocks
        _work_for(engine, work, draw, clocks)
        wake_self(engine, setup.free_at)
    kept = GraphicsFigures.at(engine.chip).raster.kept
    keep = min_(setup.shaded, batch - 1 - kept)
    release(engine, RENDERING, keep, clock, number_of(engine))


@staged
def _starve(setup: Setup, clock: Value) -> None:
    """Vertices are missing; SHADED calls the module when there are more."""
    setup.starved = select(setup.starved == 0, clock + 1, setup.starved)


@staged
def _fed(setup: Setup, clock: Value) -> None:
    waited = select(setup.starved == 0, const(i64, 0), clock + 1 - setup.starved)
    setup.waited = setup.waited + waited
    setup.starved = const(i64, 0)


@kernel(args=(ptr, ptr, i64))
def step_setup(address: Value, state: Value, clock: Value) -> None:
    """Begins a list, or sets one primitive up, or ends the list."""
    engine, setup = Engine.at(address), Setup.at(state)
    work = work_of(GraphicsFigures.at(engine.chip), const(i32, 1))
    number = number_of(engine)
    shaded = queue_at(engine, GraphicsQueue.SHADED, shaded_queue(number, RENDERING))
    if call(is_readable, address, shaded.pointer, clock) != 0:
        call(remove_piece, address, shaded.pointer, clock)
        call_cache(engine, clock, number)  # the room of its attributes is free
    if clock < setup.free_at:
        wake_self(engine, setup.free_at)
    else:
        if setup.list == 0:
            lists = queue_at(engine, GraphicsQueue.PRIMITIVES, number)
            if may_take(engine, lists, setup.free_at, clock) != 0:
                piece = first_piece(lists)
                first = piece.tag.trunc(i32)
                setup.list = piece.place.trunc(i32) + 1
                setup.shaded = max_(setup.shaded, first)
                setup.begun = max_(setup.begun, first)
                call(remove_piece, address, lists.pointer, clock)
                setup.following = _list_at(work, setup.list).first
        if setup.list != 0:
            list_ = _list_at(work, setup.list)
            if setup.following < list_.first + list_.primitives:
                _primitive(engine, setup, work, list_, clock)
            else:
                _end(engine, setup, work, list_, clock)


@staged
def _list_at(work: Work, number: Value) -> PrimitiveList:
    return PrimitiveList.at(work.lists + (number - 1).sext(i64) * PrimitiveList.size, 4)
