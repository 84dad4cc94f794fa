"""Cube maps as native code: the face of a direction, and how large a quad is on it.

A quad whose lanes lie on several faces has no common coordinates. Each lane that samples then sees
the others projected onto its own face, so that its level of detail does not jump at an edge. The
definition is in ``tests/support/texture_reference.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.simd import Value, any_, const, f32, fabs_, fmax_, i32, i32x16, max_, select, shuffle, staged
from vc4lab.v3d.tmu.coordinates import quad_lane

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
        """The same for directions that may meet other faces, seen from the middle of the cube."""
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
