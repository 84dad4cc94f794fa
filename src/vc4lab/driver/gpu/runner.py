"""Control lists through the V3D's registers, as a kernel driver would run them.

What the V3D finds is reported with the frame and draw at hand; lists that never end are given up,
and the V3D is reset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vc4lab.diagnostics import Diagnostic, Reporter, severity_of
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.tiles.threads import Abandoned

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions

RFC, CT0CA, CT0EA, CT1CA, CT1EA, CT0CS, CT1CS = (
    BY_NAME[name].offset for name in ("RFC", "CT0CA", "CT0EA", "CT1CA", "CT1EA", "CT0CS", "CT1CS")
)
RESET = 1 << 15
"""CTRSTA."""
ENDLESS = frozenset({"QPU-041", "VTX-005", "CLE-006"})
"""A fragment shader, a shader of vertices, a list that has no end: the chip hangs there."""
MAX_KNOWN = 4096


class Lists(NamedTuple):
    """A job: two lists in guest memory. `bin_start == bin_end`: nothing is binned."""

    bin_start: int
    bin_end: int
    render_start: int
    render_end: int


class GivenUp(Exception):  # noqa: N818 - a verdict on the lists
    """They would never end; the text says why."""


class DriverReports(Reporter):
    """Passes findings on with what is being done, each only once for the same sentence."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter.strict)
        self.reporter = reporter
        self.doing = ""
        """Frame and draws, in words."""
        self._known: set[tuple[str, str]] = set()

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
        if (code, message) in self._known:  # frames are much alike
            self.reporter.counts[code] += 1
            item = Diagnostic(code, message, address, block, detail, severity_of(code))
        else:
            if len(self._known) < MAX_KNOWN:
                self._known.add((code, message))
            text = f"{self.doing}: {message}" if self.doing else message
            item = self.reporter.report(code, text, address=address, block=block, detail=detail)
        if code in ENDLESS:
            raise GivenUp(message)
        return item


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
        v3d = self.v3d
        self.jobs += 1
        frames = v3d.read(RFC)
        reason = "no frame ended"
        try:
            if lists.bin_start != lists.bin_end:
                v3d.write(CT0CA, lists.bin_start)
                v3d.write(CT0EA, lists.bin_end)
            v3d.write(CT1CA, lists.render_start)
            v3d.write(CT1EA, lists.render_end)
        except GivenUp as endless:
            reason = str(endless)
        except Abandoned:
            reason = "a tile took too long"
        if v3d.read(RFC) != frames:
            return True
        v3d.write(CT0CS, RESET)
        v3d.write(CT1CS, RESET)
        v3d.rendering.collector.forget()
        doing = self.reports.doing
        self.reports.reporter.report(
            "GL-014", f"{doing}: abandoned, the GPU is reset: {reason}", block="GL"
        )
        return False
