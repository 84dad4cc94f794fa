"""Recorded driver jobs: milliseconds a frame, one core beside llvmpipe's, and on all cores.

Ours is the run's last job, submitted again and again: lists, shading, tiles; the driver's own work
is done. llvmpipe's is the same glmark2 scene at the same size, off screen, as glmark2 counts its
CPU time, averaged over the scene's frames (with what Mesa needs to come from calls to lists).
Both rasterise in one thread, take turns in the same run, and the best of several counts.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from benchmarks._llvmpipe import SCENES, Llvmpipe, llvmpipe
from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.core import V3D

RUNS = Path(__file__).resolve().parent.parent / "tests" / "data" / "vc4-jobs"
SECONDS = 0.25
PASSES = 3
NO_FRAME = frozenset(["glmark2_texture_texture-filter_mipmap"])
"""Runs whose last job is no frame of the scene."""


class Scene:
    """A run with its last job ready to be submitted, everything compiled."""

    def __init__(self, path: Path, threads: int) -> None:
        reporter = Reporter()
        self.run = RecordedRun(path, reporter)
        self.v3d = V3D(self.run.memory, reporter, threads=threads)
        built: BuiltJob | None = None
        for job in self.run.jobs:
            built = job.build(self.run.memory)
            run_job(self.v3d, built)
        assert built is not None
        self.job = built
        run_job(self.v3d, built)

    def frame_times(self, seconds: float = SECONDS) -> tuple[float, float]:
        """(CPU, wall) milliseconds a frame."""
        count = 0
        wall, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            run_job(self.v3d, self.job)
            count += 1
        spent = time.process_time() - cpu, time.perf_counter() - wall
        return 1000 * spent[0] / count, 1000 * spent[1] / count


def compared(path: Path, peer: Llvmpipe | None) -> tuple[float, float | None]:
    """CPU milliseconds a frame of one core: ours and, where there is such a scene, the peer's."""
    scene = Scene(path, 1)
    name = None if path.name in NO_FRAME else SCENES.get(path.name)
    ours, theirs = [], []
    for _ in range(PASSES):
        ours.append(scene.frame_times()[0])
        spent = peer.cpu_time(name) if peer is not None and name is not None else None
        if spent is not None:
            theirs.append(spent)
    return min(ours), min(theirs, default=None)


def run() -> list[dict[str, Any]]:
    """Two rows a scene: one core with the peer, and all cores."""
    rows: list[dict[str, Any]] = []
    cores = os.cpu_count() or 1
    with llvmpipe() as peer:
        for path in sorted(p for p in RUNS.iterdir() if (p / "job0001").is_dir()):
            ours, theirs = compared(path, peer)
            row = {"name": f"{path.name}, one core", "value": ours, "unit": "CPU ms/frame"}
            if theirs is not None:
                row |= {"peer": "llvmpipe", "peer_value": theirs, "ratio": theirs / ours}
            rows.append(row)
            scene = Scene(path, cores)
            wall = min(scene.frame_times()[1] for _ in range(PASSES))
            rows.append({"name": f"{path.name}, {cores} cores", "value": wall, "unit": "ms/frame"})
    return rows
