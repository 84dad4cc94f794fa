"""The QPU programs of recorded jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import JobError
from vc4lab.jobs.programs import FoundProgram, ProgramFinder

if TYPE_CHECKING:
    from pathlib import Path

    from vc4lab.diagnostics import Reporter


def programs_of_run(path: str | Path, reporter: Reporter) -> list[FoundProgram]:
    """The programs of a run's jobs, each once. Refused jobs are left out; `reporter` has the reason."""
    run = RecordedRun(path, reporter)
    finder: ProgramFinder | None = None
    for job in run.jobs:
        try:
            built = job.build(run.memory)
        except JobError:
            continue
        if finder is None:
            finder = ProgramFinder(run.memory)
        finder.place = job.name
        finder.forget()
        finder.look(built)
    return finder.found if finder is not None else []
