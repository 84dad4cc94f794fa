"""The options of a machine, and the choices that the firmware's year implies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.diagnostics.unknown import Unknowns, find
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.ranges import CACHE_MODES, RAM_CONTENTS, check_word
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.pins import PinLevel

TODAY = "today"
FIRMWARES: Mapping[str, Mapping[str, str]] = {
    TODAY: {},
    "2015": {
        "hyp_start": "svc",
        "parked_cores": "polling",
        "monitor_call": "undefined",  # it belongs to the stub, which there is none of
        "framebuffer_address": "physical",
        "framebuffer_alpha": "mode",
        "framebuffer_order_channel_1": "rgb",
        "uart_clock": "3mhz",
    },
}
"""Rows of the unknowns table that firmware of other years decides otherwise than today's."""


def choices_of(firmware: str) -> Mapping[str, str]:
    """The choices that a firmware makes. Raises ValueError for one that is not in the table."""
    found = FIRMWARES.get(firmware)
    if found is None:
        raise ValueError(f"there is no firmware {firmware!r}, only {' and '.join(FIRMWARES)}")
    return found


def with_firmware(unknowns: Unknowns, firmware: str) -> Unknowns:
    """`unknowns`, and where they have the default, what the firmware decides. Raises ValueError."""
    chosen = choices_of(firmware).items()
    return unknowns.with_(**{n: c for n, c in chosen if unknowns[n] == find(n).default})


@dataclass(frozen=True)
class MachineOptions:
    """The choices for one machine.

    Attributes
    ----------
    board
        Name of a board, see `vc4lab.soc.board.BOARDS`.
    card
        Folder or image of the SD card that the program sees; by default what it is booted from.
    caches
        "check" reports where the ARM's or the V3D's caches hold old bytes, "stale" lets the others
        see them. None: no caches.
    extras
        Command line, RAM disk, device tree and load address instead of the card's.
    gpu
        Of the V3D; its choices for undocumented hardware, and whether it is forgiving, are those of
        the whole board.
    v3d_factory
        A maker for tests.
    pins
        What is connected to GPIO pins from outside.
    ram
        What RAM holds at power-on, "noise" (the same each time) or "zero". None: noise in strict
        mode, but not for Linux, nor if it is forgiving.

    Raises
    ------
    ValueError
        `caches` or `ram` is none of those there are.
    """

    board: str = "pi2"
    card: str | os.PathLike[str] | None = None
    caches: str | None = None
    extras: BootExtras = field(default_factory=BootExtras)
    gpu: GpuOptions = field(default_factory=GpuOptions)
    v3d_factory: Callable[[GuestMemory, Reporter], Any] | None = None
    pins: tuple[PinLevel, ...] = ()
    ram: str | None = None

    def __post_init__(self) -> None:
        if self.caches is not None:
            check_word("caches", self.caches, CACHE_MODES)
        if self.ram is not None:
            check_word("ram", self.ram, RAM_CONTENTS)

    @property
    def forgiving(self) -> bool:
        """Whether what a board would not do works, see `GpuOptions.forgiving`."""
        return self.gpu.forgiving
