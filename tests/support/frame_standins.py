"""Simple modules in the place of the QPUs and of what shades vertices, for frames in the model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from vc4lab.simd import (
    Struct,
    Value,
    call,
    const,
    i32,
    i64,
    kernel,
    load,
    nested,
    ptr,
)
from vc4lab.timing.chip import Chip
from vc4lab.timing.clockwork import (
    Engine,
    first_piece,
    instance_of,
    is_readable,
    queue_at,
    remove_piece,
    wake,
    wake_self,
    write_piece,
)
from vc4lab.timing.compute.state import Qpu
from vc4lab.timing.frames.columns import dtype_of
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.scheduler import HALVES, end_thread, work_of
from vc4lab.timing.graphics.scoreboard import drop_lock, take_lock
from vc4lab.timing.graphics.state import Batch, GraphicsFigures, Shader
from vc4lab.timing.graphics.tables import Feed, Tables
from vc4lab.timing.graphics.topology import Part, Parts
from vc4lab.timing.machine import Machine

IDLE, RUNNING, LOCKED = 0, 1, 2


class PlainQpu(Struct):
    """One thread at a time: clocks before its lock, clocks with it, accesses to the tile buffer."""

    qpu = nested(Qpu)
    phase = i32
    vector = i32
    until = i64
    before = i64
    held = i64
    accesses = i64
    threads = i64


class PlainVertices(Struct):
    """Shades all batches of a group at once. first_batch: of each group."""

    first_batch = ptr
    shaded = i64


class Nothing(Struct):
    """A module that does nothing."""

    unused = i64


@kernel(args=(ptr, ptr, i64))
def step_plain_qpu(address: Value, state: Value, clock: Value) -> None:
    """Takes a vector, waits, takes its lock, keeps it for a while, ends."""
    engine, mine = Engine.at(address), PlainQpu.at(state)
    if mine.phase == IDLE:
        queue = queue_at(engine, GraphicsQueue.SHADERS, mine.qpu.number)
        if call(is_readable, address, queue.pointer, clock) != 0:
            mine.vector = first_piece(queue).place.trunc(i32)
            call(remove_piece, address, queue.pointer, clock)
            mine.phase = const(i32, RUNNING)
            mine.until = clock + mine.before
    if (mine.phase == RUNNING) & (mine.until <= clock):
        if take_lock(engine, mine.vector, clock) != 0:
            mine.phase = const(i32, LOCKED)
            mine.until = clock + mine.held
    if (mine.phase == LOCKED) & (mine.until <= clock):
        pixels = queue_at(engine, GraphicsQueue.PIXELS, const(i32, 0))
        wrote = call(
            write_piece,
            address, pixels.pointer, clock, clock + 1,
            const(i64, 0), mine.vector.sext(i64), mine.accesses,
        )  # fmt: skip
        if wrote != 0:
            drop_lock(engine, clock)
            end_thread(engine, mine.qpu.number, const(i32, HALVES), clock)
            mine.phase = const(i32, IDLE)
            mine.threads = mine.threads + 1
            wake_self(engine, clock + 1)
    if (mine.phase != IDLE) & (mine.until > clock):
        wake_self(engine, mine.until)


@kernel(args=(ptr, ptr, i64))
def step_plain_vertices(address: Value, state: Value, clock: Value) -> None:
    """All batches of a group are there at once."""
    engine, mine = Engine.at(address), PlainVertices.at(state)
    work = work_of(GraphicsFigures.at(engine.chip), const(i32, 1))
    groups = queue_at(engine, GraphicsQueue.RENDERING_GROUPS, const(i32, 0))
    if call(is_readable, address, groups.pointer, clock) != 0:
        place = mine.first_batch + (first_piece(groups).place << 2)
        call(remove_piece, address, groups.pointer, clock)
        for number in range(load(i32, place), load(i32, place + 4)):
            batch = Batch.at(work.batches + number.sext(i64) * Batch.size, 4)
            batch.done = const(i32, 1)
            mine.shaded = mine.shaded + 1
        wake(engine, instance_of(engine, GraphicsModule.SETUP, const(i32, 0)), clock)


@kernel(args=(ptr, ptr, i64))
def step_nothing(address: Value, state: Value, clock: Value) -> None:
    """Does nothing."""


NOTHING = Part(step_nothing, Nothing)


class PlainFeed(Feed):
    """Frames without shaders: a vector takes `before` clocks, then `held` ones with its lock."""

    name = "stand-ins " + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    parts = Parts(
        Part(step_plain_qpu, PlainQpu), NOTHING, Part(step_plain_vertices, PlainVertices),
        NOTHING, NOTHING,
    )  # fmt: skip

    def __init__(self, chip: Chip, before: int = 32, held: int = 12, accesses: int = 1) -> None:
        super().__init__(chip)
        self.before, self.held, self.accesses = before, held, accesses

    def add_shaders(self, tables: Tables) -> None:
        assert tables.rendering is not None
        draws = tables.rendering.frame.draws
        shaders = np.zeros(2 * max(len(draws), 1), dtype_of(Shader))
        shaders["threads"] = 1
        tables.rendered["shaders"] = shaders

    def add_vertices(self, tables: Tables) -> None:
        assert tables.rendering is not None
        batches = np.zeros(len(tables.rendering.batches.sizes), dtype_of(Batch))
        batches["thread"], batches["vertices"] = 1, tables.rendering.batches.sizes
        tables.rendered["batches"] = batches

    def prepare(self, machine: Machine, figures: GraphicsFigures) -> None:
        for qpu in machine.states["qpu"]:
            qpu.before, qpu.held, qpu.accesses = self.before, self.held, self.accesses

    def reset(self, machine: Machine, thread: int, tables: Tables) -> None:
        if thread == 1 and tables.rendering is not None:
            first = tables.rendering.batches.first_batch
            machine.states["vertex_cache"][0].first_batch = first.ctypes.data
