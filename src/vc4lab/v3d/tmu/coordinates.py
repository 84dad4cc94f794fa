"""Texture coordinates as native code: from float words to wrapped texel indices, or the face of a cube.

Everything is made finite and small with integer operations first, so that no float operation here
raises the sticky "invalid" or "overflow" flags: the QPU's fast path reads those. The definition of
each function is its namesake in ``tests/support/texture_reference.py``.

A quad whose lanes lie on several faces of a cube has no common coordinates. Each lane that samples then
sees the others projected onto its own face, so that its level of detail does not jump at an edge. The
definition is in ``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.records.texture import Wrap
from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, i32, i32x16
from vc4lab.simd.value import Value, const, select
from vc4lab.simd.vector import any_, fabs_, floor_, fmax_, fmin_, max_, min_, shuffle, umin

COORDINATE_LIMIT = 0x4B800000
"""2**24 as a float word: larger floats are even integers; repeat and mirror see no difference."""
BIAS_LIMIT = 0x42800000
"""64.0, more levels than there are."""

FLOAT_BITS = 24
"""Significant bits of a float."""

_SIGN = -0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_BELOW_ONE = 0x3F7FFFFF


def splat_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of ``x`` in all lanes."""
    return shuffle(x, [lane] * 16)


def quad_lane(x: Value, lane: int) -> Value:
    """Lane ``lane`` of each quad in all lanes of the quad."""
    return shuffle(x, [(i & ~3) + lane for i in range(16)])


def finite(word: Value, limit: int, not_finite: str = "zero") -> Value:
    """A float word as f32x16, its magnitude at most ``limit``.

    ``not_finite``: infinities and NaN become 0 ("zero"), or ``limit`` like other large numbers.
    """
    magnitude = word & _MAGNITUDE
    if not_finite == "zero":
        limited = select(magnitude < _INFINITY, min_(magnitude, limit), 0)
    else:
        limited = min_(magnitude, limit)
    return (limited | (word & _SIGN)).bitcast(f32)


def unit(word: Value, not_finite: str = "zero") -> Value:
    """A float word clamped to 0 .. 1: `finite` and clamping in one.

    Positive floats are ordered like integers, negative ones are negative, and above all others
    without a sign. 1 becomes the next float below: in the last texel as well.
    """
    if not_finite == "zero":
        limited = select(word.ult(_INFINITY), min_(word, _BELOW_ONE), 0)
    else:
        limited = min_(max_(word, 0), _BELOW_ONE)
    return limited.bitcast(f32)


def truncate(value: Value) -> Value:
    """Float to integer toward zero for values known to be small (no saturation, no flags)."""
    return value._convert("fptosi", i32.like(value.type))


def floor_to_int(value: Value) -> Value:
    """Largest integer not above ``value``, for values known to be small."""
    return truncate(floor_(value))


def significant(value: Value, bits: int) -> Value:
    """A float of which only so many bits count, the one before the point among them."""
    return value if bits >= FLOAT_BITS else (value.bitcast(i32) & (-1 << (FLOAT_BITS - bits))).bitcast(f32)


def fixed_coordinate(value: Value, scale: Value, wrap: Wrap, is_unit: bool = False) -> Value:
    """Texel coordinate times ``scale`` / size (float bits): with 8 fractional bits for 256 * size.

    ``is_unit``: the value comes from `unit`.
    """
    size = scale.bitcast(f32)
    if wrap is Wrap.REPEAT:
        # Rounded toward zero, so the fraction is always below 1.
        return truncate((value - floor_(value)) * size)
    if wrap is Wrap.MIRROR:
        return truncate((value - floor_(value * 0.5) * 2.0) * size)
    if is_unit:
        return truncate(value * size)
    if wrap is Wrap.CLAMP:
        return truncate(fmin_(fmax_(value, 0.0), 1.0) * size)
    return floor_to_int(fmin_(fmax_(value, -1.0), 2.0) * size)


def wrap_index(index: Value, last: Value, wrap: Wrap, which: str, is_unit: bool) -> Value:
    """The texel index 0 .. ``last``, for what `fixed_coordinate` can yield.

    ``which``: the "lower" or "upper" texel of a bilinear pair (the coordinate less 1/2, one more),
    or the "only" one of nearest sampling; ``is_unit`` as in `fixed_coordinate`.
    """
    if wrap is Wrap.REPEAT:
        if which == "only":  # the fraction is below 1
            return index
        return select(index > last, 0, index) if which == "upper" else umin(index, last)
    if wrap is Wrap.CLAMP:
        if is_unit:  # below 1 as well
            return {"lower": max_(index, 0), "upper": min_(index, last), "only": index}[which]
        return min_(max_(index, 0), last) if which == "lower" else min_(index, last)
    if wrap is Wrap.MIRROR:
        mirrored = min_(index, last * 2 + 1 - index)
        return mirrored if which == "only" else max_(mirrored, 0)
    return min_(max_(index, 0), last)


MIN_MAJOR_AXIS = 2.0**-20
"""The least component along a face's axis that a projection divides by; one that points away from
the face counts as this."""

_NEXT_IN_QUAD = [(lane & ~3) + (lane + 1 & 3) for lane in range(16)]


class Direction(NamedTuple):
    """The directions of 16 lanes and the faces they meet."""

    x: Value
    y: Value
    z: Value
    x_major: Value
    y_major: Value
    negative: Value

    @property
    def face(self) -> Value:
        """Number of the face: +x, -x, +y, -y, +z, -z."""
        y_or_z = select(self.y_major, const(i32x16, 2), const(i32x16, 4))
        pair = select(self.x_major, const(i32x16, 0), y_or_z)
        return pair + self.negative.zext(i32)

    def coordinates(self, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
        """s and t of the directions (x, y, z) on these faces, by the table of GL."""
        sc, tc = self._on_face(x, y, z)
        return (sc + 1.0) * 0.5, (tc + 1.0) * 0.5

    def projected(self, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
        """As `coordinates`, for directions that may meet other faces, seen from the middle of the cube."""
        sc, tc = self._on_face(x, y, z)
        along = select(self.x_major, x, select(self.y_major, y, z))
        along = fmax_(select(self.negative, -along, along), MIN_MAJOR_AXIS)
        return (sc / along + 1.0) * 0.5, (tc / along + 1.0) * 0.5

    def _on_face(self, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
        negative, y_major = self.negative, self.y_major
        sc = select(self.x_major, select(negative, z, -z), select(y_major | ~negative, x, -x))
        return sc, select(y_major, select(negative, -z, z), -y)


def direction(x: Value, y: Value, z: Value) -> Direction:
    """Which face each of the directions meets."""
    ax, ay, az = fabs_(x), fabs_(y), fabs_(z)
    x_major = (ax >= ay) & (ax >= az)
    y_major = ~x_major & (ay >= az)
    major = select(x_major, x, select(y_major, y, z))
    return Direction(x, y, z, x_major, y_major, major < 0.0)


def footprint(x: Value, scale: Value) -> Value:
    """Bits of the larger difference between neighbours in the quad, times ``scale``."""
    return _larger_step([quad_lane(x, lane) for lane in range(3)], scale)


@staged
def cube_footprint(
    where: Direction, u: Value, v: Value, scale_s: Value, scale_t: Value
) -> tuple[Value, Value]:
    """`footprint` of s and of t on the face of each lane; ``u``, ``v``: each lane's own."""
    rho_s, rho_t = footprint(u, scale_s), footprint(v, scale_t)
    face = where.face
    if any_(face != shuffle(face, _NEXT_IN_QUAD)):
        corners = [_corner(where, face, u, v, lane) for lane in range(3)]
        rho_s = _larger_step([s for s, _ in corners], scale_s)
        rho_t = _larger_step([t for _, t in corners], scale_t)
    return rho_s, rho_t


def _corner(where: Direction, face: Value, u: Value, v: Value, lane: int) -> tuple[Value, Value]:
    """s and t of a lane of the quad on the face of each lane."""
    other = [quad_lane(part, lane) for part in (where.x, where.y, where.z)]
    s, t = where.projected(*other)
    same = quad_lane(face, lane) == face
    return select(same, quad_lane(u, lane), s), select(same, quad_lane(v, lane), t)


def _larger_step(corners: list[Value], scale: Value) -> Value:
    corner, right, above = corners
    across, up = fabs_(right - corner), fabs_(above - corner)
    widest = max_(across.bitcast(i32), up.bitcast(i32)).bitcast(f32)
    return (widest * scale.bitcast(f32)).bitcast(i32)
