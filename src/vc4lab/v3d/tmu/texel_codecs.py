"""From stored texels to RGBA8888 words, as native code.

The native twin of ``formats.py``, in two steps so that filtering comes in between:

    unpack   stored value        -> filter word   (only the channels that differ, 8 bits each)
    expand   filtered filter word -> result word

Filter words: four channels R, G, B, A in bytes 0-3; two channels (luminance, alpha) in bits 7:0
and 23:16; one channel in bits 7:0. Source of ETC1: OES_compressed_ETC1.
"""

from __future__ import annotations

from vc4lab.records.texture import TextureType
from vc4lab.simd import Value, bswap_, lookup16, max_, min_, select

_T = TextureType

OPAQUE = -0x1000000
"""Alpha 255 of a word, as a signed number."""


def unpack(texture_type: TextureType, raw: Value) -> Value:
    """Filter word of a stored value; bits of ``raw`` above the texel are ignored."""
    match texture_type:
        case _T.RGBX8888:
            return raw | OPAQUE
        case _T.RGBA4444:
            nibbles = (
                (raw.shr(12) & 0xF) | (raw & 0xF00) | ((raw << 12) & 0xF0000)
                | ((raw << 24) & 0xF000000)
            )  # fmt: skip
            return nibbles | (nibbles << 4)
        case _T.RGBA5551:
            return (
                (raw.shr(8) & 0xF8) | (raw.shr(13) & 7)
                | ((raw << 5) & 0xF800) | (raw & 0x700)
                | ((raw << 18) & 0xF80000) | ((raw << 13) & 0x70000)
                | (((raw << 31) >> 7) & OPAQUE)
            )  # fmt: skip
        case _T.RGB565:
            return (
                (raw.shr(8) & 0xF8) | (raw.shr(13) & 7)
                | ((raw << 5) & 0xFC00) | (raw.shr(1) & 0x300)
                | ((raw << 19) & 0xF80000) | ((raw << 14) & 0x70000)
                | OPAQUE
            )  # fmt: skip
        case _T.LUMALPHA:
            return (raw & 0xFF) | ((raw << 8) & 0xFF0000)
        case _T.LUMINANCE | _T.ALPHA | _T.S8:
            return raw & 0xFF
        case _T.S16F | _T.S16:
            return raw & 0xFFFF
        case _T.BW1 | _T.A1:
            return ((raw << 31) >> 31) & 0xFF
        case _T.A4:
            return (raw & 15) * 17
        case _:
            return raw


def expand(
    texture_type: TextureType, word: Value, short_position: str = "low", alpha_colour: str = "zero"
) -> Value:
    """Result word of a (filtered) filter word; the last two are choices of `TextureKind`."""
    match texture_type:
        case _T.LUMINANCE | _T.BW1:
            return (word * 0x010101) | OPAQUE
        case _T.LUMALPHA:
            return ((word & 0xFF) * 0x010101) | ((word << 8) & OPAQUE)
        case _T.A4 | _T.A1 if alpha_colour == "alpha":
            return word * 0x01010101
        case _T.ALPHA | _T.A4 | _T.A1:
            return word << 24
        case _T.S16F | _T.S8 | _T.S16 if short_position == "high":
            return word << 16
        case _:
            return word


def border_filter_word(texture_type: TextureType, colour: Value, order_4444: str) -> Value:
    """The border colour (R coordinate) as a filter word: what a texel with this result word has.

    `order_4444`: `TextureKind.border_4444`.
    """
    match texture_type:
        case _T.RGBA4444 if order_4444 == "reversed":
            return bswap_(colour)
        case _T.LUMINANCE | _T.BW1 | _T.S8:
            return colour & 0xFF
        case _T.LUMALPHA:
            return (colour & 0xFF) | (colour.shr(8) & 0xFF0000)
        case _T.ALPHA | _T.A4 | _T.A1:
            return colour.shr(24)
        case _T.S16 | _T.S16F:
            return colour & 0xFFFF
        case _:
            return colour


def unpack_yuyv(pair: Value, x: Value, order: str) -> Value:
    """The word of column ``x`` from its 32-bit pair Y0, U, Y1, V; `order` names bytes 0 to 2."""
    luma = select((x & 1) != 0, pair.shr(16), pair) & 0xFF
    if order == "yuv":
        return luma | (pair & 0xFF00) | (pair.shr(8) & 0xFF0000) | OPAQUE
    parts = {"y": luma, "u": pair.shr(8) & 0xFF, "v": pair.shr(24)}
    first, second, third = (parts[letter] for letter in order)
    return first | (second << 8) | (third << 16) | OPAQUE


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
