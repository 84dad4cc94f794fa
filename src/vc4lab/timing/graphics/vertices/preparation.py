"""Thread 0 and the vertices of both threads, as the model of frames sees them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from vc4lab.timing.chip import Chip
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.frames.vertex_batches import VertexBatches
from vc4lab.timing.graphics.vertices.binning_work import BinningWork, binning_work
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING
from vc4lab.timing.graphics.vertices.vertex_work import Vertices, rendering_vertices
from vc4lab.timing.machine import Machine


@dataclass(frozen=True)
class FrameVertices:
    """A frame: what thread 0 does, and the batches of thread 1."""

    binning: BinningWork
    rendering: Vertices

    def of(self, thread: int) -> Vertices:
        """The batches of a thread."""
        return self.rendering if thread == RENDERING else self.binning.vertices


def frame_vertices(frame: Frame, kept: int = 0, found: VertexBatches | None = None) -> FrameVertices:
    """The tables of a frame; found: the batches of thread 1, if they are known. Raises NotTimed."""
    return FrameVertices(binning_work(frame, kept), rendering_vertices(frame, kept, found))


def _part(clocks: float) -> int:
    return round(clocks * (1 << FRACTION))


def prepare(machine: Machine, chip: Chip) -> None:
    """Gives the modules their figures."""
    states = machine.states
    for cache in states["vertex_cache"]:
        _prepare_cache(cache, chip)
    for attributes in states["attributes"]:
        # it leaves bytes of the next batch in the queue, which must not keep the memory from others
        room = chip.whole("queues.memory_answers", "depth")
        attributes.ahead = min(chip.whole("attributes", "ahead"), room)
        attributes.vertex_part = _part(chip.real("attributes", "vertex_clocks"))
        attributes.word_part = _part(chip.real("attributes", "word_clocks"))
    thread: Any = states["binning_list"][0]
    thread.ahead = chip.whole("binning_list", "ahead")
    thread.record_clocks = chip.whole("binning_list", "record_clocks")
    for binner, name in itertools.product(states["binner"], ("primitive", "entry", "clip", "tile")):
        setattr(binner, f"{name}_part", _part(chip.real("binner", f"{name}_clocks")))
    reset(machine, BINNING, None)
    reset(machine, RENDERING, None)


def _prepare_cache(cache: Any, chip: Chip) -> None:
    """Gives the vertex cache manager of a cluster its figures."""
    cache.room = chip.whole("vertex_cache", "rows")
    cache.binning.limit = chip.whole("vertex_cache", "binning_rows")
    cache.rendering.limit = chip.whole("vertex_cache", "rendering_rows")
    cache.kept = chip.whole("vertex_cache", "kept")
    cache.arbitration = chip.whole("vertex_cache", "arbitration")
    cache.index_part = _part(chip.real("vertex_cache", "index_clocks"))


def reset(machine: Machine, thread: int, tables: FrameVertices | None) -> None:
    """A list thread begins a frame, or none. The tables must be kept until it has ended."""
    vertices = None if tables is None else tables.of(thread)
    if vertices is not None:
        vertices.batches["made"] = vertices.batches["done"] = 0
    for cache in machine.states["vertex_cache"]:
        cache.full_since = -1
        mine: Any = cache.rendering if thread == RENDERING else cache.binning
        cache.rows -= mine.rows
        _set(mine, batches=0, first_batch=0, batch=0, end=0, freed=0, shaded=0, held=0, rows=0,
             since=-1)  # fmt: skip
        if vertices is not None:
            mine.batches = vertices.batches.ctypes.data
            mine.first_batch = vertices.first_batch.ctypes.data
    for attributes in machine.states["attributes"]:
        if vertices is not None:
            attributes.batches[thread] = vertices.batches.ctypes.data
            attributes.fetches[thread] = vertices.fetches.ctypes.data
    if thread == BINNING:
        _reset_binning(machine, None if tables is None else tables.binning)


def _reset_binning(machine: Machine, work: BinningWork | None) -> None:
    reader: Any = machine.states["binning_list"][0]
    _set(reader, count=0, read_count=0, next=0, sent=0, back=0, taken=0, grouped=0, waiting=0,
         flushes=0, collected=0, used=-1, ended=int(machine.engine.clock))  # fmt: skip
    for binner in machine.states["binner"]:
        _set(binner, chunk=0, end=0, working=0, passed=0, flushes=0)
        if work is not None:
            _set(binner, batches=work.vertices.batches.ctypes.data, chunks=work.chunks.ctypes.data,
                 first_chunk=work.first_chunk.ctypes.data)  # fmt: skip
    if work is not None:
        _set(reader, records=work.records.ctypes.data, reads=work.reads.ctypes.data,
             count=len(work.records), read_count=len(work.reads))  # fmt: skip


def is_binned(machine: Machine) -> bool:
    """Whether thread 0 has done all of its frame."""
    reader: Any = machine.states["binning_list"][0]
    idle = all(not binner.working and binner.chunk >= binner.end for binner in machine.states["binner"])
    return bool(reader.next == reader.count and not reader.waiting and idle)


def binning_end(machine: Machine) -> int:
    """The clock at which it ended."""
    return int(machine.states["binning_list"][0].ended)


def standing(machine: Machine) -> list[str]:
    """Lines about what thread 0 and vertices wait for, if nothing happens any more."""
    states = machine.states
    reader: Any = states["binning_list"][0]
    waits = ("", ", waits for batches", ", waits for a flush")[reader.waiting]
    return [
        f"binning_list: record {reader.next} of {reader.count}, read {reader.back} of "
        f"{reader.read_count}{waits}",
        *(
            f"vertex_cache {number}: {cache.rows} of {cache.room} rows in use; thread 0 at batch "
            f"{cache.binning.batch}, thread 1 at batch {cache.rendering.batch}"
            for number, cache in enumerate(states["vertex_cache"])
        ),
        *(
            f"binner {number}: chunk {binner.chunk} of {binner.end}"
            for number, binner in enumerate(states["binner"])
        ),
    ]


def _set(state: Any, **values: int) -> None:
    for name, value in values.items():
        setattr(state, name, value)
