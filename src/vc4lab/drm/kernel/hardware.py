"""A built job through the V3D's registers: the entry that replay and the virtual device share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.drm.kernel.job_reports import GivenUp, JobReports
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.tiles.threads import Abandoned

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

RFC, CT0CA, CT0EA, CT1CA, CT1EA = (
    BY_NAME[name].offset for name in ("RFC", "CT0CA", "CT0EA", "CT1CA", "CT1EA")
)


def run_job(
    v3d: V3D, job: BuiltJob, name: str = "job", hung: Callable[[], None] | None = None
) -> bool:
    """Feed one job to the V3D's registers; whether its frame was finished.

    hung: called when it was not, before the V3D is reset, which is what the kernel does then.
    """
    frames = v3d.read(RFC)
    reason = "no frame ended"
    try:
        if job.bin_start != job.bin_end:
            v3d.write(CT0CA, job.bin_start)
            v3d.write(CT0EA, job.bin_end)
        v3d.write(CT1CA, job.render_start)
        v3d.write(CT1EA, job.render_end)
    except GivenUp as endless:
        reason = f"abandoned, the GPU is reset: {endless}"
    except Abandoned:
        reason = "abandoned, the GPU is reset: a tile took too long"
    if v3d.read(RFC) != frames:
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
    _reset(v3d)
    reporter.report("DRM-016", f"{name}: {reason} ({states})", block="DRM")
    return False


def bin_only(v3d: V3D, job: BuiltJob) -> None:
    """Make a job's tile lists without drawing them."""
    if job.bin_start != job.bin_end:
        v3d.write(CT0CA, job.bin_start)
        v3d.write(CT0EA, job.bin_end)
        _reset(v3d)


def _reset(v3d: V3D) -> None:
    """A clean start for the next job, semaphores included."""
    for register in ("CT0CS", "CT1CS"):
        v3d.write(BY_NAME[register].offset, 1 << 15)  # CTRSTA
    v3d.rendering.collector.forget()  # its buffers will be others'
