"""How long the chip takes for a job: one function from counts to clocks of the V3D.

A rough estimate, within a factor of two of what was measured on boards, until a timing model
follows each unit. The counts are the same for every engine and any number of threads, and so is the
time. Loops of shaders count once, memory is as fast as it is on an idle board. Source: published
measurements, named at each constant; pi0w: a Pi Zero W at 250 MHz with 640 x 360 pixels, RGB565.
"""

from __future__ import annotations

from typing import NamedTuple

CLOCKS_PER_INSTRUCTION = 4
"""A vector of 16 lanes goes through the four lanes of a QPU in four clocks."""
QPUS = 12
"""QPUs of the chip."""
QUADS_PER_VECTOR = 4

JOB_CLOCKS = 300
"""From the register to the first unit at work, and the caches' first lines (binning one triangle
takes 3 us on pi0w, a user program of 4 instructions 86 clocks)."""

INDEX_CLOCKS = 10
ENTRY_CLOCKS = 4
"""Binning: a vertex of a primitive, a primitive in the list of a tile (20,000 tiny triangles take
34 clocks each on pi0w)."""

PRIMITIVE_CLOCKS = 48
"""Rendering: a primitive in a tile (20,000 tiny triangles take 51 clocks each on pi0w)."""

TILE_CLOCKS = 60
BYTES_PER_CLOCK = 10
"""Rendering: a load or store of a tile (a cleared tile of 8 KiB takes 879 clocks on pi0w)."""

QUAD_CLOCKS_TIMES_4 = 5
"""A quad in the tile buffer (flat fill: 3.2 pixels a clock)."""

LOOKUP_CLOCKS_TIMES_4 = 9
RASTER_LOOKUPS = 4
"""A texture lookup of a quad (T format: 384 to 511 million pixels a second; raster format: 97)."""

STALL_CLOCKS = 20
"""A user program's lookup: its result comes 9 to 20 instructions later, which programs hide in
part."""

LOADED_ROW_CLOCKS = 8
STORED_ROW_CLOCKS = 10
STORED_PER_CLOCK = 4
"""VPM DMA: 16 rows of 16 words are loaded in 371 clocks and stored in 229, 16 rows of one word in
145 and 167: a row costs so much, a word one clock or a quarter."""


class JobCounts(NamedTuple):
    """Counts what a job consists of; what does not belong to its kind is 0.

    Attributes
    ----------
    indices, entries
        Binning: vertices of primitives, primitives in tile lists.
    shader_instructions
        Coordinate and vertex shaders: vectors of 16 vertices times instructions.
    quads, tiles_moved, bytes_moved, primitives, fragment_instructions, lookups
        Rendering: quads shaded, loads and stores of tiles and their bytes, primitives in tiles,
        quads times instructions and times texture lookups.
    instructions, user_lookups
        A user program on its QPU: vector instructions, lookups of its TMUs.
    loaded_rows, loaded, stored_rows, stored
        Its VPM DMA: rows and elements.
    """

    indices: int = 0
    entries: int = 0
    shader_instructions: int = 0
    quads: int = 0
    tiles_moved: int = 0
    bytes_moved: int = 0
    primitives: int = 0
    fragment_instructions: int = 0
    lookups: int = 0
    instructions: int = 0
    user_lookups: int = 0
    loaded_rows: int = 0
    loaded: int = 0
    stored_rows: int = 0
    stored: int = 0


def job_clocks(c: JobCounts) -> int:
    """V3D clocks that the chip takes for a job of these counts.

    Quads go through tile buffer, QPUs and texture units side by side, so the slowest of the three
    counts. Everything else is done one after the other.
    """
    binning = INDEX_CLOCKS * c.indices + ENTRY_CLOCKS * c.entries
    shading = CLOCKS_PER_INSTRUCTION * c.shader_instructions // QPUS
    tiles = TILE_CLOCKS * c.tiles_moved + c.bytes_moved // BYTES_PER_CLOCK
    fragments = max(
        QUAD_CLOCKS_TIMES_4 * c.quads // 4,
        CLOCKS_PER_INSTRUCTION * c.fragment_instructions // (QPUS * QUADS_PER_VECTOR),
        LOOKUP_CLOCKS_TIMES_4 * c.lookups // 4,
    )
    program = CLOCKS_PER_INSTRUCTION * c.instructions + STALL_CLOCKS * c.user_lookups
    rendering = tiles + PRIMITIVE_CLOCKS * c.primitives + fragments
    return JOB_CLOCKS + binning + shading + rendering + program + dma_clocks(c)


def dma_clocks(c: JobCounts) -> int:
    """The part of it in which the only DMA engine of all QPUs is at work."""
    loads = LOADED_ROW_CLOCKS * c.loaded_rows + c.loaded
    return loads + STORED_ROW_CLOCKS * c.stored_rows + c.stored // STORED_PER_CLOCK
