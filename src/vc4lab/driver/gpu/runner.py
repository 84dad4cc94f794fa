"""Control lists through the V3D's registers, with findings named by the frame and draw at hand."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.diagnostics import Diagnostic, Reporter, Severity, severity_of
from vc4lab.v3d.core import V3D
from vc4lab.v3d.submission import SubmissionReports, reset_lists, submit

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions


class Lists(NamedTuple):
    """A job: two lists in guest memory. `bin_start == bin_end`: nothing is binned."""

    bin_start: int
    bin_end: int
    render_start: int
    render_end: int


class DriverReports(SubmissionReports):
    """Passes findings on with what is being done, each only once for the same sentence."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter)
        self.doing = ""
        """Frame and draws, in words."""

    def words(self, code: str, message: str, address: int | None) -> tuple[Hashable, str, str]:
        return (code, message), message, f"{self.doing}: {message}" if self.doing else message

    def report(self, code: str, message: str, **more: Any) -> Diagnostic:
        """As the base class. Hints are for who writes lists by hand: they are only counted."""
        if severity_of(code) is Severity.HINT:
            self.reporter.counts[code] += 1
            return Diagnostic(code, message, severity=Severity.HINT, **more)
        return super().report(code, message, **more)


class Runner:
    """A V3D that lists are given to.

    Attributes
    ----------
    v3d
        The V3D; its listeners see what it does.
    jobs
        How many lists were run.
    """

    def __init__(self, memory: GuestMemory, reporter: Reporter, options: GpuOptions) -> None:
        self.reports = DriverReports(reporter)
        self.v3d = V3D(memory, self.reports, options=options)
        self.jobs = 0

    def run(self, lists: Lists) -> bool:
        """Bin and render; whether the frame was finished."""
        self.jobs += 1
        reason = submit(self.v3d, lists)
        if reason is None:
            return True
        reset_lists(self.v3d)
        self.reports.reporter.report("GL-014", f"{self.reports.doing}: {reason}", block="GL")
        return False
