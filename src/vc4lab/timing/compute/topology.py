"""The modules and queues of a chip for user programs, from its figures."""

from __future__ import annotations

from vc4lab.timing.chip import BadChip, Chip
from vc4lab.timing.compute.dma import step_loader, step_storer
from vc4lab.timing.compute.launch import step_host, step_scheduler
from vc4lab.timing.compute.memory import step_l2
from vc4lab.timing.compute.qpu import step_qpu
from vc4lab.timing.compute.sdram import step_sdram
from vc4lab.timing.compute.slice_caches import step_instruction_cache, step_uniform_cache
from vc4lab.timing.compute.state import L2, Dma, Host, Qpu, Scheduler, Sdram, SliceCache, Tmu
from vc4lab.timing.compute.tmu import step_tmu
from vc4lab.timing.declare import Module, Queue, StandsStill, Topology
from vc4lab.timing.figures import QUEUES


def topology_of(chip: Chip, clusters: int = 1) -> Topology:
    """Modules and queues of so many clusters. Raises BadChip for what cannot move.

    User programs run in one of them: they share its VPM, its mutex and its semaphores.
    """
    slices, qpus = clusters * chip.whole("slices", "count"), chip.whole("slices", "qpus")
    per_slice = chip.whole("tmu", "per_slice")
    total, tmus = slices * qpus, slices * per_slice
    vector_clocks = chip.whole("tmu", "vector_clocks")
    modules = (
        Module(
            "host", "writes programs to SRQPC", step_host, Host, (), ("programs",), interval=1,
        ),
        Module(
            "scheduler", "gives programs to QPUs", step_scheduler, Scheduler,
            ("programs",), ("launches",),
            latency=chip.whole("scheduler", "launch"),
            interval=chip.whole("scheduler", "interval"),
        ),
        Module(
            "sdram", "moves lines and rows", step_sdram, Sdram,
            ("memory_requests",), ("memory_answers",),
            resources="one bus; a row open in each bank",
            latency=chip.whole("sdram", "latency"),
        ),
        Module(
            "l2", "keeps lines for instructions, uniforms and TMUs", step_l2, L2,
            ("l2_requests", "memory_answers"), ("l2_answers", "memory_requests"),
            resources="lines that it waits for",
            latency=chip.whole("l2", "latency"),
            interval=chip.whole("l2", "interval"),
        ),
        Module(
            "instruction_cache", "keeps instructions for the QPUs of a slice",
            step_instruction_cache, SliceCache, ("l2_answers",), ("l2_requests",), slices,
            resources="a line that each QPU waits for",
        ),
        Module(
            "uniform_cache", "fetches uniforms ahead for the QPUs of a slice",
            step_uniform_cache, SliceCache, ("l2_answers",), ("l2_requests",), slices,
            resources="a line that each QPU waits for",
        ),
        Module(
            "tmu", "looks up memory for the QPUs of a slice", step_tmu, Tmu,
            ("tmu_requests", "l2_answers"), ("tmu_results", "l2_requests"), tmus,
            resources="vectors at a time; results that a QPU has not read",
            latency=chip.whole("tmu", "latency"),
            interval=vector_clocks,
        ),
        Module(
            "loader", "DMA from memory to the VPM (VDR)", step_loader, Dma,
            ("memory_answers",), ("memory_requests",), resources="one transfer",
        ),
        Module(
            "storer", "DMA from the VPM to memory (VDW)", step_storer, Dma,
            (), ("memory_requests",), resources="one transfer",
        ),
        Module(
            "qpu", "executes a program", step_qpu, Qpu,
            ("launches", "tmu_results"), ("tmu_requests",), total,
            resources="SFU of its slice, VPM port, mutex, semaphores, DMA engines",
            latency=chip.whole("qpu", "slot"), interval=chip.whole("qpu", "slot"),
        ),
    )  # fmt: skip
    counts = {
        "launches": total,
        "l2_answers": 2 * slices + tmus,
        "tmu_requests": total * per_slice,
        "tmu_results": total * per_slice,
        "memory_answers": 2,
    }
    latency = chip.whole("l2", "latency")
    flight = {"launches": 1, "l2_answers": latency // chip.whole("l2", "interval")}
    queues = tuple(
        Queue(
            name,
            chip.whole(f"queues.{name}", "depth"),
            counts.get(name, 1),
            bool(chip.whole(f"queues.{name}", "reserved")),
            flight.get(name, 0),
        )
        for name in QUEUES
    )
    try:
        return Topology(modules, queues)
    except StandsStill as error:
        raise stands_still(chip, error) from None


def stands_still(chip: Chip, error: StandsStill) -> BadChip:
    """Return the deadlock as a BadChip that names the places in the chip's file to be changed."""
    places = [chip.place(f"queues.{name}", "reserved") for name in error.queues]
    return BadChip(f"{', '.join(places) or chip.name}: {error}")
