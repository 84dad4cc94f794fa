"""The rendering list of many tiles at once is that of each tile by itself."""

from __future__ import annotations

import random

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.rendering import RenderingBuilder
from vc4lab.drm.uapi.submit import Buffer, Submit, Surface

TARGET = Buffer(1, 0x0FF0_0000, 256 << 20)
WRITES = {
    "color_write": Surface(0, 0, 0x44),
    "zs_write": Surface(0, 1 << 22, 0x12),
    "msaa_color_write": Surface(0, 0, 0),
    "msaa_zs_write": Surface(0, 4 << 20, 0),
}
READS = {
    "color_read": (Surface(0, 0, 0x11), Surface(0, 0, 0, 1)),
    "zs_read": (Surface(0, 1 << 22, 0x12), Surface(0, 2 << 20, 0, 1)),
}


@pytest.mark.parametrize("seed", range(40))
def test_all_tiles_at_once(seed: int) -> None:
    dice = random.Random(seed)
    surfaces = {name: WRITES[name] for name in WRITES if dice.random() < 0.5}
    surfaces = surfaces or {"color_write": WRITES["color_write"]}
    for name, choices in READS.items():
        if dice.random() < 0.5:
            surfaces[name] = dice.choice(choices)
    low_x, low_y = dice.randrange(4), dice.randrange(4)
    submit = Submit(
        b"", b"", b"", (TARGET,), 0, 640, 480, low_x, low_y, low_x + dice.randrange(8),
        low_y + dice.randrange(6), surfaces, flags=dice.choice([0, 1, 2, 6, 14]),
    )  # fmt: skip
    grid = dice.choice([0, 20])
    builder = RenderingBuilder(submit, Reporter(), bin_tiles_x=grid, tile_lists=0xFFFF_0000)
    data = builder.run()
    tiles = list(builder.tiles())
    single = b"".join(
        builder.tile(x, y, first=n == 0, last=n == len(tiles) - 1) for n, (x, y) in enumerate(tiles)
    )
    assert data.endswith(single)
    assert len(data) - len(single) in (11, 35)
