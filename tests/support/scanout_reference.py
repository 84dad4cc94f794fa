"""The picture of planes over each other, pixel by pixel in plain Python."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tests.support.texture_layouts import texel_bit_address

from vc4lab.images.tiling import Tiling

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.scanout.composer import Plane, Shown

Colour = tuple[int, int, int, int]
"""Red, green, blue, alpha."""


def reference(
    shown: Shown, memory: GuestMemory, *, nearest: bool = False, wraps: bool = False,
    down: bool = False,
) -> list[list[tuple[int, int, int]]]:  # fmt: skip
    """Rows of red, green, blue."""
    out = [[(0, 0, 0)] * shown.width for _ in range(shown.height)]
    for plane in shown.planes:
        (x, y, columns, rows), (left, top, wide, high) = plane.source, plane.target
        lines = {}
        for line in range(max(top, 0), min(top + high, shown.height)):
            lines[line] = _taps(line - top, y, rows, high, plane.mirrored[1], nearest, wraps)
        picks = {}
        for column in range(max(left, 0), min(left + wide, shown.width)):
            picks[column] = _taps(column - left, x, columns, wide, plane.mirrored[0], nearest, wraps)
        for line, down_taps in lines.items():
            for column, across_taps in picks.items():
                parts = [
                    (_sum([(_pixel(plane, memory, x0, y0), w) for x0, w in across_taps]), w1)
                    for y0, w1 in down_taps
                ]
                out[line][column] = _over(plane, _sum(parts), out[line][column], down)
    if shown.matrix is not None:
        bias = 0 if down else 256
        rows = [shown.matrix.factors[n : n + 3] for n in (0, 3, 6)]
        for line in out:
            for column, colour in enumerate(line):
                sums = [sum(f * v for f, v in zip(row, colour, strict=True)) + bias for row in rows]
                moved = [s // 512 + o for s, o in zip(sums, shown.matrix.offsets, strict=True)]
                line[column] = tuple(max(0, min(255, one)) for one in moved)  # type: ignore[call-overload]
    if shown.gamma is not None:
        ramps = shown.gamma
        out = [[tuple(r[v] for r, v in zip(ramps, p, strict=True)) for p in row] for row in out]  # type: ignore[misc]
    return out


def _sum(parts: list[tuple[Colour, int]]) -> Colour:
    if len(parts) == 1:
        return parts[0][0]
    totals = [sum(colour[n] * weight for colour, weight in parts) for n in range(4)]
    return tuple(max(0, min(255, (total + 2048) >> 12)) for total in totals)  # type: ignore[return-value]


def _taps(
    step: int, source: int, size: int, target: int, mirrored: bool, nearest: bool, wraps: bool
) -> list[tuple[int, int]]:
    if mirrored:
        step = target - 1 - step
    first, last = source >> 16, ((source + size + 0xFFFF) >> 16) - 1
    last = max(first, last)
    if target == size >> 16:
        return [(min(first + step, last), 4096)]
    shrinks = 3 * target < 2 * (size >> 16)
    if wraps and size // target >= 1 << 21:
        size = size // target % (1 << 21) * target
    middle = (2 * step + 1) * size // (2 * target) + source
    if nearest:
        return [(max(first, min(middle >> 16, last)), 4096)]
    if not shrinks:
        corner = middle - 0x8000
        phase = (corner & 0xFFFF) * 8 >> 16
        weights = _mitchell_weights(phase)
        places = [(corner >> 16) + tap for tap in (-1, 0, 1, 2)]
        return [(max(first, min(p, last)), w) for p, w in zip(places, weights, strict=True)]
    start, end = step * size // target + source, (step + 1) * size // target + source
    end = max(end, start + 1)
    result, before = [], 0
    for place in range(start >> 16, (end - 1 >> 16) + 1):
        covered = min(end, (place + 1) << 16) - start
        upto = (covered * 4096 + (end - start) // 2) // (end - start)
        result.append((max(first, min(place, last)), upto - before))
        before = upto
    return [*result, (last, 0)] if len(result) == 1 else result


def _mitchell_weights(phase: int) -> list[int]:
    def filter_(x: Fraction) -> Fraction:
        third = Fraction(1, 3)
        if x < 1:
            return (
                (12 - 9 * third - 6 * third) * x**3 + (-18 + 12 * third + 6 * third) * x**2
                + (6 - 2 * third)
            ) / 6  # fmt: skip
        return (
            (-third - 6 * third) * x**3 + (6 * third + 30 * third) * x**2
            + (-12 * third - 48 * third) * x + 8 * third + 24 * third
        ) / 6  # fmt: skip

    at = Fraction(2 * phase + 1, 16)
    values = [filter_(abs(at - tap)) for tap in (-1, 0, 1, 2)]
    weights = [round(4096 * value / sum(values)) for value in values]
    weights[weights.index(max(weights))] += 4096 - sum(weights)
    return weights


def _pixel(plane: Plane, memory: GuestMemory, x: int, y: int) -> Colour:
    size = plane.format.bits
    if plane.tiled:
        row = plane.pitch * 8 // size
        place = texel_bit_address(x, y, row, size, Tiling.T) // 8
    else:
        place = y * plane.pitch + x * size // 8
    data = bytes(memory.read(plane.address + place, size // 8))
    value = int.from_bytes(data, "little")
    channels = []
    for low, bits in plane.format.channels:
        part = value >> low & (1 << bits) - 1
        repeated = format(part, f"0{bits}b") * 8 if bits else "1" * 8
        channels.append(int(repeated[:8], 2))
    return tuple(channels)  # type: ignore[return-value]


def _over(plane: Plane, colour: Colour, below: tuple[int, int, int], down: bool) -> tuple[int, int, int]:
    def part(a: int, b: int) -> int:
        return a * b // 255 if down else (2 * a * b + 255) // 510

    alpha, factor = plane.alpha, plane.alpha
    if plane.format.has_alpha and plane.blend:
        alpha = part(colour[3], plane.alpha)
        if plane.blend == 2:
            factor = alpha
    elif alpha == 255:
        return colour[:3]
    pairs = zip(colour[:3], below, strict=True)
    mixed = [part(own, factor) + part(other, 255 - alpha) for own, other in pairs]
    return tuple(min(value, 255) for value in mixed)  # type: ignore[return-value]
