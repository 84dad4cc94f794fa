"""Bilinear sampling of batches whose texels all lie in 2x2 or 3x3 neighbouring utiles.

A 4x4 block of pixels that is magnified or drawn about one to one touches a small square of the
texture. Its utiles (one 64-byte load each) are then permuted in registers, instead of one memory
access per lane and texel. Only where the processor permutes two registers at once (AVX-512);
elsewhere, and for batches that do not fit, the texels are gathered. The words are the same either
way, in the bits that belong to the texel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.optimisations import NEIGHBOUR_UTILES, WHOLE_UTILES
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import i32, i32x16, i64
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.trace import current
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import any_, min_, permute, permute_two, shuffle
from vc4lab.v3d.tmu.texture_state import LevelLayout

if TYPE_CHECKING:
    from vc4lab.images.tiling import UtileShape
    from vc4lab.v3d.tmu.texture_state import TextureKind

Spread = tuple[list[int], list[int]]
"""For each lane of a result which of four columns and which of four rows it is of."""

Addresses = Callable[[Value, Value, Spread | None], Value]
"""Columns and rows (four lanes) to the guest addresses of the utiles there, inside memory."""

Gathered = Callable[[], tuple[Value, ...]]
"""Fetches the words one by one."""

#: Lanes at the corners of the 4x4 pixel block (quads in raster order, pixels in raster order).
_CORNERS = (0, 5, 10, 15)


def fits_utiles(kind: TextureKind, shape: UtileShape) -> bool:
    """Whether whole utiles are read: tiled, texels of whole bytes that stand alone."""
    return (
        WHOLE_UTILES.serves(current().module.target.level)
        and kind.layout is not LevelLayout.RASTER
        and shape.bits_per_texel in (8, 16, 32)
    )


class UtileBlock:
    """The utiles from the smallest texel coordinates of a batch on.

    ``columns``, ``rows``: the two texel columns and rows of every lane (i32x16); ``same``: must be
    equal in all lanes as well (mip level), or None.
    """

    def __init__(
        self, shape: UtileShape, columns: list[Value], rows: list[Value], same: Value | None
    ) -> None:
        self.shape = shape
        smallest = _corner_minima(columns[0], rows[0])
        aligned = [-shape.width] * 4 + [-shape.height] * 4
        self.corner = smallest & const(vec(i32, 8), aligned)
        left, top = (shuffle(self.corner, [lane] * 16) for lane in (0, 4))
        self.dx = [x - left for x in columns]
        self.dy = [y - top for y in rows]
        beyond_x, beyond_y = -2 * shape.width, -2 * shape.height
        if beyond_x == beyond_y:
            beyond = _any_bit(self.dx + self.dy) & beyond_x
        else:
            beyond = (_any_bit(self.dx) & beyond_x) | (_any_bit(self.dy) & beyond_y)
        self.differs = None
        if same is not None:
            self.differs = same ^ shuffle(same, [0] * 16)
            beyond = beyond | self.differs
        #: Whether some texel is not in the 2x2 utiles.
        self.missed = any_(beyond != 0)

    def far(self) -> Value:
        """Whether some texel is not in the 3x3 utiles either."""
        limits = ((self.dx, 3 * self.shape.width), (self.dy, 3 * self.shape.height))
        beyond = [part.ugt(limit - 1) for parts, limit in limits for part in parts]
        if self.differs is not None:
            beyond.append(self.differs != 0)
        return any_(_any_bit(beyond))

    def words(self, addresses: Addresses, memory_base: Value) -> tuple[Value, ...]:
        """Words whose low bits are the texels of each column and row (row by row)."""
        shape = self.shape
        right, below = [0, shape.width] * 2, [0, 0, shape.height, shape.height]
        x = shuffle(self.corner, [0, 1, 2, 3]) + const(vec(i32, 4), right)
        y = shuffle(self.corner, [4, 5, 6, 7]) + const(vec(i32, 4), below)
        places = addresses(x, y, None)
        pointers = [memory_base + places[k].zext(i64) for k in range(4)]
        utiles = [load(i32x16, pointer) for pointer in pointers]
        return self._permuted([utiles[0::2], utiles[1::2]])

    def more_words(self, addresses: Addresses, memory_base: Value) -> tuple[Value, ...]:
        """As `words`, out of 3x3 utiles."""
        steps, shape = (0, 1, 2, 0), self.shape
        across, down = ([size * k for k in steps] for size in (shape.width, shape.height))
        x = shuffle(self.corner, [0, 1, 2, 3]) + const(vec(i32, 4), across)
        y = shuffle(self.corner, [4, 5, 6, 7]) + const(vec(i32, 4), down)
        spread = [lane & 3 for lane in range(16)], [lane >> 2 for lane in range(16)]
        places = alloca(64)
        store(places, addresses(x, y, spread))

        def utile(column: int, row: int) -> Value:
            place = load(i32, places + 4 * (4 * row + column))
            return load(i32x16, memory_base + place.zext(i64))

        return self._permuted([[utile(c, r) for r in range(3)] for c in range(3)])

    def _permuted(self, utiles: list[list[Value]]) -> tuple[Value, ...]:
        """The texels' words out of columns of utiles.

        32-bit texels: one in a word; smaller ones: several, to be shifted down. The words of two
        utiles, one below the other, are numbered by row and place in the row.
        """
        shape = self.shape
        per_word_log2 = 6 - shape.bits_per_texel.bit_length()
        row_shift = shape.row_bytes_log2 - 2
        words_in_row = [dx.shr(per_word_log2) if per_word_log2 else dx for dx in self.dx]
        columns = range(1, len(utiles))
        chosen = [[(dx & (column * shape.width)) != 0 for column in columns] for dx in self.dx]
        shifts = [
            (dx & ((1 << per_word_log2) - 1)) << (shape.bits_per_texel.bit_length() - 1) for dx in self.dx
        ]
        words = []
        for dy in self.dy:
            row = dy << row_shift
            third = (dy & (2 * shape.height)) != 0 if len(utiles) > 2 else None
            for place, lanes, shift in zip(words_in_row, chosen, shifts, strict=True):
                index = bits_of(place, (1 << row_shift) - 1, row)  # above bit 4 nothing counts
                word = _of_column(utiles[0], index, third)
                for column, here in zip(columns, lanes, strict=True):
                    word = select(here, _of_column(utiles[column], index, third), word)
                words.append(word.shr(shift) if per_word_log2 else word)
        return tuple(words)


@staged
def block_words(
    block: UtileBlock, addresses: Addresses, memory: Value, gathered: Gathered, one_level: bool
) -> tuple[Value, ...]:
    """Words whose low bits are the texels of each column and row; `gathered` where that is no use.

    Where mip levels keep texels as large as pixels hardly a batch is larger than 2x2 utiles.
    """
    further = one_level and NEIGHBOUR_UTILES.serves(current().module.target.level)
    if block.missed:
        words = further_words(block, addresses, memory, gathered) if further else gathered()
    else:
        words = block.words(addresses, memory)
    return words


@staged
def further_words(
    block: UtileBlock, addresses: Addresses, memory: Value, gathered: Gathered
) -> tuple[Value, ...]:
    """As `block_words`, of 3x3 utiles."""
    if block.far():
        words = gathered()
    else:
        words = block.more_words(addresses, memory)
    return words


def _of_column(utiles: list[Value], index: Value, third: Value | None) -> Value:
    """Words by index from utiles one below the other; lanes of `third` from the third one."""
    word = permute_two(utiles[0], utiles[1], index)
    return word if third is None else select(third, permute(utiles[2], index), word)


def bits_of(chosen: Value, mask: int, others: Value) -> Value:
    """The bits of `mask` from one value, all others from another: one instruction on AVX-512."""
    return (chosen & mask) | (others & ~mask)


def _any_bit(parts: list[Value]) -> Value:
    found = parts[0]
    for part in parts[1:]:
        found = found | part
    return found


def _corner_minima(x: Value, y: Value) -> Value:
    """The smallest of the four corner lanes, in four lanes for `x` and four for `y`."""
    corners = shuffle(x, y, [*_CORNERS, *(16 + lane for lane in _CORNERS)])
    pairs = min_(corners, shuffle(corners, [1, 0, 3, 2, 5, 4, 7, 6]))
    return min_(pairs, shuffle(pairs, [2, 3, 0, 1, 6, 7, 4, 5]))
