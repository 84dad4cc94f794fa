"""The programs of recorded work, for commands that take programs: jobs in folders, captures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.files import SUFFIX
from vc4lab.cli.captures import bad, has_only_jobs, is_capture, opened
from vc4lab.cli.exit_codes import failed

if TYPE_CHECKING:
    from vc4lab.jobs.programs import FoundProgram


SUFFIXES = (SUFFIX, ".clif", ".dump")
"""Captures, and dumps of other tools; what other files are is not looked for."""


def is_recorded(file: str) -> bool:
    """Whether a file or folder has recorded work rather than a program."""
    return file != "-" and (Path(file).suffix in SUFFIXES or os.path.isdir(file))


def recorded_programs(file: str, number: int | None = None) -> list[FoundProgram]:
    """Its programs, each once, or the one with a number from 1 on. Raises typer.Exit."""
    found = _programs(Path(file))
    if number is None:
        return found
    if number > len(found):
        raise failed(f"{file}: there is no program {number}: it has {len(found)}")
    return [found[number - 1]]


def _programs(path: Path) -> list[FoundProgram]:
    from vc4lab.capture.errors import CaptureError
    from vc4lab.cli.job_captures import opened_jobs
    from vc4lab.cli.messages import reporter_of
    from vc4lab.cli.outputs import say

    reporter = reporter_of()
    reporter.listeners.append(lambda item: say(str(item)))
    if not is_capture(path):
        from vc4lab.drm.recorded.programs import programs_of_run

        return programs_of_run(path, reporter)
    try:
        if has_only_jobs(path):
            from vc4lab.jobs.programs import programs_of_jobs

            return programs_of_jobs(opened_jobs(path), reporter)
        from vc4lab.driver.capture.programs import programs_of_capture

        return programs_of_capture(opened(path))
    except CaptureError as error:
        raise bad(error) from None
