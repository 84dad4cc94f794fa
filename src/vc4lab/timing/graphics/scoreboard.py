"""The scoreboard: vectors read and write the tile buffer in the order of the front end.

A vector takes its lock after the one before it took its own, once its tile is in the tile buffer,
and while no more than so many others hold one (`RasterFigures.locks`). It keeps it until it ends.
Which quads a vector has does not matter here.
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, i64, load, staged, store
from vc4lab.timing.clockwork import Engine, wake
from vc4lab.timing.graphics.state import WAITING, GraphicsFigures, Scoreboard


@staged
def _place(board: Scoreboard, vector: Value) -> Value:
    return board.waiting + ((vector & (WAITING - 1)) << 2)


@staged
def _call_next(engine: Engine, board: Scoreboard, locks: Value, clock: Value) -> None:
    """Calls the QPU of the vector whose turn it is, if it waits."""
    if (board.following < board.open) & (board.holders < locks):
        place = _place(board, board.following)
        waits = load(i32, place)
        if waits != 0:
            store(place, const(i32, 0))
            wake(engine, waits - 1, clock)


@staged
def take_lock(engine: Engine, vector: Value, clock: Value) -> Value:
    """1 if the vector has the lock now; 0: the module that is called now is called again for it."""
    figures = GraphicsFigures.at(engine.chip)
    board, locks = figures.scoreboard, figures.raster.locks
    number = vector.sext(i64)
    taken = const(i32, 0)
    first = (number == board.following) & (number < board.open)
    if first & (board.holders < locks):
        board.following = number + 1
        board.holders = board.holders + 1
        taken = const(i32, 1)
        _call_next(engine, board, locks, clock)
    else:
        store(_place(board, number), engine.current + 1)
    return taken


@staged
def drop_lock(engine: Engine, clock: Value) -> None:
    """A vector that holds a lock has ended."""
    figures = GraphicsFigures.at(engine.chip)
    board = figures.scoreboard
    board.holders = board.holders - 1
    _call_next(engine, board, figures.raster.locks, clock)


@staged
def open_tile(engine: Engine, vectors: Value, clock: Value) -> None:
    """The tile buffer is ready for the vectors before this number."""
    figures = GraphicsFigures.at(engine.chip)
    board = figures.scoreboard
    board.open = vectors.sext(i64)
    _call_next(engine, board, figures.raster.locks, clock)
