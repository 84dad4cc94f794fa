"""A built job through the V3D's registers: the entry that replay and the virtual device share.

The V3D's findings come with the job's name; a job that never ends is abandoned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Diagnostic, Reporter, severity_of
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.tiles.threads import Abandoned

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

RFC, CT0CA, CT0EA, CT1CA, CT1EA = (
    BY_NAME[name].offset for name in ("RFC", "CT0CA", "CT0EA", "CT1CA", "CT1EA")
)
ENDLESS = frozenset({"QPU-041", "VTX-005", "CLE-006"})
"""A fragment shader, a shader of vertices, a list: on the chip, this is where the GPU hangs."""
CONFIGURATIONS = frozenset(f"TMU-{number:03}" for number in range(1, 12))
"""What a texture's parameters alone decide: once for a program, not once for each place."""
MAX_KNOWN = 4096


class GivenUp(Exception):  # noqa: N818 - a verdict on the job
    """The job at hand would never end; the text says why."""


class JobReports(Reporter):
    """Findings about the job that runs, passed on with its name, each only once for a program.

    The V3D takes it for its reporter. What says that something has no end raises GivenUp: the
    chip goes no further than this, and a job may have thousands of them.
    """

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter.strict)
        self.reporter = reporter
        self.program = ""
        self.job = ""
        self.place: Callable[[int], str] = lambda _address: ""
        """What lies at an address of the GPU, in words; "" for nothing known."""
        self._told: set[tuple[str, str, str, int | None]] = set()

    def begin(self, program: str, job: str, place: Callable[[int], str]) -> None:
        """What comes now is about this job."""
        self.program, self.job, self.place = program, job, place

    def report(
        self,
        code: str,
        message: str,
        *,
        address: int | None = None,
        block: str | None = None,
        detail: str | None = None,
    ) -> Diagnostic:
        """Pass a finding on. Raises GivenUp, or StrictStop for an error in strict mode."""
        where = self.place(address) if address is not None else ""
        text = f"{message} (in {where})" if where else message
        # A texture's configuration lies elsewhere in each job, at the draw's uniforms.
        key = self.program, code, text, None if code in CONFIGURATIONS else address
        if key in self._told:  # the programs' jobs are much alike
            self.reporter.counts[code] += 1
            item = Diagnostic(code, text, address, block, detail, severity_of(code))
        else:
            if len(self._told) < MAX_KNOWN:
                self._told.add(key)
            named = f"{self.job}: {text}" if self.job else text
            item = self.reporter.report(code, named, address=address, block=block, detail=detail)
        if code in ENDLESS:
            raise GivenUp(text)
        return item


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
