"""A frame as the timing model sees it: tables of the pieces of work, in the order of the chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.memory import MEMORY_MASK
from vc4lab.timing.frames.columns import Table, starts
from vc4lab.v3d.state.tile_context import LIST_COUNTERS

QUADS = 0x1111
"""The lowest lane of each quad of a block."""

Words = tuple[int, ...]
"""The 64-bit words of a program."""


@dataclass(frozen=True)
class Binning:
    """The work of thread 0 up to a flush.

    Attributes
    ----------
    records
        Records executed, columns RECORD.
    draws, attributes
        Records 32, 33, 41 and 42, columns BINNED; what their vertices are fetched from.
    vertices
        Numbers of the vertices of all draws, as their indices name them.
    tiles
        Tiles of the grid.
    initial_bytes, block_bytes
        Bytes of a tile's first block of list memory, and of each that is added.
    memory
        Guest address and bytes of the memory for tile lists, as record 112 has them.
    """

    records: Table
    draws: Table
    attributes: Table
    vertices: NDArray[np.uint32]
    tiles: tuple[int, int]
    initial_bytes: int
    block_bytes: int
    memory: tuple[int, int]

    def holds(self, addresses: NDArray[np.int64]) -> bool:
        """Whether a tile list at one of the addresses was written here."""
        start, size = self.memory
        offsets = (addresses - start) & MEMORY_MASK
        return bool((offsets < size).any())


@dataclass(frozen=True)
class Frame:
    """The tiles of a frame, or a part of them where it is drawn in parts; see README.md.

    Attributes
    ----------
    width, height, tile_width, tile_height, multisample, wide
        As record 113 has them.
    binnings
        Flushes since the frame before.
    programs
        Distinct programs; columns `program` and `vertex_program` number them.
    draws, textures, attributes, tiles, ops, lists
        Tables with the columns of `columns.py`.
    records
        Records that thread 1 executed; those of tile lists have a tile.
    vertices
        Numbers of the vertices of all lists.
    blocks, requests, lines
        The tables that drawing recorded (`v3d.state.tile_context`, `memory.native`).
    surfaces
        The surfaces that are loaded and stored (`v3d.state.surface.Surface`).
    lost
        Records that found no room: if it is not 0, `blocks` to `lines` are empty.
    """

    width: int
    height: int
    tile_width: int
    tile_height: int
    multisample: bool
    wide: bool
    binnings: tuple[Binning, ...]
    programs: tuple[Words, ...]
    draws: Table
    textures: Table
    attributes: Table
    tiles: Table
    ops: Table
    lists: Table
    records: Table
    vertices: NDArray[np.uint32]
    blocks: Table
    requests: Table
    lines: NDArray[np.uint32]
    surfaces: Sequence[Any]
    lost: int

    @property
    def first_request(self) -> NDArray[np.int64]:
        """Return each block's first request, and after the last one the number of requests."""
        return starts(self.blocks["requests"])

    @property
    def first_line(self) -> NDArray[np.int64]:
        """Return each request's first line, and after the last one the number of lines."""
        return starts(self.requests["lines"])

    @property
    def list_of_block(self) -> NDArray[np.int64]:
        """The list of each block."""
        return np.repeat(np.arange(len(self.lists)), self.lists["blocks"])

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        tables = (self.draws, self.tiles, self.ops, self.lists, self.records, self.vertices,
                  self.blocks, self.requests, self.lines)  # fmt: skip
        binned = sum(part.nbytes for b in self.binnings for part in (b.records, b.draws, b.vertices))
        return sum(table.nbytes for table in tables) + binned

    def totals(self) -> dict[str, int]:
        """Sums that other counts can be compared with: counters of the core, those of tiles."""
        found = {name: int(self.lists[name].sum(dtype=np.int64)) for name in LIST_COUNTERS}
        covered = quads_of(self.blocks["covered"])
        found["primitives"] = int(self.lists["primitives"][self.lists["drawn"]].sum())
        found["covered_quads"] = int(count_bits(covered).sum())
        moved = self.ops[self.ops["bytes"] > 0]
        found["tiles_moved"], found["bytes_moved"] = len(moved), int(moved["bytes"].sum())
        firsts = self.blocks["primitive"] == 0
        changes = np.diff(self.blocks["primitive"], prepend=-1) != 0
        lists = np.diff(self.list_of_block, prepend=-1) != 0
        found["covered_primitives"] = int((changes | lists).sum())
        assert not lists.any() or firsts[lists].all()
        return found


def quads_of(lanes: NDArray[Any]) -> NDArray[Any]:
    """Bits 0, 4, 8 and 12 of the result say which quads of a block have one of the lanes (bits)."""
    words = lanes.astype(np.uint16)
    pairs = words | words >> 1
    return (pairs | pairs >> 2) & np.uint16(QUADS)


def count_bits(words: NDArray[Any]) -> NDArray[np.int64]:
    """How many bits each 16-bit word has."""
    table = np.array([number.bit_count() for number in range(256)], np.int64)
    found: NDArray[np.int64] = table[words & 0xFF] + table[words >> 8]
    return found


def named(job: str, frames: Sequence[Frame]) -> list[tuple[str, Frame]]:
    """The frames of a job with names: more than one where it was drawn in parts."""
    if len(frames) == 1:
        return [(job, frames[0])]
    return [(f"{job} part {number}", frame) for number, frame in enumerate(frames, 1)]
