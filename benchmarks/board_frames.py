"""The timing model's frames a second for glmark2, beside a Raspberry Pi 3.

``make bench VC4_DRIVER=DIR``; without a driver there are no rows. Each scene is drawn on the screen
by `vc4lab drm --timing`, twice: what the longer run has more is taken for frames of the steady
state. Times are what the V3D takes; the machine that this runs on does not matter.

glmark2's animations follow the machine's clock, so these frames differ from run to run. VC4_SCENES
names a folder of recorded ones, which are the same each time: beside SCENE.scene, which has the
scene's words, SCENE is what `vc4lab drm --record-jobs` has written. The last picture is timed,
among pictures like itself.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._scene_page import recorded
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import load_chip
from vc4lab.timing.frame_times import clocks_of

BOARD = "pi3"
SHORT, LONG = 4, 10
"""Pictures of the two runs."""
COPY = "effect2d:kernel=1;"
MEASURED = {
    "build:use-vbo=false": 281,
    "build:use-vbo=true": 303,
    "shading:shading=gouraud": 199,
    "shading:shading=blinn-phong-inf": 145,
    "shading:shading=phong": 85,
    "bump:bump-render=high-poly": 80,
    "effect2d:kernel=0,1,0;1,-4,1;0,1,0;": 161,
    "effect2d:kernel=1,1,1,1,1;1,1,1,1,1;1,1,1,1,1;": 85,
    "pulsar:light=false:quads=5:texture=false": 314,
    "desktop:blur-radius=5:effect=blur:passes=1:separable=true:windows=4": 40,
    "desktop:effect=shadow:windows=4": 121,
    "jellyfish": 138,
    "terrain": 5,
    "shadow": 106,
    "refract": 21,
    "loop:fragment-loop=false:fragment-steps=5:vertex-steps=5": 329,
    "loop:fragment-steps=5:fragment-uniform=false:vertex-steps=5": 329,
    "loop:fragment-steps=5:fragment-uniform=true:vertex-steps=5": 119,
}
"""Scenes that the GPU bounds, and a Pi 3's frames a second in a window."""
_TAKEN = re.compile(r"timing: (\d+) pictures .* take ([\d.]+) (ms|s) of")


def taken(scene: str, pictures: int, driver: str) -> tuple[int, float]:
    """Pictures that were shown, and milliseconds that the V3D takes for all of them."""
    command = [
        *(sys.executable, "-m", "vc4lab", "drm", "--driver", driver, "--modes", "800x601"),
        *("--unpaced", "--timing", "--timing-board", BOARD, "--frames", str(pictures)),
        *("--", "glmark2-es2-drm", "-b", f"{scene}:duration=600"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    found = _TAKEN.search(done.stdout + done.stderr)
    if found is None:
        raise RuntimeError(f"{scene}: {(done.stdout + done.stderr)[-400:]}")
    return int(found[1]), float(found[2]) * (1000 if found[3] == "s" else 1)


def milliseconds(scene: str, driver: str) -> float:
    """Of a frame in the steady state."""
    (fewer, before), (more, after) = (taken(scene, count, driver) for count in (SHORT, LONG))
    return (after - before) / (more - fewer)


def recorded_scenes(folder: Path) -> dict[str, Path]:
    """Scenes whose jobs are recorded, and where."""
    found = folder.glob("*.scene")
    return {one.read_text().strip(): one.with_suffix("") for one in found}


def recorded_milliseconds(folder: Path) -> float:
    """Of the last picture of a recorded scene."""
    frames = list(recorded(folder))
    chip = load_chip("videocore4")
    speed = speeds_of(chip).of_board[BOARD]
    clocks = clocks_of(chip, speed, [*frames, *frames, *frames])
    return 1000 * sum(clocks[len(frames) : 2 * len(frames)]) / speed.clock


def ranks(values: list[float]) -> list[float]:
    """From 1; equal values share theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's."""
    return statistics.correlation(ranks(first), ranks(second))


def run() -> list[dict[str, Any]]:
    """A row for each scene, then how well they agree."""
    driver, scenes = (os.environ.get(name, "") for name in ("VC4_DRIVER", "VC4_SCENES"))
    if scenes:
        folders = recorded_scenes(Path(scenes))
        return rows_of(lambda scene: recorded_milliseconds(folders[scene]))
    if not driver:
        return []
    return rows_of(lambda scene: milliseconds(scene, driver))


def rows_of(taken_by: Callable[[str], float]) -> list[dict[str, Any]]:
    """The rows. taken_by: milliseconds of a frame of a scene."""
    copy = taken_by(COPY)
    peer = "Pi 3, window of 800x600"
    rows: list[dict[str, Any]] = [{"name": "board: the copy of a window", "value": copy, "unit": "ms"}]
    models: list[float] = []
    for scene, measured in MEASURED.items():
        model = 1000 / (taken_by(scene) + copy)
        models.append(model)
        rows.append(
            {
                "name": f"board: {scene}", "value": model, "unit": "frames/s",
                "peer": peer, "peer_value": measured, "ratio": model / measured,
            }
        )  # fmt: skip
    boards = [float(value) for value in MEASURED.values()]
    errors = [abs(model / board - 1) for model, board in zip(models, boards, strict=True)]
    summary = {
        "rank correlation": rank_correlation(models, boards),
        "median error": statistics.median(errors),
        "largest factor": max(
            max(m / b, b / m) for m, b in zip(models, boards, strict=True)
        ),
    }  # fmt: skip
    rows += [{"name": f"board: {name}", "value": value, "unit": ""} for name, value in summary.items()]
    return rows
