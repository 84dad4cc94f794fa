"""How fast the timing model is: pictures of glmark2 a second, drawn, recorded and timed.

Processor time of one core, for one board, every batch and quad; the median scene counts (at least 3
a second at 800x600) and the most memory that a process took (below 1 GiB). With ``VC4_DRIVER=DIR``
the scenes of `board_frames` are recorded and timed at 800x601; else the recorded runs of the tests,
at 640x480, whose rate is multiplied by the share of the pixels.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.board_frames import MEASURED
from vc4lab.drm.recorded.replay import replay
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import load_chip
from vc4lab.timing.frame_times import model_of
from vc4lab.timing.frames.frame import Frame

RUNS = Path(__file__).resolve().parent.parent / "tests" / "data" / "vc4-jobs"
PICTURES = 6
SIZE = (800, 600)
SMALL = (640, 480)
LEAST, MOST = 3, 1024
"""Pictures a second, and MiB."""


def timed(folder: Path, pictures: int) -> dict[str, float]:
    """Seconds of a picture (drawn with the feed; in the model), and MiB that the process took."""
    frames: list[Frame] = []
    replay(folder, threads=1, on_work=lambda _name, found: frames.extend(found))
    chip = load_chip("videocore4")
    model = model_of(chip, speeds_of(chip).of_board["pi3"])
    list(model.run(frames[-1:]))  # everything is compiled
    count = pictures or len(frames)
    began = time.process_time()
    replay(folder, threads=1, on_work=lambda _name, _found: None)
    drawn = (time.process_time() - began) / count
    began = time.process_time()
    list(model.run(frames))
    modelled = (time.process_time() - began) / count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"drawn": drawn, "model": modelled, "memory": memory}


def in_a_process(folder: Path, pictures: int = 0) -> dict[str, float]:
    """The same in a process of its own; pictures: of the run, 0 if each job is one."""
    command = [sys.executable, "-m", "benchmarks.timing_model", str(folder), str(pictures)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{folder.name}: {done.stderr[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def record(scene: str, driver: str, folder: Path) -> Path:
    """The jobs of some pictures of a scene."""
    into = folder / "".join(c if c.isalnum() or c in "-_" else "_" for c in scene)
    command = [
        *(sys.executable, "-m", "vc4lab", "drm", "--driver", driver, "--modes", "800x601"),
        *("--unpaced", "--headless", "--frames", str(PICTURES), "--record-jobs", str(into)),
        *("--", "glmark2-es2-drm", "-b", f"{scene}:duration=600"),
    ]
    subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    return into


def rows_of(found: dict[str, dict[str, float]], scale: float, what: str) -> list[dict[str, Any]]:
    """The median and the slowest scene, and the memory."""
    rates = {name: scale / (one["drawn"] + one["model"]) for name, one in found.items()}
    alone = [scale / one["model"] for one in found.values()]
    slowest = min(rates, key=lambda name: rates[name])
    median = statistics.median(rates.values())
    memory = max(one["memory"] for one in found.values())
    return [
        {
            "name": f"timing model: drawn and timed, median of {len(rates)} scenes, {what}",
            "value": median, "unit": "pictures/s", "peer": "at least", "peer_value": LEAST,
            "ratio": median / LEAST,
        },
        {
            "name": "timing model: the model alone, median", "unit": "pictures/s",
            "value": statistics.median(alone),
        },
        {
            "name": f"timing model: slowest scene, {slowest}", "unit": "pictures/s",
            "value": rates[slowest],
        },
        {
            "name": "timing model: memory at most", "value": memory, "unit": "MiB",
            "peer": "below", "peer_value": MOST, "ratio": MOST / memory,
        },
    ]  # fmt: skip


def run() -> list[dict[str, Any]]:
    """The rows."""
    driver = os.environ.get("VC4_DRIVER", "")
    if driver:
        with tempfile.TemporaryDirectory() as folder:
            recorded = [(name, record(name, driver, Path(folder))) for name in MEASURED]
            return rows_of({name: in_a_process(path, PICTURES) for name, path in recorded}, 1, "800x601")
    runs = [path for path in sorted(RUNS.iterdir()) if path.name.startswith("glmark2_")]
    scale = SMALL[0] * SMALL[1] / (SIZE[0] * SIZE[1])
    found = {path.name: in_a_process(path) for path in runs}
    return rows_of(found, scale, "640x480, by pixels for 800x600")


if __name__ == "__main__":
    print(json.dumps(timed(Path(sys.argv[1]), int(sys.argv[2]))))
