"""Recorded conformance tests: pixels that real Raspberry Pi 3 boards are known to draw.

`tests/data/vc4-conformance/README.md` says which test each run is and what it settles. A case
here names the run, the job, and pixels of the picture after it; both engines must draw them.
"""

import functools
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL.Image import Image

from vc4lab.drm.recorded.replay import replay
from vc4lab.qpu.run import wide
from vc4lab.v3d.vertex import reference

RUNS = Path(__file__).parents[2] / "data" / "vc4-conformance"

RGB = tuple[int, int, int]


@dataclass(frozen=True)
class Case:
    """Pixels that are due after one job; None: the last job that writes colour."""

    run: str
    job: str | None
    pixels: dict[tuple[int, int], RGB]
    messages: frozenset[str] = frozenset()
    """Codes of the diagnostics that belong to the run; no others may come."""
    engines: tuple[str, ...] = ("jit", "interpreter")

    def __str__(self) -> str:
        return f"{self.run}-{self.job or 'last'}"


CASES: list[Case] = [
    Case("div_int", "job0001", {(105, 5): (10, 255, 255)}),
    # 256 draws of about 700,000 instructions: an hour in the interpreter, which is asked for the
    # first one below. 64 in a channel, and not 191: one of 4,095 comparisons has failed.
    Case("budget_4095_loop", "job0001", {(0, 0): (191, 191, 0)}, engines=("jit",)),
    Case(
        "clip_window_0x0", "job0001", {(0, 80): (0, 0, 255), (159, 159): (0, 0, 255)}, frozenset({"CLE-026"})
    ),
    Case(
        "wide_point",
        "job0002",
        {
            **dict.fromkeys([(9, 9), (190, 9), (9, 190), (99, 198), (199, 100)], (255, 255, 255)),
            **dict.fromkeys([(33, 33), (171, 28), (28, 171), (99, 100)], (255, 255, 255)),
            **dict.fromkeys([(190, 190), (50, 50), (199, 90), (90, 199)], (0, 0, 0)),
        },
    ),
    Case(
        "point_limit",
        "job0001",
        {(0, 0): (0, 255, 0), (7, 3): (0, 255, 0), (8, 0): (255, 0, 0), (263, 3): (255, 0, 0)},
    ),
    Case(  # every bar has its colour, whatever its alpha
        "alpha_to_coverage_4x",
        "job0003",
        {(40, 10): (243, 235, 128), (40, 66): (58, 180, 254), (40, 254): (0, 153, 0)},
    ),
    Case("depth_never", "job0001", {(100, 100): (0, 255, 0)}),
    Case("depth_equal_0.75", "job0001", {(61, 61): (0, 0, 0)}),
    Case("border565", "job0001", {(272, 35): (26, 230, 128)}),
    Case("cubemap_lod", None, {(5, 59): (0, 255, 0), (434, 96): (0, 255, 255)}),
    Case("cube_mip", "job0001", {(95, 81): (0, 0, 239)}),
    Case("cube_mip", "job0012", {(8, 0): (120, 128, 128)}),
    Case(  # 34.3 texels of 32 a pixel; the cells beside it are as due
        "mip_non_square",
        "job0001",
        {(48, 32): (255, 45, 210), (16, 32): (255, 86, 169), (80, 32): (255, 10, 245)},
    ),
    Case("vertex_lod", "job0001", {(124, 80): (184, 71, 184), (125, 80): (250, 5, 250)}),
]


@functools.cache
def pictures(run: str, engine: str) -> tuple[dict[str, Image], frozenset[str]]:
    """The picture after each job of a run, in order, and the codes of its diagnostics."""
    found: dict[str, Image] = {}
    result = replay(RUNS / run, engine=engine, on_image=found.__setitem__)
    assert result.drawn == result.jobs
    return found, frozenset(item.code for item in result.reporter.items)


@pytest.mark.parametrize(
    ("case", "engine"), [pytest.param(c, e, id=f"{c}-{e}") for c in CASES for e in c.engines]
)
def test_pixels_of_the_chip(case: Case, engine: str) -> None:
    found, messages = pictures(case.run, engine)
    image = found[case.job or list(found)[-1]]
    assert {at: image.getpixel(at) for at in case.pixels} == case.pixels
    assert messages == case.messages


BEFORE_DRAWS, EACH_DRAW, AFTER_DRAWS = 75, 15, 2
"""Bytes of the binning list of budget_4095_loop: 256 draws, each record 64 and record 33."""
LAST_ROUNDS = (4094, 4095)
"""The uniforms that end the loops of its coordinate shader and its vertex shader."""


@pytest.mark.parametrize(("engine", "rounds"), [("jit", 4095), ("jit", 750), ("interpreter", 750)])
def test_the_first_of_its_draws(
    engine: str, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 x 8 pixels of budget_4095_loop, as the whole run has.

    The interpreter takes 17 s for 4,095 rounds. 750 are 69,000 instructions, far more than it executes
    before it asks compiled code whether a shader ends; from there on it may execute those of 4,095.
    """
    granted = []

    def run_wide(*arguments: object, budget: int, **options: object) -> object:
        granted.append(budget)
        return wide.run_wide(*arguments, budget=budget, **options)

    monkeypatch.setattr(reference, "run_wide", run_wide)
    run = tmp_path / "run"
    shutil.copytree(RUNS / "budget_4095_loop", run)
    job = run / "job0001"
    (job / "submit.bin").unlink()  # what submit.json says as well
    stream = (job / "bin_cl.bin").read_bytes()
    stream = stream[: BEFORE_DRAWS + EACH_DRAW] + stream[-AFTER_DRAWS:]
    (job / "bin_cl.bin").write_bytes(stream)
    uniforms = np.fromfile(job / "uniforms.bin", "<u4")
    for last in LAST_ROUNDS:
        assert last in uniforms
        uniforms[uniforms == last] -= 4095 - rounds
    uniforms.tofile(job / "uniforms.bin")
    submit = json.loads((job / "submit.json").read_text())
    submit |= {"bin_cl_size": len(stream), "shader_rec_count": 1}
    (job / "submit.json").write_text(json.dumps(submit))
    result = replay(run, engine=engine)
    assert (max(granted, default=0) >= 4095 * 92) == (engine == "interpreter")
    assert [item.code for item in result.reporter.items] == []
    assert result.image is not None
    picture = result.image.load()
    drawn = {(x, y): picture[x, y] for x in range(64) for y in range(64)}
    first = {(x, y) for x in range(8) for y in range(8)}
    assert {at for at, colour in drawn.items() if colour == (191, 191, 0)} == first
    assert {colour for at, colour in drawn.items() if at not in first} == {(0, 255, 0)}
