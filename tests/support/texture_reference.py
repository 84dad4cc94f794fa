"""The texture unit in plain Python: the definition of a sample, one lane at a time.

Slow and literal: coordinates are exact fractions, wrapping is modulo, every texel is decoded by
`DECODERS` from the address of `texture_layouts.py`. The native sampler (``v3d/tmu/sampler.py``)
must return the same bits. Arithmetic that the hardware does in float (scaling a coordinate,
differences for the level of detail) is rounded toward zero to float32, as everywhere in a QPU.

Source: AG100-R pp. 39-45 (addressing; precision is a choice, ``vc4lab unknowns``), p. 40 (types),
Broadcom's software image library (expansion to 8 bits), Mesa ``vc4_formats.c`` (component order),
OES_compressed_ETC1.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tests.support.texture_layouts import texel_bit_address as bit_address

from vc4lab.images.tiling import TILE_BYTES, UTILE_BYTES, Tiling
from vc4lab.records.texture import TextureType, Wrap
from vc4lab.v3d.tmu.texel_codecs import ETC1_MODIFIERS
from vc4lab.v3d.tmu.texture_state import LevelLayout, MipMode, TextureDescriptor, TextureKind

Fetch = Callable[[int, int], int]
"""(guest address, number of bytes) -> little-endian value."""

COORDINATE_LIMIT = 1 << 24
"""Magnitudes are limited to this; all larger floats are even integers, so repeat and mirror see
no difference."""


def pack_rgba(red: int, green: int, blue: int, alpha: int = 255) -> int:
    """The result word of the texture unit: R in bits 7:0, A in bits 31:24."""
    return red | green << 8 | blue << 16 | alpha << 24


def expand5(value: int) -> int:
    """5 bits to 8 as Broadcom's library does: (x * 33) >> 2."""
    return value * 33 >> 2


def expand6(value: int) -> int:
    """6 bits to 8: (x * 65) >> 4."""
    return value * 65 >> 4


def _rgba4444(v: int) -> int:
    return pack_rgba((v >> 12) * 17, (v >> 8 & 15) * 17, (v >> 4 & 15) * 17, (v & 15) * 17)


def _rgba5551(v: int) -> int:
    red, green, blue = expand5(v >> 11), expand5(v >> 6 & 31), expand5(v >> 1 & 31)
    return pack_rgba(red, green, blue, (v & 1) * 255)


def _rgb565(v: int) -> int:
    return pack_rgba(expand5(v >> 11), expand6(v >> 5 & 63), expand5(v & 31))


def _grey(v: int) -> int:
    return pack_rgba(v, v, v)


def _luminance_alpha(v: int) -> int:
    return pack_rgba(v & 255, v & 255, v & 255, v >> 8)


#: Value of a stored texel -> result word, for the types where a texel stands alone in memory.
DECODERS: dict[TextureType, Callable[[int], int]] = {
    TextureType.RGBA8888: lambda v: v,
    TextureType.RGBX8888: lambda v: v | 0xFF000000,
    TextureType.RGBA4444: _rgba4444,
    TextureType.RGBA5551: _rgba5551,
    TextureType.RGB565: _rgb565,
    TextureType.LUMINANCE: _grey,
    TextureType.ALPHA: lambda v: v << 24,
    TextureType.LUMALPHA: _luminance_alpha,
    TextureType.S16F: lambda v: v,
    TextureType.S8: lambda v: v,
    TextureType.S16: lambda v: v,
    TextureType.BW1: lambda v: _grey(v * 255),
    TextureType.A4: lambda v: v * 17 << 24,
    TextureType.A1: lambda v: v * 255 << 24,
    TextureType.RGBA32R: lambda v: v,
}


def decode_yuyv(pair: int, odd: int, order: str) -> int:
    """Texel 0 or 1 of a 32-bit pair Y0, U, Y1, V; `order` names bytes 0 to 2 of the word."""
    parts = {"y": pair >> (16 if odd else 0) & 255, "u": pair >> 8 & 255, "v": pair >> 24}
    return pack_rgba(*(parts[letter] for letter in order))


def decode_etc1(block: int, x: int, y: int) -> int:
    """Texel (x, y), both 0..3, of an ETC1 block; ``block`` is the big-endian 64-bit word."""
    flip, differential = block >> 32 & 1, block >> 33 & 1
    second = y >> 1 if flip else x >> 1
    colour = []
    for channel in range(3):
        byte = block >> (56 - 8 * channel) & 255
        if differential:
            five = byte >> 3
            if second:
                delta = byte & 7
                five = (five + (delta - 8 if delta & 4 else delta)) & 31
            colour.append(five << 3 | five >> 2)
        else:
            colour.append((byte & 15 if second else byte >> 4) * 17)
    table = block >> (34 if second else 37) & 7
    pixel = 4 * x + y
    negative, large = block >> (16 + pixel) & 1, block >> pixel & 1
    modifier = ETC1_MODIFIERS[table][large] * (-1 if negative else 1)
    red, green, blue = (min(max(value + modifier, 0), 255) for value in colour)
    return pack_rgba(red, green, blue)


def read_float(word: int, not_finite: str) -> Fraction:
    """A float32 coordinate: denormals count as 0.

    ``not_finite``: infinities and NaN do so, too ("zero"), or are large numbers ("far").
    """
    exponent = word >> 23 & 255
    if exponent == 0 or (exponent == 255 and not_finite == "zero"):
        return Fraction(0)
    value = min(scaled((word & 0x7FFFFF) | 0x800000, exponent - 150), Fraction(COORDINATE_LIMIT))
    return -value if word >> 31 else value


def scaled(whole: int, exponent: int) -> Fraction:
    """whole * 2 ** exponent."""
    return Fraction(whole << exponent) if exponent >= 0 else Fraction(whole, 1 << -exponent)


def exponent_of(value: Fraction) -> int:
    """The exponent of the largest power of two that is not above a number; the number is not 0."""
    above, below = abs(value.numerator), value.denominator
    exponent = above.bit_length() - below.bit_length()
    smaller = above << -exponent < below if exponent < 0 else above < below << exponent
    return exponent - smaller


def toward_zero(value: Fraction, bits: int = 24) -> Fraction:
    """``value`` rounded to so many significant bits toward zero, denormals flushed."""
    if value == 0:
        return value
    exponent = exponent_of(value)
    if exponent < -126:
        return Fraction(0)
    above, below, unit = abs(value.numerator), value.denominator, exponent - bits + 1
    whole = (above << -unit) // below if unit < 0 else above // (below << unit)
    return scaled(whole if value > 0 else -whole, unit)


def read_half(bits: int) -> Fraction:
    """The half in bits 15:0: denormals count as 0, exponent 31 as one more power of two."""
    exponent = bits >> 10 & 31
    if exponent == 0:
        return Fraction(0)
    value = scaled(bits & 0x3FF | 0x400, exponent - 25)
    return -value if bits & 0x8000 else value


def half_word(value: Fraction, rounding: str) -> int:
    """The half nearest to a number, ties to even ("round"), or the next toward zero."""
    if value == 0:
        return 0
    exponent = exponent_of(value) - 10
    units = abs(value) * scaled(1, -exponent)
    whole = round(units) if rounding == "round" else math.floor(units)
    if whole == 2048:
        whole, exponent = 1024, exponent + 1
    if exponent < -24:
        return 0
    bits = 0x7C00 if exponent > 5 else (exponent + 25) << 10 | whole & 0x3FF
    return bits | (0x8000 if value < 0 else 0)


def fixed_coordinate(value: Fraction, size: int, wrap: Wrap) -> int:
    """Texel coordinate with 8 fractional bits, before the wrap of single texels."""
    if wrap is Wrap.REPEAT:
        value = toward_zero(value - math.floor(value))
    elif wrap is Wrap.MIRROR:
        value = toward_zero(value - 2 * math.floor(value / 2))
    elif wrap is Wrap.CLAMP:
        value = min(max(value, Fraction(0)), Fraction(1))
    else:
        value = min(max(value, Fraction(-1)), Fraction(2))
    return math.floor(toward_zero(value * (size * 256)))


def wrap_texel(index: int, size: int, wrap: Wrap) -> int | None:
    """The texel that index means; None: the border colour."""
    if wrap is Wrap.REPEAT:
        return index % size
    if wrap is Wrap.CLAMP:
        return min(max(index, 0), size - 1)
    if wrap is Wrap.MIRROR:
        index %= 2 * size
        return index if index < size else 2 * size - 1 - index
    return index if 0 <= index < size else None


def log2_fixed(rho: Fraction, smooth: bool) -> int:
    """log2 with 8 fractional bits: the mantissa itself, or with a parabola added ("smooth")."""
    if rho == 0:
        return -127 * 256
    exponent = exponent_of(rho)
    fraction = math.floor((rho * scaled(1, -exponent) - 1) * 32768)
    if smooth:
        fraction += ((fraction * (32768 - fraction) >> 15) * 11331) >> 15
    return exponent * 256 + (fraction >> 7)


class ReferenceSampler:
    """Samples one texture; ``fetch`` reads guest memory (addresses already masked)."""

    def __init__(self, kind: TextureKind, descriptor: TextureDescriptor, fetch: Fetch) -> None:
        self.kind = kind
        self.descriptor = descriptor
        self.fetch = fetch
        self.border = 0

    def sample(self, s: Sequence[int], t: Sequence[int], r: Sequence[int], b: Sequence[int]) -> list[int]:
        """Result words of the 16 lanes (float32 bits in, RGBA8888 or raw words out).

        For RGBA64 the result has 32 elements: 16 first words, then 16 second words.
        """
        self.border = r[0]
        faces = [0] * 16
        rows = [[self._number(word) for word in words] for words in (s, t, r)]
        coordinates = list(zip(rows[0], rows[1], strict=True))
        directions = list(zip(*rows, strict=True))
        if self.kind.cube:
            placed = [cube_face(*direction) for direction in directions]
            faces = [face for face, _, _ in placed]
            coordinates = [(x, y) for _, x, y in placed]
        results = []
        for lane in range(16):
            corners = []
            for other in range(lane & ~3, (lane & ~3) + 3):
                projected = self.kind.cube and self.kind.cube_lod == "projected"
                if projected and faces[other] != faces[lane]:
                    corners.append(project(faces[lane], *directions[other]))
                else:
                    corners.append(coordinates[other])
            lod = self._lod(corners, b, lane) if self.kind.needs_lod else 0
            results.append(self._placed(self._lane(*coordinates[lane], faces[lane], lod)))
        return [word & 0xFFFFFFFF for word in results] + (
            [word >> 32 for word in results] if self.kind.result_words == 2 else []
        )

    def _number(self, word: int) -> Fraction:
        return read_float(word, self.kind.not_finite)

    def _lod(self, corners: Sequence[tuple[Fraction, Fraction]], b: Sequence[int], lane: int) -> int:
        kind, d = self.kind, self.descriptor
        whose = kind.lod_lane if kind.explicit_lod else kind.bias_lane
        bias = b[lane] if whose == "lane" else b[lane & ~3]
        limited = min(max(self._number(bias), Fraction(-64)), Fraction(64))
        fixed_bias = math.floor(limited * 256)
        if kind.explicit_lod:
            return fixed_bias
        (s0, t0), (s1, t1), (s2, t2) = corners
        ds = max(abs(toward_zero(s1 - s0)), abs(toward_zero(s2 - s0)))
        dt = max(abs(toward_zero(t1 - t0)), abs(toward_zero(t2 - t0)))
        # Scaled by 256 as the descriptor holds it; the exponent is corrected afterwards.
        if kind.lod_step == "size":
            ds, dt = min(ds, Fraction(1)), min(dt, Fraction(1))
        rho_s, rho_t = toward_zero(ds * 256 * d.width[0]), toward_zero(dt * 256 * d.height[0])
        rho = toward_zero(rho_s + rho_t) if kind.lod_footprint == "sum" else max(rho_s, rho_t)
        return log2_fixed(rho, kind.lod_log2 == "smooth") - 8 * 256 + fixed_bias

    def _lane(self, s: Fraction, t: Fraction, face: int, lod: int) -> int:
        kind, last = self.kind, self.descriptor.last_level
        if lod <= kind.magnified_below:
            return self._level(s, t, face, 0, kind.mag_linear)
        if kind.mip is MipMode.BASE:
            return self._level(s, t, face, 0, kind.min_linear)
        if kind.mip is MipMode.NEAREST:
            return self._level(s, t, face, min(lod + 128 >> 8, last), kind.min_linear)
        level, weight = lod >> 8, lod & 255
        if level >= last:
            level, weight = last, 0
        first = self._level(s, t, face, level, kind.min_linear)
        second = self._level(s, t, face, min(level + 1, last), kind.min_linear)
        return self._blend(first, second, weight)

    def _level(self, s: Fraction, t: Fraction, face: int, level: int, linear: bool) -> int:
        kind, d = self.kind, self.descriptor
        width, height = d.width[level], d.height[level]
        u = fixed_coordinate(toward_zero(s, kind.coordinate_bits), width, kind.wrap_s)
        v = fixed_coordinate(toward_zero(t, kind.coordinate_bits), height, kind.wrap_t)
        if not linear:
            return self._texel(u >> 8, v >> 8, face, level)
        u, v = u - 128, v - 128
        x, y, fx, fy = u >> 8, v >> 8, u & kind.weight_mask, v & kind.weight_mask
        corners = [self._texel(x + i, y + j, face, level) for j in (0, 1) for i in (0, 1)]
        if kind.filter_rounding == "once" and not kind.format.half:
            return _per_channel(
                lambda a, b, c, e: (
                    (a * (256 - fx) + b * fx) * (256 - fy) + (c * (256 - fx) + e * fx) * fy + 32768
                ) >> 16,
                *corners,
            )  # fmt: skip
        a, b, c, e = corners
        return self._blend(self._blend(a, b, fx), self._blend(c, e, fx), fy)

    def _blend(self, first: int, second: int, weight: int) -> int:
        """Two texels, `weight` in 1/256 for the second."""
        if not self.kind.format.half:
            half = 0 if self.kind.filter_rounding == "truncate" else 128
            return _per_channel(lambda a, b: (a * 256 + (b - a) * weight + half) >> 8, first, second)
        if weight == 0:
            return first
        result = 0
        for shift in (0, 16, 32, 48):
            a, b = read_half(first >> shift), read_half(second >> shift)
            step = toward_zero(toward_zero(b - a) * Fraction(weight, 256))
            result |= half_word(toward_zero(a + step), self.kind.half_rounding) << shift
        return result

    def _texel(self, x: int, y: int, face: int, level: int) -> int:
        kind, d = self.kind, self.descriptor
        column = wrap_texel(x, d.width[level], kind.wrap_s)
        row = wrap_texel(y, d.height[level], kind.wrap_t)
        if column is None or row is None:
            return border_word(kind.type, self.border, kind.border_4444)
        if kind.flip_y:
            row = d.height[level] - 1 - row
        column, row = column + d.child_x, row + d.child_y
        base = d.base[level] + face * d.cube_stride
        block = kind.format.block
        position = self._bit_address(column // block, row // block, level)
        address = base + position // 8
        if kind.type is TextureType.ETC1:
            word = int.from_bytes(self.fetch(address, 8).to_bytes(8, "little"), "big")
            return decode_etc1(word, column & 3, row & 3 if kind.etc_flip else 3 - (row & 3))
        if kind.type is TextureType.YUYV422R:
            return decode_yuyv(self.fetch(address & ~3, 4), column & 1, kind.yuyv_order)
        bits = kind.format.unit_bits
        raw = self.fetch(address, max(bits // 8, 1)) >> (position & 7) & ((1 << bits) - 1)
        if kind.type is TextureType.RGBA64:
            return raw
        return DECODERS[kind.type](raw)

    def _placed(self, word: int) -> int:
        if self.kind.short_position == "high" and self.kind.type in SHORT_TYPES:
            return word << 16
        if self.kind.alpha_colour == "alpha" and self.kind.type in (TextureType.A4, TextureType.A1):
            return (word >> 24) * 0x01010101
        return word

    def _bit_address(self, x: int, y: int, level: int) -> int:
        kind, pitch = self.kind, self.descriptor.pitch[level]
        bits = kind.format.unit_bits
        if kind.layout is LevelLayout.RASTER:
            return pitch * y * 8 + x * bits
        linear = bool(self.descriptor.linear_tile[level])
        utiles = pitch // UTILE_BYTES if linear else pitch // TILE_BYTES * 8
        tiling = Tiling.LT if linear else Tiling.T
        return bit_address(x, y, utiles * kind.utile.width, bits, tiling, shape=kind.utile)


SHORT_TYPES = (TextureType.S16F, TextureType.S8, TextureType.S16)
"""Types with one short sample, whose place in the result word is not documented."""


def _per_channel(function: Callable[..., int], *words: int) -> int:
    result = 0
    for shift in (0, 8, 16, 24):
        result |= function(*(word >> shift & 255 for word in words)) << shift
    return result


def border_word(texture_type: TextureType, colour: int, order_4444: str) -> int:
    """The border colour (R coordinate) as a result word: as it stands, R in byte 0, A in byte 3.

    Types with fewer channels take theirs from it. `order_4444`: `TextureKind.border_4444`.
    """
    red, green, blue, alpha = (colour >> shift & 255 for shift in (0, 8, 16, 24))
    match texture_type:
        case TextureType.RGBA4444 if order_4444 == "reversed":
            return alpha | blue << 8 | green << 16 | red << 24
        case TextureType.LUMINANCE | TextureType.BW1:
            return red | red << 8 | red << 16 | 0xFF000000
        case TextureType.LUMALPHA:
            return red | red << 8 | red << 16 | alpha << 24
        case TextureType.ALPHA | TextureType.A4 | TextureType.A1:
            return alpha << 24
        case TextureType.S8:
            return red
        case TextureType.S16 | TextureType.S16F:
            return colour & 0xFFFF
        case _:
            return colour


def cube_face(x: Fraction, y: Fraction, z: Fraction) -> tuple[int, Fraction, Fraction]:
    """Face (+x, -x, +y, -y, +z, -z) and (s, t) of a direction, by the table of GL."""
    if abs(x) >= abs(y) and abs(x) >= abs(z):
        face = 0 if x >= 0 else 1
    elif abs(y) >= abs(z):
        face = 2 if y >= 0 else 3
    else:
        face = 4 if z >= 0 else 5
    sc, tc = on_face(face, x, y, z)
    return face, _texture_coordinate(sc), _texture_coordinate(tc)


def on_face(face: int, x: Fraction, y: Fraction, z: Fraction) -> tuple[Fraction, Fraction]:
    """(sc, tc) of a direction on a face that it may not meet."""
    return ((-z, -y), (z, -y), (x, z), (x, -z), (x, -y), (-x, -y))[face]


MIN_MAJOR_AXIS = Fraction(1, 1 << 20)
"""The least component along a face's axis that a projection divides by."""


def project(face: int, x: Fraction, y: Fraction, z: Fraction) -> tuple[Fraction, Fraction]:
    """(s, t) of the point in which a direction meets the plane of a face.

    One that points away from it goes as far as one that hardly points toward it.
    """
    along = max((x, y, z)[face // 2] * (-1 if face & 1 else 1), MIN_MAJOR_AXIS)
    sc, tc = (toward_zero(c / along) for c in on_face(face, x, y, z))
    return _texture_coordinate(sc), _texture_coordinate(tc)


def _texture_coordinate(c: Fraction) -> Fraction:
    return toward_zero(c + 1) * Fraction(1, 2)
