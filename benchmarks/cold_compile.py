"""What a render state costs that was never seen before: its programs compiled, without any cache.

Every recorded run is replayed once with an empty cache, after a first one that has made what all
draws share (binner, tile loops). CPU time of one core.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

JOBS = Path(__file__).parents[1] / "tests" / "data" / "vc4-jobs"
STAGES = ("fragment", "vertex")
"""Names of modules that hold a program; coordinate shaders are of the second kind."""


def run() -> list[dict[str, Any]]:
    """Milliseconds of CPU time for each kind of program, and for whole draw states."""
    before = os.environ.get("VC4LAB_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VC4LAB_CACHE"] = folder
        try:
            return _rows(_measure())
        finally:
            if before is None:
                del os.environ["VC4LAB_CACHE"]
            else:
                os.environ["VC4LAB_CACHE"] = before


def _measure() -> list[list[tuple[str, float]]]:
    """(kind of program, milliseconds) of everything compiled for each run but the first."""
    from vc4lab.drm.replay import replay
    from vc4lab.simd import native
    from vc4lab.v3d.fragment import pipeline
    from vc4lab.v3d.geometry import vertex

    found: list[tuple[str, float]] = []
    compiled: list[str] = []
    honest, build = native.compile_ir, native.build

    def noting(ir: str, target: Any) -> bytes:
        compiled.append(ir)
        return honest(ir, target)

    def timed(name: str, *arguments: Any, **options: Any) -> Any:
        compiled.clear()
        start = time.process_time()
        module = build(name, *arguments, **options)
        if compiled:
            found.append((name, 1000 * (time.process_time() - start)))
        return module

    runs = []
    users = (pipeline, vertex)
    native.compile_ir = noting
    for user in users:
        user.build = timed  # type: ignore[attr-defined]
    try:
        for path in sorted(path for path in JOBS.iterdir() if (path / "job0001").exists()):
            found.clear()
            replay(path, threads=1)
            runs.append(list(found))
    finally:
        native.compile_ir = honest
        for user in users:
            user.build = build  # type: ignore[attr-defined]
    return runs[1:]


def _rows(runs: list[list[tuple[str, float]]]) -> list[dict[str, Any]]:
    rows = []
    for stage in STAGES:
        times = [ms for run in runs for name, ms in run if name == stage]
        row = {"name": f"compile a new {stage} program, median", "value": statistics.median(times)}
        rows.append({**row, "unit": "ms"})
        rows.append({"name": f"… the slowest of {len(times)}", "value": max(times), "unit": "ms"})
    states = [
        sum(ms for _, ms in run) / count
        for run in runs
        if (count := sum(name == "fragment" for name, _ in run))
    ]
    name = "compile a new draw state (fragment, vertex, coordinate), median of runs"
    rows.append({"name": name, "value": statistics.median(states), "unit": "ms"})
    return rows
