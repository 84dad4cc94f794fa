"""The V3D's findings in a job, with the job's name; a job that never ends is abandoned."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Diagnostic, Reporter, severity_of

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
