"""Texture and memory lookup unit (TMU): native sampling of 16 lanes, specialised per texture kind.

Coordinates arrive as float words, one per lane, four lanes of a quad together. Addresses are
masked, so no sample leaves guest memory, and no sticky float flag is raised. What is known when a
draw is compiled (type, filters, wraps, layout) is `TextureKind`; sizes and addresses are read from
a `TextureDescriptor`. The definition of every bit is in
``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.memory.native import TouchedLines
from vc4lab.records.texture import TextureType, Wrap
from vc4lab.simd.kernel import Function, call, staged
from vc4lab.simd.members import f32, i32, i32x16, ptr
from vc4lab.simd.memory import gather, load
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import any_, max_, min_, permute
from vc4lab.v3d.tmu.coordinates import (
    BIAS_LIMIT,
    COORDINATE_LIMIT,
    cube_footprint,
    direction,
    finite,
    floor_to_int,
    footprint,
    quad_lane,
    splat_lane,
    unit,
)
from vc4lab.v3d.tmu.filter import Level, SampleRequest, blend, filter_level
from vc4lab.v3d.tmu.texel_codecs import border_filter_word, expand
from vc4lab.v3d.tmu.texture_state import LevelLayout, MipMode, TextureDescriptor, TextureKind


def direct_lookup(memory_base: Value, address: Value) -> Value:
    """The 32-bit words at ``address`` (i32x16, low two bits ignored), kept inside guest memory."""
    return gather(i32, memory_base, address & (MEMORY_MASK & ~3), compact=True)


def sample(
    kind: TextureKind,
    descriptor: Value,
    memory_base: Value,
    s: Value,
    t: Value,
    r: Value,
    b: Value,
    *,
    shared: bool = False,
    lines: TouchedLines | None = None,
) -> Any:
    """Results of one request: i32x16 of RGBA8888 words; for RGBA64 a pair of them (RG, BA).

    ``descriptor``: ptr to a `TextureDescriptor`; ``memory_base``: ptr to guest address 0;
    ``s``, ``t``, ``r``, ``b``: float words per lane, 0 where the program wrote none.
    ``shared``: call one function per kind and module instead of inlining. A shader with several
    requests compiles much faster that way (glmark2's blur: a third of the machine code), for about
    a nanosecond (and spills) per request.
    ``lines``: takes the lines of memory that the texels lie in, if that is wanted.
    """
    if shared and kind.result_words == 1:
        uses_r = kind.cube or Wrap.BORDER in (kind.wrap_s, kind.wrap_t)
        uses_b = kind.needs_lod and b.constant != 0
        function = _shared_function(kind, uses_r, uses_b, lines is not None)
        extra = [value for value, used in ((r, uses_r), (b, uses_b)) if used]
        if lines is not None:
            extra += [lines.stream, lines.quads]
        return call(function, descriptor, memory_base, s, t, *extra)
    d = TextureDescriptor.at(descriptor)
    face = where = None
    strange = kind.not_finite
    u = unit(s, strange) if kind.unit_s else finite(s, COORDINATE_LIMIT, strange)
    v = unit(t, strange) if kind.unit_t else finite(t, COORDINATE_LIMIT, strange)
    if kind.cube:
        where = direction(u, v, finite(r, COORDINATE_LIMIT, strange))
        u, v = where.coordinates(where.x, where.y, where.z)
        face = where.face * d.cube_stride
    border = border_filter_word(kind.type, splat_lane(r, 0), kind.border_4444)
    request = SampleRequest(kind, d, memory_base, u, v, face, border, where, lines)
    filtered = filter_request(request, b)
    if kind.type is TextureType.RGBA64:
        return filtered
    return expand(kind.type, filtered, kind.short_position, kind.alpha_colour)


@lru_cache(maxsize=256)
def _shared_function(kind: TextureKind, uses_r: bool, uses_b: bool, records: bool) -> Function[Any]:
    def body(descriptor: Value, memory_base: Value, s: Value, t: Value, *extra: Value) -> Any:
        rest = iter(extra)
        zero = const(i32x16, 0)
        r, b = next(rest) if uses_r else zero, next(rest) if uses_b else zero
        lines = TouchedLines(*rest) if records else None
        return sample(kind, descriptor, memory_base, s, t, r, b, lines=lines)

    args = (ptr, ptr) + (i32x16,) * (2 + uses_r + uses_b) + (ptr, i32) * records
    return Function(args, i32x16, body, name="texture_sample")


def filter_request(request: SampleRequest, b: Value) -> Any:
    """Filter word(s) of a request: chooses levels and filters by the level of detail."""
    kind = request.kind
    if not kind.needs_lod:
        return filter_level(request, base_level(request), kind.mag_linear)
    lod = level_of_detail(request, b)
    magnified = lod <= kind.magnified_below
    linear: Any = kind.mag_linear
    if kind.mag_linear != kind.min_linear:
        linear = magnified if kind.mag_linear else ~magnified
    if kind.mip is MipMode.BASE:
        return filter_level(request, base_level(request), linear)
    last = request.descriptor.last_level
    if kind.mip is MipMode.NEAREST:
        number = select(magnified, 0, min_((lod + 128) >> 8, last))
        return filter_level(request, numbered_level(request, number), linear)
    number = select(magnified, 0, lod >> 8)
    weight = select(magnified | (number >= last), 0, lod & 255)
    number = min_(number, last)
    first = filter_level(request, numbered_level(request, number), linear)
    return _with_next_level(request, first, min_(number + 1, last), weight, linear)


@staged
def _with_next_level(
    request: SampleRequest, filtered: Value, number: Value, weight: Value, linear: Any
) -> Value:
    if any_(weight != 0):
        filtered = blend(
            request.kind,
            filtered,
            filter_level(request.where_read(weight), numbered_level(request, number), linear),
            weight,
        )
    return filtered


def level_fields(kind: TextureKind) -> dict[str, str]:
    """Fields of a `Level` and of the descriptor."""
    fields = {name: name for name in ("base", "last_x", "last_y", "scale_s", "scale_t", "pitch")}
    if not (kind.mag_linear or kind.min_linear):
        fields |= {"scale_s": "size_s", "scale_t": "size_t"}
    return fields


def base_level(request: SampleRequest) -> Level:
    """Level 0, the same for all lanes."""
    d = request.descriptor
    fields = level_fields(request.kind)
    return Level(**{field: load(i32, d.field_ptr(name)) for field, name in fields.items()})


def numbered_level(request: SampleRequest, number: Value) -> Level:
    """Level ``number`` of each lane (0 .. last)."""

    def per_lane(name: str) -> Value:
        return permute(load(i32x16, request.descriptor.field_ptr(name)), number)

    mixed = request.kind.layout is LevelLayout.MIXED
    return Level(
        **{field: per_lane(name) for field, name in level_fields(request.kind).items()},
        linear_tile=per_lane("linear_tile") != 0 if mixed else None,
        number=number,
    )


def level_of_detail(request: SampleRequest, b: Value) -> Value:
    """log2 of the texels per pixel plus bias, 8 fractional bits."""
    kind = request.kind
    whose = kind.lod_lane if kind.explicit_lod else kind.bias_lane
    bias_word = b if whose == "lane" else quad_lane(b, 0)
    bias = floor_to_int(finite(bias_word, BIAS_LIMIT, kind.not_finite) * 256.0)
    if kind.explicit_lod:
        return bias
    scale_s, scale_t = (load(i32, request.descriptor.field_ptr(f"scale_{c}")) for c in "st")
    if request.where is not None and kind.cube_lod == "projected":
        rho_s, rho_t = cube_footprint(request.where, request.u, request.v, scale_s, scale_t)
    else:
        rho_s, rho_t = footprint(request.u, scale_s), footprint(request.v, scale_t)
    if kind.lod_step == "size":  # as bits: neither is negative
        rho_s, rho_t = min_(rho_s, scale_s), min_(rho_t, scale_t)
    if kind.lod_footprint == "sum":
        rho = (rho_s.bitcast(f32) + rho_t.bitcast(f32)).bitcast(i32)
    else:
        rho = max_(rho_s, rho_t)
    mantissa = rho.shr(8) & 0x7FFF
    if kind.lod_log2 == "smooth":
        mantissa = mantissa + (((mantissa * (32768 - mantissa)).shr(15)) * 11331).shr(15)
    # The footprint is scaled by 256 = 2**8.
    exponent = rho.shr(23) - (127 + 8)
    lod = (exponent << 8) + mantissa.shr(7)
    return lod if b.constant == 0 else lod + bias
