"""The compute side of the V3D: starts user programs on QPUs, runs them, reports what goes wrong."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from vc4lab import interruption
from vc4lab.qpu.run.environment import uncompiled_budget
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.v3d.checks.shaders import lint_program
from vc4lab.v3d.event_listeners import V3DListeners
from vc4lab.v3d.events import ProgramKind, ProgramRecorded
from vc4lab.v3d.job_time import QPUS
from vc4lab.v3d.user_programs import state as st
from vc4lab.v3d.user_programs.budget import chosen_budget
from vc4lab.v3d.user_programs.code import CodeCache, UserProgram
from vc4lab.v3d.user_programs.qpu import ProgramRequest, Qpu, QpuStart, ReferenceQpu, RunState
from vc4lab.v3d.user_programs.recording.format import REFERENCE_WORDS
from vc4lab.v3d.user_programs.state import SharedState, fill_with_noise
from vc4lab.v3d.user_programs.textures import TextureFindings, TextureSlots
from vc4lab.v3d.vpm.errors import Errors
from vc4lab.v3d.vpm.shader_rows import WINDOW_ROWS

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions
    from vc4lab.v3d.user_programs.watching.watch import Allowed, Watch

_FINDINGS = (
    (st.FINDING_UNIFORMS, "QPU-053", "read more uniforms than SRQUL announced"),
    (
        st.FINDING_SETUP_IGNORED,
        "QPU-054",
        "wrote a VPM read setup while more than one vector of the previous one was unread",
    ),
    (st.FINDING_SETUP_RESERVED, "QPU-055", "wrote a VPM setup word of the reserved type 1"),
    (st.FINDING_OUTSIDE_RAM, "QPU-056", "started a DMA outside RAM"),
    (st.FINDING_VPM_WRITE, "QPU-059", "wrote VPM rows that VPMBASE does not reserve"),
)
VPM_WRITE_ERROR = Errors.VPMEWNA.mask

TMUS = 2
"""Texture units that a program can ask."""


class ComputeUnit:
    """VPM, mutex and semaphores, and the engines that run programs on them."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        options: GpuOptions,
        allowed: Allowed | None = None,
        listeners: V3DListeners | None = None,
    ) -> None:
        self.listeners = listeners or V3DListeners()
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns = options.unknowns
        self.engine = options.engine
        self.helpers = (options.threads or os.cpu_count() or 1) - 1
        self.budget = options.budget or chosen_budget(reporter)
        self.shared = SharedState(memory=memory.base, ram=memory.ram_bytes)
        if memory.noise is not None or reporter.strict:
            fill_with_noise(self.shared)
        self.allowed = allowed
        self.code = CodeCache(memory, unknowns, allowed)
        self.errors = 0  # bits of ERRSTAT
        self.started = 0
        self.lints = 0
        """How many more programs are checked by the lint when they are met for the first time."""
        self.interpreted: Callable[[QpuStart], Qpu] = ReferenceQpu
        """Makes a QPU whose program the interpreter runs."""
        self._executor: Executor | None = None
        self.textures_met = TextureFindings(reporter, unknowns)
        self._last: dict[int, Qpu] = {}  # what ran last on each QPU, if DMA setups are kept
        self.textures = TextureSlots(self.shared, self.textures_met, unknowns)

    def start(self, number: int, request: ProgramRequest) -> Qpu:
        """A QPU with the program that the request asks for; it has not executed anything."""
        qpu = self._make(number, request, bool(self.listeners.program_recorded.subscriptions))
        self.started += 1
        qpu.serial = self.started
        if qpu.recorded:
            self._emit_record(qpu)
        if self.unknowns["dma_setup_start"] == "kept":
            before = self._last.get(number)
            if before is not None:
                qpu.set_dma_setups(before.dma_setups())
            self._last[number] = qpu
        return qpu

    def _make(self, number: int, request: ProgramRequest, recorded: bool) -> Qpu:
        code = self.code.read(request.code)
        program = code.program
        for problem in program.problems:
            if problem.code not in ("QPU-002", "QPU-047"):  # reported if execution comes there
                self.reporter.report(problem.code, problem.message, address=problem.address, block="QPU")
        if self.lints > 0 and not code.linted:
            self.lints, code.linted = self.lints - 1, True
            lint_program(program, "user program", self.reporter)
            self._watch_first_starts(code)
        shared, unknowns, watch = self.shared, self.unknowns, self._watch(code, request)
        begin = QpuStart(number, request, code, shared, unknowns, self.budget, watch, recorded)
        if self.engine == "jit":
            from vc4lab.v3d.user_programs.native.qpu import NativeQpu

            before, start = code.compiled, perf_counter()
            region = code.native(request.limited, recorded)
            if region is not None:
                if code.compiled != before:
                    self.listeners.compiled(ProgramKind.USER, program, start)
                return NativeQpu(begin, region)
            verdict = code.verdict
            assert verdict is not None
            text = f"{verdict.code}: {verdict.message}"
            self.reporter.report("QPU-057", text, address=request.code, block="QPU")
            begin = begin._replace(budget=self.budget or uncompiled_budget(len(program)))
        return self.interpreted(begin)

    def _watch_first_starts(self, code: UserProgram) -> None:
        from vc4lab.v3d.user_programs.watching.watch import LONGEST_WATCHED, WATCHED_STARTS, everything

        if self.allowed is None and len(code.program) <= LONGEST_WATCHED:
            code.allowed, code.starts = everything(), WATCHED_STARTS

    def _watch(self, code: UserProgram, request: ProgramRequest) -> Watch | None:
        allowed = code.allowed_for_a_start()
        if allowed is None:
            return None
        from vc4lab.v3d.user_programs.watching.watch import Watch

        return Watch(allowed, request.uniforms, self.unknowns)

    def run(self, qpus: Sequence[Qpu], reserved_rows: int) -> None:
        """Run until each has ended or waits; report what was noticed."""
        self.prepare(reserved_rows)
        recorded = [qpu for qpu in qpus if qpu.recorded]
        if recorded:
            run_until_quiet(qpus, self._threads(), self.helpers, lambda: self._emit_full(recorded))
            for qpu in recorded:
                self._emit_record(qpu)
        else:
            run_until_quiet(qpus, self._threads(), self.helpers)
        for qpu in qpus:
            self.report(qpu)
        self.textures_met.report()

    def prepare(self, reserved_rows: int) -> None:
        """Programs may write these rows of the VPM from now on."""
        rows = min(reserved_rows, WINDOW_ROWS)
        if reserved_rows == 0 and self.unknowns["vpm_unreserved"] == "all":
            rows = WINDOW_ROWS
        self.shared.rows = rows

    def _emit_full(self, qpus: Sequence[Qpu]) -> None:
        """After a round: reports what was recorded, if it is enough to be worth it."""
        for qpu in qpus:
            if qpu.record_words() >= REFERENCE_WORDS:
                self._emit_record(qpu)

    def _emit_record(self, qpu: Qpu) -> None:
        """Reports what a program has done since the last time."""
        if self.listeners.program_recorded.subscriptions:
            ended = qpu.run_state is RunState.ENDED
            self.listeners.program_recorded.emit(
                ProgramRecorded(
                    qpu.number,
                    qpu.serial,
                    qpu.request.uniforms,
                    qpu.program,
                    qpu.instructions,
                    qpu.take_record(),
                    ended,
                    qpu.request.seen,
                )
            )

    def _threads(self) -> Executor | None:
        """Worker threads, made when they are first of use."""
        if self.helpers < 1 or self.engine != "jit":
            return None
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(self.helpers, "vc4lab-qpu")
        return self._executor

    def report(self, qpu: Qpu) -> None:
        """Reports what a program has done wrong since the last call."""
        found, outside = qpu.take_findings()
        for bit, code, text in _FINDINGS:
            if found & bit:
                address = outside if bit == st.FINDING_OUTSIDE_RAM else None
                self.reporter.report(code, f"QPU {qpu.number} {text}", address=address, block="QPU")
        for note in qpu.take_notes():
            at = qpu.program.address_of(note.site)
            text = " ".join(disassemble(qpu.program.words[note.site], at).split("  #")[0].split())
            message = f"QPU {qpu.number} `{text}`: {note.message}"
            self.reporter.report(note.code, message, address=at, block="QPU")
        if qpu.run_state is RunState.ENDED and not qpu.end_reported:
            qpu.end_reported = True
            self._look_for_results(qpu)
        self.errors |= VPM_WRITE_ERROR if found & st.FINDING_VPM_WRITE else 0
        if qpu.end_reported or qpu.run_state not in (RunState.STOPPED, RunState.STUCK):
            return
        qpu.end_reported = True
        code = qpu.code if qpu.run_state is RunState.STOPPED else "QPU-051"
        self.reporter.report(code, qpu.text(self.shared), address=qpu.address, block="QPU")

    def _look_for_results(self, qpu: Qpu) -> None:
        """Report results of the texture units that a program has not taken."""
        for number in range(TMUS):
            left = int(qpu.state.units[number].count)
            if left:
                what = "a result" if left == 1 else f"{left} results"
                text = f"QPU {qpu.number} ended, but has not taken {what} of TMU{number} (ldtmu{number})"
                self.reporter.report("QPU-067", text, address=qpu.request.code, block="QPU")

    def has_ended(self, qpu: Qpu) -> bool:
        """Whether the QPU is free for another program."""
        return qpu.run_state is RunState.ENDED

    def take_interrupts(self) -> int:
        """QPUs that wrote HOST_INT since the last call, a bit each."""
        bits = 0
        for number in range(QPUS):
            if self.shared.interrupts[number]:
                self.shared.interrupts[number] = 0
                bits |= 1 << number
        return bits


def run_until_quiet(
    qpus: Sequence[Qpu],
    threads: Executor | None = None,
    helpers: int = 1,
    after_round: Callable[[], None] | None = None,
) -> bool:
    """Round robin over the QPUs that are alive; whether anything was executed.

    The turns of programs without mutex and semaphores run side by side, in this thread and in
    `helpers` of `threads`; the others always in the same order, so that a run can be repeated.
    """
    anything = False
    active = [qpu for qpu in qpus if qpu.alive]
    while active:
        interruption.look_if_overdue()
        together = [qpu for qpu in active if qpu.parallel] if threads else []
        moved = False
        if threads is not None and len(together) > 1:
            todo = deque(together)
            count = min(helpers, len(together) - 1)
            futures = [threads.submit(_take_turns, todo) for _ in range(count)]
            moved = _take_turns(todo)
            for future in futures:
                moved |= future.result()
        else:
            together = []
        for qpu in active:
            if qpu not in together:
                moved |= qpu.advance()
        anything |= moved
        if after_round is not None:
            after_round()
        active = [qpu for qpu in active if qpu.alive]
        if not moved and all(qpu.run_state is RunState.WAITING for qpu in active):
            break
    return anything


def _take_turns(todo: deque[Qpu]) -> bool:
    """Take QPUs from the common list until it is empty."""
    moved = False
    while True:
        try:
            qpu = todo.popleft()
        except IndexError:
            return moved
        moved |= qpu.advance()
