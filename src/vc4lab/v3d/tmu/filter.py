"""Fetching and blending texels of one mip level as native code.

Two columns and two rows give the four addresses of a bilinear sample (``images/tile_kernels.py``);
blends work on packed pairs of channels, two 8-bit channels in 16-bit lanes.

A blend of half floats (types S16F and RGBA64) is first + (second - first) * weight in single precision,
rounded toward zero like all float arithmetic of a QPU, and becomes a half again. Denormal halves count as
0; exponent 31 counts as one more power of two, so that no infinity enters the arithmetic and no float flag
is raised. A weight of 0 passes the texel through untouched, whatever it is. The definition is in
``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vc4lab.images.tile_kernels import RowAddress, column_offset, combine, mixed_column, mixed_row, row_offset
from vc4lab.images.tiling import UTILE_BYTES, Tiling
from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.native import TouchedLines
from vc4lab.records.texture import TextureType, Wrap
from vc4lab.simd import Value, const, f32, gather, i16, i32, i32x16, select, shuffle, vec
from vc4lab.simd.trace import current
from vc4lab.simd.vector import scale_round
from vc4lab.v3d.tmu.coordinates import Direction, fixed_coordinate, significant, wrap_index
from vc4lab.v3d.tmu.texel_codecs import unpack, unpack_etc1, unpack_yuyv
from vc4lab.v3d.tmu.texture_state import MipMode, TextureDescriptor, TextureKind
from vc4lab.v3d.tmu.utile_block import Spread, UtileBlock, block_words, fits_utiles

_BIAS = (127 - 15) << 23
"""From a half's exponent to a float's, in place."""

_SMALLEST, _LARGEST, _INFINITY = 0x0400, 0x7BFF, 0x7C00
"""Normal halves, and what lies above."""


def blend_halves(first: Value, second: Value, weight: Value, rounding: str) -> Value:
    """Bits 15:0 of each lane as a half, `weight` in 1/256 for the second."""
    a, b = to_single(first), to_single(second)
    mixed = a + (b - a) * (weight.to_float() * (1 / 256))
    return select(weight == 0, first & 0xFFFF, to_half(mixed, rounding))


def blend_half_pairs(first: Value, second: Value, weight: Value, rounding: str) -> Value:
    """Two halves in each lane."""
    low = blend_halves(first, second, weight, rounding)
    return low | (blend_halves(first.shr(16), second.shr(16), weight, rounding) << 16)


def to_single(half: Value) -> Value:
    """The number in bits 15:0."""
    magnitude = ((half & 0x7FFF) << 13) + _BIAS
    magnitude = select((half & _INFINITY) != 0, magnitude, 0)
    return (magnitude | ((half & 0x8000) << 16)).bitcast(f32)


def to_half(number: Value, rounding: str) -> Value:
    """The half nearest to a float ("round", ties to even) or the next toward zero ("truncate")."""
    bits = number.bitcast(i32)
    magnitude = bits & 0x7FFFFFFF
    if rounding == "round":
        magnitude = magnitude + 0xFFF + (magnitude.shr(13) & 1)
    half = magnitude.shr(13) - (_BIAS >> 13)
    sign = bits.shr(16) & 0x8000
    return select(half < _SMALLEST, 0, select(half > _LARGEST, _INFINITY, half) | sign)


_i16x32 = vec(i16, 32)
_LANES = 16


@dataclass(frozen=True)
class SampleRequest:
    """Values that all levels of one texture request share.

    ``u``, ``v``: finite coordinates (f32x16), where `TextureKind.unit_s`, `unit_t` say so clamped
    already; ``face``: byte offset of the cube face or None; ``border``: the border colour as a
    filter word; ``where``: the direction of a cube map's lookup; ``lines``: takes the lines of
    memory that are read.
    """

    kind: TextureKind
    descriptor: TextureDescriptor
    memory_base: Value
    u: Value
    v: Value
    face: Value | None
    border: Value
    where: Direction | None = None
    lines: TouchedLines | None = None

    def where_read(self, weight: Value) -> SampleRequest:
        """The request for a level that is read where its weight is not 0."""
        if self.lines is None:
            return self
        return replace(self, lines=self.lines.only(weight != 0))


class Level(NamedTuple):
    """One mip level, either of all lanes (scalars) or per lane (vectors; `number` given).

    `scale_s`, `scale_t`: 256 * size as float bits; just the size where the kind never filters.
    """

    base: Value
    last_x: Value
    last_y: Value
    scale_s: Value
    scale_t: Value
    pitch: Value
    linear_tile: Value | None = None
    number: Value | None = None


class Tap(NamedTuple):
    """One texel column or row of all lanes: index in the image, and where it is the border."""

    texel: Value
    outside: Value | None


def filter_level(request: SampleRequest, level: Level, linear: Any) -> Any:
    """Filter word of one level. ``linear``: bool for all lanes, or a lane mask."""
    kind = request.kind
    u, v = significant(request.u, kind.coordinate_bits), significant(request.v, kind.coordinate_bits)
    x = fixed_coordinate(u, level.scale_s, kind.wrap_s, kind.unit_s)
    y = fixed_coordinate(v, level.scale_t, kind.wrap_t, kind.unit_t)
    texels = Texels(request, level)
    if linear is False:
        return texels.fetch([texels.column(x, "only")], [texels.row(y, "only")])[0]
    if linear is not True:
        texels.filtered = linear
    half: Any = 128
    weights: Any = kind.weight_mask
    if linear is not True:
        half = select(linear, const(i32x16, half), 0)
        weights = select(linear, const(i32x16, weights), 0)
    x, y = x - half, y - half
    fx, fy = x & weights, y & weights
    x, y = x >> 8, y >> 8
    columns = [texels.column(x, "lower"), texels.column(x + 1, "upper")]
    rows = [texels.row(y, "lower"), texels.row(y + 1, "upper")]
    corners = texels.fetch(columns, rows)
    if kind.filter_rounding == "once" and not kind.format.half:
        return bilinear_once(corners, fx, fy)
    upper = blend(kind, corners[0], corners[1], fx)
    lower = blend(kind, corners[2], corners[3], fx)
    return blend(kind, upper, lower, fy)


class Texels:
    """Access to the texels of one level: wrapping, addresses, fetching, decoding."""

    def __init__(self, request: SampleRequest, level: Level) -> None:
        self.request = request
        self.kind = request.kind
        self.level = level
        self.base = level.base if request.face is None else level.base + request.face
        self.shape = request.kind.utile
        self.block_shift = request.kind.format.block.bit_length() - 1
        self.filtered: Value | None = None
        """Lanes that take more than one texel, if not all do."""

    def column(self, x: Value, which: str) -> Tap:
        """The texel column meant by index ``x`` of the wrapped coordinate."""
        kind, last = self.kind, self.level.last_x
        outside = x.ugt(last) if kind.wrap_s is Wrap.BORDER else None
        x = wrap_index(x, last, kind.wrap_s, which, kind.unit_s)
        return Tap(x + self.request.descriptor.child_x if kind.child else x, outside)

    def row(self, y: Value, which: str) -> Tap:
        """The texel row meant by index ``y`` of the wrapped coordinate."""
        kind, last = self.kind, self.level.last_y
        outside = y.ugt(last) if kind.wrap_t is Wrap.BORDER else None
        y = wrap_index(y, last, kind.wrap_t, which, kind.unit_t)
        if kind.flip_y:
            y = last - y
        return Tap(y + self.request.descriptor.child_y if kind.child else y, outside)

    def addresses(self, columns: list[Value], rows: list[Value]) -> list[Value]:
        """Guest addresses of the units at every column and row (row by row), inside memory."""
        parts, row_parts = self._parts(columns, rows)
        return [combine(x, y) & MEMORY_MASK for y in row_parts for x in parts]

    def utiles(self, x: Value, y: Value, spread: Spread | None) -> Value:
        """Guest addresses of the utiles at columns and rows of units, in the level of lane 0."""
        (column,), (row,) = self._parts([x], [y])
        if spread is not None:
            column = shuffle(column, spread[0])
            xor = None if row.xor is None else shuffle(row.xor, spread[1])
            row = RowAddress(xor, shuffle(row.add, spread[1]))
        return combine(column, row) & (MEMORY_MASK & -UTILE_BYTES)

    def _parts(self, columns: list[Value], rows: list[Value]) -> tuple[list[Value], list[RowAddress]]:
        """Compute the parts of columns and rows in addresses, the base with the rows.

        Columns and rows have 16 lanes, or fewer: then the level of lane 0 counts.
        """
        level, shape, base = self.level, self.shape, self.base
        lanes = columns[0].type.lanes
        if lanes < _LANES:
            level = Level(*(_of_first_lane(part, lanes) for part in level))
            base = _of_first_lane(base, lanes)
        if level.linear_tile is not None:
            parts = [mixed_column(x, shape, level.linear_tile) for x in columns]
            row_parts = [mixed_row(y, level.pitch, shape, level.linear_tile) for y in rows]
        else:
            tiling = Tiling(int(self.kind.layout))
            parts = [column_offset(x, shape, tiling) for x in columns]
            row_parts = [row_offset(y, level.pitch, shape, tiling) for y in rows]
        # The base joins the row: one addition less per texel.
        return parts, [RowAddress(row.xor, row.add + base) for row in row_parts]

    def fetch(self, columns: list[Tap], rows: list[Tap]) -> list[Any]:
        """Filter words (RGBA64: pairs of raw words) of the texels at every column and row."""
        shift = self.block_shift
        x = [column.texel.shr(shift) if shift else column.texel for column in columns]
        y = [row.texel.shr(shift) if shift else row.texel for row in rows]
        if self.request.lines is not None:
            self._take_lines(self.request.lines, columns, rows, self.addresses(x, y))
        # the one gather of nearest sampling takes no longer than whole utiles
        if len(columns) > 1 and fits_utiles(self.kind, self.shape):
            block = UtileBlock(self.shape, x, y, self.same())
            one_level = self.kind.mip is MipMode.BASE
            words = block_words(
                block, self.utiles, self.request.memory_base, lambda: self.gathered(x, y), one_level
            )
            decoded = [unpack(self.kind.type, word) for word in words]
        else:
            places = iter(self.addresses(x, y))
            decoded = [
                self._decoded(next(places), column.texel, row.texel) for row in rows for column in columns
            ]
        corners = [(column, row) for row in rows for column in columns]
        return [self._bordered(w, *corner) for w, corner in zip(decoded, corners, strict=True)]

    def _take_lines(
        self, lines: TouchedLines, columns: list[Tap], rows: list[Tap], addresses: list[Value]
    ) -> None:
        """Hands on which texels are read: all but those of the border."""
        outside = [_either(column.outside, row.outside) for row in rows for column in columns]
        if self.filtered is not None:
            others = [_either(border, ~self.filtered) for border in outside[1:]]
            outside = [outside[0], *others]
        lines.take(addresses, outside)

    def gathered(self, columns: list[Value], rows: list[Value]) -> tuple[Value, ...]:
        """Words that begin with the texels of each column and row (row by row)."""
        return tuple(self._load(address) for address in self.addresses(columns, rows))

    def same(self) -> Value | None:
        """The value that must be equal in all lanes for one set of addresses: level and cube face."""
        number, face = self.level.number, self.request.face
        if number is None or face is None:
            return face if number is None else number
        return number | face  # a face offset is a multiple of 4096

    def _decoded(self, address: Value, x: Value, y: Value) -> Any:
        kind = self.kind
        if kind.type is TextureType.YUYV422R:
            return unpack_yuyv(self._load(address & ~3), x, kind.yuyv_order)
        if kind.type is TextureType.ETC1:
            low, high = self._load(address), self._load(address + 4)
            return unpack_etc1(low, high, x & 3, y & 3 if kind.etc_flip else 3 - (y & 3))
        if kind.type is TextureType.RGBA64:
            return self._load(address), self._load(address + 4)
        word = self._load(address)
        bits = kind.format.unit_bits
        if bits < 8:
            word = word.shr((x & (8 // bits - 1)) * bits)
        return unpack(kind.type, word)

    def _bordered(self, word: Any, column: Tap, row: Tap) -> Any:
        border = self.request.border
        for outside in (column.outside, row.outside):
            if outside is not None:
                if isinstance(word, tuple):
                    word = (select(outside, border, word[0]), select(outside, 0, word[1]))
                else:
                    word = select(outside, border, word)
        return word

    def _load(self, address: Value) -> Value:
        return gather(i32, self.request.memory_base, address, compact=True)


def _either(first: Value | None, second: Value | None) -> Value | None:
    """Lanes of one mask or the other."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _of_first_lane(part: Any, lanes: int) -> Any:
    """Give the value of lane 0 of a vector, in a vector of so many lanes; scalars stay."""
    return shuffle(part, [0] * lanes) if part is not None and part.type.lanes else part


def blend(kind: TextureKind, first: Any, second: Any, weight: Value) -> Any:
    """(first * (256 - weight) + second * weight + 128) >> 8 for every 8-bit channel.

    Without the 128 where blends round down. Half floats have functions of their own.
    """
    if kind.format.half:
        if isinstance(first, tuple):
            words = zip(first, second, strict=True)
            return tuple(blend_half_pairs(*pair, weight, kind.half_rounding) for pair in words)
        return blend_halves(first, second, weight, kind.half_rounding)
    down = kind.filter_rounding == "truncate"
    pairs = ((weight << 7) | (weight << 23)).bitcast(_i16x32)
    if kind.format.channels < 4:
        mixed = _blend_pairs(first.bitcast(_i16x32), second.bitcast(_i16x32), pairs, down)
        return mixed.bitcast(i32x16)
    low = _blend_pairs((first & 0xFF00FF).bitcast(_i16x32), (second & 0xFF00FF).bitcast(_i16x32), pairs, down)
    high = _blend_pairs(first.bitcast(_i16x32).shr(8), second.bitcast(_i16x32).shr(8), pairs, down)
    return (low | (high << 8)).bitcast(i32x16)


def _blend_pairs(first: Value, second: Value, weight: Value, down: bool) -> Value:
    """``weight`` is 128-fold. Two ways to the same bits; SSE2 has no rounding multiply."""
    if down:
        return ((first << 8) + (second - first) * weight.shr(7)).shr(8)
    if current().module.target.level in ("avx512", "avx2"):
        return first + scale_round(second - first, weight)
    # Modulo 2**16; the sum itself is at most 255 * 256 + 128.
    return ((first << 8) + (second - first) * weight.shr(7) + 128).shr(8)


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
