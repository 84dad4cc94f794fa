"""Tile loads and stores: moves a tile between the tile buffer and a surface in guest memory.

Native loops over 4x4 pixel blocks (a 32-bit utile is exactly one block) and, for raster surfaces,
over pairs of pixel rows. Pixels outside the frame are left alone. Every address is masked into
guest memory. Source: hardware reference 3.3, 6.4, 7.10.

Of 16-bit 565 surfaces neither the rounding nor the dither pattern of the hardware is documented; `vc4lab
unknowns` lists the choices. Source: hardware reference 7.10; expansion as the texture unit does it (6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vc4lab.images.tile_kernels import column_offset, combine, row_offset
from vc4lab.images.tiling import UTILE_SHAPES, Tiling
from vc4lab.memory.native import host
from vc4lab.records.codes import Decimate, TileFormat
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i1, i8, i16, i32, i32x16
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import min_, shuffle
from vc4lab.v3d.state.frame_mode import (
    COLOUR,
    LANE_X,
    LANE_Y,
    MASK,
    PLANE_BYTES,
    QUAD_BYTES,
    QUAD_ROW_BYTES,
    SINGLE,
    VARIANTS,
    Z_ONLY,
    SurfaceOp,
)
from vc4lab.v3d.state.tile_context import CLEAN_COLOUR, TileContext
from vc4lab.v3d.tlb.samples import RESOLVED_PLANE_BYTES, resolve, spread
from vc4lab.v3d.unknowns import Unknowns

BAYER = (0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5)
"""4x4 ordered dither matrix, row by row."""


def _rounded_5(value: Value) -> Value:
    raised = value + (value >= 128).zext(i32)
    return (raised + 3 - raised.shr(5)).shr(3)


def _rounded_6(value: Value) -> Value:
    low = (value <= 84).zext(i32)
    high = (value >= 171).zext(i32)
    return (value + low - high).shr(2)


def to_565(words: Value, lane_x: list[int], lane_y: list[int], dither: bool, u: Unknowns) -> Value:
    """16 RGBA8888 words as 16 halves: R 15:11, G 10:5, B 4:0.

    `lane_x`, `lane_y`: position of each lane modulo 4 in the frame, for the dither matrix.
    """
    red, green, blue = words & 255, words.shr(8) & 255, words.shr(16) & 255
    if dither and u["dither_565"] == "bayer":
        steps = [BAYER[(y & 3) * 4 + (x & 3)] for x, y in zip(lane_x, lane_y, strict=True)]
        five = const(i32x16, [step >> 1 for step in steps])
        six = const(i32x16, [step >> 2 for step in steps])
        red, blue = min_(red + five, 255).shr(3), min_(blue + five, 255).shr(3)
        green = min_(green + six, 255).shr(2)
    elif u["rounding_565"] == "round":
        red, green, blue = _rounded_5(red), _rounded_6(green), _rounded_5(blue)
    else:
        red, green, blue = red.shr(3), green.shr(2), blue.shr(3)
    return ((red << 11) | (green << 5) | blue).trunc(i16)


def from_565(halves: Value) -> Value:
    """16 halves as RGBA8888 words, alpha 255."""
    words = halves.zext(i32)
    red, green, blue = words.shr(11), words.shr(5) & 63, words & 31
    red, blue = (red * 33).shr(2), (blue * 33).shr(2)
    green = (green * 65).shr(4)
    return red | (green << 8) | (blue << 16) | (-1 << 24)


BLOCK_TO_RASTER = sorted(range(16), key=lambda lane: LANE_Y[lane] * 4 + LANE_X[lane])
"""Lane of a block for each pixel of a 4x4 utile in raster order."""
RASTER_TO_BLOCK = [LANE_Y[lane] * 4 + LANE_X[lane] for lane in range(16)]

_EVEN_ROW = [quad * 4 + k for quad in range(8) for k in (0, 1)]
_ODD_ROW = [quad * 4 + k for quad in range(8) for k in (2, 3)]
_FIRST_QUADS = [k for q in range(4) for k in (2 * q, 2 * q + 1, 16 + 2 * q, 17 + 2 * q)]
_LAST_QUADS = [k + 8 for k in _FIRST_QUADS]
_WIDE_UTILE = [BLOCK_TO_RASTER[y * 4 + (x & 3)] + 16 * (x >> 2) for y in range(4) for x in range(8)]
_WIDE_BLOCKS = [[LANE_Y[lane] * 8 + LANE_X[lane] + 4 * half for lane in range(16)] for half in (0, 1)]


_TWO, _FOUR = vec(i32, 2), vec(i32, 4)

WIDE_FORMAT, MASK_FORMAT = -1, -2
"""Stand for a format: 64-bit colours, and VG masks of 8 bits."""


@dataclass
class Transfer:
    """One tile on its way: the surface, the tile buffer words, the part in the frame.

    `plain`: all pixels of the tile are equal.
    """

    memory: Value
    base: Value
    pitch: Value
    words: Value
    plain: Value
    keep: Value
    tile_x: Value
    tile_y: Value
    columns: Value
    rows: Value
    format: int
    tiling: Tiling
    unknowns: Unknowns

    @property
    def bytes(self) -> int:
        if self.format == WIDE_FORMAT:
            return 8
        if self.format == MASK_FORMAT:
            return 1
        return 4 if self.format == TileFormat.RGBA8888 else 2

    def to_memory(self, words: Value, lane_x: list[int], lane_y: list[int]) -> Value:
        """Tile buffer words as 16 pixels of the surface."""
        if self.format == TileFormat.RGBA8888:
            return words & splat(self.keep)
        return to_565(words, lane_x, lane_y, self.format != TileFormat.BGR565, self.unknowns)

    def from_memory(self, pixels: Value) -> Value:
        """16 pixels of the surface as tile buffer words."""
        return pixels if self.format == TileFormat.RGBA8888 else from_565(pixels)

    def raster_row(self, x: Value, y: Value) -> Value:
        """Native pointer to pixel (x, y) of the tile in a raster surface."""
        offset = (self.tile_y + y) * self.pitch + (self.tile_x + x) * self.bytes
        return host(self.memory, self.base + offset)

    def utile(self, x: Value, y: Value) -> Value:
        """Native pointer to the utile at pixel (x, y) of the tile in a tiled surface."""
        shape = UTILE_SHAPES[8 * self.bytes]
        column = column_offset(self.tile_x + x, shape, self.tiling)
        row = row_offset(self.tile_y + y, self.pitch, shape, self.tiling)
        return host(self.memory, self.base + combine(column, row))

    def block(self, x: Value, y: Value) -> Value:
        """Pointer to the block at (x, y) in the tile buffer."""
        return self.words + SINGLE.offset(x, y)


_ROW_X = list(range(16))


@staged
def store_part(pointer: Value, pixels: Value, width: int, columns: Value, rows: Value) -> None:
    """Writes only the first `columns` and `rows` of pixels that stand in rows of `width`."""
    scratch = alloca(64)
    store(scratch, pixels)
    bytes_ = pixels.type.bits // 8
    y = const(i32, 0)
    while (y < rows) & (y < pixels.type.lanes // width):
        x = const(i32, 0)
        while (x < columns) & (x < width):
            offset = (y * width + x) * bytes_
            store(pointer + offset, load(pixels.type.elem, scratch + offset))
            x = x + 1
        y = y + 1


@staged
def store_row(pointer: Value, pixels: Value, count: Value) -> None:
    """Writes the first `count` of 16 pixels."""
    if count >= 16:
        store(pointer, pixels)
    else:
        store_part(pointer, pixels, 16, count, const(i32, 1))


@staged
def store_raster(job: Transfer) -> None:
    y = const(i32, 0)
    while y < job.rows:
        x = const(i32, 0)
        while x < job.columns:
            count = job.columns - x
            for pair in (0, 2):
                quads = job.words + (y + pair).shr(1) * QUAD_ROW_BYTES + x.shr(1) * QUAD_BYTES
                first, last = load(i32x16, quads), load(i32x16, quads + 64)
                even, odd = shuffle(first, last, _EVEN_ROW), shuffle(first, last, _ODD_ROW)
                if y + pair < job.rows:
                    pixels = job.to_memory(even, _ROW_X, [pair] * 16)
                    store_row(job.raster_row(x, y + pair), pixels, count)
                if y + (pair + 1) < job.rows:
                    pixels = job.to_memory(odd, _ROW_X, [pair + 1] * 16)
                    store_row(job.raster_row(x, y + (pair + 1)), pixels, count)
            x = x + 16
        y = y + 4


@staged
def load_raster(job: Transfer) -> None:
    pixel_type = i32x16 if job.bytes == 4 else vec(i16, 16)
    y = const(i32, 0)
    while y < job.rows:
        x = const(i32, 0)
        while x < job.columns:
            even = job.from_memory(load(pixel_type, job.raster_row(x, y)))
            odd = job.from_memory(load(pixel_type, job.raster_row(x, y + 1)))
            quads = job.block(x, y)
            store(quads, shuffle(even, odd, _FIRST_QUADS))
            store(quads + 64, shuffle(even, odd, _LAST_QUADS))
            x = x + 16
        y = y + 2


@staged
def store_tiled(job: Transfer) -> None:
    """Most tiles end with whole utiles: these go without a look at each utile's size."""
    if ((job.columns & 15) == 0) & ((job.rows & 3) == 0):
        if job.plain:
            store_utiles(job, tiled_pixels(job, const(i32, 0), const(i32, 0)))
        else:
            store_utiles(job, None)
    else:
        store_tiled_parts(job)


@staged
def tiled_pixels(job: Transfer, x: Value, y: Value) -> Value:
    """The pixels that a utile at (x, y) of the tile is to hold."""
    pixels = job.to_memory(SINGLE.load_block(job.block(x, y)), LANE_X, LANE_Y)
    if job.bytes == 2:
        right = job.to_memory(SINGLE.load_block(job.block(x + 4, y)), LANE_X, LANE_Y)
        pixels = shuffle(pixels, right, _WIDE_UTILE)
    else:
        pixels = shuffle(pixels, BLOCK_TO_RASTER)
    return pixels


@staged
def store_utiles(job: Transfer, pixels: Value | None) -> None:
    """Columns are a multiple of 16, rows of 4; `pixels`: what every utile holds.

    A tile begins at a multiple of 16 pixels, and utiles next to each other in such a group lie so
    in memory, too: exclusive or with a row changes bits 8 and up only.
    """
    shape = UTILE_SHAPES[8 * job.bytes]
    columns, rows, memory, base = job.columns, job.rows, job.memory, job.base
    y = const(i32, 0)
    while y < rows:
        row = row_offset(job.tile_y + y, job.pitch, shape, job.tiling)
        x = const(i32, 0)
        while x < columns:
            group = base + combine(column_offset(job.tile_x + x, shape, job.tiling), row)
            for place in range(16 // shape.width):
                words = pixels
                if words is None:
                    words = tiled_pixels(job, x + place * shape.width, y)
                store(host(memory, group + place * 64), words)
            x = x + 16
        y = y + 4


@staged
def store_tiled_parts(job: Transfer) -> None:
    """Tiles at the edge of a frame: nothing is written beyond it."""
    width = 8 if job.bytes == 2 else 4
    y = const(i32, 0)
    while y < job.rows:
        x = const(i32, 0)
        while x < job.columns:
            pixels = tiled_pixels(job, x, y)
            if (job.columns - x >= width) & (job.rows - y >= 4):
                store(job.utile(x, y), pixels)
            else:
                store_part(job.utile(x, y), pixels, width, job.columns - x, job.rows - y)
            x = x + width
        y = y + 4


@staged
def load_tiled(job: Transfer) -> None:
    wide = job.bytes == 2
    width = 8 if wide else 4
    y = const(i32, 0)
    while y < job.rows:
        x = const(i32, 0)
        while x < job.columns:
            if wide:
                pixels = load(vec(i16, 32), job.utile(x, y))
                for half in (0, 1):
                    words = job.from_memory(shuffle(pixels, _WIDE_BLOCKS[half]))
                    SINGLE.store_block(job.block(x + 4 * half, y), words)
            else:
                pixels = load(i32x16, job.utile(x, y))
                SINGLE.store_block(job.block(x, y), shuffle(pixels, RASTER_TO_BLOCK))
            x = x + width
        y = y + 4


@staged
def transfer(context_pointer: Value, op_pointer: Value, key: Any, unknowns: Unknowns) -> None:
    """Stores or loads one buffer of the tile in `context_pointer` as `op_pointer` says."""
    context = TileContext.at(context_pointer)
    op = SurfaceOp.at(op_pointer)
    buffer = op.part
    words = select(buffer == COLOUR, context.colour, context.zs)
    words = select(buffer == MASK, context.mask, words)
    if key.multisample:
        single = context.resolved
        decimate: Value = op.decimate
        if (buffer != COLOUR) | key.wide:
            decimate = const(i32, int(Decimate.SAMPLE_0))
        if unknowns["decimate_16"] == "pixel":
            decimate = min_(decimate, const(i32, int(Decimate.X4)))
        resolve(single, words, decimate, unknowns)  # when loading: pixels outside the frame
        halved = (decimate == int(Decimate.X16)).zext(i32)
        _move(context, op, single, key, halved, const(i32, RESOLVED_PLANE_BYTES), unknowns)
        if not key.to_memory:
            spread(words, single)
    else:
        none = const(i32, 0)
        _move(context, op, words, key, none, const(i32, PLANE_BYTES), unknowns)


@staged
def _move(
    context: TileContext, op: SurfaceOp, words: Value, key: Any, halved: Value, plane: Value,
    unknowns: Unknowns,
) -> None:  # fmt: skip
    """The tile at `words` (one sample) to or from the surface; halved (0, 1): in half the size."""
    x, y = context.tile_x.shr(halved), context.tile_y.shr(halved)
    columns = min_(op.width - x, context.tile_width.shr(halved))
    rows = min_(op.height - y, context.tile_height.shr(halved))
    bare = const(i32, -256 if unknowns["z_only_stencil"] == "zero" else -1)
    keep = select(op.part == Z_ONLY, bare, const(i32, -1))
    format_, tiling = VARIANTS[key.variant]
    if key.wide or key.mask:
        format_ = WIDE_FORMAT if key.wide else MASK_FORMAT
    plain = const(i1, 0)
    if not (key.multisample | key.wide | key.mask):
        plain = (op.part == COLOUR) & ((context.clean & CLEAN_COLOUR) != 0)
    job = Transfer(
        context.memory, op.base, op.pitch, words, plain, keep, x, y, columns, rows, format_,
        tiling, unknowns,
    )  # fmt: skip
    if key.wide or key.mask:
        transfer_pairs(job, plane, key.to_memory)
    elif tiling is Tiling.RASTER:
        (store_raster if key.to_memory else load_raster)(job)
    else:
        (store_tiled if key.to_memory else load_tiled)(job)


@staged
def transfer_pairs(job: Transfer, plane: Value, to_memory: bool) -> None:
    """64-bit colours and VG masks, two neighbours at a time."""
    shape = UTILE_SHAPES[8 * job.bytes]
    row_bytes = 1 << shape.row_bytes_log2
    y = const(i32, 0)
    while y < job.rows:
        x = const(i32, 0)
        while x < job.columns:
            low = job.block(x, y) + (y & 1) * (QUAD_BYTES // 2)
            if job.tiling is Tiling.RASTER:
                pixels = job.raster_row(x, y)
            else:
                inner = (y & (shape.height - 1)) * row_bytes + (x & (shape.width - 1)) * job.bytes
                pixels = job.utile(x & -shape.width, y & -shape.height) + inner
            if to_memory:
                words = load(_TWO, low)
                if job.format == WIDE_FORMAT:
                    words = shuffle(words, load(_TWO, low + plane), [0, 2, 1, 3])
                    first = shuffle(words, [0, 1])
                else:
                    words = words.trunc(i8)
                    first = words[0]
                if x + 1 < job.columns:
                    store(pixels, words)
                else:
                    store(pixels, first)
            elif job.format == WIDE_FORMAT:
                words = load(_FOUR, pixels)
                store(low, shuffle(words, [0, 2]))
                store(low + plane, shuffle(words, [1, 3]))
            else:
                store(low, load(vec(i8, 2), pixels).zext(i32))
            x = x + 2
        y = y + 1
