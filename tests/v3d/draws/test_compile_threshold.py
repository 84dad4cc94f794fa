"""Native code that can wait: compiled after some uses, or at once if it is known."""

from __future__ import annotations

from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.core import V3D
from vc4lab.v3d.draws import frame_draws
from vc4lab.v3d.draws.compile_threshold import CompileThreshold

RUN = Path(__file__).parents[2] / "data" / "vc4-jobs" / "tri_arm64"


def test_unknown_code_is_waited_for(monkeypatch):
    monkeypatch.setattr(CompileThreshold, "uses", 2)
    threshold = CompileThreshold(lambda: False)
    assert [threshold.reached() for _ in range(4)] == [False, False, True, True]


def test_known_code_is_used_at_once(monkeypatch):
    monkeypatch.setattr(CompileThreshold, "uses", 2)
    assert CompileThreshold(lambda: True).reached()


def test_first_frames_are_the_same_with_and_without(monkeypatch):
    """Two frames without, the third with it: the same bytes each time."""
    monkeypatch.setattr(frame_draws, "_known", lambda: False)
    monkeypatch.setattr(CompileThreshold, "uses", 2)
    prepared = []
    native = frame_draws._native
    monkeypatch.setattr(
        frame_draws, "_native", lambda lookups: (prepared.append(lookups), native(lookups))[1]
    )
    run = RecordedRun(RUN)
    v3d = V3D(run.memory, Reporter(), threads=1)
    pictures, natively = [], []
    for _ in range(4):
        for job in run.jobs:
            built = job.build(run.memory)
            run_job(v3d, built)
        pictures.append(bytes(run.memory.view(0, 1 << 24)))
        natively.append(prepared[-1])
    assert natively == [False, False, True, True]
    assert pictures[0] == pictures[1] == pictures[2] == pictures[3]
