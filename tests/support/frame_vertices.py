"""Frames with their vertices in the model, and simple QPUs: a batch or a vector takes N clocks."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, nested, ptr, select
from vc4lab.timing.chip import Chip
from vc4lab.timing.compute.state import Qpu
from vc4lab.timing.event_scheduler import Engine, wake_self
from vc4lab.timing.frames.columns import dtype_of
from vc4lab.timing.graphics.feed import Feed
from vc4lab.timing.graphics.kinds import GraphicsQueue
from vc4lab.timing.graphics.result import ShaderUse
from vc4lab.timing.graphics.shaders.preparation import STEPS
from vc4lab.timing.graphics.state import Batch, GraphicsFigures, Shader, TaskKind
from vc4lab.timing.graphics.tables import Tables
from vc4lab.timing.graphics.tiles.scheduler import HALVES, end_thread, work_of
from vc4lab.timing.graphics.tiles.scoreboard import drop_lock, take_lock
from vc4lab.timing.graphics.topology import PARTS, Part
from vc4lab.timing.machine import Machine
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

IDLE, RUNNING, LOCKED = 0, 1, 2


class TaskQpu(Struct):
    """One thread at a time. task: what it does; place: with which batch or vector."""

    qpu = nested(Qpu)
    phase = i32
    task = i32
    place = i32
    unused = i32
    until = i64
    before = i64
    held = i64
    shading = i64
    batches = i64


@kernel(args=(ptr, ptr, i64))
def step_nothing(_address: Value, _state: Value, _clock: Value) -> None:
    """Does nothing, in the place of a module."""


@kernel(args=(ptr, ptr, i64))
def step_task_qpu(address: Value, state: Value, clock: Value) -> None:
    """Takes a piece, waits, ends."""
    engine, mine = Engine.at(address), TaskQpu.at(state)
    figures = GraphicsFigures.at(engine.chip)
    if mine.phase == IDLE:
        queue = queue_at(engine, GraphicsQueue.SHADERS, mine.qpu.number)
        if call(is_readable, address, queue.pointer, clock) != 0:
            mine.place = first_piece(queue).place.trunc(i32)
            mine.task = first_piece(queue).tag.trunc(i32)
            call(remove_piece, address, queue.pointer, clock)
            mine.phase = const(i32, RUNNING)
            clocks = select(mine.task == int(TaskKind.FRAGMENTS), mine.before, mine.shading)
            mine.until = clock + clocks
    wrote = const(i32, 0)
    if (mine.phase != IDLE) & (mine.until <= clock):
        if mine.task == int(TaskKind.FRAGMENTS):
            if mine.phase == RUNNING:
                if take_lock(engine, mine.place, clock) != 0:
                    mine.phase = const(i32, LOCKED)
                    mine.until = clock + mine.held
            else:
                pixels = queue_at(engine, GraphicsQueue.PIXELS, const(i32, 0))
                wrote = call(
                    write_piece,
                    address, pixels.pointer, clock, clock + 1,
                    const(i64, 0), mine.place.sext(i64), const(i64, 1),
                )  # fmt: skip
                if wrote != 0:
                    drop_lock(engine, mine.place, clock)
        else:
            thread = select(mine.task == int(TaskKind.VERTICES), const(i32, 1), const(i32, 0))
            batches = work_of(figures, thread).batches
            batch = Batch.at(batches + mine.place.sext(i64) * Batch.size, 8)
            shaded = queue_at(engine, GraphicsQueue.SHADED, thread)
            wrote = call(
                write_piece,
                address, shaded.pointer, clock, clock + 1,
                const(i64, 0), mine.place.sext(i64), thread.sext(i64),
            )  # fmt: skip
            if wrote != 0:
                batch.done = batch.done + 1
                mine.batches = mine.batches + 1
    if wrote != 0:
        end_thread(engine, mine.qpu.number, const(i32, HALVES), clock)
        mine.phase = const(i32, IDLE)
        wake_self(engine, clock + 1)
    if (mine.phase != IDLE) & (mine.until > clock):
        wake_self(engine, mine.until)


class TaskFeed(Feed):
    """A batch takes `shading` clocks, a vector `before` and then `held` with its lock."""

    name = "tasks " + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    parts: Mapping[str, Part] = {
        **{module: part for module, part in PARTS.items() if module not in STEPS},
        "qpu": Part(step_task_qpu, TaskQpu),
    }

    def __init__(self, chip: Chip, shading: int = 100, before: int = 32, held: int = 12) -> None:
        super().__init__(chip)
        self.clocks = {"shading": shading, "before": before, "held": held}
        self.seen: list[Tables] = []

    def add_shaders(self, tables: Tables) -> None:
        shaders = np.zeros(1, dtype_of(Shader))
        shaders["threads"] = 1
        for named in (tables.binned, tables.rendered):
            named["shaders"] = shaders
            named["batches"]["shader"] = np.minimum(named["batches"]["shader"], 0)
        tables.rendered["vectors"]["shader"] = 0
        self.seen.append(tables)

    def uses(self, _tables: Tables) -> tuple[ShaderUse, ...]:
        return ()

    def prepare(self, machine: Machine, figures: GraphicsFigures) -> None:
        super().prepare(machine, figures)
        for qpu in machine.states["qpu"]:
            state: Any = qpu
            for name, clocks in self.clocks.items():
                setattr(state, name, clocks)

    def counters(self, machine: Machine) -> None:
        return None
