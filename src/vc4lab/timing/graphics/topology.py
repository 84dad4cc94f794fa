"""The modules and queues of a chip for frames, from its figures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vc4lab.simd import Function, Struct
from vc4lab.timing.chip import BadChip, Chip
from vc4lab.timing.compute.kinds import WRITERS, MemorySource
from vc4lab.timing.compute.topology import topology_of
from vc4lab.timing.declare import Module, Queue, StandsStill, Topology
from vc4lab.timing.figures import GRAPHICS_QUEUES
from vc4lab.timing.graphics.front_end import FrontEnd, step_front_end
from vc4lab.timing.graphics.rendering_list import ListReader, step_rendering_list
from vc4lab.timing.graphics.scheduler import ShaderScheduler, step_shader_scheduler
from vc4lab.timing.graphics.setup import Setup, step_setup
from vc4lab.timing.graphics.tile_buffer import TileBuffer, step_tile_buffer

ANSWERS = max(source for source in MemorySource if source not in WRITERS) + 1
"""Queues of memory answers, by source."""


@dataclass(frozen=True)
class Part:
    """What a module does, and its memory."""

    step: Function[None]
    state: type[Struct]


@dataclass(frozen=True)
class Parts:
    """Modules that tests put others in the place of."""

    qpu: Part
    binning_list: Part
    vertex_cache: Part
    attributes: Part
    binner: Part


def frame_topology(chip: Chip, parts: Parts) -> Topology:
    """Modules and queues: those of user programs first. Raises BadChip for what cannot move."""
    compute = topology_of(chip)
    setup, front = chip.whole("setup", "clocks"), chip.whole("front_end", "latency")
    launch = chip.whole("shaders", "launch")
    qpu = replace(
        compute.modules[-1],
        does="executes shaders",
        step=parts.qpu.step,
        state=parts.qpu.state,
        inputs=("launches", "tmu_results", "shaders"),
        outputs=("tmu_requests", "shaded", "pixels"),
    )
    modules = (
        *compute.modules[:-1],
        qpu,
        Module(
            "binning_list", "reads the binning list", parts.binning_list.step,
            parts.binning_list.state, ("memory_answers",),
            ("memory_requests", "binning_groups", "binned"), resources="reads of lists",
        ),
        Module(
            "rendering_list", "reads the rendering list and tile lists", step_rendering_list,
            ListReader, ("memory_answers", "tile_done"),
            ("memory_requests", "rendering_groups", "primitives", "tile_work"),
            resources="reads of lists; tiles that it is ahead",
        ),
        Module(
            "vertex_cache", "collects vertices into batches", parts.vertex_cache.step,
            parts.vertex_cache.state, ("binning_groups", "rendering_groups"), ("fetches",),
            resources="rows of the VPM",
        ),
        Module(
            "attributes", "DMA of attributes and shaded vertices to the VPM",
            parts.attributes.step, parts.attributes.state, ("fetches", "memory_answers"),
            ("batches", "shaded", "memory_requests"), resources="reads that have not come",
        ),
        Module(
            "binner", "clips primitives and writes the lists of tiles", parts.binner.step,
            parts.binner.state, ("binned", "shaded"), ("memory_requests",),
        ),
        Module(
            "setup", "planes of primitives", step_setup, Setup,
            ("primitives", "shaded"), ("set_up",),
            latency=chip.whole("setup", "latency"), interval=setup,
        ),
        Module(
            "front_end", "rasterises, early Z, vectors of four quads", step_front_end, FrontEnd,
            ("set_up",), ("vectors",), latency=front,
        ),
        Module(
            "tile_buffer", "colours and depths; loads and stores", step_tile_buffer, TileBuffer,
            ("pixels", "tile_work", "memory_answers"), ("tile_done", "memory_requests"),
            resources="one tile; vectors that hold a lock; moves that have not come",
        ),
        Module(
            "shader_scheduler", "gives batches and vectors to QPUs", step_shader_scheduler,
            ShaderScheduler, ("batches", "vectors"), ("shaders",),
            latency=launch, interval=chip.whole("shaders", "interval"),
        ),
    )  # fmt: skip
    counts = {"shaders": qpu.count, "shaded": 2}
    flight = {
        "set_up": 1 + chip.whole("setup", "latency") // setup,
        "vectors": 1 + front // 4,
        "shaders": 1,
    }
    queues = tuple(
        replace(queue, count=ANSWERS) if queue.name == "memory_answers" else queue
        for queue in compute.queues
    )
    queues += tuple(
        Queue(
            name,
            chip.whole(f"queues.{name}", "depth"),
            counts.get(name, 1),
            bool(chip.whole(f"queues.{name}", "reserved")),
            flight.get(name, 0),
        )
        for name in GRAPHICS_QUEUES
    )
    try:
        return Topology(modules, queues)
    except StandsStill as error:
        raise BadChip(f"{chip.name}: {error}") from None
