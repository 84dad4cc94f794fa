"""Surfaces in guest memory that tiles are stored to and loaded from, as records describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vc4lab.images.tiling import Tiling, pitch_bytes, round_up
from vc4lab.optimisations import UNTOUCHED_TILES
from vc4lab.records.codes import TileBuffer, TileFormat
from vc4lab.simd import Struct, i32, ptr
from vc4lab.v3d.state.tile_layout import SINGLE, TileLayout

COLOUR, ZS, Z_ONLY = int(TileBuffer.COLOUR), int(TileBuffer.ZS), int(TileBuffer.Z)
MASK = int(TileBuffer.VG_MASK)

RASTER_ALIGNMENT = 16
"""Rows of a raster surface begin at multiples of this many bytes."""


class SurfaceOp(Struct):
    """One load or store of a tile: surface address, geometry and format, read by native code.

    `storer` and `loader` are native `(context, op)`; 0: not compiled yet. `twin`: see
    `tiles/untouched.py`.
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
    """What a native store (or load) of a tile is compiled for.

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
