"""Tiles that are loaded and stored without a draw in between: their bytes in memory stay.

A driver that goes on with a picture has all its tiles loaded and stored, wherever it draws. So a
load is put off until something needs the tile buffer; a store to where the tile would come from
writes what is there already. What is counted of loads and stores is the same.
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i1, load, select, staged
from vc4lab.simd import i32 as word
from vc4lab.v3d.state.surface import COLOUR, SurfaceOp
from vc4lab.v3d.state.tile_context import TileContext
from vc4lab.v3d.tiles import job as tj
from vc4lab.v3d.tiles.job import TileJob, TileOp


def _surface(job: TileJob, number: Value) -> SurfaceOp:
    return SurfaceOp.at(job.surfaces + number * SurfaceOp.size)


def _held(context: TileContext, surface: SurfaceOp) -> Value:
    """1 + the surface whose load into the same part of the tile buffer is put off; 0: none."""
    return select(surface.part == COLOUR, context.held_colour, context.held_zs)


def hold(context: TileContext, surface: SurfaceOp, number: Value) -> None:
    """Puts a load off."""
    is_colour = surface.part == COLOUR
    context.held_colour = select(is_colour, number + 1, context.held_colour)
    context.held_zs = select(is_colour, context.held_zs, number + 1)


@staged
def stays(job: TileJob, context: TileContext, number: Value) -> Value:
    """Whether a store would write what is there: the tile would come from there, untouched."""
    surface = _surface(job, number)
    held = _held(context, surface)
    same = const(i1, False)
    if (surface.twin != 0) & (held != 0):
        same = _surface(job, held - 1).twin == surface.twin
    return same


@staged
def needs_tile(job: TileJob, context: TileContext, op: TileOp) -> Value:
    """Whether an operation can only be done when the loads are done that were put off."""
    kind = op.kind
    needed = const(i1, True)
    if kind == tj.OP_TILE:
        needed = (op.a != context.tile_x) | (op.b != context.tile_y)
    elif kind == tj.OP_LOAD:
        surface = _surface(job, op.a)
        needed = (surface.twin == 0) | (_held(context, surface) != 0)
    elif kind == tj.OP_STORE:
        needed = ~stays(job, context, op.a)
    elif kind == tj.OP_DRAW_PIECES:
        first = load(word, job.piece_first + op.a * 4)
        needed = first < load(word, job.piece_first + (op.a + op.b) * 4)
    return needed
