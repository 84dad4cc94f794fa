"""A built job through the V3D's registers: the entry that replay and the virtual device share.

The V3D's findings come with the job's name; a job that never ends is abandoned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.diagnostics.catalogue.texture import CONFIGURATIONS
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.submission import CT0CA, CT0EA, SubmissionReports, reset_lists, submit

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D


class JobReports(SubmissionReports):
    """Findings about the job that runs, with its name, each only once for a program."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter)
        self.program = ""
        self.job = ""
        self.place: Callable[[int], str] = lambda _address: ""
        """Gives a name to an address of the GPU; "" for nothing known."""

    def begin(self, program: str, job: str, place: Callable[[int], str]) -> None:
        """Take what comes now as findings about this job."""
        self.program, self.job, self.place = program, job, place

    def words(self, code: str, message: str, address: int | None) -> tuple[Hashable, str, str]:
        where = self.place(address) if address is not None else ""
        text = f"{message} (in {where})" if where else message
        key = self.program, code, text, None if code in CONFIGURATIONS else address
        return key, text, f"{self.job}: {text}" if self.job else text


def run_job(v3d: V3D, job: BuiltJob, name: str = "job", hung: Callable[[], None] | None = None) -> bool:
    """Feed one job to the V3D's registers; whether its frame was finished.

    hung: called when it was not, before the V3D is reset, which is what the kernel does then.
    """
    reason = submit(v3d, job)
    if reason is None:
        return True
    states = ", ".join(
        f"{register} 0x{v3d.read(BY_NAME[register].offset):08x}"
        for register in ("CT0CS", "CT0CA", "CT1CS", "CT1CA", "PCS")
    )
    reporter = v3d.reporter
    if isinstance(reporter, JobReports):
        reporter = reporter.reporter  # the name is in the text
    if hung is not None:
        hung()
    reset_lists(v3d)
    reporter.report("DRM-016", f"{name}: {reason} ({states})", block="DRM")
    return False


def bin_only(v3d: V3D, job: BuiltJob) -> None:
    """Make a job's tile lists without drawing them."""
    if job.bin_start != job.bin_end:
        v3d.write(CT0CA, job.bin_start)
        v3d.write(CT0EA, job.bin_end)
        reset_lists(v3d)
