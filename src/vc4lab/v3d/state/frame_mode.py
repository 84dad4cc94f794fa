"""The mode of a frame (record 113): its surface, the layout of the tile buffer, the size of tiles.

The same surfaces, tile by tile, are what records 28 and 29 store to and load from.

* 32-bit, one sample: 64x64 pixels, a quad is 16 bytes (its four pixels side by side).
* 4x multisample: 32x32 pixels, a quad is 64 bytes, four groups of four pixels, one a sample. It is
  the layout of full-resolution dumps: (x & ~1) * 32 + (y & ~1) * 512 + sample * 16 + (y & 1) * 8
  + (x & 1) * 4.
* 64-bit colour: half as many rows. Red and green stand in the first half of the colour buffer, blue
  and alpha in the second; each half is arranged as above.

Source: hardware reference 7.1, 7.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from vc4lab.images.tiling import Tiling, image_bytes, pitch_bytes, round_up
from vc4lab.optimisations import UNTOUCHED_TILES
from vc4lab.records.codes import Decimate, TileBuffer, TileFormat
from vc4lab.simd import Struct, Value, i32, load, ptr, select, shuffle, store, vec
from vc4lab.v3d.state.render_state import double_buffer_halves
from vc4lab.v3d.unknowns import Unknowns

TILE_SIZE = 64
"""Edge of the largest tile in pixels (32 bits a pixel, one sample)."""

TILE_WORDS = TILE_SIZE * TILE_SIZE

QUAD_BYTES = 16
QUAD_ROW_BYTES = TILE_SIZE // 2 * QUAD_BYTES
"""Bytes from one row of quads to the next, with one sample."""

PLANE_BYTES = TILE_WORDS * 4 // 2
"""Distance of the blue and alpha half from the red and green half of 64-bit colours."""

SAMPLE_BYTES = QUAD_BYTES
"""Bytes from one sample of a quad to the next."""

PART_COLOUR, PART_ZS, PART_MASK = 1, 2, 4
"""Parts of the tile buffer that a full-resolution load or store moves, in this order."""

Z_MAX = 0xFFFFFF
"""The largest depth."""

BLOCK = 4
"""Edge of a block in pixels."""

LANE_X = [(lane & 1) + 2 * ((lane >> 2) & 1) for lane in range(16)]
LANE_Y = [((lane >> 1) & 1) + 2 * (lane >> 3) for lane in range(16)]
"""Column and row of each lane inside its block."""

_LANES = list(range(16))


@dataclass(frozen=True)
class TileLayout:
    """Arrangement of a tile buffer. A block of 4x4 pixels has one vector of words a sample."""

    multisample: bool = False
    wide: bool = False

    @property
    def samples(self) -> int:
        """Samples of a pixel."""
        return 4 if self.multisample else 1

    @property
    def words(self) -> int:
        """Colour words of a sample."""
        return 2 if self.wide else 1

    @property
    def quad_bytes(self) -> int:
        """Bytes from one quad to the next in a row."""
        return QUAD_BYTES * self.samples

    @property
    def quad_row_bytes(self) -> int:
        """Bytes from one row of quads to the next."""
        return 1024 if self.multisample else QUAD_ROW_BYTES

    def offset(self, x: Value, y: Value) -> Value:
        """Byte offset of the block at pixel (x, y), both even; sample k is 16 * k bytes on."""
        return y.shr(1) * self.quad_row_bytes + x.shr(1) * self.quad_bytes

    def even_offset(self, x: Value, y: Value) -> Value:
        """As `offset`, in fewer steps, where x and y certainly are even."""
        rows, columns = (n.bit_length() - 2 for n in (self.quad_row_bytes, self.quad_bytes))
        return (y << rows) + (x << columns)

    def load_block(self, pointer: Value) -> Value:
        """16 words, lane by lane, of the block whose first quad is at `pointer`."""
        row = self.quad_row_bytes
        if self.multisample:
            quads = [
                load(vec(i32, 4), pointer + place)
                for place in (0, self.quad_bytes, row, row + self.quad_bytes)
            ]
            halves = [shuffle(quads[k], quads[k + 1], _LANES[:8]) for k in (0, 2)]
        else:
            halves = [load(vec(i32, 8), pointer), load(vec(i32, 8), pointer + row)]
        return shuffle(halves[0], halves[1], _LANES)

    def store_block(self, pointer: Value, value: Value) -> None:
        """Writes all 16 words of a block."""
        row = self.quad_row_bytes
        if self.multisample:
            for quad, place in enumerate((0, self.quad_bytes, row, row + self.quad_bytes)):
                store(pointer + place, shuffle(value, _LANES[4 * quad : 4 * quad + 4]))
        else:
            store(pointer, shuffle(value, _LANES[:8]))
            store(pointer + row, shuffle(value, _LANES[8:]))

    def update_block(self, pointer: Value, old: Value, value: Value, active: Value) -> None:
        """Writes the words of the lanes of `active`; `old` is what is there."""
        self.store_block(pointer, select(active, value, old))


SINGLE = TileLayout()
"""32-bit colour, one sample."""

MULTISAMPLE, WIDE = 1, 2
LAYOUTS = tuple(TileLayout(ms, wide) for wide in (False, True) for ms in (False, True))
"""Layout by mode number: bit 0 (MULTISAMPLE) and bit 1 (WIDE, 64-bit colour)."""


COLOUR, ZS, Z_ONLY = int(TileBuffer.COLOUR), int(TileBuffer.ZS), int(TileBuffer.Z)
MASK = int(TileBuffer.VG_MASK)

RASTER_ALIGNMENT = 16
"""Rows of a raster surface begin at multiples of this many bytes."""


class SurfaceOp(Struct):
    """One load or store of a tile: surface address, geometry and format, read by native code.

    `storer` and `loader` are native `(context, op)`; 0: not compiled yet. `twin`: see
    `tiles/loop.py`.
    """

    storer = ptr
    loader = ptr
    base = i32
    width = i32
    height = i32
    pitch = i32
    part = i32
    variant = i32
    decimate = i32
    pixel_bytes = i32
    twin = i32


VARIANTS: tuple[tuple[int, Tiling], ...] = tuple(
    (format_, tiling) for format_ in TileFormat for tiling in Tiling
)
"""(colour format, tiling) by `SurfaceOp.variant`; Z and stencil words use those of RGBA8888."""


@dataclass(frozen=True)
class TransferKey:
    """A native store (or load) of a tile is compiled for this.

    `multisample` is the frame's mode, `wide` and `mask` say what is moved, `variant` numbers the
    format and layout in memory (`VARIANTS`).
    """

    to_memory: bool
    multisample: bool
    wide: bool
    mask: bool
    variant: int


@dataclass(frozen=True)
class Surface:
    """A surface as records 28, 29 and 113 describe it.

    Attributes
    ----------
    address
        Guest address of the first pixel.
    width, height
        Frame size in pixels (record 113).
    tiling, format
        Image layout and colour format (codes of record 28).
    buffer
        Which part of the tile buffer: COLOUR, ZS, Z_ONLY or MASK (the 8-bit VG mask).
    decimate
        How samples become a pixel (record 28 bits 7:6); multisample frames only.
    wide
        64-bit colours: four half-floats a pixel, `format` and `decimate` do not count.
    """

    address: int
    width: int
    height: int
    tiling: int = 0
    format: int = TileFormat.RGBA8888
    buffer: int = COLOUR
    decimate: int = 0
    wide: bool = False

    @property
    def bits(self) -> int:
        """Bits per pixel in memory."""
        if self.wide and self.buffer == COLOUR:
            return 64
        if self.buffer == MASK:
            return 8
        return 32 if self.buffer != COLOUR or self.format == TileFormat.RGBA8888 else 16

    @property
    def pitch(self) -> int:
        """Bytes between rows (raster), utile rows (LT) or tile rows (T)."""
        tiling = Tiling(min(self.tiling, 2))
        pitch = pitch_bytes(max(self.width, 1), self.bits, tiling)
        return round_up(pitch, RASTER_ALIGNMENT) if tiling is Tiling.RASTER else pitch

    def rows(self, first: int, end: int) -> tuple[int, int]:
        """Guest address and size of some rows of pixels; of the whole surface if it is tiled."""
        tiling = Tiling(min(self.tiling, 2))
        if tiling is not Tiling.RASTER:
            return self.address, image_bytes(self.width, self.height, self.bits, tiling)
        end = min(end, self.height)
        return self.address + first * self.pitch, max(end - first, 0) * self.pitch

    @property
    def variant(self) -> int:
        """Position in `VARIANTS`."""
        format_ = self.format if self.buffer == COLOUR and self.format < 3 else TileFormat.RGBA8888
        return VARIANTS.index((format_, Tiling(min(self.tiling, 2))))

    def transfer_key(self, to_memory: bool, multisample: bool, wide: bool) -> TransferKey:
        """The native code that moves a tile of a frame of that mode."""
        is_mask, is_wide = self.buffer == MASK, wide and self.buffer == COLOUR
        tiling = Tiling(min(self.tiling, 2))
        plain = VARIANTS.index((TileFormat.RGBA8888, tiling))
        variant = plain if is_mask or is_wide else self.variant
        return TransferKey(to_memory, multisample, is_wide, is_mask, variant)

    @cached_property
    def as_bytes(self) -> bytes:
        """The surface as a `SurfaceOp`."""
        op = SurfaceOp()
        op.base = self.address & 0xFFFFFFFF
        op.width, op.height = self.width, self.height
        op.pitch, op.part = self.pitch, self.buffer
        op.decimate = self.decimate
        op.pixel_bytes = self.bits // 8
        op.variant = self.variant
        return bytes(op)


def twins(surfaces: Sequence[Surface], layout: TileLayout) -> list[int]:
    """A number for each surface, the same for those whose tiles lie at the same place in the same
    form; 0 where a load and a store may change bytes.
    """
    if not UNTOUCHED_TILES.serves() or layout != SINGLE:
        return [0] * len(surfaces)
    places: dict[tuple[int, ...], int] = {}
    numbers = []
    for s in surfaces:
        exact = s.buffer == ZS or (s.buffer == COLOUR and s.format == TileFormat.RGBA8888)
        if s.wide or s.decimate or not exact:
            numbers.append(0)
            continue
        place = s.address & 0xFFFFFFFF, s.width, s.height, s.tiling, s.buffer
        numbers.append(places.setdefault(place, len(places) + 1))
    return numbers


def tile_size(multisample: bool, colour64: bool, double_buffer: bool = False) -> tuple[int, int]:
    """Width and height of a tile in pixels from the flags of records 112 and 113."""
    width, height = (32, 32) if multisample else (64, 64)
    if colour64 or (double_buffer and not multisample):
        height //= 2
    return width, height


@dataclass(frozen=True)
class FrameMode:
    """Record 113: the surface that records 24 and 25 store to, and its geometry."""

    address: int = 0
    width: int = 0
    height: int = 0
    multisample: bool = False
    wide_colour: bool = False
    format: int = TileFormat.RGBA8888
    tiling: int = Tiling.RASTER
    decimate: int = 0
    vg_mask: bool = False
    double_buffer: bool = False

    layout: TileLayout = field(init=False, repr=False, compare=False)
    """How the tile buffer is arranged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", TileLayout(self.multisample, self.wide_colour))

    def surface(self, unknowns: Unknowns) -> Surface:
        """The surface that records 24 and 25 store to."""
        decimate = self.decimate
        if self.multisample and unknowns["resolve_without_decimate"] == "average":
            decimate = decimate or Decimate.X4
        return Surface(
            self.address,
            self.width,
            self.height,
            int(self.tiling),
            int(self.format),
            COLOUR,
            int(decimate),
            self.wide_colour,
        )

    def drawn_size(self, unknowns: Unknowns) -> tuple[int, int]:
        """Pixels that are drawn: more than are stored if 16 samples become one pixel."""
        quads = self.decimate == Decimate.X16 and unknowns["decimate_16"] == "quad"
        scale = 2 if self.multisample and quads else 1
        return self.width * scale, self.height * scale

    def tile(self, unknowns: Unknowns) -> tuple[int, int]:
        """Width and height of a tile in pixels."""
        halved = self.double_buffer and double_buffer_halves(unknowns)
        return tile_size(self.multisample, self.wide_colour, halved)
