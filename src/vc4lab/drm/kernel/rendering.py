"""The rendering list that the kernel makes from a job's surfaces, and what is kept of it.

Jobs whose surfaces were checked before share a plan: a header, and models of tiles.

Source: Linux vc4_render_cl.c (vc4_create_rcl_bo, emit_tile and the surface checks).
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.native.context import RenderContext
from vc4lab.drm.uapi.submit import (
    FLAG_CLEAR,
    FLAG_FIXED_ORDER,
    FLAG_FULL_RES,
    FLAG_INCREASING_X,
    FLAG_INCREASING_Y,
    FrameBits,
    LoadStoreBits,
    Submit,
    Surface,
    refuse,
)
from vc4lab.images import tiling as layouts
from vc4lab.images.pixels import FULL_RES_TILE, FULL_RES_TILE_PIXELS
from vc4lab.records import declarations as d
from vc4lab.records.codes import FrameFormat, TileBuffer, TileFormat, Tiling
from vc4lab.records.control import build

TILE_LIST_BLOCK = 32
FRAME_BITS = 0xDD
"""Bits of color_write the kernel lets through: of decimation only 4x."""
MAX_SURFACE_SIZE = 4096
MAX_PLANS = 256
MAX_ROWS = 4096
"""Bytes of buffers' places by which plans are remembered."""


@dataclass(frozen=True)
class ColourSurface:
    """The place of a job's picture.

    `multisample`: the layout of full-resolution stores, 4 samples a pixel; `tiling` does not count.
    """

    address: int
    width: int
    height: int
    bits_per_pixel: int
    tiling: Tiling
    multisample: bool = False


@dataclass
class RenderingBuilder:
    """Checks a job's surfaces and writes the records of a tile."""

    submit: Submit
    reporter: Reporter
    bin_tiles_x: int
    """Width of the binning grid, 0 without a binning list."""
    tile_lists: int
    colour: ColourSurface | None = None
    addresses: dict[str, int] = field(default_factory=dict)
    has_warning: bool = False

    def mode(self) -> bytes:
        """Record 113."""
        submit = self.submit
        bits = submit.surface("color_write").bits
        record = build(
            d.TileRenderingMode,
            address=self.addresses.get("color_write", 0),
            width=submit.width,
            height=submit.height,
        )
        return record[:-2] + bits.to_bytes(2, "little")

    def tile(self, x: int, y: int, *, first: bool, last: bool) -> bytes:
        """Records of one tile: loads, coordinates, its list, stores."""
        at = build(d.TileCoordinates, column=x, row=y)
        out = bytearray()
        present = self.addresses
        if "color_read" in present:
            out += self.load("color_read", x, y)
        if "zs_read" in present:
            if "color_read" in present:
                out += at + build(
                    d.StoreGeneral, disable_colour_clear=1, disable_zs_clear=1, disable_vg_mask_clear=1
                )
            out += self.load("zs_read", x, y)
        out += at
        if self.bin_tiles_x:
            if first:
                out += build(d.WaitSemaphore)
            index = y * self.bin_tiles_x + x
            out += build(d.BranchToSublist, address=self.tile_lists + TILE_LIST_BLOCK * index)
        stores = [
            name
            for name in ("msaa_color_write", "msaa_zs_write", "zs_write", "color_write")
            if name in present
        ]
        for number, name in enumerate(stores):
            if number:
                out += at
            final = number == len(stores) - 1
            out += self.store(name, x, y, final=final, end=final and last)
        return bytes(out)

    def load(self, name: str, x: int, y: int) -> bytes:
        """Load of color_read or zs_read."""
        if self.submit.surface(name).flags & FLAG_FULL_RES:
            return build(d.LoadFull, **self.full_res(name, x, y))
        return build(d.LoadGeneral, **self.general(name))

    def store(self, name: str, x: int, y: int, *, final: bool, end: bool) -> bytes:
        """One store; only the final one of a tile clears, only the end one ends the frame."""
        if name == "color_write":
            return build(d.StoreResolvedEnd if end else d.StoreResolved)
        if name == "zs_write":
            fields = self.general(name)
            return build(d.StoreGeneral, **fields, disable_colour_clear=not final, last_tile=end)
        fields = self.full_res(name, x, y)
        return build(d.StoreFull, **fields, disable_clear=not final, last_tile=end)

    def general(self, name: str) -> dict[str, int]:
        """Describe a surface's place and layout as records 28 and 29 have it."""
        bits = LoadStoreBits(self.submit.surface(name).bits)
        layout = {"buffer": bits.buffer, "tiling": bits.tiling, "format": bits.format}
        return {**layout, "address": self.addresses[name]}

    def full_res(self, name: str, x: int, y: int) -> dict[str, int]:
        """One tile of a full-resolution surface, as records 26 and 27 have it."""
        per_row = -(-self.submit.width // FULL_RES_TILE_PIXELS)
        address = (self.addresses[name] + FULL_RES_TILE * (per_row * y + x)) & 0xFFFFFFFF
        colour = "color" in name
        return {"address": address, "disable_zs": colour, "disable_colour": not colour}

    # -- surfaces --------------------------------------------------------------------------------

    def check_surfaces(self) -> None:
        """Resolve and check all surfaces; find the picture."""
        submit = self.submit
        writes = [n for n in submit.surfaces if n.endswith("write") and submit.surface(n).present]
        if not writes:
            refuse(self.reporter, "DRM-013", "the job has no surface to write (rule 9.1)")
        for name in submit.surfaces:
            surface = submit.surface(name)
            if surface.flags & ~FLAG_FULL_RES or (surface.flags and not name.endswith("read")):
                self.bad(name, f"flags 0x{surface.flags:x}")
            if not surface.present:
                # Its bits are looked at all the same; those of color_write go into record 113.
                allowed = {"color_write": FRAME_BITS}.get(name, 0 if "msaa" in name else 0xFFFF)
                if surface.bits & ~allowed:
                    self.bad(name, f"bits 0x{surface.bits:x}")
                continue
            if surface.hindex >= len(submit.buffers):
                text = f"buffer index {surface.hindex} of a list of {len(submit.buffers)}"
                refuse(self.reporter, "DRM-005", f"{name}: {text} (rule 9.6)")
            buffer = submit.buffers[surface.hindex]
            if surface.offset % 16:
                self.bad(name, f"offset {surface.offset} is not a multiple of 16")
            self.addresses[name] = (buffer.address + surface.offset) & 0xFFFFFFFF
            if name == "color_write":
                needed = self.frame_bytes(surface)
            elif name.startswith("msaa") or surface.flags & FLAG_FULL_RES:
                per_row = -(-submit.width // FULL_RES_TILE_PIXELS)
                needed = FULL_RES_TILE * (per_row * submit.max_y_tile + submit.max_x_tile)
                room = buffer.size - surface.offset
                if needed <= room < needed + FULL_RES_TILE:
                    text = f"{name}: the last tile lies past a buffer of {buffer.size} bytes"
                    self.reporter.report("DRM-025", text, address=buffer.address, block="DRM")
                    self.has_warning = True
                if surface.bits:
                    self.bad(name, "a full-resolution surface has no format bits")
                if name == "msaa_color_write":
                    self.found(self.addresses[name], 32, Tiling.RASTER, multisample=True)
            else:
                needed = self.load_store_bytes(name, surface)
            if surface.offset + needed > buffer.size:
                self.bad(name, f"{needed} bytes at offset {surface.offset} of a buffer of {buffer.size}")

    def frame_bytes(self, surface: Surface) -> int:
        """Size of color_write, whose bits are those of record 113."""
        bits = FrameBits(surface.bits)
        if surface.bits & ~FRAME_BITS:
            self.bad("color_write", f"bits 0x{surface.bits:x}")
        if not isinstance(bits.format, FrameFormat) or not isinstance(bits.tiling, Tiling):
            self.bad("color_write", f"reserved format or tiling in bits 0x{surface.bits:x}")
        per_pixel = 32 if bits.format is FrameFormat.RGBA8888 else 16
        self.found(self.addresses["color_write"], per_pixel, bits.tiling)
        return self.image_bytes("color_write", bits.tiling, per_pixel)

    def load_store_bytes(self, name: str, surface: Surface) -> int:
        """Size of a surface whose bits are those of records 28 and 29."""
        bits = LoadStoreBits(surface.bits)
        used = sum(field.mask for field in LoadStoreBits.layout_fields.values())
        if surface.bits & ~used or not isinstance(bits.tiling, Tiling):
            self.bad(name, f"bits 0x{surface.bits:x}")
        if not isinstance(bits.format, TileFormat):
            self.bad(name, "reserved format")
        if bits.buffer not in (TileBuffer.COLOUR, TileBuffer.ZS):
            self.bad(name, f"buffer {int(bits.buffer)} is neither colour nor depth")
        if bits.buffer is TileBuffer.ZS and bits.format:
            self.bad(name, "a depth surface with a colour format")
        per_pixel = 32 if bits.format is TileFormat.RGBA8888 else 16
        return self.image_bytes(name, bits.tiling, per_pixel)

    def image_bytes(self, name: str, tiling: Tiling, per_pixel: int) -> int:
        """Bytes of a frame-sized image as the kernel counts them."""
        width, height = self.submit.width, self.submit.height
        if not (0 < width <= MAX_SURFACE_SIZE and 0 < height <= MAX_SURFACE_SIZE):
            self.bad(name, f"size {width}x{height}")
        if tiling is Tiling.RASTER:
            width = layouts.round_up(width, layouts.UTILE_SHAPES[per_pixel].width)
        return layouts.image_bytes(width, height, per_pixel, layouts.Tiling(tiling))

    def found(self, address: int, per_pixel: int, tiling: Tiling, multisample: bool = False) -> None:
        """Remember the picture; a resolved one counts more than a multisampled one."""
        if self.colour is None or self.colour.multisample:
            self.colour = ColourSurface(
                address, self.submit.width, self.submit.height, per_pixel, tiling, multisample
            )

    def bad(self, name: str, message: str) -> None:
        """Refuse a surface."""
        refuse(self.reporter, "DRM-013", f"{name}: {message} (rule 9.6)")


class RenderPlan:
    """Everything about the list of one job but its clear values."""

    def __init__(self, submit: Submit, bin_tiles_x: int, tile_lists: int, reporter: Reporter) -> None:
        builder = RenderingBuilder(submit, reporter, bin_tiles_x=bin_tiles_x, tile_lists=tile_lists)
        builder.check_surfaces()
        self.has_warning = builder.has_warning
        """Then it is made anew for each job, which reports it."""
        self.header = builder.mode()
        self.colour: ColourSurface | None = builder.colour
        columns = submit.max_x_tile - submit.min_x_tile + 1
        rows = submit.max_y_tile - submit.min_y_tile + 1
        self.tiles = count = columns * rows
        ends = [(True, count == 1), (False, False), (False, True)]
        models = [builder.tile(0, 0, first=first, last=last) for first, last in ends]
        self.size = sum(map(len, models[:count] if count < 2 else (models[0], models[2])))
        self.size += max(count - 2, 0) * len(models[1])
        self._kept = [ctypes.create_string_buffer(model, len(model)) for model in models]
        fixed = submit.flags & FLAG_FIXED_ORDER
        step_x, step_y = (
            1 if not fixed or submit.flags & flag else -1 for flag in (FLAG_INCREASING_X, FLAG_INCREASING_Y)
        )
        places = [ctypes.addressof(kept) for kept in self._kept]
        self.context = RenderContext(
            first=places[0], first_size=len(models[0]),
            middle=places[1], middle_size=len(models[1]),
            last=places[2], last_size=len(models[2]),
            start_x=submit.min_x_tile if step_x > 0 else submit.max_x_tile,
            start_y=submit.min_y_tile if step_y > 0 else submit.max_y_tile,
            step_x=step_x, step_y=step_y, columns=columns, rows=rows,
            bin_tiles_x=bin_tiles_x,
            full_res_per_row=-(-submit.width // FULL_RES_TILE_PIXELS),
        )  # fmt: skip
        self.address: int = self.context.address


_plans: dict[Hashable, RenderPlan] = {}
_shaped: dict[tuple[bytes, bytes, int, int], RenderPlan] = {}
"""Plans by the job's shape and the buffers' places, which is found sooner."""


def rendering_plan(
    submit: Submit, rows: bytes, bin_tiles_x: int, tile_lists: int, reporter: Reporter
) -> RenderPlan:
    """The plan of a job. Raises JobError if its surfaces or tiles are refused.

    rows: where its buffers lie; none if that is not known in this form.
    """
    if not submit.shape or not rows:
        return _found(submit, bin_tiles_x, tile_lists, reporter)
    known = submit.shape, rows, bin_tiles_x, tile_lists
    plan = _shaped.get(known)
    if plan is None:
        plan = _found(submit, bin_tiles_x, tile_lists, reporter)
        if not plan.has_warning and len(rows) <= MAX_ROWS:
            if len(_shaped) >= MAX_PLANS:
                _shaped.clear()
            _shaped[known] = plan
    return plan


def _found(submit: Submit, bin_tiles_x: int, tile_lists: int, reporter: Reporter) -> RenderPlan:
    if submit.min_x_tile > submit.max_x_tile or submit.min_y_tile > submit.max_y_tile:
        refuse(reporter, "DRM-014", "the tile range is empty (rule 9.1)")
    key: list[Hashable] = [
        submit.width, submit.height, submit.min_x_tile, submit.min_y_tile, submit.max_x_tile,
        submit.max_y_tile, submit.flags & ~FLAG_CLEAR, bin_tiles_x, tile_lists,
    ]  # fmt: skip
    for name, surface in submit.surfaces.items():
        if 0 <= surface.hindex < len(submit.buffers):
            buffer = submit.buffers[surface.hindex]
            key += name, surface.offset, surface.bits, surface.flags, buffer.address, buffer.size
        else:  # a surface without a buffer counts, too; one with a bad index is refused below
            key += name, surface.bits, surface.flags, surface.present
    known = tuple(key)
    plan = _plans.get(known)
    if plan is None:
        plan = RenderPlan(submit, bin_tiles_x, tile_lists, reporter)
        if not plan.has_warning:
            if len(_plans) >= MAX_PLANS:
                _plans.clear()
            _plans[known] = plan
    return plan


def clear_records(submit: Submit) -> bytes:
    """The first records in the list of a job that clears; nothing for another."""
    if not submit.flags & FLAG_CLEAR:
        return b""
    return _clear_records(*submit.clear_color, submit.clear_z, submit.clear_s)


@lru_cache(maxsize=64)
def _clear_records(low: int, high: int, depth: int, stencil: int) -> bytes:
    colours = build(
        d.ClearColours, colour=low, colour_high=high, z=depth & 0xFFFFFF, vg_mask=depth >> 24, stencil=stencil
    )
    return colours + build(d.TileCoordinates) + build(d.StoreGeneral)
