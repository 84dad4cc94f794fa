"""The rendering list of many tiles at once is that of each tile by itself."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.jobs import builder
from vc4lab.drm.kernel.rendering import RenderingBuilder, rendering_plan
from vc4lab.drm.uapi.submit import (
    FLAG_FIXED_ORDER,
    FLAG_INCREASING_X,
    FLAG_INCREASING_Y,
    Buffer,
    Submit,
    Surface,
)

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
        low_y + dice.randrange(6), surfaces=surfaces, flags=dice.choice([0, 1, 2, 6, 14]),
    )  # fmt: skip
    grid = dice.choice([0, 20])
    surfaces_of = RenderingBuilder(submit, Reporter(), bin_tiles_x=grid, tile_lists=0xFFFF_0000)
    surfaces_of.check_surfaces()
    tiles = list(places(submit))
    single = b"".join(
        surfaces_of.tile(x, y, first=n == 0, last=n == len(tiles) - 1) for n, (x, y) in enumerate(tiles)
    )
    plan = rendering_plan(submit, b"", grid, 0xFFFF_0000, Reporter())
    data = bytes(plan.size + 64)
    builder()["tiles"].call(plan.address, data)
    assert data == single + bytes(64)
    assert plan.header == surfaces_of.mode()


def places(submit: Submit) -> Iterator[tuple[int, int]]:
    """Tile positions in the order the job asks for."""
    columns = list(range(submit.min_x_tile, submit.max_x_tile + 1))
    rows = list(range(submit.min_y_tile, submit.max_y_tile + 1))
    if submit.flags & FLAG_FIXED_ORDER:
        columns = columns if submit.flags & FLAG_INCREASING_X else columns[::-1]
        rows = rows if submit.flags & FLAG_INCREASING_Y else rows[::-1]
    for y in rows:
        for x in columns:
            yield x, y


def test_a_warning_is_repeated_for_each_job() -> None:
    """Plans are kept, but not those of surfaces whose last tile lies outside."""
    small = Buffer(1, 0, 5 * 16384)
    submit = Submit(
        b"", b"", b"", (small,), 0, 64, 64, 0, 0, 1, 1,
        surfaces={"msaa_color_write": Surface(0, 3 * 16384, 0)}, shape=b"x",
    )  # fmt: skip
    for _ in range(2):
        reporter = Reporter()
        rendering_plan(replace(submit, max_x_tile=0, max_y_tile=1), b"r", 0, 0, reporter)
        assert reporter.counts["DRM-025"] == 1
