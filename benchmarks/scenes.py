"""Recorded driver jobs: milliseconds a frame, binning and rendering, on one core and on all."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.drm.jobs import RecordedRun
from vc4lab.drm.replay import submit
from vc4lab.v3d.core import V3D

RUNS = Path(__file__).resolve().parent.parent / "tests" / "data" / "vc4-jobs"
SECONDS = 0.5


def frame_times(path: Path, threads: int) -> tuple[float, float]:
    """(CPU, wall) milliseconds of the last job of a run, submitted again and again."""
    reporter = Reporter()
    run = RecordedRun(path, reporter)
    v3d = V3D(run.memory, reporter, threads=threads)
    built = None
    for job in run.jobs:
        built = job.build(run.memory)
        submit(v3d, built)
    assert built is not None
    submit(v3d, built)
    best = (1e9, 1e9)
    for _ in range(3):
        count = 0
        wall, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < SECONDS / 3:
            submit(v3d, built)
            count += 1
        spent = time.process_time() - cpu, time.perf_counter() - wall
        best = min(best[0], 1000 * spent[0] / count), min(best[1], 1000 * spent[1] / count)
    return best


def run() -> list[dict[str, Any]]:
    """One row a scene and number of threads."""
    rows: list[dict[str, Any]] = []
    cores = os.cpu_count() or 1
    for path in sorted(p for p in RUNS.iterdir() if (p / "job0001").is_dir()):
        cpu, _ = frame_times(path, 1)
        _, wall = frame_times(path, cores)
        rows.append({"name": f"{path.name}, one core", "value": cpu, "unit": "CPU ms/frame"})
        rows.append({"name": f"{path.name}, {cores} cores", "value": wall, "unit": "ms/frame"})
    return rows
