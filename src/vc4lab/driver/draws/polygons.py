"""Polygons as lines and points (glPolygonMode), which the chip does not have; vertices of flat colours.

What lines do not know is the facing of their polygon: where that decides, the draw is refused.

Flat colours come from the last vertex of a primitive, as in OpenGL, unless a program asks for the first
(glProvokingVertex). Such draws become lists whose primitives begin one vertex later: the same winding, the
first vertex last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.driver.compiler.interface import Primitives
from vc4lab.mesa.protocol.codes import Face, PolygonMode, Primitive
from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.compiler.interface import Varying
    from vc4lab.mesa.protocol.objects import RasterizerState

POLYGONS = (Primitive.TRIANGLES, Primitive.TRIANGLE_STRIP, Primitive.TRIANGLE_FAN)
_MODES = {PolygonMode.LINE: Primitive.LINES, PolygonMode.POINT: Primitive.POINTS}
_EDGES = [0, 1, 1, 2, 2, 0]


def drawn_as(mode: Primitive, rasterizer: RasterizerState) -> Primitive:
    """The primitives that a draw has become. Raises Refused where facing decides."""
    front, back = rasterizer.fill_front, rasterizer.fill_back
    if mode not in POLYGONS or front == back == PolygonMode.FILL:
        return mode
    cull = rasterizer.cull_face
    # A face that is culled has no mode.
    seen = {
        one for face, one in ((Face.FRONT, front), (Face.BACK, back)) if not cull & face
    }  # fmt: skip
    if seen <= {PolygonMode.FILL}:
        return mode
    if cull or len(seen) > 1:
        raise Refused("GL-007", "polygons as lines or points, of one face only: the chip fills polygons")
    return _MODES[seen.pop()]


def without(rasterizer: RasterizerState, kind: Primitives) -> list[str]:
    """Name what a draw asks for and goes without."""
    asked = {
        Primitives.LINES: (
            ("lines are not stippled", rasterizer.line_stipple_enable),
            ("lines are not smoothed", rasterizer.line_smooth),
        ),
        Primitives.POINTS: (("points are not smoothed", rasterizer.point_smooth),),
        Primitives.TRIANGLES: (("polygons are not smoothed", rasterizer.poly_smooth),),
    }
    return [text for text, is_asked in asked[kind] if is_asked]


def outlines(mode: Primitive, becomes: Primitive, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The vertices of lines or points, from those of a list, strip or fan of triangles."""
    count = len(numbers) - 2
    if mode == Primitive.TRIANGLE_STRIP:
        corners = np.stack([numbers[:count], numbers[1:-1], numbers[2:]], axis=1)
    elif mode == Primitive.TRIANGLE_FAN:
        corners = np.stack([np.full(count, numbers[0]), numbers[1:-1], numbers[2:]], axis=1)
    else:
        corners = numbers[: len(numbers) // 3 * 3].reshape(-1, 3)
    if becomes == Primitive.LINES:
        corners = corners[:, _EDGES]
    return corners.reshape(-1)


def flat_varyings(rasterizer: RasterizerState, varyings: tuple[Varying, ...]) -> int:
    """A bit for each varying that is flat."""
    return sum(
        1 << number
        for number, one in enumerate(varyings)
        if one.interpolation == "CONSTANT" or (one.interpolation == "COLOR" and rasterizer.flatshade)
    )


def first_is_last(mode: Primitive, numbers: NDArray[np.int64]) -> tuple[Primitive, NDArray[np.int64]]:
    """Lines or triangles one by one, with the vertex last that OpenGL calls the first.

    numbers: the vertices of a draw, at least those of one primitive; points stay as they are.
    """
    count = len(numbers)
    if mode == Primitive.POINTS:
        return mode, numbers
    if mode in (Primitive.LINES, Primitive.LINE_STRIP, Primitive.LINE_LOOP):
        if mode == Primitive.LINES:
            first, second = numbers[: count // 2 * 2].reshape(-1, 2).T
        elif mode == Primitive.LINE_LOOP:
            first, second = numbers, np.roll(numbers, -1)
        else:
            first, second = numbers[:-1], numbers[1:]
        return Primitive.LINES, np.stack([second, first], axis=1).reshape(-1)
    if mode == Primitive.TRIANGLES:
        first, second, third = numbers[: count // 3 * 3].reshape(-1, 3).T
    elif mode == Primitive.TRIANGLE_FAN:
        # A fan's hub is never its flat colour.
        first, second, third = numbers[1:-1], numbers[2:], np.full(count - 2, numbers[0])
    else:
        first = numbers[:-2]
        is_odd = np.arange(count - 2) % 2 == 1
        second = np.where(is_odd, numbers[2:], numbers[1:-1])
        third = np.where(is_odd, numbers[1:-1], numbers[2:])
    return Primitive.TRIANGLES, np.stack([second, third, first], axis=1).reshape(-1)
