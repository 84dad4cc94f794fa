"""Surfaces of a frame, and its rendering list: loads, tile lists and stores of each tile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.driver.gpu.memory import TILE_BYTES
from vc4lab.images.tiling import Tiling, power_of_two
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.store.resources import Refused
from vc4lab.records import declarations as d
from vc4lab.records.codes import FrameFormat, TileBuffer, TileFormat
from vc4lab.records.control import build

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuResource
    from vc4lab.mesa.state.pipe import BoundSurface, Framebuffer

TILE, SAMPLED_TILE = 64, 32
"""Pixels of a tile each way, with one sample a pixel and with four."""
MAX_SIZE = 2048
"""Width and height of a frame: what 12.4 coordinates reach from the centre of the viewport."""
ORDERS = {
    Format.B8G8R8A8_UNORM: "bgra",
    Format.B8G8R8X8_UNORM: "bgrx",
    Format.R8G8B8A8_UNORM: "rgba",
    Format.R8G8B8X8_UNORM: "rgbx",
    Format.B8G8R8A8_SRGB: "bgra",
    Format.B8G8R8X8_SRGB: "bgrx",
    Format.R8G8B8A8_SRGB: "rgba",
    Format.R8G8B8X8_SRGB: "rgbx",
    Format.B5G6R5_UNORM: "rgbx",
}
"""Formats of colour, and which component each byte of the tile buffer's word is."""
DEPTHS = (Format.S8_UINT_Z24_UNORM, Format.X8Z24_UNORM)


@dataclass(frozen=True)
class Attachment:
    """A surface of a frame: where it is and how it is laid out."""

    address: int
    tiling: Tiling
    is_565: bool = False

    @property
    def frame_format(self) -> FrameFormat:
        """As record 113 has it."""
        return FrameFormat.BGR565 if self.is_565 else FrameFormat.RGBA8888

    @property
    def tile_format(self) -> TileFormat:
        """As records 28 and 29 have it."""
        return TileFormat.BGR565 if self.is_565 else TileFormat.RGBA8888


@dataclass(frozen=True)
class FrameTarget:
    """The surfaces of a frame.

    Attributes
    ----------
    width, height
        Pixels that may be drawn.
    pitch_width, pitch_height
        The tile buffer's size: levels after the first lie in the room of a power of two.
    order
        The order of the colour's bytes in the tile buffer (`ColorTarget.order`); "" without colour.
    has_stencil
        Whether the depth buffer's low byte counts.
    is_srgb
        Whether red, green and blue are stored by the sRGB curve.
    is_sampled
        Whether pixels have four samples each, of colour, depth and stencil. Surfaces then are tiles
        as a whole, one after the other.
    """

    width: int
    height: int
    pitch_width: int
    pitch_height: int
    colour: Attachment | None
    depth: Attachment | None
    order: str = ""
    has_stencil: bool = False
    is_srgb: bool = False
    is_sampled: bool = False

    @property
    def tiles(self) -> tuple[int, int]:
        """Columns and rows of tiles."""
        size = SAMPLED_TILE if self.is_sampled else TILE
        return -(-self.width // size), -(-self.height // size)


def frame_target(framebuffer: Framebuffer) -> FrameTarget:
    """Find where a frame buffer is drawn. Raises Refused for what the tile buffer cannot do."""
    cbufs = [surface for surface in framebuffer.cbufs if surface is not None]
    if len(cbufs) > 1:
        raise Refused("GL-007", f"{len(cbufs)} colour buffers; the capabilities say 1")
    width, height = framebuffer.size
    if not width or not height:
        raise Refused("GL-015", "the frame buffer has no surface")
    if width > MAX_SIZE or height > MAX_SIZE:
        raise Refused("GL-015", f"a frame of {width}x{height} pixels; {MAX_SIZE} are possible")
    sizes: set[tuple[int, int]] = set()
    colour = depth = None
    order, has_stencil, is_srgb = "", False, False
    if cbufs:
        surface = cbufs[0]
        order = ORDERS.get(surface.state.format, "")
        if not order:
            raise Refused("GL-015", f"{surface.resource}: colours of {surface.state.format}")
        layout = layout_of(surface.state.format)
        is_srgb = layout is not None and layout.is_srgb
        colour = _attachment(surface, sizes)
    if framebuffer.zsbuf is not None:
        surface = framebuffer.zsbuf
        if surface.state.format not in DEPTHS:
            raise Refused("GL-015", f"{surface.resource}: depth of {surface.state.format}")
        has_stencil = surface.state.format == Format.S8_UINT_Z24_UNORM
        depth = _attachment(surface, sizes)
    surfaces = [one for one in (*cbufs, framebuffer.zsbuf) if one is not None]
    samples = {one.resource.samples for one in surfaces}
    if len(samples) > 1:
        raise Refused("GL-015", "colour and depth of different numbers of samples")
    if len(sizes) > 1:
        named = " and ".join(sorted("{}x{}".format(*size) for size in sizes))
        raise Refused("GL-015", f"colour and depth of different sizes, {named}")
    pitch_width, pitch_height = sizes.pop()
    return FrameTarget(
        *(width, height, pitch_width, pitch_height, colour, depth, order),
        has_stencil=has_stencil,
        is_srgb=is_srgb,
        is_sampled=samples.pop() > 1,
    )


def _attachment(surface: BoundSurface, sizes: set[tuple[int, int]]) -> Attachment:
    resource: GpuResource | Any = surface.resource
    number = surface.state.level
    level = resource.chain[number] if resource.chain else None
    if level is None or resource.bits not in (16, 32):
        raise Refused("GL-015", f"{resource} cannot be drawn to")
    if surface.state.first_layer != surface.state.last_layer:
        raise Refused("GL-007", f"{resource}: draws to several layers")
    width, height = level.width, level.height
    if number:
        width = max(power_of_two(resource.width) >> number, 1)
        height = max(power_of_two(resource.height) >> number, 1)
    sizes.add((width, height))
    place = resource.place(number, surface.state.first_layer)
    return Attachment(place, level.tiling, resource.bits == 16)


FIRST_BLOCK = 32
"""Bytes of a tile's first block in the tile lists."""


@dataclass(frozen=True)
class RenderPlan:
    """Says what is done with each tile.

    Attributes
    ----------
    tile_lists
        Guest address of the tile lists; 0: nothing was binned.
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
    """Write what the tile buffer holds after a clear; it counts from the first store on.

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
