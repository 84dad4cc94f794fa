"""The timing model's frames a second for glmark2, beside a Raspberry Pi 3.

``make bench VC4_DRIVER=DIR``; without a driver there are no rows. Each scene is drawn on the screen
by `vc4lab drm --timing`, twice: what the longer run has more is taken for frames of the steady
state. Times are what the V3D takes; the machine that this runs on does not matter.

The board's frames a second were published for windows of 800x600 (Mesa 17.1, 2017, ±30 %). Under X
each frame is copied to the screen: a picture of one textured quad, which glmark2's effect2d with a
kernel of one draws here (Mesa 22.3), is added to each frame.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from typing import Any

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


def ranks(values: list[float]) -> list[float]:
    """From 1; equal values share theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's."""
    return statistics.correlation(ranks(first), ranks(second))


def run() -> list[dict[str, Any]]:
    """A row for each scene, then how well they agree."""
    driver = os.environ.get("VC4_DRIVER", "")
    if not driver:
        return []
    copy = milliseconds(COPY, driver)
    peer = "Pi 3, window of 800x600"
    rows: list[dict[str, Any]] = [
        {"name": "board: the copy of a window", "value": copy, "unit": "ms"}
    ]
    models: list[float] = []
    for scene, measured in MEASURED.items():
        model = 1000 / (milliseconds(scene, driver) + copy)
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
    rows += [
        {"name": f"board: {name}", "value": value, "unit": ""} for name, value in summary.items()
    ]
    return rows
