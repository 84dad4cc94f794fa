"""Pictures with four samples a pixel, through the tile buffer to others: resolved, or as they are.

A job without draws: each tile is loaded as a whole and stored. What does not lie at the same place
in both, or is scaled or converted, is left to the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.bounded import Bounded
from vc4lab.driver.frames.job import FrameJob, FrameSurfaces
from vc4lab.driver.frames.target import ORDERS, SAMPLED_TILE, frame_target
from vc4lab.driver.gpu.memory import TILE_BYTES
from vc4lab.driver.gpu.runner import Lists
from vc4lab.images.tiling import Tiling
from vc4lab.mesa.protocol.formats import layout_of
from vc4lab.mesa.protocol.objects import Surface
from vc4lab.mesa.state.pipe import BoundSurface, Framebuffer
from vc4lab.mesa.store.blits import COLOUR, DEPTH, STENCIL, linear_pair
from vc4lab.mesa.store.resources import Box
from vc4lab.records import declarations as d
from vc4lab.records.codes import Decimate
from vc4lab.records.control import build

if TYPE_CHECKING:
    from vc4lab.driver.commands.commands import Blit
    from vc4lab.driver.draws.frame_draws import FrameDraws
    from vc4lab.driver.gpu.memory import GpuMemory, GpuResource

LAST_RASTER_ROW = 1024
"""Raster stores of frames with four samples go wrong from this row on (HW-2136)."""


def is_tile_copy(command: Blit, target: GpuResource, source: GpuResource) -> bool:
    """Whether a blit of four samples is a copy of whole tiles."""
    if source.samples == 1 or target is source or target.is_buffer:
        return False
    to, of = Box(*command.target_box), Box(*command.source_box)
    if command.render_condition_enable or command.alpha_blend or command.scissor_enable:
        return False
    if command.target_level > target.last_level or command.source_level or of.z:
        return False
    if to[:2] != of[:2] or to[3:] != of[3:] or to.depth != 1 or not 0 <= to.z < 6:
        return False
    level = target.levels[command.target_level]
    return (
        (to.z < level.layers)
        and _fills_tiles(to.x, to.width, level.width, source.width)
        and _fills_tiles(to.y, to.height, level.height, source.height)
        and _is_alike(command, target, source)
    )


def _fills_tiles(first: int, count: int, *sizes: int) -> bool:
    """Whether so many pixels are whole tiles, of which the last ones may end with the pictures."""
    last = first + count
    return (
        (first >= 0 and count > 0 and last <= min(sizes))
        and first % SAMPLED_TILE == 0
        and (last % SAMPLED_TILE == 0 or all(last == size for size in sizes))
    )


def _is_alike(command: Blit, target: GpuResource, source: GpuResource) -> bool:
    """Whether words of the tile buffer mean the same in both."""
    if source.layout.has_depth:
        whole = DEPTH | (STENCIL if "S" in dict(source.layout.channels) else 0)
        return (
            target.samples > 1
            and target.format == source.format
            and command.mask & (DEPTH | STENCIL) == whole
        )
    formats = linear_pair(command.target_format, command.source_format)
    orders = [ORDERS.get(one, "") for one in formats]
    if command.mask != COLOUR or not all(orders) or any(map(_is_srgb, formats)):
        return False
    if target.is_raster and target.height > LAST_RASTER_ROW:
        return False
    return all(to in ("x", of) for to, of in zip(orders[0], orders[1], strict=True))


def _is_srgb(number: int) -> bool:
    layout = layout_of(number)
    return layout is not None and layout.is_srgb


class SampleCopy(FrameJob):
    """Such a blit as a job."""

    def __init__(self, command: Blit, target: GpuResource, source: GpuResource, draws: FrameDraws) -> None:
        layer = command.target_box[2]
        surface = BoundSurface(Surface(0, command.target_format, command.target_level, layer, layer), target)
        is_depth = source.layout.has_depth
        framebuffer = Framebuffer((), surface) if is_depth else Framebuffer((surface,))
        super().__init__(FrameSurfaces(framebuffer, frame_target(framebuffer), 0, Bounded(1)), draws)
        self._box = Box(*command.target_box)
        self._source = source
        self._is_depth = is_depth
        self.reads = {source.number: source}
        self.writes_stencil = True

    @property
    def draws(self) -> int:
        return 0

    @property
    def has_work(self) -> bool:
        return True

    def lists(self, memory: GpuMemory) -> Lists:
        target, box = self.target, self._box
        surface = target.depth if self._is_depth else target.colour
        assert surface is not None
        parts = [
            build(
                d.TileRenderingMode,
                address=surface.address,
                width=target.pitch_width,
                height=target.pitch_height,
                format=surface.frame_format,
                tiling=Tiling.RASTER if target.is_sampled else surface.tiling,
                multisample=1,
                decimate=Decimate.X4,
            )
        ]
        rows = range(box.y // SAMPLED_TILE, -(-(box.y + box.height) // SAMPLED_TILE))
        columns = range(box.x // SAMPLED_TILE, -(-(box.x + box.width) // SAMPLED_TILE))
        across = self._source.tiles[0], -(-target.width // SAMPLED_TILE)
        only = {"disable_colour": 1} if self._is_depth else {"disable_zs": 1}
        for row in rows:
            for column in columns:
                is_last = (row, column) == (rows[-1], columns[-1])
                place = self._source.address + (row * across[0] + column) * TILE_BYTES
                parts.append(build(d.LoadFull, **only, address=place))
                parts.append(build(d.TileCoordinates, column=column, row=row))
                if target.is_sampled:
                    place = surface.address + (row * across[1] + column) * TILE_BYTES
                    parts.append(build(d.StoreFull, **only, last_tile=is_last, address=place))
                else:
                    parts.append(build(d.StoreResolvedEnd if is_last else d.StoreResolved))
        data = b"".join(parts)
        start = memory.keep(data)
        return Lists(0, 0, start, start + len(data))
