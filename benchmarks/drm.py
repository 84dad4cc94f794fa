"""The Linux kernel's half of a job: CPU time of `build_submit` with shaders that are known.

A row per recorded run (its last job), one for 7,920 draws with as many shader states, uniforms and
textures, one per draw of it, and what a shader costs once, when its buffer is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.shaders import analyse
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import Submit

RUNS = Path(__file__).parents[1] / "tests" / "data" / "vc4-jobs"
MANY = "glmark2_ideas"
DRAWS = 7920


def cost(work: Callable[[], object], seconds: float = 0.2) -> float:
    """Microseconds of this thread's CPU time, the least of several calls."""
    best = float("inf")
    end = time.perf_counter() + seconds
    while True:
        start = time.thread_time_ns()
        work()
        best = min(best, (time.thread_time_ns() - start) / 1000)
        if time.perf_counter() > end:
            return best


def many_draws(submit: Submit, draws: int = DRAWS) -> Submit:
    """The job with everything between its first and its last two records again and again."""
    head, tail = 16 + 1, 2  # grid and start of binning; semaphore and flush
    assert submit.bin_cl[0] == 112
    assert submit.bin_cl[16] == 6
    times = draws // submit.shader_rec_count
    body = submit.bin_cl[head:-tail]
    return replace(
        submit,
        bin_cl=submit.bin_cl[:head] + body * times + submit.bin_cl[-tail:],
        shader_rec=submit.shader_rec * times,
        uniforms=submit.uniforms * times,
        shader_rec_count=submit.shader_rec_count * times,
    )


def row(name: str, run: RecordedRun, submit: Submit) -> dict[str, Any]:
    """One job."""
    assert run.workspace is not None
    place, reporter = Workspace.at(run.workspace), Reporter()

    def build() -> None:
        build_submit(submit, run.memory, place, reporter, run.known)

    return {"name": f"DRM job: {name}", "value": cost(build), "unit": "us of CPU"}


def shaders(run: RecordedRun) -> dict[str, Any]:
    """What all shaders of a run's last job cost when they are made."""
    submit = run.jobs[-1].submit
    assert submit is not None
    found = [b for b in submit.buffers if b.shader]
    total = sum(cost(lambda at=b.address, size=b.size: analyse(run.memory, at, size)) for b in found)
    return {
        "name": f"DRM shader of {MANY}, once", "value": total / len(found), "unit": "us of CPU"
    }  # fmt: skip


def run() -> list[dict[str, Any]]:
    rows = []
    for path in sorted(p for p in RUNS.iterdir() if any(p.glob("job*"))):
        recorded = RecordedRun(path)
        for job in recorded.jobs:
            job.build()
        submit = recorded.jobs[-1].submit
        assert submit is not None
        rows.append(row(path.name, recorded, submit))
        if path.name == MANY:
            large = row(f"{DRAWS} draws", recorded, many_draws(submit))
            each = {**large, "name": "DRM job: each of these draws", "value": large["value"] / DRAWS}
            rows += [large, each, shaders(recorded)]
    return rows
