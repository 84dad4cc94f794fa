"""The vertex that flat colours come from: the chip takes the last one of a primitive.

OpenGL takes the last one, too, unless a program asks for the first (glProvokingVertex). Such draws
become lists whose primitives begin one vertex later: the same winding, the first vertex last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vc4lab.mesa.protocol.codes import Primitive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.compiler.keys import Varying
    from vc4lab.mesa.protocol.objects import RasterizerState


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
