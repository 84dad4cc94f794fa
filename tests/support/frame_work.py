"""A frame for the tile loop, put together by hand."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vc4lab.memory import GuestMemory
from vc4lab.v3d.state.frame_mode import PART_COLOUR, PART_ZS, SINGLE, Surface, TileLayout
from vc4lab.v3d.tiles.job import (
    OP_CLEAR_COLOUR,
    OP_CLEAR_MASK,
    OP_CLEAR_ZS,
    OP_DRAW_PIECES,
    OP_LOAD,
    OP_LOAD_FULL,
    OP_STORE,
    OP_STORE_FULL,
    OP_TILE,
    OP_WORDS,
    Draw,
    NativeFrame,
)


class _Draws(list[Draw]):
    """Draws with the table that native code reads."""

    def __init__(self, draws: Sequence[Draw], table: Any) -> None:
        super().__init__(draws)
        self.table = table


@dataclass
class FrameWork:
    """A frame under construction: `begin_tile`, `clear`, `load`, `draw`, `store` in list order.

    `segments` is the host address of `Segment` structs (tile, draw, list address, count) as the
    scan of the tile lists leaves them.
    """

    memory: GuestMemory
    width: int
    height: int
    draws: list[Draw] = field(default_factory=list)
    segments: int = 0
    tile_width: int = 64
    tile_height: int = 64
    layout: TileLayout = SINGLE
    ops: list[int] = field(default_factory=list)
    chains: list[int] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    _drawn: int = 0
    """Segments that are drawn."""

    def begin_chain(self) -> None:
        """What follows does not depend on what the tile buffer held before."""
        self.chains.append(len(self.ops) // OP_WORDS)

    def tile(self, column: int, row: int) -> None:
        """Record 115: the tile that following operations work on."""
        self._op(OP_TILE, column * self.tile_width, row * self.tile_height)

    def clear(
        self, colour: int | None, zs: int | None, colour_high: int | None = None, mask: int | None = None
    ) -> None:
        """Fills the tile buffer; `zs` is Z << 8 | stencil; None leaves a buffer alone.

        `colour_high` is the second colour word of record 114 (default: the same again).
        """
        if colour is not None:
            self._op(OP_CLEAR_COLOUR, colour, colour if colour_high is None else colour_high)
        if zs is not None:
            self._op(OP_CLEAR_ZS, zs)
        if mask is not None:
            self._op(OP_CLEAR_MASK, mask)

    def load(self, surface: Surface) -> None:
        """Fills the tile buffer from memory."""
        self._op(OP_LOAD, self._surface(surface))

    def load_full(self, address: int, parts: int = PART_COLOUR | PART_ZS) -> None:
        """Fills the tile buffer with what `store_full` wrote."""
        self._op(OP_LOAD_FULL, address, parts)

    def store_full(self, address: int, parts: int = PART_COLOUR | PART_ZS) -> None:
        """Writes parts of the tile buffer as they are, one after the other."""
        self._op(OP_STORE_FULL, address, parts)

    def draw(self, first: int, count: int) -> None:
        """Draws `count` segments, each a piece of its own."""
        if count:
            self._drawn = max(self._drawn, first + count)
            self._op(OP_DRAW_PIECES, first, count)

    def store(self, surface: Surface) -> None:
        """Writes the tile to memory (clearing afterwards is a separate `clear`)."""
        self._op(OP_STORE, self._surface(surface))

    def set_segments(self, segments: Sequence[tuple[int, int]]) -> None:
        """Segments from (draw number, list address) pairs, for callers without a scan."""
        words: list[int] = []
        for draw, address in segments:
            words += [0, draw, address & 0xFFFFFFFF, 0]
        array = (ctypes.c_uint32 * max(len(words), 1))(*words)
        self.segments = ctypes.addressof(array)
        self.keep.append(array)

    def native(self) -> NativeFrame:
        """The frame as `TileThreads` runs it."""
        count = max(len(self.draws), 1)
        table = (ctypes.c_uint64 * (2 * count))()
        for number, draw in enumerate(self.draws):
            table[2 * number], table[2 * number + 1] = draw.function, draw.params
        ends = [*self.chains, len(self.ops) // OP_WORDS]
        pieces = (ctypes.c_int32 * (self._drawn + 1))(*range(self._drawn + 1))
        return NativeFrame(
            self.memory,
            self.width,
            self.height,
            draws=_Draws(self.draws, table),
            surfaces=self.surfaces,
            ops=(ctypes.c_uint32 * max(len(self.ops), 1))(*self.ops),
            chains=(ctypes.c_int32 * len(ends))(*ends),
            count=len(self.chains),
            segments=self.segments,
            piece_first=ctypes.addressof(pieces),
            tile=(self.tile_width, self.tile_height),
            layout=self.layout,
            keep=(self, pieces),
        )

    def _op(self, kind: int, a: int, b: int = 0) -> None:
        if not self.chains:
            self.begin_chain()
        self.ops += (kind, a & 0xFFFFFFFF, b & 0xFFFFFFFF, 0)

    def _surface(self, surface: Surface) -> int:
        if surface in self.surfaces:
            return self.surfaces.index(surface)
        self.surfaces.append(surface)
        return len(self.surfaces) - 1
