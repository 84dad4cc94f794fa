"""Thread 1 of the control list executor: reads the rendering list and the lists of tiles.

Memory is read a line at a time, some lines ahead as long as the list goes on in a row; where it
goes on elsewhere, reading begins again when everything before has been executed.
"""

from __future__ import annotations

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, max_, ptr, select, staged
from vc4lab.timing.compute.kinds import FRACTION, MemorySource
from vc4lab.timing.event_scheduler import Engine, count_busy, wake_self
from vc4lab.timing.graphics.clusters.global_scheduler import command, tile_is_done
from vc4lab.timing.graphics.kinds import GraphicsQueue
from vc4lab.timing.graphics.requests import ask_memory, take_answer
from vc4lab.timing.graphics.state import GraphicsFigures, ListStep, StepKind, Work
from vc4lab.timing.graphics.tiles.scheduler import work_of
from vc4lab.timing.graphics.vertices.state import RENDERING
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece


class ListReader(Struct):
    """step: what is executed; begun: whether it has handed its piece on; parsed_at: when its
    records are through. fetching: the step whose lines are asked for, fetched of them; away: lines
    that have not come; came: lines that have come and are not used up.
    """

    step = i32
    begun = i32
    fetching = i32
    fetched = i32
    away = i32
    came = i32
    tiles = i32
    tiles_done = i32
    parsed_at = i64
    finished_at = i64
    bytes = i64
    records = i64


@staged
def _step_at(work: Work, number: Value) -> ListStep:
    return ListStep.at(work.steps + number.sext(i64) * ListStep.size, 8)


@staged
def _fetch(engine: Engine, reader: ListReader, work: Work, clock: Value) -> None:
    """Asks for the next line of the lists, if that is known already."""
    raster = GraphicsFigures.at(engine.chip).raster
    go = const(i32, 1)
    while (go != 0) & (reader.fetching < work.step_count):
        step = _step_at(work, reader.fetching)
        if reader.fetched >= step.lines:
            reader.fetching = reader.fetching + 1
            reader.fetched = const(i32, 0)
        else:
            go = const(i32, 0)
            jumps = step.jumps > 0
            ready = (reader.fetching == reader.step) & (reader.away + reader.came == 0)
            serial = select(reader.fetched > 0, reader.away == 0, ready)
            if select(jumps, serial, reader.away < raster.list_ahead):
                size = raster.list_line.sext(i64)
                location = step.location + reader.fetched.sext(i64) * size
                wrote = ask_memory(engine, MemorySource.RENDERING_LIST, location, size, clock)
                reader.fetched = reader.fetched + wrote
                reader.away = reader.away + wrote
                if wrote != 0:
                    wake_self(engine, clock + 1)


@staged
def _hand_on(engine: Engine, reader: ListReader, step: ListStep, clock: Value) -> Value:
    """Hand a step's work on (1), unless there is no room for it (0)."""
    figures = GraphicsFigures.at(engine.chip)
    kind = step.kind
    done = const(i32, 1)
    if kind == int(StepKind.TILE):
        room = figures.raster.list_tiles * figures.compute.clusters
        if reader.tiles - reader.tiles_done >= room:
            done = const(i32, 0)  # TILE_DONE calls it
    if done != 0:
        if figures.dealt != 0:
            done = command(engine, RENDERING, kind, step.number, clock)
        else:
            done = _give(engine, step, clock)
    if kind == int(StepKind.TILE):
        reader.tiles = reader.tiles + done
    return done


@staged
def _give(engine: Engine, step: ListStep, clock: Value) -> Value:
    """Hand it to the module that does it, where the chip has no clusters; 0: there is no room."""
    kind = step.kind
    done = const(i32, 1)
    for which, name in (
        (StepKind.WORK, GraphicsQueue.TILE_WORK),
        (StepKind.GROUP, GraphicsQueue.RENDERING_GROUPS),
        (StepKind.LIST, GraphicsQueue.PRIMITIVES),
    ):
        if kind == int(which):
            queue = queue_at(engine, name, const(i32, 0))
            done = call(
                write_piece,
                engine.pointer, queue.pointer, clock, clock + 1,
                const(i64, 0), step.number.sext(i64), const(i64, 0),
            )  # fmt: skip
    return done


@staged
def _execute(engine: Engine, reader: ListReader, work: Work, clock: Value) -> None:
    """Begins a step, or ends one."""
    raster = GraphicsFigures.at(engine.chip).raster
    step = _step_at(work, reader.step)
    if reader.begun == 0:
        if (step.lines == 0) | (reader.came > 0):
            if _hand_on(engine, reader, step, clock) != 0:
                reader.begun = const(i32, 1)
                part = step.bytes.sext(i64) * raster.list_byte_part
                part = part + step.records.sext(i64) * raster.list_record_part
                clocks = max_(part >> FRACTION, const(i64, 1))
                reader.parsed_at = clock + clocks
                reader.bytes = reader.bytes + step.bytes.sext(i64)
                reader.records = reader.records + step.records.sext(i64)
                count_busy(engine, clocks)
                wake_self(engine, reader.parsed_at)
    elif clock < reader.parsed_at:
        wake_self(engine, reader.parsed_at)
    elif reader.came >= step.lines:
        reader.came = reader.came - step.lines
        reader.begun = const(i32, 0)
        reader.step = reader.step + 1
        if reader.step < work.step_count:
            wake_self(engine, clock + 1)
        else:
            reader.finished_at = clock


@kernel(args=(ptr, ptr, i64))
def step_rendering_list(address: Value, state: Value, clock: Value) -> None:
    """Takes a line, executes a step, asks for a line."""
    engine, reader = Engine.at(address), ListReader.at(state)
    work = work_of(GraphicsFigures.at(engine.chip), const(i32, 1))
    done = queue_at(engine, GraphicsQueue.TILE_DONE, const(i32, 0))
    if call(is_readable, address, done.pointer, clock) != 0:
        tile_is_done(engine, first_piece(done).source.trunc(i32), clock)
        call(remove_piece, address, done.pointer, clock)
        reader.tiles_done = reader.tiles_done + 1
    came = take_answer(engine, MemorySource.RENDERING_LIST, clock)
    reader.away = reader.away - came
    reader.came = reader.came + came
    if reader.step < work.step_count:
        _execute(engine, reader, work, clock)
        _fetch(engine, reader, work, clock)
