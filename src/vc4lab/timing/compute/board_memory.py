"""The SDRAM's figures in clocks of the V3D: a board has a clock for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.timing.compute.kinds import FRACTION, WRITERS
from vc4lab.timing.compute.sdram import OTHERS
from vc4lab.timing.compute.state import MAX_BANKS, Bank

if TYPE_CHECKING:
    from vc4lab.timing.boards import BoardSpeed
    from vc4lab.timing.chip import Chip
    from vc4lab.timing.compute.state import Figures, Sdram

NEVER = 1 << 60
"""In place of the interval of refreshes, if there are none."""


def memory_figures(chip: Chip, speed: BoardSpeed) -> dict[str, int]:
    """The fields of `Figures` that say how the SDRAM works."""
    whole, bus = chip.whole, chip.whole("sdram", "bus_bytes")
    # data go both at the rise and at the fall of the memory's clock
    memory_clock = speed.clock / (speed.memory / (2 * bus))

    def ns(key: str) -> float:
        return chip.real("sdram", key) * speed.clock / 1e9

    def clocks(key: str) -> float:
        return chip.real("sdram", key) * memory_clock

    read = clocks("read_latency")
    parts = {
        "burst_part": whole("sdram", "burst") / 2 * memory_clock,
        "port_byte_part": 1 / chip.real("sdram", "bytes_per_clock"),
        "open_part": ns("open"),
        "active_part": ns("active"),
        "precharge_part": ns("precharge"),
        "precharge_all_part": ns("precharge_all"),
        "read_part": read,
        "write_part": clocks("write_latency"),
        # JESD209-2: RL + tDQSCK + BL / 2 + 1 - WL between the commands
        "read_write_part": ns("strobe") + memory_clock,
        # WL + 1 + BL / 2 + tWTR
        "write_read_part": ns("write_to_read") + memory_clock,
        # BL / 2 + tRTP - 2 after the read command
        "read_close_part": max(ns("read_to_precharge") - 2 * memory_clock, 0),
        # WL + BL / 2 + 1 + tWR after the write command
        "write_close_part": ns("write_recovery") + memory_clock,
        "lead_part": ns("precharge") + ns("open") + read,
        "refresh_part": ns("refresh"),
        "refresh_interval_part": ns("refresh_interval"),
        "others_interval_part": _interval(chip, speed),
    }
    found = {name: round(clocks * (1 << FRACTION)) for name, clocks in parts.items()}
    found["burst_part"] = max(found["burst_part"], 1)
    # a memory that did nothing else would never come to its work
    least = 2 * (found["refresh_part"] + found["precharge_all_part"])
    found["refresh_interval_part"] = max(found["refresh_interval_part"], least)
    if not chip.real("sdram", "refresh_interval"):
        found["refresh_interval_part"] = NEVER
    return {
        **found,
        "sdram_latency": whole("sdram", "latency"),
        "row_bits": whole("sdram", "row_bytes").bit_length() - 1,
        "bank_mask": whole("sdram", "banks") - 1,
        "burst_bits": (whole("sdram", "burst") * bus).bit_length() - 1,
        "reads": whole("sdram", "reads"),
        "writes": whole("sdram", "writes"),
        "overlap": whole("sdram", "overlap"),
        "bunch": min(whole("sdram", "bunch"), whole("sdram", "writes")),
    }


def _interval(chip: Chip, speed: BoardSpeed) -> float:
    """Clocks from one read of the ARM or the display to the next; 0: there is none."""
    others = chip.real("sdram", "others")
    return chip.whole("sdram", "others_bytes") * speed.clock / others if others else 0


def begin_memory(sdram: Any, chip: Chip, figures: Figures) -> None:
    """The memory as a run begins: all rows closed."""
    state: Sdram = sdram
    state.writers = sum(1 << source for source in WRITERS)
    state.refresh_part = figures.refresh_interval_part
    state.others_part = figures.others_interval_part
    state.other.source, state.other.bytes = OTHERS, chip.whole("sdram", "others_bytes")
    for number in range(MAX_BANKS):
        state.banks[number * Bank.size // 8] = -1
