"""What a render state costs that was never seen before: its programs compiled, without any cache.

Every recorded run is replayed with nothing known but what all draws share (binner, tile loops, the
loop over vertices), which a first replay has made. CPU time of the one thread that compiles: on an
otherwise quiet machine that is how long a frame waits. A draw state is a fragment program with its
vertex and coordinate shaders; of a run with several, the mean counts.

Python collects garbage before each program and not while it is compiled: a whole collection takes
as long as a small program, and falls on whichever program is compiled at that moment.
"""

from __future__ import annotations

import gc
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
    try:
        return _rows(_measure())
    finally:
        os.environ.pop("VC4LAB_CACHE", None)
        if before is not None:
            os.environ["VC4LAB_CACHE"] = before


def _measure() -> list[list[tuple[str, float]]]:
    """(kind of program, milliseconds) of everything compiled for each run but the first."""
    from vc4lab.drm.recorded.replay import replay
    from vc4lab.simd import native
    from vc4lab.v3d.fragment import pipeline
    from vc4lab.v3d.vertex import pipeline as vertex

    found: list[tuple[str, float]] = []
    compiled: list[str] = []
    honest, build = native.compile_ir, native.build

    def noting(ir: str, *arguments: Any) -> bytes:
        compiled.append(ir)
        return honest(ir, *arguments)

    def timed(name: str, *arguments: Any, **options: Any) -> Any:
        compiled.clear()
        gc.collect()
        gc.disable()
        start = time.thread_time()
        try:
            module = build(name, *arguments, **options)
        finally:
            gc.enable()
        if compiled:
            found.append((name, 1000 * (time.thread_time() - start)))
        return module

    runs = []
    users = (pipeline, vertex)
    native.compile_ir = noting
    for user in users:
        user.build = timed  # type: ignore[attr-defined]
    try:
        for path in sorted(path for path in JOBS.iterdir() if (path / "job0001").exists()):
            found.clear()
            pipeline.PIPELINES.clear()
            vertex.vertex_pipeline.cache_clear()
            with tempfile.TemporaryDirectory() as folder:
                os.environ["VC4LAB_CACHE"] = folder
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
    name = "compile a new draw state (fragment, vertex, coordinate)"
    last = sorted(states)[int(0.9 * (len(states) - 1) + 0.5)]
    for what, value in (("median of runs", statistics.median(states)), ("90 % of runs", last)):
        rows.append({"name": f"{name}, {what}", "value": value, "unit": "ms"})
    return rows
