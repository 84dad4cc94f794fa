"""QPUs that run shaders, with a source of vectors in front of them and a tile buffer after them.

Everything else of a frame stands still; the tile buffer takes what comes.
"""

import ctypes
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.qpu.text.assembler import assemble
from vc4lab.simd import Struct, Value, call, const, i32, i64, kernel, ptr, store
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.compute.kinds import Cause
from vc4lab.timing.compute.model import figures_of, make_caches, place_modules
from vc4lab.timing.compute.topology import topology_of
from vc4lab.timing.declare import Module, Queue, Topology
from vc4lab.timing.event_scheduler import Engine, Pause, wake_self
from vc4lab.timing.frames.columns import dtype_of
from vc4lab.timing.graphics.deadlock import standing_threads
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.result import ShaderUse
from vc4lab.timing.graphics.shaders.preparation import STEPS, fill_shading
from vc4lab.timing.graphics.shaders.state import ShaderQpu
from vc4lab.timing.graphics.shaders.tables import ShaderTables
from vc4lab.timing.graphics.shaders.use import SegmentCounts, shader_uses
from vc4lab.timing.graphics.state import PLACE_BITS, Batch, GraphicsFigures, Quad, Vector, Work
from vc4lab.timing.graphics.tiles.scheduler import ShaderScheduler, step_shader_scheduler
from vc4lab.timing.machine import Machine
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

CODE, UNIFORMS = 0x10000, 0x40000


class Source(Struct):
    """Pieces that are written one after the other; pieces that were read, and when (log)."""

    vectors = i32
    batches = i32
    written = i32
    batched = i32
    interval = i64
    log = ptr
    count = i32
    unused = i32


@kernel(args=(ptr, ptr, i64))
def step_source(address: Value, state: Value, clock: Value) -> None:
    """Vectors for the shader scheduler, and batches for it."""
    engine, source = Engine.at(address), Source.at(state)
    zero = const(i64, 0)
    if source.batched < source.batches:
        queue = queue_at(engine, GraphicsQueue.BATCHES, const(i32, 0))
        wrote = call(
            write_piece,
            address, queue.pointer, clock, clock, zero, source.batched.sext(i64), const(i64, 1),
        )  # fmt: skip
        source.batched = source.batched + wrote
        if wrote != 0:
            wake_self(engine, clock + 1)
    elif source.written < source.vectors:
        queue = queue_at(engine, GraphicsQueue.VECTORS, const(i32, 0))
        wrote = call(
            write_piece,
            address, queue.pointer, clock, clock, zero, source.written.sext(i64), zero,
        )  # fmt: skip
        source.written = source.written + wrote
        if wrote != 0:
            wake_self(engine, clock + source.interval)


@kernel(args=(ptr, ptr, i64))
def step_sink(address: Value, state: Value, clock: Value) -> None:
    """Takes a vector that has ended, or a batch."""
    engine, sink = Engine.at(address), Source.at(state)
    for kind in (GraphicsQueue.PIXELS, GraphicsQueue.SHADED):
        queue = queue_at(engine, kind, const(i32, 1 if kind == GraphicsQueue.SHADED else 0))
        if call(is_readable, address, queue.pointer, clock) != 0:
            piece = first_piece(queue)
            store(sink.log + (sink.count.sext(i64) << 4), piece.place)
            store(sink.log + (sink.count.sext(i64) << 4) + 8, piece.ready - 1)
            sink.count = sink.count + 1
            call(remove_piece, address, queue.pointer, clock)


@kernel(args=(ptr, ptr, i64))
def step_nothing(_address: Value, _state: Value, _clock: Value) -> None:
    """A module that does nothing."""


def _topology(chip: Chip) -> Topology:
    compute = topology_of(chip)
    modules = [replace(module, step=STEPS.get(module.name, module.step)) for module in compute.modules]
    total = modules[-1].count
    modules[-1] = replace(
        modules[-1],
        state=ShaderQpu,
        inputs=("launches", "tmu_results", "shaders"),
        outputs=("tmu_requests", "pixels", "shaded"),
    )
    names = [kind.name.lower() for kind in GraphicsQueue]
    ours = ("vectors", "batches", "shaders", "pixels", "shaded")
    others = tuple(name for name in names if name not in ours)
    for kind in GraphicsModule:
        name = kind.name.lower()
        match kind:
            case GraphicsModule.FRONT_END:
                module = Module(name, "", step_source, Source, others, ("vectors", "batches"))
            case GraphicsModule.TILE_BUFFER:
                module = Module(name, "", step_sink, Source, ("pixels", "shaded"))
            case GraphicsModule.SHADER_SCHEDULER:
                module = Module(
                    name, "", step_shader_scheduler, ShaderScheduler, ("batches", "vectors"),
                    ("shaders",),
                )  # fmt: skip
            case _:
                module = Module(name, "", step_nothing, Source, (), others)
        modules.append(module)
    queues = list(compute.queues)
    counts = {"shaders": total, "shaded": 2}
    queues += [Queue(name, 4, counts.get(name, 1), name not in ("vectors", "batches"), 2) for name in names]
    return Topology(tuple(modules), tuple(queues))


@dataclass
class Shaded:
    """What came out: of each vector (batch) the clock at which it ended; QPUs and tables."""

    ends: dict[int, int]
    qpus: list[Any]
    machine: Machine
    tables: ShaderTables
    shaders: Any
    before: SegmentCounts

    def uses(self) -> tuple[ShaderUse, ...]:
        """What the programs took."""
        return shader_uses(self.before, self.shaders, self.tables.labels, 4)

    @property
    def clocks(self) -> int:
        return max(self.ends.values())

    @property
    def events(self) -> int:
        return int(self.machine.engine.events)

    def stall(self, cause: Cause, qpu: int | None = None) -> int:
        """Clocks that QPUs waited for a cause."""
        chosen = self.qpus if qpu is None else [self.qpus[qpu]]
        return sum(int(one.common.stalls[cause]) for one in chosen)

    def stalls(self, qpu: int = 0) -> dict[Cause, int]:
        found = {cause: int(self.qpus[qpu].common.stalls[cause]) for cause in Cause}
        return {cause: clocks for cause, clocks in found.items() if clocks}

    def misses(self, cache: str, number: int = 0) -> int:
        return int(self.machine.states[cache][number].tags.misses)

    @property
    def segments(self) -> list[tuple[int, int, int]]:
        """First instruction, how often it was run, and clocks it waited, of each segment."""
        return [
            (int(row["first"]), int(row["executed"]), int(row["stalls"].sum()))
            for row in self.tables.segments
        ]


def shaded(
    program: str | Sequence[str | tuple[int, ...]],
    vectors: int = 1,
    *,
    threads: int = 1,
    qpus: int = 1,
    slices: int = 1,
    interval: int = 1,
    lines: Sequence[Sequence[Sequence[int]]] = (),
    instructions: int = 0,
    uniforms: int = UNIFORMS,
    locks: int = 64,
    batches: bool = False,
    launch: int = 1,
    complete: bool = True,
    places: int = 1024,
    covered: int | NDArray[np.int64] = 15,
    whole_quads: bool = False,
    chip: str = "videocore4",
    **figures: int,
) -> Shaded:
    """Runs vectors of a program (or of several in turn), each of one quad.

    lines: of each vector (the last one for all others) the lines of each of its requests.
    places: that they cover in turn; covered: pixels of them. complete: all of them must end.
    figures: members of `Figures` and `ShadingFigures` that are other than the chip's.
    """
    texts = [program] if isinstance(program, str) else list(program)
    made = _with_counts(load_chip(chip), slices, qpus)
    shared: Any = GraphicsFigures()
    plain = figures_of(made, speeds_of(made).of_board["pi2"])
    ctypes.memmove(shared.address, plain.address, type(plain).struct.size)
    fill_shading(shared.shading, made)
    for name, value in figures.items():
        setattr(shared.compute if hasattr(shared.compute, name) else shared.shading, name, value)
    shared.raster.locks, shared.raster.whole_quads = locks, whole_quads
    shared.raster.places = places
    shared.raster.shader_launch, shared.raster.shader_interval = launch, 1
    shared.scoreboard.open = vectors
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    machine = Machine(_topology(made), shared.address, f"shading {digest}")
    states = machine.states
    place_modules(machine, made, [state.common for state in states["qpu"]], plain)
    machine.set_reader("shaded", 1, "tile_buffer", 0)
    kept = [make_caches(machine, made)]
    tables = ShaderTables(made.whole("uniform_cache", "ahead"))
    rows = []
    for number, text in enumerate(texts):
        words = assemble(text).words if isinstance(text, str) else tuple(text)
        rows.append(tables.row(words, CODE + 0x2000 * number, uniforms, threads, instructions))
    work, arrays = _work(tables, vectors, rows, lines, batches)
    arrays[4]["place"] = np.arange(vectors) % places | covered << 2 * PLACE_BITS
    before = SegmentCounts(tables)
    shared.works[0] = shared.works[1] = work.address
    log = np.zeros((vectors + 1, 2), np.int64)
    source, sink = states["front_end"][0], states["tile_buffer"][0]
    if batches:
        source.batches = vectors
    else:
        source.vectors = vectors
    source.interval = interval
    sink.log = log.ctypes.data
    machine.call("front_end", 0, 0)
    assert machine.run() is Pause.IDLE
    assert not complete or sink.count == vectors, standing_threads(machine)
    del kept
    ends = {int(number): int(clock) for number, clock in log[: sink.count]}
    return Shaded(ends, states["qpu"], machine, tables, arrays[0], before)


def _with_counts(chip: Chip, slices: int, qpus: int) -> Chip:
    sections = {name: dict(section) for name, section in chip.figures.items()}
    for key, value in (("count", slices), ("qpus", qpus)):
        sections["slices"][key] = replace(sections["slices"][key], value=value)
    return replace(chip, figures=sections)


def _work(
    tables: ShaderTables,
    vectors: int,
    rows: Sequence[int],
    lines: Sequence[Sequence[Sequence[int]]],
    batches: bool,
) -> tuple[Any, list[Any]]:
    many = np.zeros(vectors, dtype_of(Batch if batches else Vector))
    many["shader"] = [rows[number % len(rows)] for number in range(vectors)]
    if not batches:
        many["first_quad"], many["quads"] = np.arange(vectors), 1
    quads = np.zeros(vectors, dtype_of(Quad))
    quads["block"] = np.arange(vectors)
    of_each = [lines[min(number, len(lines) - 1)] if lines else () for number in range(vectors)]
    first_request = np.cumsum([0] + [len(one) for one in of_each])
    requests = [request for one in of_each for request in one]
    first_line = np.cumsum([0] + [len(request) for request in requests])
    every = np.array([line for request in requests for line in request] + [0], np.uint32)
    arrays = {
        "shaders": tables.shaders, "segments": tables.segments, "routes": tables.routes,
        "batches" if batches else "vectors": many, "quads": quads,
        "first_request": first_request.astype(np.int64), "first_line": first_line.astype(np.int64),
        "lines": every,
    }  # fmt: skip
    work: Any = Work()
    for name, array in arrays.items():
        setattr(work, name, array.ctypes.data)
    return work, list(arrays.values())
