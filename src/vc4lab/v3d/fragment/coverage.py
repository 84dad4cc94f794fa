"""Coverage: walks the 4x4 pixel blocks under a primitive and finds which pixels it owns.

Blocks begin at even x and y, so a block is always four whole 2x2 quads; a small primitive needs
one. Source: hardware reference 7.2, 7.3, 7.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vc4lab.simd import (
    Value,
    any_,
    const,
    f32,
    i32x16,
    mask_bits,
    mask_from_bits,
    splat,
    staged,
)
from vc4lab.v3d.fragment.setup import Box, Edge

BLOCK = 4
"""Edge of a block in pixels."""

LANE_X = [(lane & 1) + 2 * ((lane >> 2) & 1) for lane in range(16)]
LANE_Y = [((lane >> 1) & 1) + 2 * (lane >> 3) for lane in range(16)]
"""Column and row of each lane inside its block."""


@dataclass
class Block:
    """One block with coverage: tile-relative corner, covered lanes, offsets from the reference.

    `dx` and `dy` are pixel centres minus the planes' reference point, in pixels (exact).
    """

    x: Value
    y: Value
    mask: Value
    dx: Value
    dy: Value
    row: Any


BlockFunction = Callable[[Block], None]


def quads_of(mask: Value) -> Value:
    """Bit 4q of the result is set if quad q has a lane in `mask` (scalar i32)."""
    bits = mask_bits(mask)
    pairs = bits | bits.shr(1)
    return (pairs | pairs.shr(2)) & 0x1111


def lanes_of_quads(quads: Value) -> Value:
    """All lanes of the quads given as by `quads_of`."""
    return mask_from_bits(quads * 15)


@staged
def for_each_block(
    box: Box,
    edges: list[Edge],
    x0: Value,
    y0: Value,
    row_function: Any,
    function: Any,
    running: Any,
) -> None:
    """Calls `function` (traced once) for each block of `box` with a pixel inside all `edges`.

    (x0, y0) is the reference point of the planes, 12.4 relative to the tile. What
    `row_function(dy)` returns for a row of blocks is handed to its blocks as `Block.row`. When
    `running()` is false (None: always true) the walk ends.
    """
    lane_x, lane_y = const(i32x16, LANE_X), const(i32x16, LANE_Y)
    start_x = box.left & ~1
    y = box.top & ~1
    row_edges = [
        splat(edge.value + start_x * edge.step_x + y * edge.step_y)
        + lane_x * splat(edge.step_x)
        + lane_y * splat(edge.step_y)
        for edge in edges
    ]
    steps_x = [splat(edge.step_x << 2) for edge in edges]
    steps_y = [splat(edge.step_y << 2) for edge in edges]
    start_dx = (lane_x * 16 + splat((start_x << 4) + 8 - x0)).to_float(f32) * 0.0625
    dy = (lane_y * 16 + splat((y << 4) + 8 - y0)).to_float(f32) * 0.0625
    start_columns = lane_x + splat(start_x)
    last_column = splat(box.right - 1)
    first_column = splat(box.left)
    while (y < box.bottom) if running() is None else (y < box.bottom) & running():
        rows = lane_y + splat(y)
        outside_rows = (rows - splat(box.top)) | (splat(box.bottom - 1) - rows)
        x = start_x
        dx = start_dx
        columns = start_columns
        inside = list(row_edges)  # a list of its own: staged loops update lists in place
        row = row_function(dy)
        while (x < box.right) if running() is None else (x < box.right) & running():
            signs = outside_rows | (columns - first_column) | (last_column - columns)
            for value in inside:
                signs = signs | value
            mask = signs >= 0
            if any_(mask):
                function(Block(x, y, mask, dx, dy, row))
            inside = [value + step for value, step in zip(inside, steps_x, strict=True)]
            columns = columns + BLOCK
            dx = dx + float(BLOCK)
            x = x + BLOCK
        row_edges = [value + step for value, step in zip(row_edges, steps_y, strict=True)]
        dy = dy + float(BLOCK)
        y = y + BLOCK
