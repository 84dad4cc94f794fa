"""Has the cores of a board report loads from what the GPU is still writing."""

from __future__ import annotations

from vc4lab.soc.cores.engine.early_reads import EarlyReads
from vc4lab.soc.hardware import Hardware


def watch_early_reads(hardware: Hardware) -> None:
    """Watch the loads of all cores, before any of them has run."""

    def empty() -> None:
        for core in hardware.processors.running:
            core.cpu.forget_translations()

    counter, clock, end = hardware.counter, hardware.clock, hardware.board.peripherals
    early = EarlyReads(counter.address, clock.address, empty, hardware.reporter, end)
    for cpu in hardware.cores:
        cpu.alignment.watch_early_reads(early.address)
    hardware.v3d_bridge.early = early
