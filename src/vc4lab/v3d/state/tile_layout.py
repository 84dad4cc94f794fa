"""How a tile buffer is arranged in each frame mode: samples, colour words, 2x2 quads.

* 32-bit, one sample: 64x64 pixels, a quad is 16 bytes (its four pixels side by side).
* 4x multisample: 32x32 pixels, a quad is 64 bytes, four groups of four pixels, one a sample. It is
  the layout of full-resolution dumps: (x & ~1) * 32 + (y & ~1) * 512 + sample * 16 + (y & 1) * 8
  + (x & 1) * 4.
* 64-bit colour: half as many rows. Red and green stand in the first half of the colour buffer, blue
  and alpha in the second; each half is arranged as above.

Source: hardware reference 7.1, 7.11.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.simd import Value, i32, load, select, shuffle, store, vec

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
        """The same, in fewer steps, where x and y certainly are even."""
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
