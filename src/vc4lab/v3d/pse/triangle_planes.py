"""Attribute planes of eight triangles at once: depth, 1/Wc, varyings, and the range of the depths.

Row by row of the shaded vertices, so that one function serves draws of any number of varyings.
Those are planes of (v - v2) / Wc, so that VP * W + C is perspective-correct; flat ones have no
plane and the provoking vertex's value, bit by bit. Source: hardware reference 7.6.
"""

from __future__ import annotations

from vc4lab.simd import (
    Type,
    Value,
    const,
    f32,
    f64,
    fmax_,
    fmin_,
    i32,
    i64,
    is_nan,
    load,
    mask_bits,
    select,
    splat,
    staged,
    store,
    vec,
)
from vc4lab.v3d.pse.batch import (
    GROUP_SIZE,
    OPTION_DEPTH_OFFSET,
    OPTION_FLOAT_UNIT,
    PLANE_PART,
    PLANE_ROW,
    BatchDraw,
    TriangleBatch,
)
from vc4lab.v3d.pse.setup import (
    DEPTH,
    RECIPROCAL_W,
    ROW_BYTES,
    float_unit,
    number,
    offset_of_slopes,
)
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.state.tile_layout import Z_MAX

_f32x8 = vec(f32, GROUP_SIZE)


@staged
def set_planes(
    batch: TriangleBatch,
    params: DrawParams,
    vertices: Value,
    words: list[Value],
    flat_words: Value,
    weights: list[Value],
) -> None:
    """Planes relative to vertex 2. `words`, `flat_words`: pointers to eight offsets each, from
    `vertices` to word 0 of a corner; `weights` (f64, 1 / pixel): y1 - y2, y2 - y0, x2 - x1,
    x0 - x2 over the doubled area.
    """
    draw = batch.draw
    slot = (batch.group.slot * (4 * GROUP_SIZE)).zext(i64)
    place = draw.planes + slot
    z = rows(vertices, words, DEPTH * ROW_BYTES)
    w = rows(vertices, words, RECIPROCAL_W * ROW_BYTES)
    depths, reciprocals = [[value.fpext(f64) for value in three] for three in (z, w)]
    a, b = plane(weights, *(depths[k] - depths[2] for k in (0, 1)))
    set_plane(place, a, b, number(z[2]))
    low, high = fmin_(fmin_(z[0], z[1]), z[2]), fmax_(fmax_(z[0], z[1]), z[2])
    set_depths(batch, params, slot, low, high)
    if (draw.options & OPTION_DEPTH_OFFSET) != 0:
        store(batch.origins.z_offset + slot, depth_offset(draw, params, a, b, high))
    odd = is_nan(a + b)
    a, b = plane(weights, *(reciprocals[k] - reciprocals[2] for k in (0, 1)))
    set_plane(place + PLANE_ROW, a, b, number(w[2]))
    odd = odd | is_nan(a + b)
    row, end, flat = draw.first_row, draw.end_row, draw.flat
    place = place + 2 * PLANE_ROW
    while row < end:
        if (flat & 1) != 0:
            store(place + 2 * PLANE_PART, lanes(i32, vertices + row, flat_words))
        else:
            x = rows(vertices, words, row)
            wide = [value.fpext(f64) for value in x]
            a, b = plane(weights, *((wide[k] - wide[2]) * reciprocals[k] for k in (0, 1)))
            set_plane(place, a, b, number(x[2]))
            odd = odd | is_nan(a + b + x[2])
        place = place + PLANE_ROW
        row = row + ROW_BYTES
        flat = flat.shr(1)
    batch.result.suspects = batch.result.suspects | mask_bits(odd)


def rows(vertices: Value, words: list[Value], row: Value | int) -> list[Value]:
    """A row of the three vertices, as floats."""
    return [lanes(f32, vertices + row, place) for place in words]


def lanes(kind: Type, base: Value, offsets: Value) -> Value:
    """The values at eight offsets, which are in memory.

    Single loads are quicker than the gather instruction, and have no use for a vector of offsets.
    """
    values = [load(kind, base + load(i64, offsets + 8 * lane)) for lane in range(GROUP_SIZE)]
    result = splat(values[0], GROUP_SIZE)
    for lane, value in enumerate(values[1:], 1):
        result = result.insert(lane, value)
    return result


def plane(weights: list[Value], q0: Value, q1: Value) -> tuple[Value, Value]:
    """Slopes of what differs from vertex 2 by q0 at vertex 0 and q1 at vertex 1."""
    a = q0 * weights[0] + q1 * weights[1]
    b = q0 * weights[2] + q1 * weights[3]
    return a.fptrunc(f32), b.fptrunc(f32)


def set_plane(place: Value, a: Value, b: Value, c: Value) -> None:
    """Writes eight planes."""
    for part, value in enumerate((a, b, c)):
        store(place + PLANE_PART * part, value)


def set_depths(
    batch: TriangleBatch, params: DrawParams, slot: Value, low: Value, high: Value
) -> None:
    """The range of Zs, what it is in 24 bits, and where the Z planes (record 104) may cut it."""
    inside = (low >= splat(params.z_min, GROUP_SIZE)) & (high <= splat(params.z_max, GROUP_SIZE))
    batch.group.clipped_lanes = mask_bits(~inside)
    origins = batch.origins
    store(origins.z_low + slot, low)
    store(origins.z_high + slot, high)
    for place, bound in ((origins.z_first, low), (origins.z_last, high)):
        # Rounding keeps order: clamping before or after the product is the same. 2: no overflow.
        scaled = fmin_(fmax_(bound, 0.0), 2.0) * splat(batch.draw.depth_scale, GROUP_SIZE)
        store(place + slot, fmin_(scaled, float(Z_MAX)))


def depth_offset(draw: BatchDraw, params: DrawParams, a: Value, b: Value, high: Value) -> Value:
    """As `primitives.depth_offset`, of eight triangles."""
    by_depth = splat((draw.options & OPTION_FLOAT_UNIT) != 0, GROUP_SIZE)
    scale = splat(draw.depth_scale, GROUP_SIZE)
    unit = select(by_depth, float_unit(high, scale), const(_f32x8, 1.0))
    factor, units = (splat(v, GROUP_SIZE) for v in (params.depth_factor, params.depth_units))
    return offset_of_slopes(factor, units, a, b, unit, scale)
