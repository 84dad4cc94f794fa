"""Performance counters of captured jobs."""

from __future__ import annotations

from pathlib import Path

from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.work import JobsWatch
from vc4lab.options import GpuOptions

TRI = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"
PRIMITIVES, WRITTEN = 1, 9


def test_all_is_counted_though_a_frame_begins_with_a_state():
    capture = open_jobs(TRI)
    (frame,) = capture.frames
    assert frame.start, "the capture must begin with the state of a V3D"
    with JobsWatch(work=False, counters=True) as watch:
        JobsPlayer(capture, gpu=GpuOptions(threads=1), on_v3d=watch.listen).run(frame)
        (job,) = watch.take(frame.number)
    assert job.counted[PRIMITIVES] == 1
    assert job.counted[WRITTEN] > 0
