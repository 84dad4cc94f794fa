"""Thread 0 and the modules of vertices with stand-ins for the rest of the chip."""

import hashlib
from pathlib import Path
from typing import Any

from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, ptr
from vc4lab.timing.chip import load_chip
from vc4lab.timing.compute.board_memory import NEVER, begin_memory
from vc4lab.timing.compute.kinds import MemorySource, ModuleKind, QueueKind
from vc4lab.timing.compute.sdram import step_sdram
from vc4lab.timing.compute.state import Figures, Sdram
from vc4lab.timing.declare import Module, Queue, Topology
from vc4lab.timing.event_scheduler import Engine, Pause, wake_self
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.state import GraphicsFigures
from vc4lab.timing.graphics.vertices.attributes import step_attributes
from vc4lab.timing.graphics.vertices.binner import step_binner
from vc4lab.timing.graphics.vertices.binning_list import step_binning_list
from vc4lab.timing.graphics.vertices.preparation import (
    FrameVertices,
    binning_end,
    frame_vertices,
    is_binned,
    reset,
)
from vc4lab.timing.graphics.vertices.state import RENDERING, Attributes, Binner, BinningList, VertexCache
from vc4lab.timing.graphics.vertices.vertex_cache import (
    batch_at,
    call_cache,
    release,
    step_vertex_cache,
    the_cache,
)
from vc4lab.timing.machine import Machine
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

ONE = 1 << 10
LATENCY = 10

NAME = f"vertices-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}"
"""Of the compiled modules: kept code is not used when the stand-ins have changed."""


class Idle(Struct):
    """A module that takes no part."""

    nothing = i64


class Shader(Struct):
    """Shades one batch at a time. place: the batch + 1, or 0."""

    clocks = i64
    end = i64
    place = i64
    thread = i64
    batches = i64


class Consumer(Struct):
    """Uses vertices of thread 1 in order, and lets them go."""

    used = i32
    holds = i32


class Groups(Struct):
    """Names groups of thread 1."""

    next = i32
    count = i32


@kernel(args=(ptr, ptr, i64))
def step_idle(address: Value, state: Value, clock: Value) -> None:
    """Nothing."""


@kernel(args=(ptr, ptr, i64))
def step_shader(address: Value, state: Value, clock: Value) -> None:
    """Takes a batch, and hands it on when its clocks are over."""
    engine, shader = Engine.at(address), Shader.at(state)
    if (shader.place > 0) & (clock >= shader.end):
        cache = the_cache(engine)
        queue = queue_at(engine, GraphicsQueue.SHADED, shader.thread.trunc(i32))
        batches = cache.binning.batches
        if shader.thread == RENDERING:
            batches = cache.rendering.batches
        batch = batch_at(batches, (shader.place - 1).trunc(i32))
        wrote = call(
            write_piece, address, queue.pointer, clock, clock + 1,
            shader.thread, shader.place - 1, shader.thread,
        )  # fmt: skip
        if wrote != 0:
            batch.done = batch.done + 1
            shader.place = const(i64, 0)
            shader.batches = shader.batches + 1
    if shader.place == 0:
        queue = queue_at(engine, GraphicsQueue.BATCHES, const(i32, 0))
        if call(is_readable, address, queue.pointer, clock) != 0:
            piece = first_piece(queue)
            shader.place = piece.place + 1
            shader.thread = piece.tag
            shader.end = clock + shader.clocks
            call(remove_piece, address, queue.pointer, clock)
            wake_self(engine, shader.end)
    elif clock < shader.end:
        wake_self(engine, shader.end)


@kernel(args=(ptr, ptr, i64))
def step_consumer(address: Value, state: Value, clock: Value) -> None:
    """Takes vertices that were shaded; holds: lets none go."""
    engine, consumer = Engine.at(address), Consumer.at(state)
    queue = queue_at(engine, GraphicsQueue.SHADED, const(i32, RENDERING))
    if call(is_readable, address, queue.pointer, clock) != 0:
        call(remove_piece, address, queue.pointer, clock)
        consumer.used = consumer.used + 1
        call_cache(engine, clock)
        if consumer.holds == 0:
            release(engine, RENDERING, consumer.used, clock)


@kernel(args=(ptr, ptr, i64))
def step_groups(address: Value, state: Value, clock: Value) -> None:
    """Names the next group."""
    engine, groups = Engine.at(address), Groups.at(state)
    if groups.next < groups.count:
        queue = queue_at(engine, GraphicsQueue.RENDERING_GROUPS, const(i32, 0))
        wrote = call(
            write_piece, address, queue.pointer, clock, clock + 1,
            const(i64, 0), groups.next.sext(i64), const(i64, 0),
        )  # fmt: skip
        if wrote != 0:
            groups.next = groups.next + 1
            wake_self(engine, clock + 1)


_STEPS: dict[str, tuple[Any, Any]] = {
    "sdram": (step_sdram, Sdram),
    "binning_list": (step_binning_list, BinningList),
    "rendering_list": (step_groups, Groups),
    "vertex_cache": (step_vertex_cache, VertexCache),
    "attributes": (step_attributes, Attributes),
    "binner": (step_binner, Binner),
    "setup": (step_consumer, Consumer),
    "shader_scheduler": (step_shader, Shader),
}
_READS = {
    "sdram": ("memory_requests",),
    "binning_list": ("memory_answers",),
    "vertex_cache": ("binning_groups", "rendering_groups"),
    "attributes": ("fetches", "memory_answers"),
    "binner": ("binned", "shaded"),
    "setup": ("shaded",),
    "shader_scheduler": ("batches",),
}
_DEPTHS = {"memory_answers": 64, "memory_requests": 8, "shaded": 32}


def _topology(depth: int) -> Topology:
    modules = [kind.name.lower() for kind in (*ModuleKind, *GraphicsModule)]
    queues = [kind.name.lower() for kind in (*QueueKind, *GraphicsQueue)]
    read = {name for names in _READS.values() for name in names}
    rest = tuple(name for name in queues if name not in read)
    # the host stands for all who write: circles are not what these tests look for
    return Topology(
        tuple(
            Module(
                name, "", *_STEPS.get(name, (step_idle, Idle)),
                inputs=rest if name == "storer" else _READS.get(name, ()),
                outputs=tuple(queues) if name == "host" else (),
            )
            for name in modules
        ),
        tuple(
            Queue(
                name,
                _DEPTHS.get(name, depth),
                {"memory_answers": 7, "shaded": 2}.get(name, 1),
                reserved=True,
            )
            for name in queues
        ),
    )  # fmt: skip


def _plain_memory(figures: Figures) -> None:
    """A clock a request, whatever row it is in; no refreshes."""
    figures.sdram_latency = LATENCY
    figures.row_bits = figures.burst_bits = 12
    figures.burst_part = ONE
    figures.reads = figures.writes = figures.bunch = 8
    figures.refresh_interval_part = NEVER


class VertexMachine:
    """The modules with figures that are easy to count with: one clock for everything.

    rows: of the VPM. depth: of queues. figures: by module, others.
    """

    def __init__(self, rows: int = 192, shading: int = 20, depth: int = 4, **figures: dict[str, int]) -> None:
        self.figures = GraphicsFigures()
        _plain_memory(self.figures.compute)
        self.figures.compute.clusters = 1
        self.machine = Machine(_topology(depth), self.figures.address, NAME)
        states = self.machine.states
        self.cache: Any = states["vertex_cache"][0]
        self.attributes: Any = states["attributes"][0]
        self.list: Any = states["binning_list"][0]
        self.binner: Any = states["binner"][0]
        self.shader: Any = states["shader_scheduler"][0]
        self.consumer: Any = states["setup"][0]
        self.sdram: Any = states["sdram"][0]
        begin_memory(self.sdram, load_chip("videocore4"), self.figures.compute)
        for source, name in (
            (MemorySource.BINNING_LIST, "binning_list"),
            (MemorySource.ATTRIBUTES, "attributes"),
        ):
            self.machine.set_reader("memory_answers", source, name, 0)
        self.machine.set_reader("shaded", 0, "binner", 0)
        self.machine.set_reader("shaded", 1, "setup", 0)
        self.cache.room = self.cache.binning.limit = self.cache.rendering.limit = rows
        self.cache.index_part = ONE
        self.attributes.ahead, self.attributes.word_part = 8, ONE
        self.list.ahead, self.list.record_clocks = 4, 1
        self.binner.primitive_part = ONE
        self.shader.clocks = shading
        for name, values in figures.items():
            for key, value in values.items():
                setattr(states[name][0], key, value)

    def run(self, frame: Frame, *, binning: bool = True, rendering: bool = True) -> FrameVertices:
        """Runs one or both threads of a frame to the end."""
        tables = frame_vertices(frame, self.cache.kept)
        clock = int(self.machine.engine.clock)
        for thread, runs in enumerate((binning, rendering)):
            self.figures.released[thread] = 0
            reset(self.machine, thread, tables if runs else None)
        if binning:
            self.machine.call("binning_list", 0, clock)
        if rendering:
            groups: Any = self.machine.states["rendering_list"][0]
            groups.next, groups.count = 0, len(tables.rendering.first_batch) - 1
            self.consumer.used = 0
            self.machine.call("rendering_list", 0, clock)
        self.pause = self.machine.run()
        assert self.pause is Pause.IDLE
        self.tables = tables
        return tables

    @property
    def binned(self) -> int:
        """The clock at which thread 0 ended; it must have."""
        assert is_binned(self.machine)
        return binning_end(self.machine)

    @property
    def blocked(self) -> int:
        """Clocks in which the vertex cache manager had no room."""
        place = self.machine.names.index(("vertex_cache", 0))
        return int(self.machine.instances[place].blocked)
