"""The compute side of the V3D: starts user programs on QPUs, runs them, reports what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vc4lab.qpu.environment import Unsupported
from vc4lab.qpu.program import Program
from vc4lab.v3d.compute.engine import run_until_quiet
from vc4lab.v3d.compute.qpu import Condition, GoldenQpu, Qpu, Request
from vc4lab.v3d.compute.setup import WINDOW_ROWS
from vc4lab.v3d.compute.state import (
    FINDING_OUTSIDE_RAM,
    FINDING_SETUP_IGNORED,
    FINDING_SETUP_RESERVED,
    FINDING_UNIFORMS,
    FINDING_VPM_WRITE,
    SharedState,
)

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.unknowns import Unknowns

_FINDINGS = (
    (FINDING_UNIFORMS, "QPU-053", "a user program read more uniforms than SRQUL announced"),
    (
        FINDING_SETUP_IGNORED,
        "QPU-054",
        "a VPM read setup was ignored: more than one vector of the previous one is still unread",
    ),
    (FINDING_SETUP_RESERVED, "QPU-055", "a VPM setup word of the reserved type 1 was written"),
    (FINDING_VPM_WRITE, "QPU-059", "a user program wrote VPM rows that VPMBASE does not reserve"),
)


class ComputeUnit:
    """VPM, mutex and semaphores, and the engines that run programs on them."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        unknowns: Unknowns,
        *,
        engine: str = "jit",
        threads: int | None = None,
        budget: int | None = None,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.engine = engine
        self.threads = threads
        self.budget = budget
        self.shared = SharedState(memory=memory.base, ram=memory.ram_bytes)
        self._reported: set[int] = set()
        if engine == "jit":
            from vc4lab.v3d.compute.textures import TextureSlots

            self._textures = TextureSlots(self.shared, reporter, unknowns)

    def start(self, number: int, request: Request) -> Qpu:
        """A QPU with the program that the request asks for; it has not executed anything."""
        program = Program.from_memory(self.memory, request.code)
        for problem in program.problems:
            self.reporter.report(
                problem.code, problem.message, address=problem.address, block="QPU"
            )
        if self.engine == "jit" and not any(p.code == "QPU-001" for p in program.problems):
            from vc4lab.v3d.compute.native import NativeQpu

            try:
                return NativeQpu(number, request, program, self.shared, self.unknowns, self.budget)
            except Unsupported as verdict:
                self.reporter.report(
                    "QPU-057",
                    f"{verdict.code}: {verdict.message}",
                    address=request.code,
                    block="QPU",
                )
        return GoldenQpu(
            number, request, program, self.shared, self.memory, self.unknowns, self.budget
        )

    def run(self, qpus: Sequence[Qpu], reserved_rows: int) -> None:
        """Run until each has ended or waits; report what was noticed."""
        rows = min(reserved_rows, WINDOW_ROWS)
        if reserved_rows == 0 and self.unknowns["vpm_unreserved"] == "all":
            rows = WINDOW_ROWS
        self.shared.rows = rows
        run_until_quiet(qpus)
        self._report_findings()
        for qpu in qpus:
            if qpu.condition is Condition.STOPPED and id(qpu) not in self._reported:
                self._reported.add(id(qpu))
                self.reporter.report(
                    qpu.code, qpu.text(self.shared), address=qpu.address, block="QPU"
                )
            elif qpu.condition is Condition.STUCK and id(qpu) not in self._reported:
                self._reported.add(id(qpu))
                self.reporter.report(
                    "QPU-051", qpu.text(self.shared), address=qpu.address, block="QPU"
                )

    def has_ended(self, qpu: Qpu) -> bool:
        """Whether the QPU is free for another program."""
        return qpu.condition is Condition.ENDED

    def take_interrupts(self) -> int:
        """QPUs that wrote HOST_INT since the last call, a bit each."""
        bits = int(self.shared.interrupts)
        self.shared.interrupts = 0
        return bits

    def _report_findings(self) -> None:
        found = self.shared.findings
        self.shared.findings = 0
        for bit, code, text in _FINDINGS:
            if found & bit:
                self.reporter.report(code, text, block="QPU")
        if found & FINDING_OUTSIDE_RAM:
            self.reporter.report(
                "QPU-056",
                "a VPM DMA starts outside RAM",
                address=self.shared.outside & 0xFFFFFFFF,
                block="VPM",
            )
