"""Clusters, as the model of frames sees them."""

from __future__ import annotations

from typing import Any

from vc4lab.timing.chip import Chip
from vc4lab.timing.compute.kinds import ANSWERS, MemorySource
from vc4lab.timing.graphics.kinds import shaded_queue
from vc4lab.timing.graphics.state import GraphicsFigures, Scoreboard
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING
from vc4lab.timing.machine import Machine

THREADS = 2
"""List threads; each has a global scheduler of its own."""


def clusters_of(chip: Chip) -> int:
    """How many clusters a chip has; one without a global scheduler is one of them."""
    return max(chip.whole("clusters", "count"), 1)


def is_dealt(chip: Chip) -> bool:
    """Whether a global scheduler deals work out."""
    return chip.whole("clusters", "count") > 0


def prepare(machine: Machine, figures: GraphicsFigures, chip: Chip) -> None:
    """Who reads what in each cluster, and the figures of the global scheduler."""
    clusters = clusters_of(chip)
    figures.compute.clusters, figures.dealt = clusters, int(is_dealt(chip))
    for dealer in machine.states["global_scheduler"]:
        dealer.interval = chip.whole("global_scheduler", "interval")
        dealer.latency = chip.whole("global_scheduler", "latency")
    for source, module, count in (
        (MemorySource.BINNING_LIST, "binning_list", 1),
        (MemorySource.RENDERING_LIST, "rendering_list", 1),
        (MemorySource.ATTRIBUTES, "attributes", clusters),
        (MemorySource.TILE_LOADS, "tile_buffer", clusters),
    ):
        for cluster in range(count):
            machine.set_reader("memory_answers", cluster * ANSWERS + source, module, cluster)
    for cluster in range(clusters):
        machine.set_reader("shaded", shaded_queue(cluster, BINNING), "binner", cluster)
        machine.set_reader("shaded", shaded_queue(cluster, RENDERING), "setup", cluster)


def scoreboards(figures: GraphicsFigures) -> list[Any]:
    """The scoreboard of each cluster."""
    first = figures.address + type(figures).scoreboard.offset
    return [
        Scoreboard.python.from_address(first + number * Scoreboard.size)
        for number in range(max(figures.compute.clusters, 1))
    ]


def reset(machine: Machine, figures: GraphicsFigures, thread: int) -> None:
    """A list thread begins another frame."""
    dealers = machine.states["global_scheduler"]
    if dealers:
        dealer: Any = dealers[thread]
        dealer.free_at = dealer.batch = dealer.end = dealer.first_batch = 0
        dealer.cluster = len(dealer.tiles) - 1  # the first piece goes to the first cluster
        for cluster in range(len(dealer.tiles)):
            dealer.tiles[cluster] = dealer.dealt[cluster] = 0
    for number in range(1 + len(machine.states["setup"])):
        if (number == BINNING) == (thread == BINNING):
            figures.released[number] = 0
    if thread == RENDERING:
        for board in scoreboards(figures):
            board.entered = board.open = 0
            board.holders[:] = [0] * len(board.holders)
