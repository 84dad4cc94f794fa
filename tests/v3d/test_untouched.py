"""Tiles that are loaded and stored without a draw keep their bytes, and cost no transfer."""

from collections.abc import Callable
from dataclasses import replace

import numpy
import pytest
from tests.support.frame_work import FrameWork

from vc4lab.memory import GuestMemory
from vc4lab.records.codes import TileFormat
from vc4lab.v3d.state.frame_mode import MASK, SINGLE, Z_ONLY, ZS, Surface, SurfaceOp, TileLayout, twins
from vc4lab.v3d.tiles import job
from vc4lab.v3d.tiles.threads import TileThreads

WIDTH, HEIGHT = 100, 90
HERE = Surface(0x10_0000, WIDTH, HEIGHT, tiling=1)
THERE = Surface(0x20_0000, WIDTH, HEIGHT, tiling=0)
DEPTHS = Surface(0x30_0000, WIDTH, HEIGHT, tiling=1, buffer=ZS)
OTHERS = Surface(0x40_0000, WIDTH, HEIGHT, tiling=1, buffer=ZS)

Steps = Callable[[FrameWork], None]


def stays(work: FrameWork) -> None:
    work.load(HERE)
    work.store(HERE)


def both_stay(work: FrameWork) -> None:
    work.load(HERE)
    work.tile(0, 0)
    work.load(DEPTHS)
    work.store(DEPTHS)
    work.store(HERE)


def is_copied(work: FrameWork) -> None:
    work.load(HERE)
    work.store(THERE)


def stays_and_is_copied(work: FrameWork) -> None:
    work.load(HERE)
    work.store(HERE)
    work.store(THERE)
    work.store(HERE)


def another_comes(work: FrameWork) -> None:
    work.load(HERE)
    work.load(THERE)
    work.store(HERE)


def is_cleared(work: FrameWork) -> None:
    work.load(HERE)
    work.clear(0x12345678, None)
    work.store(HERE)


def depths_are_copied(work: FrameWork) -> None:
    work.load(DEPTHS)
    work.load(HERE)
    work.store(HERE)
    work.store(OTHERS)


def goes_on_with_another_tile(work: FrameWork) -> None:
    work.load(HERE)
    work.tile(1, 0)
    work.store(THERE)


def every_step(work: FrameWork) -> None:
    work.load(HERE)
    work.store_full(0x50_0000)
    work.load_full(0x60_0000)
    work.store(HERE)


ALL = (
    stays, both_stay, is_copied, stays_and_is_copied, another_comes, is_cleared,
    depths_are_copied, goes_on_with_another_tile, every_step,
)  # fmt: skip


def run(steps: Steps) -> tuple[bytes, list[bool], list[int]]:
    """Memory after one tile; of each surface, whether it was loaded; what was counted."""
    memory = GuestMemory()
    noise = numpy.random.default_rng(1).integers(0, 256, 0x60_0000, dtype=numpy.uint8)
    memory.write(0x10_0000, noise.tobytes())
    work = FrameWork(memory, WIDTH, HEIGHT)
    work.tile(0, 0)
    work.clear(0, 0)
    steps(work)
    frame = work.native()
    threads = TileThreads(1)
    threads.run(frame)
    at = SurfaceOp.offset("loader")
    places = range(at, len(work.surfaces) * SurfaceOp.size, SurfaceOp.size)
    loaded = [any(bytes(frame.surfaces)[place : place + 8]) for place in places]
    counted = threads.work()
    threads.close()
    return memory.read(0x10_0000, 0x60_0000), loaded, counted


@pytest.mark.parametrize("steps", ALL, ids=lambda steps: steps.__name__)
def test_the_same_bytes_and_counts(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    found, loaded, counted = run(steps)
    monkeypatch.setattr(job, "twins", lambda surfaces, _layout: [0] * len(surfaces))
    expected, loads, counts = run(steps)
    assert found == expected
    assert counted == counts
    needed = {stays: 0, both_stay: 0}.get(steps)
    assert needed is None or (sum(loaded), sum(loads) > 0) == (needed, True)


def test_what_a_load_and_a_store_may_change_has_no_twin() -> None:
    assert twins([HERE, DEPTHS, replace(HERE), OTHERS, DEPTHS], SINGLE) == [1, 2, 1, 3, 2]
    others = (
        replace(HERE, tiling=2), replace(HERE, address=0), replace(HERE, width=99),
        replace(HERE, height=89), replace(HERE, buffer=ZS),
    )  # fmt: skip
    assert len({*twins([HERE, *others], SINGLE)}) == 6
    lossy = (
        replace(HERE, format=int(TileFormat.BGR565)), replace(HERE, buffer=MASK),
        replace(HERE, buffer=Z_ONLY), replace(HERE, wide=True), replace(HERE, decimate=1),
    )  # fmt: skip
    assert twins(lossy, SINGLE) == [0] * 5
    assert twins([HERE], TileLayout(multisample=True)) == [0]
