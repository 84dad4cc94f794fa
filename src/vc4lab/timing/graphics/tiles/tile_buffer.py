"""The tile buffer: colours and depths of vectors, loads, stores.

Clearing is a part of storing: the buffer is cleared while it is read.
"""

from __future__ import annotations

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, max_, min_, ptr, staged
from vc4lab.timing.compute.kinds import FRACTION, MemorySource
from vc4lab.timing.event_scheduler import Engine, count_busy, number_of, wake_self
from vc4lab.timing.graphics.kinds import GraphicsQueue
from vc4lab.timing.graphics.requests import ask_memory, take_answer
from vc4lab.timing.graphics.state import GraphicsFigures, RasterFigures, TileWork, TileWorkKind, Vector, Work
from vc4lab.timing.graphics.tiles.scheduler import work_of
from vc4lab.timing.graphics.tiles.scoreboard import open_tile
from vc4lab.timing.queues import (
    QueueState,
    first_piece,
    is_readable,
    may_take,
    queue_at,
    remove_piece,
    write_piece,
)


class TileBuffer(Struct):
    """vectors: those of its tiles before this number are written; written: how many. work: the
    operation at work + 1, or 0; row, column: of it, in bytes, what is moved next; away: requests
    that have not come. pixels_at, moves_at: when
    the next vector can be written, the next bytes moved; part: what that is past a whole clock.
    drawing, loading, storing: clocks from the beginning to the end of such operations.
    """

    vectors = i32
    work = i32
    row = i32
    column = i32
    away = i32
    written = i32
    pixels_at = i64
    moves_part = i64
    began = i64
    finished_at = i64
    drawing = i64
    loading = i64
    storing = i64
    pixels = i64
    tiles = i64
    moved = i64


@staged
def _take_pixels(engine: Engine, tile: TileBuffer, work: Work, clock: Value) -> None:
    """A vector has been written."""
    raster = GraphicsFigures.at(engine.chip).raster
    queue = queue_at(engine, GraphicsQueue.PIXELS, number_of(engine))
    if may_take(engine, queue, tile.pixels_at, clock) != 0:
        piece = first_piece(queue)
        vector = Vector.at(work.vectors + piece.place * Vector.size, 4)
        part = vector.quads.sext(i64) * piece.tag * raster.pixel_quad_part
        clocks = max_(part >> FRACTION, const(i64, 1))
        call(remove_piece, engine.pointer, queue.pointer, clock)
        tile.pixels_at = clock + clocks
        tile.pixels = tile.pixels + clocks
        tile.vectors = tile.vectors + 1
        tile.written = tile.written + 1
        count_busy(engine, clocks)
        wake_self(engine, tile.pixels_at)


@staged
def _begin(engine: Engine, tile: TileBuffer, work: Work, queue: QueueState, clock: Value) -> None:
    """The next operation."""
    number = first_piece(queue).place
    call(remove_piece, engine.pointer, queue.pointer, clock)
    tile.work = number.trunc(i32) + 1
    tile.row = const(i32, 0)
    tile.column = const(i32, 0)
    tile.began = clock
    tile.moves_part = clock << FRACTION
    row = _work_at(work, tile.work)
    if row.kind == int(TileWorkKind.DRAW):
        tile.vectors = max_(tile.vectors, row.first)
        open_tile(engine, row.vectors, clock)


@staged
def _move(
    engine: Engine, tile: TileBuffer, row: TileWork, source: MemorySource, pace: Value, clock: Value
) -> None:
    """Asks for the next bytes of a row to be loaded or stored."""
    raster: RasterFigures = GraphicsFigures.at(engine.chip).raster
    at = (tile.moves_part + ((1 << FRACTION) - 1)) >> FRACTION
    if at > clock:
        wake_self(engine, at)
    else:
        size = min_(row.row_bytes - tile.column, raster.burst)
        location = row.location + tile.row.sext(i64) * row.pitch + tile.column.sext(i64)
        if ask_memory(engine, source, location, size.sext(i64), clock) != 0:
            clocks_part = size.sext(i64) * pace
            tile.moves_part = max_(tile.moves_part, clock - 1 << FRACTION) + clocks_part
            tile.moved = tile.moved + size.sext(i64)
            count_busy(engine, clocks_part >> FRACTION)
            tile.column = tile.column + size
            if source == MemorySource.TILE_LOADS:
                tile.away = tile.away + 1
            if tile.column >= row.row_bytes:
                tile.column = const(i32, 0)
                tile.row = tile.row + 1
            after = (tile.moves_part + ((1 << FRACTION) - 1)) >> FRACTION
            wake_self(engine, max_(after, clock + 1))


@staged
def _end(engine: Engine, tile: TileBuffer, clock: Value) -> Value:
    """The operation is over; how many clocks it took."""
    tile.work = const(i32, 0)
    wake_self(engine, clock)
    return clock - tile.began


@staged
def _work_on(engine: Engine, tile: TileBuffer, work: Work, clock: Value) -> None:
    raster = GraphicsFigures.at(engine.chip).raster
    row = _work_at(work, tile.work)
    kind = row.kind
    through = (tile.moves_part + ((1 << FRACTION) - 1)) >> FRACTION <= clock
    if kind == int(TileWorkKind.DRAW):
        if tile.vectors >= row.vectors:
            if clock >= tile.pixels_at:
                tile.drawing = tile.drawing + _end(engine, tile, clock)
            else:
                wake_self(engine, tile.pixels_at)
    elif kind == int(TileWorkKind.LOAD):
        if tile.row < row.rows:
            if tile.away < raster.loads_ahead:
                _move(engine, tile, row, MemorySource.TILE_LOADS, raster.load_byte_part, clock)
        elif (tile.away == 0) & through:
            tile.loading = tile.loading + _end(engine, tile, clock)
        elif tile.away == 0:
            wake_self(engine, (tile.moves_part >> FRACTION) + 1)
    elif kind == int(TileWorkKind.STORE):
        if tile.row < row.rows:
            _move(engine, tile, row, MemorySource.TILE_STORES, raster.store_byte_part, clock)
        elif through:
            tile.storing = tile.storing + _end(engine, tile, clock)
        else:
            wake_self(engine, (tile.moves_part >> FRACTION) + 1)
    elif clock < tile.began + raster.tile_clocks:
        wake_self(engine, tile.began + raster.tile_clocks)
    else:
        queue = queue_at(engine, GraphicsQueue.TILE_DONE, const(i32, 0))
        wrote = call(
            write_piece,
            engine.pointer, queue.pointer, clock, clock + 1,
            number_of(engine).sext(i64), row.tile.sext(i64), const(i64, 0),
        )  # fmt: skip
        if wrote != 0:
            tile.tiles = tile.tiles + 1
            tile.finished_at = clock
            _end(engine, tile, clock)


@kernel(args=(ptr, ptr, i64))
def step_tile_buffer(address: Value, state: Value, clock: Value) -> None:
    """Writes a vector; goes on with the tile's loads and stores."""
    engine, tile = Engine.at(address), TileBuffer.at(state)
    work = work_of(GraphicsFigures.at(engine.chip), const(i32, 1))
    _take_pixels(engine, tile, work, clock)
    tile.away = tile.away - take_answer(engine, MemorySource.TILE_LOADS, clock)
    if tile.work == 0:
        queue = queue_at(engine, GraphicsQueue.TILE_WORK, number_of(engine))
        if call(is_readable, address, queue.pointer, clock) != 0:
            _begin(engine, tile, work, queue, clock)
    if tile.work != 0:
        _work_on(engine, tile, work, clock)


@staged
def _work_at(work: Work, number: Value) -> TileWork:
    return TileWork.at(work.tile_work + (number - 1).sext(i64) * TileWork.size, 8)
