"""The shader scheduler: gives batches of vertices and vectors of fragments to QPUs with room.

A QPU has two halves. A program that shares its QPU takes one of them, any other one both. Batches
go before vectors; of several QPUs the one with the most room is chosen, in turn.
"""

from __future__ import annotations

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, load, max_, ptr, select, staged, store
from vc4lab.timing.event_scheduler import Engine, count_busy, instance_of, number_of, wake, wake_self
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.state import Batch, GraphicsFigures, Shader, TaskKind, Vector, Work
from vc4lab.timing.graphics.tiles.scoreboard import enter
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

HALVES = 2
"""Halves of a QPU."""


class ShaderScheduler(Struct):
    """last: the QPU that got a piece last. free_at: when the next piece can go."""

    free_at = i64
    last = i32
    unused = i32
    batches = i64
    vectors = i64


@staged
def work_of(figures: GraphicsFigures, thread: Value) -> Work:
    """The tables of a list thread's frame."""
    return Work.at(load(ptr, figures.works + (thread.sext(i64) << 3)))


@staged
def halves_of(work: Work, shader: Value) -> Value:
    """How many halves of a QPU a program takes."""
    threads = Shader.at(work.shaders + shader.sext(i64) * Shader.size, 4).threads
    return select(threads > 1, const(i32, 1), const(i32, HALVES))


@staged
def qpus_of_cluster(figures: GraphicsFigures) -> Value:
    """How many QPUs a cluster has."""
    return figures.compute.slices * figures.compute.qpus


@staged
def end_thread(engine: Engine, qpu: Value, halves: Value, clock: Value) -> None:
    """A thread of a QPU has ended; its halves are free from the next clock on."""
    figures = GraphicsFigures.at(engine.chip)
    place = figures.threads + (qpu.sext(i64) << 2)
    store(place, load(i32, place) - halves)
    cluster = qpu.udiv(qpus_of_cluster(figures))
    wake(engine, instance_of(engine, GraphicsModule.SHADER_SCHEDULER, cluster), clock + 1)


@staged
def _choose(engine: Engine, figures: GraphicsFigures, last: Value, halves: Value) -> Value:
    """The QPU of the cluster with the most room for so many halves, the next one of several; -1:
    there is none.
    """
    count = qpus_of_cluster(figures)
    first = number_of(engine) * count
    chosen, least = const(i32, -1), HALVES + 1 - halves
    number: Value = max_(last, first)
    for _ in range(count):
        number = select(number + 1 >= first + count, first, number + 1)
        used = load(i32, figures.threads + (number.sext(i64) << 2))
        better = used < least
        chosen = select(better, number, chosen)
        least = select(better, used, least)
    return chosen


@staged
def _give(
    engine: Engine, scheduler: ShaderScheduler, qpu: Value, halves: Value, place: Value,
    task: Value, clock: Value,
) -> Value:  # fmt: skip
    """Gives a piece to a QPU (1); 0 if that cannot be at this clock."""
    figures = GraphicsFigures.at(engine.chip)
    shaders = queue_at(engine, GraphicsQueue.SHADERS, qpu)
    wrote = call(
        write_piece,
        engine.pointer, shaders.pointer, clock, clock + figures.raster.shader_launch,
        const(i64, 0), place, task,
    )  # fmt: skip
    if wrote != 0:
        used = figures.threads + (qpu.sext(i64) << 2)
        store(used, load(i32, used) + halves)
        scheduler.last = qpu
        scheduler.free_at = clock + figures.raster.shader_interval
        count_busy(engine, figures.raster.shader_interval)
        wake_self(engine, scheduler.free_at)
    return wrote


@kernel(args=(ptr, ptr, i64))
def step_shader_scheduler(address: Value, state: Value, clock: Value) -> None:
    """Gives the oldest batch to a QPU, or if there is none the oldest vector."""
    engine, scheduler = Engine.at(address), ShaderScheduler.at(state)
    figures = GraphicsFigures.at(engine.chip)
    if clock < scheduler.free_at:
        wake_self(engine, scheduler.free_at)
    else:
        batches = queue_at(engine, GraphicsQueue.BATCHES, number_of(engine))
        vectors = queue_at(engine, GraphicsQueue.VECTORS, number_of(engine))
        if call(is_readable, engine.pointer, batches.pointer, clock) != 0:
            piece = first_piece(batches)
            thread = piece.tag.trunc(i32)
            work = work_of(figures, thread)
            batch = Batch.at(work.batches + piece.place * Batch.size, 4)
            halves = halves_of(work, batch.shader)
            qpu = _choose(engine, figures, scheduler.last, halves)
            coordinates, vertices = (
                const(i64, int(kind)) for kind in (TaskKind.COORDINATES, TaskKind.VERTICES)
            )
            task = select(thread == 0, coordinates, vertices)
            if qpu >= 0:
                if _give(engine, scheduler, qpu, halves, piece.place, task, clock) != 0:
                    scheduler.batches = scheduler.batches + 1
                    call(remove_piece, engine.pointer, batches.pointer, clock)
        elif call(is_readable, engine.pointer, vectors.pointer, clock) != 0:
            piece = first_piece(vectors)
            work = work_of(figures, const(i32, 1))
            vector = Vector.at(work.vectors + piece.place * Vector.size, 4)
            halves = halves_of(work, vector.shader)
            qpu = _choose(engine, figures, scheduler.last, halves)
            if qpu >= 0:
                task = const(i64, int(TaskKind.FRAGMENTS))
                if _give(engine, scheduler, qpu, halves, piece.place, task, clock) != 0:
                    enter(engine, piece.place.trunc(i32), clock)
                    scheduler.vectors = scheduler.vectors + 1
                    call(remove_piece, engine.pointer, vectors.pointer, clock)
