"""A job as the kernel hands it to the hardware, and the private memory that it is built in."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.drm.kernel.rendering import ColourSurface
from vc4lab.qpu.program.program import Program

TILE_MEMORY = 32 << 20
"""For tile state and tile lists of one job; pages that stay untouched cost nothing."""
REGION = 256 << 20
"""Tile memory must not cross a boundary of this size."""
LISTS = 64 << 20
"""For a job's lists, shader records and uniforms: three streams of 16 MiB at most."""
WORKSPACE = TILE_MEMORY + LISTS


@dataclass(slots=True)  # not frozen, as `Submit`
class BuiltJob:
    """Two lists in guest memory, ready for CT0CA/CT0EA and CT1CA/CT1EA.

    `bin_start == bin_end` when the job has nothing to bin; `colour` is None when it writes none.
    """

    bin_start: int
    bin_end: int
    render_start: int
    render_end: int
    width: int
    height: int
    colour: ColourSurface | None
    tile_count: int
    fragment_programs: tuple[Program, ...] = ()


@dataclass(slots=True)
class Workspace:
    """Private memory for one job: tile state and tile lists, and what is built for it."""

    tile_memory: int
    tile_memory_size: int
    lists: int

    @classmethod
    def at(cls, address: int) -> Workspace:
        """`WORKSPACE` bytes in one piece, inside one 256 MiB region."""
        return cls(address, TILE_MEMORY, address + TILE_MEMORY)
