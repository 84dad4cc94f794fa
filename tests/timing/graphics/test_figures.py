"""Frames on chips whose figures are as small or as large as they may be: all goes through."""

from pathlib import Path

import pytest
from tests.support.frame_jobs import tiny
from tests.support.frame_timings import recorded

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import BadChip, Chip, load_chip
from vc4lab.timing.figures import ALL_QUEUES, MODULES
from vc4lab.timing.frames.bigger_tiles import bigger_tiles
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.feed import TILE, tile_size
from vc4lab.timing.graphics.model import FrameModel

LIKE = 'like = "videocore4"\n'
SPEED = speeds_of(load_chip("videocore4")).of_board["pi3"]


def chip_of(tmp_path: Path, text: str) -> Chip:
    path = tmp_path / "chip.toml"
    path.write_text(LIKE + text)
    return load_chip(path)


def frames() -> tuple[Frame, ...]:
    """Shaded vertices in memory, and others."""
    return (tiny(100), *recorded("kmscube_smooth")[:2])


def goes_through(chip: Chip) -> None:
    times = [side // TILE for side in tile_size(chip)]
    for plain, timing in zip(frames(), FrameModel(chip, SPEED).run(frames()), strict=True):
        frame = bigger_tiles(plain, *times)
        totals = frame.totals()
        assert timing.quads == totals["covered_quads"]
        assert timing.primitives == totals["covered_primitives"]
        assert timing.tiles == len(frame.tiles)


@pytest.mark.parametrize("section", sorted(MODULES))
def test_the_least_and_the_most_of_every_figure(section: str, tmp_path: Path) -> None:
    for key, spec in MODULES[section].items():
        for value in (spec.least, spec.most):
            shown = str(bool(value)).lower() if spec.flag else f"{value:.15g}"
            try:
                chip = chip_of(tmp_path, f"[{section}]\n{key} = {shown}\n")
                goes_through(chip)
            except BadChip:  # ways that do not divide the bytes
                assert key in ("ways", "bytes")


@pytest.mark.parametrize("queue", ALL_QUEUES)
def test_a_queue_of_depth_1(queue: str, tmp_path: Path) -> None:
    goes_through(chip_of(tmp_path, f"[queues.{queue}]\ndepth = 1\n"))


def test_all_queues_of_depth_1(tmp_path: Path) -> None:
    goes_through(chip_of(tmp_path, "".join(f"[queues.{q}]\ndepth = 1\n" for q in ALL_QUEUES)))
