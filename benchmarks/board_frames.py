"""The timing model's frames a second for glmark2, beside a Raspberry Pi 3.

``make bench VC4_DRIVER=DIR``; without a driver there are no rows. Each scene is drawn on the screen
by `vc4lab drm --timing`, twice: what the longer run has more is taken for frames of the steady
state. Times are what the V3D takes; the machine that this runs on does not matter.

glmark2's animations follow the machine's clock, so these frames differ from run to run. VC4_SCENES
names a folder of recorded ones, which are the same each time: beside SCENE.scene, which has the
scene's words, SCENE is what `vc4lab drm --record-jobs` has written. Its last pictures are timed.

All 32 published scenes have a row. Judged are those that the GPU bounds, by one rule: between two
pictures the program does no more than bump:bump-render=normals does, which took the board 2.17 ms
in all. The others upload vertices that the processor has computed or copied for each picture
(buffer, build without a buffer), or draw in hundreds of calls (ideas). The rule was written when
the figures were known.

``python -m benchmarks.board_frames docs/timing.md`` prints how frames differ, from the table of that page.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks._scene_page import last_picture
from vc4lab.drm.recorded.replay import replay
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.changes import changed, grid, read_setting
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.frame_times import clocks_of
from vc4lab.timing.frames.frame import Frame

BOARD = "pi3"
SHORT, LONG = 4, 10
"""Pictures of the two runs."""
PICTURES = 5
"""Of a recorded run, at most."""
COPY = 0.75
"""Milliseconds in which the picture is copied to its window. Nine scenes are so fast on the board
that they bound it to 0.5 to 1.0; this is the middle."""
DISPLAY = "sdram.others=498e6"
"""The window is on a screen, which is read meanwhile: 1920 x 1080 pixels of 32 bits at 60 Hz."""
MEASURED = {
    "build:use-vbo=false": 281,
    "build:use-vbo=true": 303,
    "texture:texture-filter=nearest": 375,
    "texture:texture-filter=linear": 345,
    "texture:texture-filter=mipmap": 289,
    "shading:shading=gouraud": 199,
    "shading:shading=blinn-phong-inf": 145,
    "shading:shading=phong": 85,
    "bump:bump-render=high-poly": 80,
    "bump:bump-render=normals": 461,
    "bump:bump-render=height": 390,
    "effect2d:kernel=0,1,0;1,-4,1;0,1,0;": 161,
    "effect2d:kernel=1,1,1,1,1;1,1,1,1,1;1,1,1,1,1;": 85,
    "pulsar:light=false:quads=5:texture=false": 314,
    "desktop:blur-radius=5:effect=blur:passes=1:separable=true:windows=4": 40,
    "desktop:effect=shadow:windows=4": 121,
    "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5:update-method=map": 59,
    "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5:update-method=subdata": 59,
    "buffer:columns=200:interleave=true:update-dispersion=0.9:update-fraction=0.5:update-method=map": 75,
    "ideas:speed=duration": 269,
    "jellyfish": 138,
    "terrain": 5,
    "shadow": 106,
    "refract": 21,
    "conditionals:fragment-steps=0:vertex-steps=0": 392,
    "conditionals:fragment-steps=5:vertex-steps=0": 259,
    "conditionals:fragment-steps=0:vertex-steps=5": 389,
    "function:fragment-complexity=low:fragment-steps=5": 357,
    "function:fragment-complexity=medium:fragment-steps=5": 48,
    "loop:fragment-loop=false:fragment-steps=5:vertex-steps=5": 329,
    "loop:fragment-steps=5:fragment-uniform=false:vertex-steps=5": 329,
    "loop:fragment-steps=5:fragment-uniform=true:vertex-steps=5": 119,
}
"""Frames a second of a Pi 3 in a window."""
BY_PROCESSOR = ("build:use-vbo=false", "buffer:", "ideas:")
"""What begins so is printed and not judged: the rule above."""
DIFFERENCES = {
    "texture, linear beyond nearest": ("texture:texture-filter=linear", "texture:texture-filter=nearest"),
    "texture, mipmap beyond nearest": ("texture:texture-filter=mipmap", "texture:texture-filter=nearest"),
    "bump, height beyond normals": ("bump:bump-render=height", "bump:bump-render=normals"),
    "conditionals, 5 fragment steps beyond none": (
        "conditionals:fragment-steps=5:vertex-steps=0",
        "conditionals:fragment-steps=0:vertex-steps=0",
    ),
}
"""Scenes whose frames differ in the GPU's work alone: what one takes beyond the other is free of the
copy to the window and of what each frame costs in any case."""
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


def on_a_screen() -> Chip:
    """The chip, while a display is read."""
    chip = load_chip("videocore4")
    (point,) = grid([read_setting(DISPLAY, chip)])
    return changed(chip, point, DISPLAY)


def recorded_milliseconds(folder: Path) -> float:
    """Of a picture of a recorded scene, on average of its last ones; the first two load data."""
    frames: list[Frame] = []
    replay(folder, on_work=lambda _name, found: frames.extend(found))
    jobs = len(last_picture(frames))
    pictures = max(1, min(PICTURES, len(frames) // jobs - 2))
    timed = frames[-pictures * jobs :]
    chip = on_a_screen()
    speed = speeds_of(chip).of_board[BOARD]
    clocks = clocks_of(chip, speed, [*timed, *timed[:jobs]])  # the first one has its binning besides
    return 1000 * sum(clocks[jobs:]) / pictures / speed.clock


def is_judged(scene: str) -> bool:
    """Whether the GPU bounds a scene."""
    return not scene.startswith(BY_PROCESSOR)


def ranks(values: list[float]) -> list[float]:
    """From 1; equal values share theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Spearman's."""
    return statistics.correlation(ranks(first), ranks(second))


def differences(rates: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds that a frame of one scene takes beyond one of another. rates: frames a second by scene."""
    return {name: 1000 / rates[more] - 1000 / rates[less] for name, (more, less) in DIFFERENCES.items()}


def page_differences(page: str) -> str:
    """A table of Markdown: the differences on the board, and those of the model's rates that a page has."""
    found = re.findall(r"^\| (\S+) \| (\d+) \| ([\d.]+) \| [\d.]+ \|", page, re.MULTILINE)
    board, model = differences(MEASURED), differences({scene: float(rate) for scene, _, rate in found})
    lines = ["| scenes | Pi 3, ms | model, ms | |", "| --- | --- | --- | --- |"]
    for name in sorted(board, key=lambda name: model[name] / board[name]):
        lines.append(f"| {name} | {board[name]:.2f} | {model[name]:.2f} | {model[name] / board[name]:.2f} |")
    return "\n".join(lines)


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
    peer = "Pi 3, window of 800x600"
    rows: list[dict[str, Any]] = []
    judged: list[tuple[float, float]] = []
    rates: dict[str, float] = {}
    for scene, measured in MEASURED.items():
        model = rates[scene] = 1000 / (taken_by(scene) + COPY)
        if is_judged(scene):
            judged.append((model, float(measured)))
        rows.append(
            {
                "name": f"board: {scene}" + ("" if is_judged(scene) else " (not judged)"),
                "value": model, "unit": "frames/s",
                "peer": peer, "peer_value": measured, "ratio": model / measured,
            }
        )  # fmt: skip
    peers = differences(MEASURED)
    for name, value in differences(rates).items():
        rows.append({
            "name": f"board: {name}", "value": value, "unit": "ms",
            "peer": peer, "peer_value": peers[name], "ratio": value / peers[name],
        })  # fmt: skip
    models, boards = [one for one, _ in judged], [one for _, one in judged]
    summary = {
        "rank correlation": rank_correlation(models, boards),
        "median error": statistics.median(abs(m / b - 1) for m, b in judged),
        "largest factor": max(max(m / b, b / m) for m, b in judged),
    }
    rows += [{"name": f"board: {name}", "value": value, "unit": ""} for name, value in summary.items()]
    return rows


if __name__ == "__main__":
    print(page_differences(Path(sys.argv[1]).read_text(encoding="utf-8")))
