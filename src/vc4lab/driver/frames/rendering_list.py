"""The rendering list of a frame: loads, tile lists and stores of each tile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from vc4lab.driver.frames.target import Attachment, FrameTarget
from vc4lab.driver.gpu.memory import TILE_BYTES
from vc4lab.records import declarations as d
from vc4lab.records.codes import TileBuffer, Tiling
from vc4lab.records.control import build

FIRST_BLOCK = 32
"""Bytes of a tile's first block in the tile lists."""


@dataclass(frozen=True)
class RenderPlan:
    """What is done with each tile.

    Attributes
    ----------
    tile_lists
        Where the tile lists begin; 0: nothing was binned.
    loads_colour, loads_depth
        Whether what the surface has is needed.
    stores_depth
        Whether depth and stencil are kept. Colour is if there is any.
    """

    target: FrameTarget
    tile_lists: int
    loads_colour: bool = False
    loads_depth: bool = False
    stores_depth: bool = False


@lru_cache(maxsize=64)
def clear_records(colour: int, depth: int, stencil: int) -> bytes:
    """What the tile buffer holds after a clear; it counts from the first store on.

    `colour` in the tile buffer's order, `depth` of 24 bits.
    """
    colours = build(d.ClearColours, colour=colour, colour_high=colour, z=depth, stencil=stencil)
    return colours + build(d.TileCoordinates) + build(d.StoreGeneral)


@lru_cache(maxsize=256)
def rendering_list(plan: RenderPlan) -> bytes:
    """The list after `clear_records`."""
    target = plan.target
    columns, rows = target.tiles
    at = _TileRecords(plan)
    parts = [at.mode()]
    for row in range(rows):
        for column in range(columns):
            is_last = (column, row) == (columns - 1, rows - 1)
            parts.append(at.tile(column, row, columns, is_last))
    return b"".join(parts)


class _TileRecords:
    def __init__(self, plan: RenderPlan) -> None:
        self.plan = plan
        self.waits = bool(plan.tile_lists)

    def mode(self) -> bytes:
        target = self.plan.target
        colour = target.colour or Attachment(0, (target.depth or _NO_SURFACE).tiling)
        return build(
            d.TileRenderingMode,
            address=colour.address,
            width=target.pitch_width,
            height=target.pitch_height,
            format=colour.frame_format,
            tiling=colour.tiling,
            multisample=target.is_sampled,
        )

    def tile(self, column: int, row: int, columns: int, is_last: bool) -> bytes:
        plan, target = self.plan, self.plan.target
        if target.is_sampled:
            return self._sampled_tile(column, row, columns, is_last)
        here = build(d.TileCoordinates, column=column, row=row)
        out = b""
        if plan.loads_colour and target.colour is not None:
            out += build(d.LoadGeneral, **_general(target.colour, TileBuffer.COLOUR))
            if plan.loads_depth:
                # One load may be outstanding: the coordinates and an empty store end it.
                out += here + _KEEPS_ALL
        if plan.loads_depth and target.depth is not None:
            out += build(d.LoadGeneral, **_general(target.depth, TileBuffer.ZS))
        out += here + self._draws(row * columns + column)
        if plan.stores_depth and target.depth is not None:
            keeps_colour = target.colour is not None
            out += build(
                d.StoreGeneral,
                **_general(target.depth, TileBuffer.ZS),
                disable_colour_clear=keeps_colour,
                last_tile=is_last and not keeps_colour,
            )
            if keeps_colour:
                out += here
        if target.colour is not None:
            out += build(d.StoreResolvedEnd if is_last else d.StoreResolved)
        elif not plan.stores_depth:
            out += build(d.StoreGeneral, last_tile=is_last)
        return out

    def _draws(self, number: int) -> bytes:
        """The list of a tile by its number."""
        if not self.plan.tile_lists:
            return b""
        waits, self.waits = self.waits, False
        place = self.plan.tile_lists + FIRST_BLOCK * number
        branch = build(d.BranchToSublist, address=place)
        return build(d.WaitSemaphore) + branch if waits else branch

    def _sampled_tile(self, column: int, row: int, columns: int, is_last: bool) -> bytes:
        """Whole tiles of four samples are loaded and stored by their addresses."""
        plan, target = self.plan, self.plan.target
        number = row * columns + column
        here = build(d.TileCoordinates, column=column, row=row)
        only_colour = only_depth = None
        if target.colour is not None:
            place = target.colour.address + number * TILE_BYTES
            only_colour = {"disable_zs": 1, "address": place}
        if target.depth is not None:
            place = target.depth.address + number * TILE_BYTES
            only_depth = {"disable_colour": 1, "address": place}
        loads = (plan.loads_colour and only_colour, plan.loads_depth and only_depth)
        # As with one sample: one load may be outstanding.
        out = (here + _KEEPS_ALL).join(build(d.LoadFull, **load) for load in loads if load)
        out += here + self._draws(number)
        stores = [one for one in (plan.stores_depth and only_depth, only_colour) if one]
        if not stores:
            return out + build(d.StoreGeneral, last_tile=is_last)
        for store in stores[:-1]:
            out += build(d.StoreFull, **store, disable_clear=1) + here
        return out + build(d.StoreFull, **stores[-1], last_tile=is_last)


_NO_SURFACE = Attachment(0, Tiling.RASTER)
_KEEPS_ALL = build(d.StoreGeneral, disable_colour_clear=1, disable_zs_clear=1, disable_vg_mask_clear=1)
"""A store of nothing, which clears nothing."""


def _general(surface: Attachment, buffer: TileBuffer) -> dict[str, int]:
    is_colour = buffer is TileBuffer.COLOUR
    return {
        "buffer": buffer,
        "tiling": surface.tiling,
        "format": surface.tile_format if is_colour else 0,
        "address": surface.address,
    }
