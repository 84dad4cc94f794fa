"""The modules and queues of a chip for frames, from its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vc4lab.simd import Function, Struct
from vc4lab.timing.chip import Chip
from vc4lab.timing.compute.kinds import ANSWERS
from vc4lab.timing.compute.topology import stands_still, topology_of
from vc4lab.timing.declare import Module, Queue, StandsStill, Topology
from vc4lab.timing.figures import GRAPHICS_QUEUES
from vc4lab.timing.graphics.clusters.global_scheduler import step_global_scheduler
from vc4lab.timing.graphics.clusters.preparation import THREADS, clusters_of, is_dealt
from vc4lab.timing.graphics.clusters.state import GlobalScheduler
from vc4lab.timing.graphics.shaders.preparation import STEPS
from vc4lab.timing.graphics.shaders.state import ShaderQpu
from vc4lab.timing.graphics.tiles.front_end import FrontEnd, step_front_end
from vc4lab.timing.graphics.tiles.rendering_list import ListReader, step_rendering_list
from vc4lab.timing.graphics.tiles.scheduler import ShaderScheduler, step_shader_scheduler
from vc4lab.timing.graphics.tiles.setup import Setup, step_setup
from vc4lab.timing.graphics.tiles.tile_buffer import TileBuffer, step_tile_buffer
from vc4lab.timing.graphics.vertices.attributes import step_attributes
from vc4lab.timing.graphics.vertices.binner import step_binner
from vc4lab.timing.graphics.vertices.binning_list import step_binning_list
from vc4lab.timing.graphics.vertices.state import Attributes, Binner, BinningList, VertexCache
from vc4lab.timing.graphics.vertices.vertex_cache import step_vertex_cache


@dataclass(frozen=True)
class Part:
    """A module's step function, and its memory (None: that of user programs)."""

    step: Function[None]
    state: type[Struct] | None = None


PARTS: Mapping[str, Part] = {
    **{name: Part(step) for name, step in STEPS.items() if name != "qpu"},
    "qpu": Part(STEPS["qpu"], ShaderQpu),
    "binning_list": Part(step_binning_list, BinningList),
    "rendering_list": Part(step_rendering_list, ListReader),
    "vertex_cache": Part(step_vertex_cache, VertexCache),
    "attributes": Part(step_attributes, Attributes),
    "binner": Part(step_binner, Binner),
    "setup": Part(step_setup, Setup),
    "front_end": Part(step_front_end, FrontEnd),
    "tile_buffer": Part(step_tile_buffer, TileBuffer),
    "shader_scheduler": Part(step_shader_scheduler, ShaderScheduler),
    "global_scheduler": Part(step_global_scheduler, GlobalScheduler),
}
"""By module: those that draw, and those that do it in the place of one of user programs."""

_OF_TILES = ("rendering_groups", "primitives", "tile_work")
"""Queues of a tile's work, which thread 1 hands on."""


def frame_topology(chip: Chip, parts: Mapping[str, Part] = PARTS) -> Topology:
    """Modules and queues: those of user programs first. Raises BadChip for what cannot move."""
    clusters, dealt = clusters_of(chip), is_dealt(chip)
    compute = topology_of(chip, clusters)
    setup, front = chip.whole("setup", "clocks"), chip.whole("front_end", "latency")
    ways = {"qpu": (("launches", "tmu_results", "shaders"), ("tmu_requests", "shaded", "pixels"))}
    modules = []
    for module in compute.modules:
        part = parts.get(module.name, Part(module.step))
        inputs, outputs = ways.get(module.name, (module.inputs, module.outputs))
        modules.append(
            replace(
                module, step=part.step, state=part.state or module.state,
                inputs=inputs, outputs=outputs,
            )
        )  # fmt: skip
    qpus = modules[-1].count
    modules += [
        _module(
            parts, "binning_list", "reads the binning list", ("memory_answers",),
            ("memory_requests", "commands" if dealt else "binning_groups", "binned"),
            resources="reads of lists",
        ),
        _module(
            parts, "rendering_list", "reads the rendering list and tile lists",
            ("memory_answers", "tile_done"),
            ("memory_requests", *(("commands",) if dealt else _OF_TILES)),
            resources="reads of lists; tiles that it is ahead",
        ),
        _module(
            parts, "vertex_cache", "collects vertices into batches",
            ("binning_groups", "rendering_groups"), ("fetches",), resources="rows of the VPM",
            count=clusters,
        ),
        _module(
            parts, "attributes", "DMA of attributes and shaded vertices to the VPM",
            ("fetches", "memory_answers"), ("batches", "shaded", "memory_requests"),
            resources="reads that have not come",
            count=clusters,
        ),
        _module(
            parts, "binner", "clips primitives and writes the lists of tiles",
            ("binned", "shaded"), ("memory_requests",),
            count=clusters,
        ),
        _module(
            parts, "setup", "planes of primitives", ("primitives", "shaded"), ("set_up",),
            latency=chip.whole("setup", "latency"), interval=setup,
            count=clusters,
        ),
        _module(
            parts, "front_end", "rasterises, early Z, vectors of four quads",
            ("set_up",), ("vectors",), latency=front,
            count=clusters,
        ),
        _module(
            parts, "tile_buffer", "colours and depths; loads and stores",
            ("pixels", "tile_work", "memory_answers"), ("tile_done", "memory_requests"),
            resources="one tile; vectors that hold a lock; moves that have not come",
            count=clusters,
        ),
        _module(
            parts, "shader_scheduler", "gives batches and vectors to QPUs",
            ("batches", "vectors"), ("shaders",),
            latency=chip.whole("shaders", "launch"), interval=chip.whole("shaders", "interval"),
            count=clusters,
        ),
        _module(
            parts, "global_scheduler", "deals batches and tiles out to clusters", ("commands",),
            ("binning_groups", *_OF_TILES), resources="tiles that a cluster may have",
            latency=chip.whole("global_scheduler", "latency"),
            interval=chip.whole("global_scheduler", "interval"), count=THREADS if dealt else 0,
        ),
    ]  # fmt: skip
    counts = {
        "binned": 1, "tile_done": 1, "shaders": qpus, "shaded": 2 * clusters,
        "commands": THREADS if dealt else 0,
    }  # fmt: skip
    flight = {"set_up": 1 + chip.whole("setup", "latency") // setup, "vectors": 1 + front // 4, "shaders": 1}
    queues = tuple(
        replace(queue, count=ANSWERS * clusters) if queue.name == "memory_answers" else queue
        for queue in compute.queues
    )
    queues += tuple(
        Queue(
            name,
            chip.whole(f"queues.{name}", "depth"),
            counts.get(name, clusters),
            bool(chip.whole(f"queues.{name}", "reserved")),
            flight.get(name, 0),
        )
        for name in GRAPHICS_QUEUES
    )
    try:
        return Topology(tuple(modules), queues)
    except StandsStill as error:
        raise stands_still(chip, error) from None


def _module(
    parts: Mapping[str, Part],
    name: str,
    does: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    resources: str = "",
    latency: int | None = None,
    interval: int | None = None,
    count: int = 1,
) -> Module:
    part = parts[name]
    assert part.state is not None
    return Module(
        name, does, part.step, part.state, inputs, outputs,
        count=count, resources=resources, latency=latency, interval=interval,
    )  # fmt: skip
