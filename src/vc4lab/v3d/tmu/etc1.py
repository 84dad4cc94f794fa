"""ETC1: texels of a 4x4 block as native code. Source: OES_compressed_ETC1."""

from __future__ import annotations

from vc4lab.simd import Value, bswap_, lookup16, max_, min_, select
from vc4lab.v3d.tmu.texel_codecs import OPAQUE

#: ETC1 intensity modifiers (a, b) by table number.
ETC1_MODIFIERS = (
    (2, 8), (5, 17), (9, 29), (13, 42), (18, 60), (24, 80), (33, 106), (47, 183),
)  # fmt: skip
_ETC1_TABLE = [value for pair in ETC1_MODIFIERS for value in pair]


def unpack_etc1(low: Value, high: Value, x: Value, y: Value) -> Value:
    """Texel (x, y), both 0..3, of ETC1 blocks given as two little-endian words."""
    flip, differential = (low & 0x1000000) != 0, (low & 0x2000000) != 0
    second = select(flip, y, x) > 1
    table = select(second, low.shr(26), low.shr(29)) & 7
    pixel = (x << 2) + y
    indices = bswap_(high)
    large = indices.shr(pixel) & 1
    negative = (indices.shr(pixel + 16) & 1) != 0
    modifier = lookup16((table << 1) + large, _ETC1_TABLE)
    modifier = select(negative, -modifier, modifier)
    word = low & 0
    for channel in range(3):
        byte = low.shr(8 * channel) & 0xFF
        four = select(second, byte & 15, byte.shr(4)) * 17
        delta = select(second, (byte << 29) >> 29, 0)
        five = (byte.shr(3) + delta) & 31
        base = select(differential, (five << 3) | five.shr(2), four)
        word = word | (min_(max_(base + modifier, 0), 255) << (8 * channel))
    return word | OPAQUE
