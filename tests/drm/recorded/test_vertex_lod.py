"""The run `vertex_lod` against its texture: each vertex asks for a level of its own.

A grid of 64x64 cells of 2 x 1.75 pixels; each of its 65x65 vertices has texture coordinates, a
level of detail, and the colour that it finds there. So a pixel lies between the colours of the
corners of its cell, which are worked out here from the recorded arrays and the texture in memory.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.recorded.replay import replay
from vc4lab.images.tiling import detile, mip_chain

RUN = Path(__file__).parents[2] / "data" / "vc4-conformance" / "vertex_lod"

SIDE = 65
POSITIONS, TEXTURE_COORDINATES, LEVELS = 0x01116000, 0x01126810, 0x01137020
TEXTURE, SIZE, TEXTURE_LEVELS = 0x010D6000, 256, 9
LEFT, BOTTOM, WIDTH, HEIGHT = 35, 80, 128, 112
ROUNDING = 3


def colours_of_vertices() -> Any:
    """What bilinear sampling of the nearest level gives, rows of 65 vertices."""
    run = RecordedRun(RUN, Reporter())
    memory = run.memory
    run.jobs[0].build(memory)

    def array(address: int) -> Any:
        return np.frombuffer(memory.read(address, SIDE * SIDE * 16), "<f4").reshape(-1, 4)

    positions = array(POSITIONS)[:, :2].reshape(SIDE, SIDE, 2)
    assert (np.diff(positions[0, :, 0]) > 0).all()
    assert (np.diff(positions[:, 0, 1]) > 0).all()
    images = [
        np.frombuffer(
            detile(
                memory.read(TEXTURE + level.offset, level.size), level.width, level.height, 32, level.tiling
            ),
            np.uint8,
        )
        .reshape(level.height, level.width, 4)
        .astype(float)
        for level in mip_chain(SIZE, SIZE, 32, TEXTURE_LEVELS)
    ]
    colours = []
    for (s, t), lod in zip(array(TEXTURE_COORDINATES)[:, :2], array(LEVELS)[:, 0], strict=True):
        image = images[int(np.clip(np.floor(lod + 0.5), 0, TEXTURE_LEVELS - 1))]
        height, width = image.shape[:2]
        u, v = s * width - 0.5, t * height - 0.5
        x, y = int(np.floor(u)), int(np.floor(v))
        fx, fy = u - x, v - y
        rows = [
            image[(y + k) % height, x % width] * (1 - fx) + image[(y + k) % height, (x + 1) % width] * fx
            for k in range(2)
        ]
        colours.append(rows[0] * (1 - fy) + rows[1] * fy)
    return np.array(colours).reshape(SIDE, SIDE, 4)[:, :, :3]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_every_pixel_lies_between_the_vertices_of_its_cell(engine: str) -> None:
    corners = colours_of_vertices()
    found: dict[str, Any] = {}
    replay(RUN, engine=engine, number=1, on_image=found.__setitem__)
    picture = np.asarray(found["job0001"].convert("RGB")).astype(float)
    drawn = picture[BOTTOM : BOTTOM + HEIGHT, LEFT : LEFT + WIDTH][::-1]  # y points up
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    row, column = (y + 0.5) * (SIDE - 1) // HEIGHT, (x + 0.5) * (SIDE - 1) // WIDTH
    row, column = row.astype(int), column.astype(int)
    around = np.stack([corners[row + j, column + i] for j in (0, 1) for i in (0, 1)])
    outside = (drawn < around.min(0) - ROUNDING) | (drawn > around.max(0) + ROUNDING)
    assert not outside.any(), int(outside.any(axis=2).sum())
    assert np.ptp(drawn, axis=(0, 1)).min() > 200  # it is no picture of one colour
