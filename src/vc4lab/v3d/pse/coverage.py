"""Coverage: visits the 4x4 pixel blocks under a primitive and finds which pixels it covers.

Blocks begin at even x and y, so a block is always four whole 2x2 quads; a small primitive needs
one. Source: hardware reference 7.2, 7.3, 7.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, i32, i32x16
from vc4lab.simd.memory import load, table
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import mask_bits, mask_from_bits, min_
from vc4lab.v3d.pse.setup import Box, Edge
from vc4lab.v3d.state.frame_mode import BLOCK, LANE_X, LANE_Y

QUAD_OF_LANE = [15 << (lane & ~3) for lane in range(16)]
"""The lanes of each lane's quad, as bits."""


@dataclass
class PixelBlock:
    """One block with coverage: tile-relative corner, covered lanes as bits, and offsets.

    `samples` has the covered lanes of each sample that the edges tell apart, `bits` those of any.
    `dx` and `dy` are pixel centres minus the planes' reference point, in pixels (exact).
    """

    x: Value
    y: Value
    bits: Value
    samples: list[Value]
    dx: Value
    dy: Value
    row: Any


COLUMNS_BELOW = [sum(1 << lane for lane in range(16) if LANE_X[lane] < count) for count in range(BLOCK + 1)]
ROWS_BELOW = [sum(1 << lane for lane in range(16) if LANE_Y[lane] < count) for count in range(BLOCK + 1)]
"""Lanes in the first 0 to 4 columns or rows of a block, as bits."""


def quads_of(bits: Value) -> Value:
    """Bit 4q of the result is set if quad q has a lane in `bits` (both scalar i32)."""
    pairs = bits | bits.shr(1)
    return (pairs | pairs.shr(2)) & 0x1111


def lanes_of_quads(quads: Value) -> Value:
    """All lanes of the quads given as by `quads_of`."""
    return mask_from_bits(quads * 15)


def lanes_before(limits: Value, end: Value, position: Value) -> Value:
    """Lanes of the block at `position` that lie before `end` (`limits`: a table of bits)."""
    return load(i32, limits + min_(end - position, BLOCK) * 4, 4)


def sample_bits(edges: list[Edge], inside: list[Value], allowed: Value) -> list[Value]:
    """Lanes of `allowed` inside all edges, for each sample; `inside`: values of sample 0."""
    if not edges:
        return [allowed]
    result = []
    for number in range(len(edges[0].deltas) + 1):
        values = inside
        if number:
            pairs = zip(edges, inside, strict=True)
            values = [value + splat(edge.deltas[number - 1]) for edge, value in pairs]
        signs = values[0]
        for value in values[1:]:
            signs = signs | value
        result.append(allowed & mask_bits(signs >= 0))
    return result


@staged
def for_each_block(
    box: Box,
    edges: list[Edge],
    x0: Value,
    y0: Value,
    row_function: Callable[[Value], Any],
    function: Callable[[PixelBlock], None],
    running: Callable[[], Any],
) -> None:
    """Calls `function` (traced once) for each block of `box` with a pixel inside all `edges`.

    The box must not be empty. (x0, y0) is the reference point of the planes, 12.4 relative to the
    tile. What `row_function(dy)` returns for a row of blocks is handed to its blocks as
    `PixelBlock.row`. When `running()` is false (None: always true) the loop ends.
    """
    lane_x, lane_y = const(i32x16, LANE_X), const(i32x16, LANE_Y)
    columns_below, rows_below = table(i32, COLUMNS_BELOW), table(i32, ROWS_BELOW)
    start_x = box.left & ~1
    y = box.top & ~1
    row_edges = [
        splat(edge.value + start_x * edge.step_x + y * edge.step_y)
        + lane_x * splat(edge.step_x)
        + lane_y * splat(edge.step_y)
        for edge in edges
    ]
    start_dx = (lane_x * 16 + splat((start_x << 4) + 8 - x0)).to_float(f32) * 0.0625
    dy = (lane_y * 16 + splat((y << 4) + 8 - y0)).to_float(f32) * 0.0625
    first_columns = select((box.left & 1) != 0, const(i32, ~COLUMNS_BELOW[1]), const(i32, -1))
    first_rows = select((box.top & 1) != 0, const(i32, ~ROWS_BELOW[1]), const(i32, -1))
    while True:
        in_rows = lanes_before(rows_below, box.bottom, y) & first_rows
        x = start_x
        dx = start_dx
        allowed = in_rows & first_columns
        inside = list(row_edges)  # a list of its own: staged loops update lists in place
        row = row_function(dy)
        while True:
            bits = allowed & lanes_before(columns_below, box.right, x)
            samples = sample_bits(edges, inside, bits)
            bits = samples[0]
            for other in samples[1:]:
                bits = bits | other
            if bits != 0:
                function(PixelBlock(x, y, bits, samples, dx, dy, row))
            x = x + BLOCK
            if x >= box.right:
                break
            if running() is not None:
                if ~running():
                    break
            allowed = in_rows
            dx = dx + float(BLOCK)
            inside = [value + splat(edge.step_x << 2) for value, edge in zip(inside, edges, strict=True)]
        y = y + BLOCK
        if y >= box.bottom:
            break
        if running() is not None:
            if ~running():
                break
        first_rows = const(i32, -1)
        dy = dy + float(BLOCK)
        row_edges = [value + splat(edge.step_y << 2) for value, edge in zip(row_edges, edges, strict=True)]
