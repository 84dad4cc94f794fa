"""The listings of a run's recorded jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.hardware import bin_only
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import JobError
from vc4lab.jobs.listing import INDENT, JobListing

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.diagnostics import Reporter


def list_run(path: str | Path, reporter: Reporter, number: int | None = None) -> Iterator[str]:
    """The listings of a run's jobs, or of the one asked for. Jobs are binned, but not drawn.

    Refused jobs are left out; `reporter` has the reason.
    """
    run = RecordedRun(path, reporter, number)
    if not run.jobs:
        return
    from vc4lab.v3d.core import V3D

    v3d = V3D(run.memory, reporter)
    for job in run.jobs:
        try:
            built = job.build(run.memory)
        except JobError:
            continue
        if job in run.wanted:
            bin_only(v3d, built)
            yield f"{job.name}: {built.width}x{built.height}, {built.tile_count} tiles"
            yield from (INDENT + line for line in JobListing(run.memory).lines(built))
