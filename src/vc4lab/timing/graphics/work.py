"""From a `Frame` to the tables of `state.py` that the rendering side works through.

All of it is numpy, over whole tables. What the feed does not say is shared out: which primitives
without pixels are faced away, in equal parts; records of a tile list that are
not compressed lists before its lists in equal parts, records of the rendering list likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.chip import Chip
from vc4lab.timing.frames.columns import Table, dtype_of
from vc4lab.timing.frames.fragment_vectors import QUADS, FragmentVectors, fragment_vectors
from vc4lab.timing.frames.frame import Frame, count_bits, quads_of
from vc4lab.timing.frames.vertex_batches import VertexBatches, rendering_batches, tile_groups
from vc4lab.timing.graphics.state import PLACE_BITS, DrawTally, Primitive, PrimitiveList, Quad, Vector
from vc4lab.timing.graphics.tiles.list_steps import list_steps
from vc4lab.timing.graphics.tiles.tile_operations import tile_operations

Numbers = NDArray[np.int64]

_SIDE = (1 << PLACE_BITS) - 1
"""Places of quads on a side of the largest tile."""


@dataclass(frozen=True)
class Choices:
    """Undocumented behaviour, as the chip's file has it.

    kept: full batches that are looked at for a vertex. across: whether a vector may hold quads of
    several primitives. early_z: whether the front end rejects hidden quads. list_line: bytes of a
    read of lists. square: pixels of a side of the scoreboard's squares.
    """

    kept: int = 0
    across: bool = True
    early_z: bool = True
    list_line: int = 64
    square: int = 2

    @classmethod
    def of(cls, chip: Chip) -> Choices:
        """Return the choices of a chip."""
        return cls(
            chip.whole("vertex_cache", "kept"),
            bool(chip.whole("front_end", "across")),
            bool(chip.whole("front_end", "early_z")),
            chip.whole("rendering_list", "line"),
            chip.whole("tile_buffer", "square"),
        )


@dataclass
class Rendering:
    """The tables of a frame that is rendered; rows of the Structs of the same name.

    batches: which vertices are shaded together; groups: lists that share them.
    """

    frame: Frame
    batches: VertexBatches
    groups: NDArray[np.int32]
    vectors: Table
    quads: Table
    lists: Table
    primitives: Table
    steps: Table
    tile_work: Table
    draws: Table
    first_request: Numbers = field(init=False)
    first_line: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.first_request = np.ascontiguousarray(self.frame.first_request)
        self.first_line = np.ascontiguousarray(self.frame.first_line)


def rendering(frame: Frame, choices: Choices | None = None) -> Rendering:
    """The tables of a frame."""
    choices = choices or Choices()
    batches = rendering_batches(frame, choices.kept)
    groups = tile_groups(frame)
    found = fragment_vectors(frame, early_z=choices.early_z, across=choices.across)
    owner = frame.list_of_block
    primitives, of_block = _primitives(frame, owner)
    _add_vectors(primitives, found, of_block)
    lists = _lists(frame, primitives["list"])
    _place(frame, primitives, lists, batches)
    vectors, quads = _vectors(frame, found, owner, choices.square)
    ends = _tile_ends(frame, vectors)
    tile_work, places = tile_operations(frame, ends)
    steps = list_steps(frame, groups, tile_work["tile"], places, choices.list_line)
    draws = np.zeros(max(len(frame.draws), 1), dtype_of(DrawTally))
    plain = np.zeros(len(primitives), dtype_of(Primitive))
    for name in dtype_of(Primitive).names or ():
        plain[name] = primitives[name]
    return Rendering(frame, batches, groups, vectors, quads, lists, plain, steps, tile_work, draws)


# -- primitives and vectors

_PRIMITIVE = np.dtype(
    [(name, "i4") for name in (*(dtype_of(Primitive).names or ()), "list", "number", "position")]
)


def _primitives(frame: Frame, owner: Numbers) -> tuple[Table, Numbers]:
    """Primitives with pixels, and of each block its primitive."""
    blocks = frame.blocks
    changes = np.diff(blocks["primitive"], prepend=-1) != 0
    changes |= np.diff(owner, prepend=-1) != 0
    of_block = np.cumsum(changes) - 1
    firsts = changes.nonzero()[0]
    table = np.zeros(len(firsts), _PRIMITIVE)
    table["list"], table["number"] = owner[firsts], blocks["primitive"][firsts]
    table["position"] = blocks["position"][firsts]
    table["draw"] = frame.lists["draw"][table["list"]]
    quads = count_bits(quads_of(blocks["covered"]))
    table["quads"] = np.bincount(of_block, quads, len(table))[: len(table)]
    return table, of_block


def _add_vectors(primitives: Table, found: FragmentVectors, of_block: Numbers) -> None:
    """Which vectors end with each primitive."""
    lasts = found.first_quad[1:] - 1
    ending = of_block[found.block[lasts]]
    counts = np.bincount(ending, minlength=len(primitives))[: len(primitives)]
    primitives["vectors"] = counts
    primitives["first_vector"] = np.cumsum(counts) - counts


def _vectors(frame: Frame, found: FragmentVectors, owner: Numbers, square: int) -> tuple[Table, Table]:
    """Vectors and their quads; square: pixels of a side of squares that share a place."""
    count = len(found.first_quad) - 1
    vectors = np.zeros(count, dtype_of(Vector))
    quads = np.zeros(len(found.block), dtype_of(Quad))
    quads["block"], quads["number"] = found.block, found.quad
    corner = frame.blocks["place"][found.block]
    across, down = (corner & 0xFF) // 2 + (found.quad & 1), (corner >> 8 & 0xFF) // 2
    covered = frame.blocks["flags"][found.block] >> 4 * found.quad & 15
    column, row = (across & _SIDE) * 2 // square, (down + (found.quad >> 1) & _SIDE) * 2 // square
    place = row << PLACE_BITS | column
    quads["place"] = covered << 2 * PLACE_BITS | place
    if count:
        firsts = found.first_quad[:-1]
        list_ = owner[found.block[firsts]]
        vectors["shader"] = frame.lists["draw"][list_]
        vectors["tile"] = frame.lists["tile"][list_]
        vectors["first_quad"] = firsts
        vectors["quads"] = np.diff(found.first_quad)
        executed = frame.blocks["instructions"][found.block]
        vectors["instructions"] = np.maximum.reduceat(executed, firsts)
        assert vectors["quads"].max() <= QUADS
    return vectors, quads


def _tile_ends(frame: Frame, vectors: Table) -> Numbers:
    """Count the vectors up to the end of each tile."""
    counts = np.bincount(vectors["tile"], minlength=len(frame.tiles))[: len(frame.tiles)]
    return np.cumsum(counts)


# -- lists


def _lists(frame: Frame, owner: NDArray[np.int32]) -> Table:
    """Lists with their primitives; those without pixels all at the end so far."""
    lists = frame.lists
    table = np.zeros(len(lists), dtype_of(PrimitiveList))
    counts = np.bincount(owner, minlength=len(lists))[: len(lists)]
    table["primitives"], table["first"] = counts, np.cumsum(counts) - counts
    table["draw"] = lists["draw"]
    total = np.where(lists["drawn"], lists["primitives"], 0)
    hidden = np.maximum(total - counts, 0)
    table["reversed"] = np.minimum(lists["primitives_reversed"], hidden)
    table["empty"] = hidden - table["reversed"]
    table["batch"] = -1
    if len(frame.draws):
        table["varyings"] = frame.draws["varyings"][lists["draw"]]
    return table


def _place(frame: Frame, primitives: Table, lists: Table, batches: VertexBatches) -> None:
    """Set each primitive's place in its list, and the batches that it needs."""
    owner, number = primitives["list"], primitives["number"].astype(np.int64)
    away = lists["reversed"].astype(np.int64)[owner]
    hidden = away + lists["empty"][owner]
    place = primitives["position"].astype(np.int64)
    reversed_ = (place - number) * away // np.maximum(hidden, 1)
    empty = place - number - reversed_
    primitives["reversed"] = _steps_of(reversed_, number)
    primitives["empty"] = _steps_of(empty, number)
    for name, before in (("reversed", reversed_), ("empty", empty)):
        last = np.zeros(len(lists), np.int64)
        last[owner] = before  # the last one written is that of the last primitive
        lists[name] -= last.astype(np.int32)
    _batches_of(frame, primitives, lists, batches, place)


def _steps_of(before: Numbers, number: Numbers) -> Numbers:
    """From sums within a list to what each primitive adds."""
    return np.where(number == 0, before, np.diff(before, prepend=0))


def _batches_of(
    frame: Frame, primitives: Table, lists: Table, batches: VertexBatches, place: Numbers
) -> None:
    """The batch that each primitive and list needs last, and which ones it needs no more after."""
    count = len(batches.batch_of)
    found = np.append(batches.batch_of.astype(np.int64), len(batches.sizes))
    needed = np.append(np.maximum.accumulate(found[:count]), -1)  # the last: none
    later = np.minimum.accumulate(found[::-1])[::-1]
    named = frame.lists["vertices"].astype(np.int64)
    firsts = frame.lists["first_vertex"].astype(np.int64)
    each = named // np.maximum(frame.lists["primitives"], 1)
    owner = primitives["list"]
    ends = firsts[owner] + np.minimum((place + 1) * each[owner], named[owner])
    primitives["batch"] = np.where(ends > 0, needed[ends - 1], -1)
    primitives["release"] = later[ends]
    ends = firsts + named
    lists["batch"] = np.where(ends > 0, needed[ends - 1], -1)
    lists["release"] = later[ends]
