"""Clips triangles and lines in clip space and writes clip records (PTB).

Planes: near and far (-Wc <= Zc <= Wc), Wc above zero, and a guard band in X and Y that keeps screen
coordinates inside s12.4. Corners carry the weights of the three original
vertices, so the setup engine can interpolate varyings of vertices that never were shaded; if these
weights are for varyings divided by Wc, each is multiplied by its vertex's Wc until it is written.
All arithmetic in float64, so cutting adds no visible error.
"""

from __future__ import annotations

from vc4lab.memory.native import host
from vc4lab.simd.control import unroll
from vc4lab.simd.kernel import call, kernel, staged
from vc4lab.simd.members import f32, f32x16, f64, i8, i32, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import all_, any_, fabs_, floor_, fmax_, fmin_
from vc4lab.v3d.ptb.context import CLIP_PLANES, MAX_POLYGON, BinnerContext
from vc4lab.v3d.ptb.list_writer import allocate
from vc4lab.v3d.tile_lists.primitive_decoder import CLIP_ENTRY_BYTES

SMALLEST_W = 1e-20
"""Wc of a corner is kept above this, so that 1/Wc is finite."""
LARGEST = 3.4028234663852886e38
"""The largest finite float."""

# outcode bits: outside one plane of the view volume, needs cutting, not a finite number
OUT_LEFT, OUT_RIGHT, OUT_BELOW, OUT_ABOVE, OUT_NEAR, OUT_FAR = 1, 2, 4, 8, 16, 32
OUT_GUARD, OUT_BAD = 64, 128
OUT_VOLUME = 63
OUT_CUT = OUT_NEAR | OUT_FAR | OUT_GUARD

# a corner in scratch memory: x y z w, three weights (doubles), original vertex (-1 = new) and its
# Ys:Xs (i32)
CORNER_BYTES = 64
SLOTS = 16


@staged
def vertex_pointer(c: BinnerContext, index: Value) -> Value:
    """Host address of word 0 of a vertex in the coordinate buffer."""
    return c.vertices + index.shr(4) * c.pitch + (index & 15) * 4


@staged
def _load_corner(c: BinnerContext, target: Value, index: Value, slot: int) -> None:
    source = vertex_pointer(c, index)
    for k in unroll(4):
        store(target + 8 * k, load(f32, source + 64 * k).fpext(f64))
    whole = const(f64, 1.0)
    if c.weights_projected != 0:
        whole = load(f64, target + 24)
    for k in unroll(3):
        store(target + 32 + 8 * k, whole if k == slot else const(f64, 0.0))
    store(target + 56, const(i32, slot))
    store(target + 60, load(i32, source + c.xy_row))


@staged
def _distance(c: BinnerContext, corner: Value, plane: Value | int) -> Value:
    """Signed distance (not normalised) of a corner to a clip plane; inside is >= 0."""
    x, y = load(f64, corner), load(f64, corner + 8)
    z, w = load(f64, corner + 16), load(f64, corner + 24)
    guard_x, guard_y = w * c.guard_x.fpext(f64), w * c.guard_y.fpext(f64)
    across = x * c.half_width.fpext(f64)
    up = y * c.half_height.fpext(f64)
    result = w + z
    if plane == 1:
        result = select(c.keep_far != 0, const(f64, 1.0), w - z)
    elif plane == 2:
        result = w - SMALLEST_W
    elif plane == 3:
        result = guard_x + across
    elif plane == 4:
        result = guard_x - across
    elif plane == 5:
        result = guard_y + up
    elif plane == 6:
        result = guard_y - up
    return result


@staged
def _cut(target: Value, a: Value, b: Value, da: Value, db: Value) -> None:
    """The corner where edge a-b meets the plane; always computed from the inside to the outside."""
    t = da / (da - db)
    for k in unroll(7):
        from_a, from_b = load(f64, a + 8 * k), load(f64, b + 8 * k)
        store(target + 8 * k, from_a + (from_b - from_a) * t)
    store(target + 56, const(i32, -1))


@staged
def _copy(target: Value, source: Value) -> None:
    for k in unroll(CORNER_BYTES // 8):
        store(target + 8 * k, load(f64, source + 8 * k))


@kernel(args=(ptr, ptr, i32, i32, i32), returns=i32)
def clip_polygon(context: Value, corners: Value, i0: Value, i1_: Value, i2: Value) -> Value:
    """Cut a triangle; the polygon's corners are left at `corners`, the result is their number."""
    c = BinnerContext.at(context)
    other = alloca(CORNER_BYTES * SLOTS)
    _load_corner(c, corners, i0, 0)
    _load_corner(c, corners + CORNER_BYTES, i1_, 1)
    _load_corner(c, corners + 2 * CORNER_BYTES, i2, 2)
    count = const(i32, 3)
    for plane in range(CLIP_PLANES):
        if count > 0:
            made = const(i32, 0)
            previous = corners + (count - 1) * CORNER_BYTES
            before = _distance(c, previous, plane)
            for k in range(count):
                corner = corners + k * CORNER_BYTES
                here = _distance(c, corner, plane)
                if made < SLOTS - 1:
                    if (before >= 0.0) != (here >= 0.0):
                        place = other + made * CORNER_BYTES
                        if before >= 0.0:
                            _cut(place, previous, corner, before, here)
                        else:
                            _cut(place, corner, previous, here, before)
                        made = made + 1
                    if here >= 0.0:
                        _copy(other + made * CORNER_BYTES, corner)
                        made = made + 1
                previous = corner
                before = here
            for k in range(made):
                _copy(corners + k * CORNER_BYTES, other + k * CORNER_BYTES)
            count = made
    return select((count < 3) | (count > MAX_POLYGON), const(i32, 0), count)


@kernel(args=(ptr, ptr, i32, i32), returns=i32)
def clip_segment(context: Value, corners: Value, i0: Value, i1_: Value) -> Value:
    """Cut a line; its ends are left at `corners`; 2, or 0 when nothing is left."""
    c = BinnerContext.at(context)
    spare = alloca(CORNER_BYTES)
    end = corners + CORNER_BYTES
    _load_corner(c, corners, i0, 0)
    _load_corner(c, end, i1_, 1)
    count = const(i32, 2)
    for plane in range(CLIP_PLANES):
        first = _distance(c, corners, plane)
        second = _distance(c, end, plane)
        first_in, second_in = first >= 0.0, second >= 0.0
        if ~first_in & ~second_in:
            count = const(i32, 0)
        elif ~first_in:
            _cut(spare, end, corners, second, first)
            _copy(corners, spare)
        elif ~second_in:
            _cut(spare, corners, end, first, second)
            _copy(end, spare)
    return count


@staged
def _screen(value: Value) -> Value:
    """Round to 1/16 pixels inside s12.4; NaN becomes 0."""
    limited = fmax_(fmin_(floor_(value + 0.5), const(f64, 32767.0)), const(f64, -32768.0))
    return limited.to_int(i32)


@staged
def screen_position(c: BinnerContext, corner: Value) -> Value:
    """Ys:Xs of a corner: what the shader gave an original vertex, else computed from record 105."""
    inverse = 1.0 / load(f64, corner + 24)
    x = _screen(load(f64, corner) * inverse * c.half_width.fpext(f64))
    y = _screen(load(f64, corner + 8) * inverse * c.half_height.fpext(f64))
    made = (x & 0xFFFF) | (y << 16)
    return select(load(i32, corner + 56) >= 0, load(i32, corner + 60), made)


@staged
def _write_entry(c: BinnerContext, target: Value, corner: Value) -> None:
    inverse = 1.0 / load(f64, corner + 24)
    depth = load(f64, corner + 16) * inverse * c.z_scale.fpext(f64) + c.z_offset.fpext(f64)
    store(target, screen_position(c, corner))
    store(target + 4, depth.fptrunc(f32))
    store(target + 8, inverse.fptrunc(f32))
    scale = select(c.weights_projected != 0, inverse, const(f64, 1.0))
    for k in unroll(3):
        store(target + 12 + 4 * k, (load(f64, corner + 32 + 8 * k) * scale).fptrunc(f32))
    store(target + 24, const(i32, 0))
    store(target + 28, const(i32, 0))


@kernel(args=(ptr, ptr, ptr, ptr, i32), returns=i32)
def write_clip_record(context: Value, first: Value, second: Value, third: Value, count: Value) -> Value:
    """Write the clip record of a primitive with `count` corners.

    Returns the word of record 49: address and flags, 0 when the pool is empty, 1 when every corner
    is the original vertex of its place, so that no clip record is needed.
    """
    c = BinnerContext.at(context)
    flags = const(i32, 0)
    number = const(i32, 0)
    for slot, corner in ((0, first), (1, second), (2, third)):
        if (const(i32, slot) < count) & (load(i32, corner + 56) != slot):
            flags = flags | (1 << slot)
            number = number + 1
    word = const(i32, 1)
    if flags != 0:
        word = const(i32, 0)
        address = call(allocate, context, number * CLIP_ENTRY_BYTES)
        if address != 0:
            place = address
            for slot, corner in ((0, first), (1, second), (2, third)):
                if (flags & (1 << slot)) != 0:
                    _write_entry(c, host(c.memory, place), corner)
                    place = place + CLIP_ENTRY_BYTES
            word = (address & ~7) | flags
    return word


@kernel(args=(ptr, i32, i32), returns=None)
def make_outcodes(context: Value, first_batch: Value, last_batch: Value) -> None:
    """Outcode bytes of the vertices of batches first..last, from their clip-space words.

    If all are 0, nothing of the draw needs clipping, which is noted.
    """
    c = BinnerContext.at(context)
    # What is inside the view volume is inside the guard band as well, if that is no smaller.
    usual = (fabs_(c.half_width) <= c.guard_x) & (fabs_(c.half_height) <= c.guard_y)
    found = splat(const(i32, 0))
    for batch in range(first_batch, last_batch + 1):
        source = c.vertices + batch * c.pitch
        x, y = load(f32x16, source), load(f32x16, source + 64)
        z, w = load(f32x16, source + 128), load(f32x16, source + 192)
        inside = (fabs_(x) <= w) & (fabs_(y) <= w) & (fabs_(z) <= w)
        inside = inside & (w >= SMALLEST_W) & (w <= LARGEST)
        target = c.codes + batch * 16
        if usual & all_(inside):
            store(target, splat(const(i8, 0)))
        else:
            code = outcodes(c, x, y, z, w)
            store(target, code.trunc(i8))
            found = found | code
    if ~any_(found != 0):
        c.clipping = 0


@staged
def outcodes(c: BinnerContext, x: Value, y: Value, z: Value, w: Value) -> Value:
    """Outcodes of 16 vertices as i32."""
    # a number that is not finite gives NaN, which differs from 0
    bad = ((x - x) + (y - y) + (z - z) + (w - w)) != 0.0
    code = bits(x < -w, OUT_LEFT) | bits(x > w, OUT_RIGHT)
    code = code | bits(y < -w, OUT_BELOW) | bits(y > w, OUT_ABOVE)
    code = code | bits(z < -w, OUT_NEAR) | bits(z > w, OUT_FAR)
    wide = fabs_(x * c.half_width) > w * c.guard_x
    wide = wide | (fabs_(y * c.half_height) > w * c.guard_y)
    return code | bits(wide | (w < SMALLEST_W), OUT_GUARD) | bits(bad, OUT_BAD)


def bits(mask: Value, value: int) -> Value:
    """`value` in the lanes of `mask`, else 0."""
    return select(mask, splat(const(i32, value)), splat(const(i32, 0)))
