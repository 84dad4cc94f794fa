"""The scoreboard: vectors that cover the same pixels use the tile buffer in their order.

A vector takes its lock when its tile is in the tile buffer, when the vectors before it that cover
one of its pixels (or quads: `RasterFigures.whole_quads`; or squares of several of them, which are
one place then) have ended, and while no more than so many
others of its slice hold one (`RasterFigures.locks`). It keeps it until it ends. Of several vectors before it
that cover other pixels of a quad only the last one counts.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    any_,
    const,
    i32,
    i32x16,
    i64,
    load,
    max_,
    ptr,
    select,
    splat,
    staged,
    store,
    unroll,
)
from vc4lab.timing.compute.kinds import ModuleKind
from vc4lab.timing.compute.state import MAX_QPUS
from vc4lab.timing.event_scheduler import Engine, instance_of, number_of, wake
from vc4lab.timing.graphics.state import (
    PIXELS,
    PLACE_BITS,
    PLACES,
    GraphicsFigures,
    Quad,
    Scoreboard,
    Vector,
    Work,
)

RENDERING = 1
"""The list thread of vectors."""
_COVERED = 2 * PLACE_BITS
_ALL = 15 << _COVERED
"""Bits of `Quad.place`."""
A_TILE = -1
"""In the place of a vector that a QPU waits for: its tile, or a lock."""


@staged
def _work(engine: Engine) -> Work:
    return Work.at(load(ptr, GraphicsFigures.at(engine.chip).works + 8 * RENDERING))


@staged
def _vector(work: Work, number: Value) -> Vector:
    return Vector.at(work.vectors + number.sext(i64) * Vector.size, 4)


@staged
def _quad(work: Work, vector: Vector, number: Any) -> Quad:
    return Quad.at(work.quads + (vector.first_quad + number).sext(i64) * Quad.size, 4)


@staged
def board_of(figures: GraphicsFigures, cluster: Value) -> Scoreboard:
    """The scoreboard of a cluster."""
    return Scoreboard.at(figures.field_ptr("scoreboard") + cluster.sext(i64) * Scoreboard.size, 8)


@staged
def enter(engine: Engine, number: Value, clock: Value) -> None:
    """A vector goes to a QPU; it comes after those before it that cover the same pixels.

    The module that is called now is the shader scheduler of a cluster.
    """
    figures = GraphicsFigures.at(engine.chip)
    board, work = board_of(figures, number_of(engine)), _work(engine)
    whole = select(figures.raster.whole_quads != 0, const(i32, _ALL), const(i32, 0))
    vector = _vector(work, number)
    if (board.entered == 0) | (board.tile != vector.tile):
        board.tile = vector.tile
        for place in range(0, figures.raster.places * PIXELS, 16):
            store(board.last + (place << 2), splat(const(i32, 0)))
    board.entered = board.entered + 1
    vector.ended = const(i32, 0)
    vector.began = clock.trunc(i32)
    for at in range(vector.quads):
        quad = _quad(work, vector, at)
        last = board.last + ((quad.place & (PLACES - 1)) << 4)
        covered = quad.place | whole
        found = const(i32, 0)
        for pixel in unroll(PIXELS):
            there = (covered.shr(_COVERED + pixel) & 1) != 0
            before = load(i32, last + 4 * pixel)
            other = there & (before != number + 1)
            found = select(other, max_(found, before), found)
            store(last + 4 * pixel, select(there, number + 1, before))
        quad.before = found


@staged
def _first_missing(work: Work, number: Value) -> Value:
    """A vector that has to end before this one, + 1; 0: there is none."""
    vector = _vector(work, number)
    missing = const(i32, 0)
    for at in range(vector.quads):
        before = _quad(work, vector, at).before
        if before > 0:
            if _vector(work, before - 1).ended == 0:
                missing = before
    return missing


@staged
def _qpus(figures: GraphicsFigures) -> Value:
    """Return the number of QPUs of a cluster."""
    return figures.compute.slices * figures.compute.qpus


@staged
def _call(engine: Engine, board: Scoreboard, cluster: Value, what: Value, clock: Value) -> None:
    """Calls the QPUs of a cluster that wait for something."""
    first = cluster * _qpus(GraphicsFigures.at(engine.chip))
    waits = load(i32x16, board.waiting)
    if any_(waits == splat(what)):
        for number in range(MAX_QPUS):
            place = board.waiting + (number << 2)
            if load(i32, place) == what:
                store(place, const(i32, 0))
                wake(engine, instance_of(engine, ModuleKind.QPU, first + number), clock)


@staged
def _holders(figures: GraphicsFigures, board: Scoreboard, number: Value) -> Value:
    """The address of the number of locks that the vectors of a QPU's slice hold."""
    place = number.udiv(figures.compute.qpus).urem(figures.compute.slices)
    return board.holders + (place.sext(i64) << 2)


@staged
def take_lock(engine: Engine, vector: Value, clock: Value) -> Value:
    """1 if the vector has the lock now; 0: the QPU that is called now is called again for it."""
    figures = GraphicsFigures.at(engine.chip)
    number = number_of(engine)  # of the QPU
    cluster = number.udiv(_qpus(figures))
    board = board_of(figures, cluster)
    holders = _holders(figures, board, number)
    missing = const(i32, A_TILE)
    if (vector.sext(i64) < board.open) & (load(i32, holders) < figures.raster.locks):
        missing = _first_missing(_work(engine), vector)
    if missing == 0:
        store(holders, load(i32, holders) + 1)
    else:
        store(board.waiting + ((number - cluster * _qpus(figures)) << 2), missing)
    return select(missing == 0, const(i32, 1), const(i32, 0))


@staged
def drop_lock(engine: Engine, vector: Value, clock: Value) -> None:
    """A vector that holds a lock has ended."""
    figures = GraphicsFigures.at(engine.chip)
    number = number_of(engine)  # of the QPU
    cluster = number.udiv(_qpus(figures))
    board = board_of(figures, cluster)
    holders = _holders(figures, board, number)
    if load(i32, holders) >= figures.raster.locks:
        _call(engine, board, cluster, const(i32, A_TILE), clock)
    store(holders, load(i32, holders) - 1)
    done = _vector(_work(engine), vector)
    done.ended = const(i32, 1)
    done.clocks = clock.trunc(i32) - done.began
    _call(engine, board, cluster, vector + 1, clock)


@staged
def open_tile(engine: Engine, vectors: Value, clock: Value) -> None:
    """The tile buffer that is called now is ready for the vectors before this number."""
    cluster = number_of(engine)
    board = board_of(GraphicsFigures.at(engine.chip), cluster)
    board.open = vectors.sext(i64)
    _call(engine, board, cluster, const(i32, A_TILE), clock)
