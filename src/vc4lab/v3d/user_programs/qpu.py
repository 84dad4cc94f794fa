"""A QPU that runs a user program: what both engines have in common, and the reference one."""

from __future__ import annotations

import ctypes
import mmap
from array import array
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.bits import signed32
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd import const, ptr
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.user_programs.budget import BUDGET_HINT, REFERENCE_BUDGET
from vc4lab.v3d.user_programs.environment import REFUSALS
from vc4lab.v3d.user_programs.needs import Need, need_of
from vc4lab.v3d.user_programs.recording.environment import environment_of
from vc4lab.v3d.user_programs.recording.format import RESERVE, ROOM
from vc4lab.v3d.user_programs.state import STALLS, QpuState, Setups, Status

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.plan import Plan
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.code import UserProgram
    from vc4lab.v3d.user_programs.environment import UserEnvironment
    from vc4lab.v3d.user_programs.state import SharedState
    from vc4lab.v3d.user_programs.watching.environment import WatchedQpu
    from vc4lab.v3d.user_programs.watching.watch import Note, Watch

UNLIMITED = 1023
_WORD = 0xFFFFFFFF


class RunState(Enum):
    """The state of a QPU."""

    READY = "ready"
    WAITING = "waiting"
    """For another QPU: mutex or semaphore."""
    STUCK = "stuck"
    """For something that can never happen."""
    STOPPED = "stopped"
    """By an error in the program."""
    ENDED = "ended"


@dataclass(frozen=True)
class ProgramRequest:
    """A user program to run: code address, SRQUA, SRQUL; the moment of guest time it came at.

    seen: programs that had ended when the host last waited or looked.
    """

    code: int
    uniforms: int = 0
    length: int = 0
    at: int = 0
    seen: int = 0

    @property
    def limited(self) -> bool:
        """Whether SRQUL limits the uniforms: above 1023 it does not, and 0 (which programs that
        never write it have) does not either.
        """
        return 0 < self.length <= UNLIMITED


class QpuStart(NamedTuple):
    """The start of a QPU. `budget`: None for the engine's own; `watch`: if it is watched;
    `recorded`: its way is to be recorded; `layer`: of the interpreter's environment, see
    `environment_of`.
    """

    number: int
    request: ProgramRequest
    source: UserProgram
    shared: SharedState
    unknowns: Unknowns
    budget: int | None = None
    watch: Watch | None = None
    recorded: bool = False
    layer: type[UserEnvironment] | None = None


class Qpu:
    """One QPU with a user program. `advance` runs it for a while.

    run_state, reason: its state, and what it waits for or why it stopped, in words. need: what it
    waits for. site: index of the instruction it stands at. code: of the diagnostic if it stopped.
    parallel: whether it may run in a thread beside others. program: with all code met so far.
    end_reported: its end was reported. watch: if the program is watched. recorded: its way is
    recorded. serial: its number among all programs started. state: what kernels know of it.
    """

    def __init__(self, start: QpuStart, budget: int) -> None:
        """budget: of the engine, if the start has none."""
        self.number, self.request, self.source = start.number, start.request, start.source
        self.program = start.source.program
        self.budget = start.budget or budget
        self.run_state = RunState.READY
        self.need: Need | None = None
        self.reason = ""
        self.code = ""
        self.site = 0
        self.instructions = 0
        self.end_reported = False
        self.recorded = start.recorded
        self.serial = 0
        request = start.request
        self.state = QpuState(
            number=start.number,
            uniforms=signed32(request.uniforms),
            uniforms_left=request.length if request.limited else -1,
        )
        if self.recorded:
            room = mmap.mmap(-1, ROOM + RESERVE)  # costs nothing until it is written
            self._record = memoryview(room)
            self.state.record = ctypes.addressof(ctypes.c_char.from_buffer(room))
            self.state.record_room = ROOM
        self.watch = start.watch
        self.watched_qpu: WatchedQpu | None = None
        if start.watch is not None:
            from vc4lab.v3d.user_programs.watching.environment import WatchedQpu

            self.watched_qpu = WatchedQpu(start.watch, self.state)

    @property
    def parallel(self) -> bool:
        """See above."""
        return False

    @property
    def address(self) -> int:
        """The address of the instruction it stands at."""
        return self.program.address_of(self.site)

    @property
    def alive(self) -> bool:
        """Whether it may still execute something."""
        return self.run_state in (RunState.READY, RunState.WAITING)

    def advance(self) -> bool:
        """Run for one turn; whether anything was executed."""
        raise NotImplementedError

    def take_findings(self) -> tuple[int, int]:
        """(FINDING_... bits since the last call, address of a DMA outside RAM)."""
        found, self.state.findings = self.state.findings, 0
        return found, self.state.outside & 0xFFFFFFFF

    def take_notes(self) -> list[Note]:
        """Take what its watch noticed since the last call."""
        return self.watch.take() if self.watch is not None else []

    def record_words(self) -> int:
        """How many words were recorded since `take_record`."""
        return int(self.state.recorded) // 4

    def take_record(self) -> array[int]:
        """Take what was recorded since the last call, see `recording/format.py`."""
        record = array("I")
        if self.state.recorded:
            record.frombytes(self._record[: self.state.recorded])
            self.state.recorded = 0
        return record

    def dma_setups(self) -> Setups:
        """Its DMA setup and stride registers now."""
        return Setups.of(self.state)

    def set_dma_setups(self, words: Setups) -> None:
        """Sets them before it begins."""
        words.set(self.state)

    def counts(self) -> JobCounts:
        """Count what it has done."""
        state = self.state
        return JobCounts(
            instructions=self.instructions,
            user_lookups=state.lookups,
            loaded_rows=state.loaded_rows,
            loaded=state.loaded,
            stored_rows=state.stored_rows,
            stored=state.stored,
        )

    def stored(self) -> list[tuple[int, int]]:
        """Guest address and size of pieces of memory that its DMA has written; not of all."""
        state = self.state
        pieces = [(state.firsts[n], state.pasts[n]) for n in range(state.pieces)]
        return [(first & _WORD, past - first & _WORD) for first, past in pieces]

    def settle(self, status: int) -> None:
        """Its environment ended it, or will not go on now, with a `Status`."""
        state = self.state
        if status == Status.ENDED:
            self.run_state = RunState.ENDED
        elif status == Status.STUCK:
            self.run_state, self.reason = RunState.STUCK, STALLS[state.detail]
        elif status == Status.REFUSED:
            self.stop("QPU-040", f"{REFUSALS[state.detail]} is not available to this program")
        elif status == Status.HALTED:
            self.halt()
        elif status == Status.ZEROED:
            self.stop("QPU-047", self.program.zeroed(self.site))
        else:
            self.check_budget(state.dma_time)

    def stop(self, code: str, reason: str) -> None:
        self.run_state, self.code, self.reason = RunState.STOPPED, code, reason

    def halt(self) -> None:
        """Stopped by its watch; the reason is among the notes."""
        assert self.watch is not None
        self.run_state, self.end_reported = RunState.STOPPED, True
        self.reason = self.watch.last

    def check_budget(self, dma_time: int) -> None:
        """Stop a program that has used its instructions; DMA counts, too."""
        if self.instructions + dma_time >= self.budget:
            dma = f" and DMA that counts for {dma_time}" if dma_time else ""
            text = f"{self.instructions} instructions{dma} without an end ({BUDGET_HINT})"
            self.stop("QPU-041", text)

    def text(self, shared: SharedState) -> str:
        """One line: the QPU, its instruction, what it waits for."""
        from vc4lab.qpu.text.disassembler import disassemble

        words = self.program.words
        text = disassemble(words[self.site], self.address) if self.site < len(words) else "?"
        return (
            f"QPU {self.number} at 0x{self.address:08x} `{' '.join(text.split())}` {self.waits_for(shared)}"
        )

    def waits_for(self, shared: SharedState) -> str:
        """Say what it waits for."""
        if self.run_state is RunState.STUCK:
            return f"waits for {self.reason}"
        if self.run_state is RunState.STOPPED:
            return f"was stopped: {self.reason}"
        if self.need is None:
            return "runs"
        if self.need.kind == "mutex":
            holder = shared.mutex - 1
            who = "itself" if holder == self.number else f"QPU {holder}"
            return f"waits for the mutex, held by {who}"
        number, value = self.need.number, shared.semaphores[self.need.number]
        what = "an increment" if self.need.kind == "lower" else "a decrement"
        return f"waits for {what} of semaphore {number} (now {value})"


class _Left(Exception):  # noqa: N818 - a state of the program
    """The program ends in the middle of an instruction; its environment's status says why."""


def _leave() -> None:
    raise _Left


class ReferenceQpu(Qpu):
    """The reference interpreter, one instruction a turn."""

    def __init__(self, start: QpuStart) -> None:
        from vc4lab.qpu.run.staged import EagerInterpreter
        from vc4lab.simd.eager import running

        super().__init__(start, REFERENCE_BUDGET)
        source, unknowns = start.source, start.unknowns
        stops = source.allowed is not None and source.allowed.stops
        self._run = running
        with running():
            self.env = environment_of(
                const(ptr, start.shared.address), const(ptr, self.state.address), self.program,
                unknowns, start.request.limited, source.watched, stops, start.recorded, start.layer,
            )  # fmt: skip
            self.env.textured = frozenset((0, 1))  # of code that is not known yet
            self.env.finish = _leave  # type: ignore[method-assign]
            self.machine = EagerInterpreter(self.program, self.env, settings=unknowns, more=self._grow)
        self._watch()

    def _grow(self, address: int) -> Program | None:
        """Execution goes to an address where the program is not known."""
        grown = self.source.grow(address)
        if grown is not None:
            self.program = grown
            self._watch()
        return grown

    def _watch(self) -> None:
        """All code that is known is watched."""
        watched = self.env.watched = self.source.watched
        if self.watched_qpu is not None and watched is not None:
            self.watched_qpu.use(watched)

    def advance(self) -> bool:
        machine = self.machine
        site = machine.follow()
        self.site = machine.program.left_by(machine.last) if site is None else site
        with self._run():
            return self._step(None if site is None else machine.plans[site])

    def _step(self, p: Plan | None) -> bool:
        machine = self.machine
        if p is not None and (need := need_of(p)) and not self.env.may_execute(p).constant:
            self.run_state, self.need = RunState.WAITING, need
            return False
        self.run_state, self.need = RunState.READY, None
        try:
            machine.step()
        except _Left:
            self.settle(self.env.status.get().constant)
            return False
        except Unsupported as verdict:
            self.stop(verdict.code, verdict.message)
            return False
        self.instructions = machine.count
        if machine.finished == "end":
            self.run_state = RunState.ENDED
        else:  # as in native code, which looks at its DMA only where it could turn back
            turns = machine.plans[machine.last].kind == "branch"
            self.check_budget(self.state.dma_time if turns else 0)
        return True
