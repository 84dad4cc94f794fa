"""Texture and memory lookup unit (TMU): native sampling of 16 lanes, specialised per texture kind.

Coordinates arrive as float words, one per lane, four lanes of a quad together. They are made
finite and small by integer operations first, so that nothing here raises the sticky "invalid" or
"overflow" flags (the QPU's fast path reads those) and no address leaves guest memory. From there
on coordinates are fixed point with 8 fractional bits; filtering works on packed pairs of channels.
The definition of every bit is in ``texture_reference.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.texture import TextureType, Wrap
from vc4lab.simd import (
    Value,
    any_,
    const,
    f32,
    fabs_,
    fmax_,
    fmin_,
    gather,
    i16,
    i32,
    i32x16,
    load,
    max_,
    min_,
    permute,
    select,
    shuffle,
    staged,
    umin,
    vec,
)
from vc4lab.v3d.fragment.texel_codecs import (
    border_filter_word,
    expand,
    unpack,
    unpack_etc1,
    unpack_yuyv,
)
from vc4lab.v3d.fragment.texture_state import (
    LevelLayout,
    MipMode,
    TextureDescriptor,
    TextureKind,
)
from vc4lab.v3d.fragment.tile_address import (
    RowAddress,
    column_offset,
    combine,
    mixed_column,
    mixed_row,
    row_offset,
)
from vc4lab.v3d.fragment.tiling import UTILE_SHAPES, Tiling

_i16x32 = vec(i16, 32)

_SIGN = -0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_ONE = 0x3F800000
_LIMIT = 0x4B800000
"""2**24: larger floats are even integers, so repeat and mirror see no difference."""
_BIAS_LIMIT = 0x42800000
"""64.0, more levels than there are."""


class Level(NamedTuple):
    """One mip level, either of all lanes (scalars) or per lane (vectors)."""

    base: Value
    width: Value
    height: Value
    scale_s: Value
    scale_t: Value
    pitch: Value
    linear_tile: Value | None


class Taps(NamedTuple):
    """One texel column or row of all lanes: wrapped index, address part, outside mask (border)."""

    texel: Value
    address: Any
    outside: Value | None


def direct_lookup(memory_base: Value, address: Value) -> Value:
    """The 32-bit words at ``address`` (i32x16, low two bits ignored), kept inside guest memory."""
    return gather(i32, memory_base, address & (MEMORY_MASK & ~3))


@staged
def sample(
    kind: TextureKind,
    descriptor: Value,
    memory_base: Value,
    s: Value,
    t: Value,
    r: Value,
    b: Value,
) -> Any:
    """Results of one request: i32x16 of RGBA8888 words; for RGBA64 a pair of them (RG, BA).

    ``descriptor``: ptr to a `TextureDescriptor`; ``memory_base``: ptr to guest address 0;
    ``s``, ``t``, ``r``, ``b``: float words per lane, 0 where the program wrote none.
    """
    border = border_filter_word(kind.type, splat_lane(r, 0))
    u, v = finite(s, _LIMIT), finite(t, _LIMIT)
    face = None
    if kind.cube:
        face, u, v = cube_face(u, v, finite(r, _LIMIT))
        face = face * load(i32, TextureDescriptor.at(descriptor).field_ptr("cube_stride"))
    if not kind.needs_lod:
        level = base_level(kind, descriptor)
        filtered = filter_level(
            kind, descriptor, memory_base, level, u, v, face, border, kind.mag_linear
        )
        return finish(kind, filtered)
    lod = level_of_detail(kind, descriptor, u, v, b)
    magnified = lod <= 0
    linear: Any = kind.mag_linear
    if kind.mag_linear != kind.min_linear:
        linear = magnified if kind.mag_linear else ~magnified
    if kind.mip is MipMode.BASE:
        level = base_level(kind, descriptor)
        filtered = filter_level(kind, descriptor, memory_base, level, u, v, face, border, linear)
        return finish(kind, filtered)
    last = load(i32, TextureDescriptor.at(descriptor).field_ptr("last_level"))
    if kind.mip is MipMode.NEAREST:
        number = select(magnified, 0, min_((lod + 128) >> 8, last))
        level = numbered_level(kind, descriptor, number)
        filtered = filter_level(kind, descriptor, memory_base, level, u, v, face, border, linear)
        return finish(kind, filtered)
    number = select(magnified, 0, lod >> 8)
    weight = select(magnified | (number >= last), 0, lod & 255)
    number = min_(number, last)
    level = numbered_level(kind, descriptor, number)
    filtered = filter_level(kind, descriptor, memory_base, level, u, v, face, border, linear)
    if any_(weight != 0):
        level = numbered_level(kind, descriptor, min_(number + 1, last))
        second = filter_level(kind, descriptor, memory_base, level, u, v, face, border, linear)
        filtered = blend(kind, filtered, second, weight)
    return finish(kind, filtered)


def finish(kind: TextureKind, filtered: Any) -> Any:
    """Result word(s) of the filter word(s)."""
    if kind.type is TextureType.RGBA64:
        return filtered
    return expand(kind.type, filtered, kind.short_position)


# -- coordinates


def splat_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of ``x`` in all lanes."""
    return shuffle(x, [lane] * 16)


def quad_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of each quad in all lanes of the quad."""
    return shuffle(x, [(i & ~3) + lane for i in range(16)])


def finite(word: Value, limit: int) -> Value:
    """A float word as f32x16: infinities and NaN become 0, the magnitude at most ``limit``."""
    magnitude = word & _MAGNITUDE
    limited = select(magnitude < _INFINITY, min_(magnitude, limit), 0)
    return (limited | (word & _SIGN)).bitcast(f32)


def truncate(value: Value) -> Value:
    """Float to integer toward zero for values known to be small (no saturation, no flags)."""
    return value._convert("fptosi", i32.like(value.type))


def floor_(value: Value) -> Value:
    """Largest integer not above ``value``, for values known to be small."""
    whole = truncate(value)
    return whole + (whole.to_float(f32) > value).sext(i32)


def fraction(value: Value) -> Value:
    """``value - floor(value)``, rounded toward zero, so always below 1."""
    rest = value - truncate(value).to_float(f32)
    return select(rest < 0.0, rest + 1.0, rest)


def fixed_coordinate(value: Value, scale: Value, wrap: Wrap) -> Value:
    """Texel coordinate with 8 fractional bits; ``scale`` holds 256 * size as float bits."""
    size = scale.bitcast(f32)
    if wrap is Wrap.REPEAT:
        return truncate(fraction(value) * size)
    if wrap is Wrap.MIRROR:
        # 2 * fraction(value / 2), with every rounding where the definition has it.
        rest = value - truncate(value * 0.5).to_float(f32) * 2.0
        return truncate(select(rest < 0.0, rest + 2.0, rest) * size)
    if wrap is Wrap.CLAMP:
        return truncate(fmin_(fmax_(value, 0.0), 1.0) * size)
    return floor_(fmin_(fmax_(value, -1.0), 2.0) * size)


def wrap_index(index: Value, size: Value, wrap: Wrap, upper: bool) -> Value:
    """The texel index inside the image, for what `fixed_coordinate` (less 1/2) can yield.

    ``upper`` tells the second texel of a bilinear pair, which is between 0 and size.
    """
    if wrap is Wrap.REPEAT:
        if upper:
            return select(index == size, 0, index)
        return umin(index, size - 1)
    if wrap is Wrap.CLAMP:
        return min_(index, size - 1) if upper else min_(max_(index, 0), size - 1)
    if wrap is Wrap.MIRROR:
        return max_(min_(index, size * 2 - 1 - index), 0)
    return min_(max_(index, 0), size - 1)


def cube_face(x: Value, y: Value, z: Value) -> tuple[Value, Value, Value]:
    """Face number (+x, -x, +y, -y, +z, -z) and s, t of a direction, by the table of GL."""
    ax, ay, az = fabs_(x), fabs_(y), fabs_(z)
    x_major = (ax >= ay) & (ax >= az)
    y_major = ~x_major & (ay >= az)
    major = select(x_major, x, select(y_major, y, z))
    negative = major < 0.0
    face = select(x_major, const(i32x16, 0), select(y_major, const(i32x16, 2), const(i32x16, 4)))
    face = face + negative.zext(i32)
    sc = select(x_major, select(negative, z, -z), select(y_major | ~negative, x, -x))
    tc = select(y_major, select(negative, -z, z), -y)
    return face, (sc + 1.0) * 0.5, (tc + 1.0) * 0.5


# -- level of detail


def level_of_detail(kind: TextureKind, descriptor: Value, u: Value, v: Value, b: Value) -> Value:
    """log2 of the texels per pixel plus bias, 8 fractional bits, per quad."""
    bias_word = b if kind.explicit_lod and kind.lod_lane == "lane" else quad_lane(b, 0)
    bias = floor_(finite(bias_word, _BIAS_LIMIT) * 256.0)
    if kind.explicit_lod:
        return bias
    d = TextureDescriptor.at(descriptor)
    rho = max_(
        footprint(u, load(i32, d.field_ptr("scale_s"))),
        footprint(v, load(i32, d.field_ptr("scale_t"))),
    )
    mantissa = rho.shr(8) & 0x7FFF
    if kind.lod_log2 == "smooth":
        mantissa = mantissa + (((mantissa * (32768 - mantissa)).shr(15)) * 11331).shr(15)
    # The footprint is scaled by 256 = 2**8.
    exponent = rho.shr(23) - (127 + 8)
    lod = (exponent << 8) + mantissa.shr(7)
    return lod if b.constant == 0 else lod + bias


def footprint(x: Value, scale: Value) -> Value:
    """Bits of the larger difference between neighbours in the quad, times ``scale``."""
    corner = quad_lane(x, 0)
    across, down = fabs_(quad_lane(x, 1) - corner), fabs_(quad_lane(x, 2) - corner)
    widest = max_(across.bitcast(i32), down.bitcast(i32)).bitcast(f32)
    return (widest * scale.bitcast(f32)).bitcast(i32)


def base_level(kind: TextureKind, descriptor: Value) -> Level:
    """Level 0, the same for all lanes."""
    d = TextureDescriptor.at(descriptor)
    base, width, height, scale_s, scale_t, pitch = (
        load(i32, d.field_ptr(name))
        for name in ("base", "width", "height", "scale_s", "scale_t", "pitch")
    )
    return Level(base, width, height, scale_s, scale_t, pitch, None)


def numbered_level(kind: TextureKind, descriptor: Value, number: Value) -> Level:
    """Level ``number`` of each lane (0 .. last)."""
    d = TextureDescriptor.at(descriptor)
    base, width, height, scale_s, scale_t, pitch = (
        permute(load(i32x16, d.field_ptr(name), 64), number)
        for name in ("base", "width", "height", "scale_s", "scale_t", "pitch")
    )
    linear_tile = None
    if kind.layout is LevelLayout.MIXED:
        linear_tile = permute(load(i32x16, d.field_ptr("linear_tile"), 64), number) != 0
    return Level(base, width, height, scale_s, scale_t, pitch, linear_tile)


# -- texels


def filter_level(
    kind: TextureKind,
    descriptor: Value,
    memory_base: Value,
    level: Level,
    u: Value,
    v: Value,
    face: Value | None,
    border: Value,
    linear: Any,
) -> Any:
    """Filter word of one level. ``linear``: bool for all lanes, or a lane mask."""
    x = fixed_coordinate(u, level.scale_s, kind.wrap_s)
    y = fixed_coordinate(v, level.scale_t, kind.wrap_t)
    base = level.base if face is None else level.base + face
    texels = Texels(kind, descriptor, memory_base, level, base, border)
    if linear is False:
        return texels.fetch(texels.column(x >> 8, False), texels.row(y >> 8, False))
    half: Any = 128
    weights: Any = 255
    if linear is not True:
        half, weights = select(linear, const(i32x16, 128), 0), select(linear, const(i32x16, 255), 0)
    x, y = x - half, y - half
    fx, fy = x & weights, y & weights
    x, y = x >> 8, y >> 8
    left, right = texels.column(x, False), texels.column(x + 1, True)
    top, bottom = texels.row(y, False), texels.row(y + 1, True)
    corners = [texels.fetch(c, w) for w in (top, bottom) for c in (left, right)]
    if kind.filter_rounding == "once":
        return bilinear_once(corners, fx, fy)
    upper = blend(kind, corners[0], corners[1], fx)
    lower = blend(kind, corners[2], corners[3], fx)
    return blend(kind, upper, lower, fy)


class Texels:
    """Access to the texels of one level: address parts of columns and rows, and the fetch."""

    def __init__(
        self,
        kind: TextureKind,
        descriptor: Value,
        memory_base: Value,
        level: Level,
        base: Value,
        border: Value,
    ) -> None:
        self.kind = kind
        self.level = level
        self.memory = memory_base
        self.base = base
        self.border = border
        self.shape = UTILE_SHAPES[kind.format.unit_bits]
        self.block_shift = kind.format.block.bit_length() - 1
        self.child_x = self.child_y = None
        if kind.child:
            d = TextureDescriptor.at(descriptor)
            self.child_x = load(i32, d.field_ptr("child_x"))
            self.child_y = load(i32, d.field_ptr("child_y"))

    def column(self, x: Value, upper: bool) -> Taps:
        kind, level = self.kind, self.level
        outside = x.uge(level.width) if kind.wrap_s is Wrap.BORDER else None
        x = wrap_index(x, level.width, kind.wrap_s, upper)
        if self.child_x is not None:
            x = x + self.child_x
        unit = x.shr(self.block_shift) if self.block_shift else x
        if level.linear_tile is not None:
            address = mixed_column(unit, self.shape, level.linear_tile)
        else:
            address = column_offset(unit, self.shape, Tiling(int(kind.layout)))
        return Taps(x, address, outside)

    def row(self, y: Value, upper: bool) -> Taps:
        kind, level = self.kind, self.level
        outside = y.uge(level.height) if kind.wrap_t is Wrap.BORDER else None
        y = wrap_index(y, level.height, kind.wrap_t, upper)
        if kind.flip_y:
            y = level.height - 1 - y
        if self.child_y is not None:
            y = y + self.child_y
        unit = y.shr(self.block_shift) if self.block_shift else y
        if level.linear_tile is not None:
            address = mixed_row(unit, level.pitch, self.shape, level.linear_tile)
        else:
            address = row_offset(unit, level.pitch, self.shape, Tiling(int(kind.layout)))
        # The base joins the row: one addition less per texel.
        return Taps(y, RowAddress(address.xor, address.add + self.base), outside)

    def fetch(self, column: Taps, row: Taps) -> Any:
        """Filter word (RGBA64: pair of raw words) of the texels at column and row."""
        kind = self.kind
        address = combine(column.address, row.address)
        word: Any
        if kind.type is TextureType.YUYV422R:
            word = unpack_yuyv(self._load(address & ~3), column.texel)
        elif kind.type is TextureType.ETC1:
            y = row.texel & 3 if kind.etc_flip else 3 - (row.texel & 3)
            low, high = self._load(address), self._load(address + 4)
            word = unpack_etc1(low, high, column.texel & 3, y)
        elif kind.type is TextureType.RGBA64:
            word = (self._load(address), self._load(address + 4))
        else:
            word = self._load(address)
            bits = kind.format.unit_bits
            if bits < 8:
                word = word.shr((column.texel & (8 // bits - 1)) * bits)
            word = unpack(kind.type, word)
        for outside in (column.outside, row.outside):
            if outside is None:
                continue
            if isinstance(word, tuple):
                word = (select(outside, self.border, word[0]), select(outside, 0, word[1]))
            else:
                word = select(outside, self.border, word)
        return word

    def _load(self, address: Value) -> Value:
        return gather(i32, self.memory, address & MEMORY_MASK)


# -- filtering


def blend(kind: TextureKind, first: Any, second: Any, weight: Value) -> Any:
    """(first * (256 - weight) + second * weight + 128) >> 8 for every 8-bit channel."""
    if kind.type is TextureType.RGBA64:
        return first
    pairs = (weight | (weight << 16)).bitcast(_i16x32)
    if kind.format.channels < 4:
        mixed = _blend_pairs(first.bitcast(_i16x32), second.bitcast(_i16x32), pairs)
        return mixed.bitcast(i32x16)
    low = _blend_pairs(
        (first & 0xFF00FF).bitcast(_i16x32), (second & 0xFF00FF).bitcast(_i16x32), pairs
    )
    high = _blend_pairs(first.bitcast(_i16x32).shr(8), second.bitcast(_i16x32).shr(8), pairs)
    return (low | (high << 8)).bitcast(i32x16)


def _blend_pairs(first: Value, second: Value, weight: Value) -> Value:
    # Modulo 2**16; the sum itself is at most 255 * 256 + 128.
    return ((first << 8) + (second - first) * weight + 128).shr(8)


def bilinear_once(corners: list[Value], fx: Value, fy: Value) -> Value:
    """All four texels with their exact 16-bit weights, rounded once."""
    result = None
    for shift in (0, 8, 16, 24):
        c = [corner.shr(shift) & 255 for corner in corners]
        upper = (c[0] << 8) + (c[1] - c[0]) * fx
        lower = (c[2] << 8) + (c[3] - c[2]) * fx
        channel = ((upper << 8) + (lower - upper) * fy + 32768).shr(16) << shift
        result = channel if result is None else result | channel
    assert result is not None
    return result
