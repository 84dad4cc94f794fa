"""Two control lists through the V3D's registers, as the drivers of operating systems submit a job.

What the V3D finds meanwhile is passed on, each finding once; lists that never end are given up, and
the list threads are reset.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from vc4lab.diagnostics import Diagnostic, Reporter, severity_of
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.tiles.threads import Abandoned

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

RFC, CT0CA, CT0EA, CT1CA, CT1EA, CT0CS, CT1CS = (
    BY_NAME[name].offset for name in ("RFC", "CT0CA", "CT0EA", "CT1CA", "CT1EA", "CT0CS", "CT1CS")
)
RESET = 1 << 15
"""CTRSTA."""
ENDLESS = frozenset({"QPU-041", "VTX-005", "CLE-006"})
"""A fragment shader, a shader of vertices, a list without an end: the chip hangs there."""
MAX_KNOWN = 4096


class GivenUp(Exception):  # noqa: N818 - a verdict on the job
    """The job at hand would never end; the text says why."""


class ListAddresses(Protocol):
    """A job: where its lists start and end. `bin_start == bin_end`: nothing is binned."""

    @property
    def bin_start(self) -> int: ...
    @property
    def bin_end(self) -> int: ...
    @property
    def render_start(self) -> int: ...
    @property
    def render_end(self) -> int: ...


class SubmissionReports(Reporter):
    """Findings about the job that runs, passed on to another reporter, each only once.

    The V3D takes it for its reporter. What says that something has no end raises GivenUp: the
    chip goes no further than this, and a job may have thousands of them.
    """

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter.strict)
        self.reporter = reporter
        self._known: set[Hashable] = set()

    def forget(self) -> None:
        """Findings may come again."""
        self._known.clear()

    def words(self, code: str, message: str, address: int | None) -> tuple[Hashable, str, str]:
        """Give what makes a finding another one; its text; the text with the job's name."""
        raise NotImplementedError

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
        key, text, named = self.words(code, message, address)
        if key in self._known:  # jobs are much alike
            self.reporter.counts[code] += 1
            item = Diagnostic(code, text, address, block, detail, severity_of(code, self.strict))
        else:
            if len(self._known) < MAX_KNOWN:
                self._known.add(key)
            item = self.reporter.report(code, named, address=address, block=block, detail=detail)
        if code in ENDLESS:
            raise GivenUp(text)
        return item


def submit(v3d: V3D, job: ListAddresses) -> str | None:
    """Bin and render; None if the frame ended, or why it did not."""
    frames = v3d.read(RFC)
    reason = ""
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
    return None if v3d.read(RFC) != frames else reason or "no frame ended"


def reset_lists(v3d: V3D) -> None:
    """A clean start for the next job, semaphores included."""
    v3d.write(CT0CS, RESET)
    v3d.write(CT1CS, RESET)
    v3d.rendering.collector.forget()  # its buffers will be others'
