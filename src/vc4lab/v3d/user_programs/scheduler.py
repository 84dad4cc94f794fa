"""The QPU scheduler: the queue of user programs (SRQPC … SRQCS) and the QPUs that take them.

Requests are queued when they are written and run when their effect could be seen: at the next
access to any other V3D register, between two slices of the CPU, or when all QPUs are taken. So
programs started one after the other run together, as on the chip, and may wait for each other.
Source: hardware reference 2.7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab import interruption
from vc4lab.bits import Bits, Layout
from vc4lab.v3d.event_listeners import V3DListeners
from vc4lab.v3d.events import ProgramEnded, ProgramsRun, ProgramStarted, ProgramStored
from vc4lab.v3d.job_time import QPUS

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.options import GpuOptions
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.progress import Progress
    from vc4lab.v3d.user_programs.qpu import ProgramRequest, Qpu
    from vc4lab.v3d.user_programs.unit import ComputeUnit
    from vc4lab.v3d.user_programs.watching.watch import Allowed

FIFO_DEPTH = 16


class RequestQueue(Layout):
    """SRQCS: the queue of user programs."""

    QPURQCC = Bits(23, 16, doc="programs completed")
    QPURQCM = Bits(15, 8, doc="requests made")
    QPURQERR = Bits(7, 7, doc="a request was dropped")
    QPURQL = Bits(5, 0, doc="queue length")


class UserPrograms:
    """Registers SRQPC, SRQUA, SRQUL, SRQCS, SQRSV0/1 and VPMBASE, and what they make happen.

    allowed: what programs may touch, if they are watched.
    """

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
        self.options = options
        self.allowed = allowed
        self.queue: deque[ProgramRequest] = deque()
        self.running: dict[int, Qpu] = {}
        self.used = False
        """Whether a program was ever requested; else there is nothing to settle."""
        self.made = 0
        self.completed = 0
        self.dropping = False
        self.reserved = 0
        self.reserved_rows = 0
        self.instructions = 0
        self.on_start: Callable[[ProgramRequest, Program], None] | None = None
        """Called with each program that gets a QPU."""
        self.progress: Progress | None = None
        """Decides when the end of a program is visible, where there is guest time."""
        self.last_end = 0
        """When the programs that have ended last are visible."""
        self.lints = 0
        """How many programs are checked by the lint when they are met for the first time."""
        self._unit: ComputeUnit | None = None
        self._seen: str | None = None
        self._told: str | None = None
        self._looked = False
        """Whether programs run because the host reads a register."""
        self._quiet = True  # nothing has come since all ended or wait
        self._ended = self._seen_ended = 0  # programs, and those that the host may know of

    @property
    def unit(self) -> ComputeUnit:
        """The compute unit, made when the first program is requested."""
        if self._unit is None:
            from vc4lab.v3d.user_programs.unit import ComputeUnit

            self._unit = ComputeUnit(self.memory, self.reporter, self.options, self.allowed, self.listeners)
            self._unit.lints = self.lints
        return self._unit

    # -- registers ---------------------------------------------------------------------------

    def request(self, code: int, uniforms: int, length: int) -> None:
        """SRQPC: queue a program. A full queue drops it and all later ones until QPURQERR is
        cleared.
        """
        from vc4lab.v3d.user_programs.qpu import ProgramRequest

        self.used = True
        self.made = (self.made + 1) & 0xFF
        if len(self.queue) + len(self.running) >= FIFO_DEPTH + QPUS or not self._free():
            self._run(requested=True)
        now = 0
        if self.progress is not None:
            self.progress.make_room(FIFO_DEPTH + QPUS - 1)
            now = self.progress.time.now()
        self._start()
        if self.dropping or len(self.queue) >= FIFO_DEPTH:
            self.dropping = True
            self.reporter.report(
                "QPU-052",
                f"a user program is dropped: {len(self.queue)} wait in the queue, {len(self.running)} run",
                address=code,
                block="SRQ",
            )
            return
        self.queue.append(ProgramRequest(code, uniforms, length & 0xFFF, now, self._seen_ended))
        self._quiet = False
        self._seen = self._told = None
        self._start()

    def status(self) -> int:
        """SRQCS as read."""
        return RequestQueue.make(
            QPURQCC=self.completed,
            QPURQCM=self.made,
            QPURQERR=self.dropping,
            QPURQL=len(self.queue) + self._seem_queued,
        ).value

    def control(self, value: int) -> None:
        """SRQCS as written: bits 0, 7, 8 and 16 empty, acknowledge and clear."""
        if value & 1:
            self.queue.clear()
        if value & RequestQueue.QPURQERR.mask:
            self.dropping = False
        if value >> RequestQueue.QPURQCM.lo & 1:
            self.made = 0
        if value >> RequestQueue.QPURQCC.lo & 1:
            self.completed = 0

    def reserve(self, first: int, value: int) -> None:
        """SQRSV0 (first = 0) or SQRSV1 (8): bit 0 of each QPU's 4 keeps user programs away."""
        for index in range(8):
            bit = 1 << first + index
            self.reserved = self.reserved | bit if value >> 4 * index & 1 else self.reserved & ~bit
        self._quiet = False

    def take_interrupts(self) -> int:
        """QPUs that wrote HOST_INT since the last call, a bit each."""
        if self._unit is None:
            return 0
        return self._unit.take_interrupts()

    @property
    def busy(self) -> bool:
        """Whether programs run or wait for a QPU."""
        return bool(self.running or self.queue)

    @property
    def waits_to_run(self) -> bool:
        """Whether `settle` has work to do."""
        return not self._quiet

    @property
    def errors(self) -> int:
        """Bits of ERRSTAT that user programs have caused."""
        return self._unit.errors if self._unit is not None else 0

    # -- running -----------------------------------------------------------------------------

    def _free(self) -> list[int]:
        taken = self.reserved
        return [n for n in range(QPUS) if not taken >> n & 1 and n not in self.running]

    def _start(self) -> None:
        """Give queued programs to free QPUs, lowest number first."""
        free = self._free()
        while self.queue and free:
            number = free.pop(0)
            request = self.queue.popleft()
            qpu = self.running[number] = self.unit.start(number, request)
            if self.listeners.program_started.subscriptions:
                size = 8 * len(qpu.program.words)
                event = ProgramStarted(request.code, request.uniforms, request.length, size)
                self.listeners.program_started.emit(event)
            if self.on_start is not None:
                self.on_start(request, qpu.program)

    def settle(self, looked: bool = False) -> None:
        """Run until every program has ended or waits for something that does not happen here.

        looked: whether that is because the host reads a register.
        """
        self._looked = looked
        self._run()
        self._seen_ended = self._ended

    def _run(self, requested: bool = False) -> None:
        """Run programs as `settle` does, unseen by the host."""
        if self._quiet:
            return
        self._quiet = True
        runs = self.listeners.programs_run
        if runs.subscriptions:
            runs.emit(ProgramsRun(requested, over=False))
        with interruption.deferred():
            self._run_all()
        if runs.subscriptions:
            runs.emit(ProgramsRun(requested, over=True))

    def _run_all(self) -> None:
        while True:
            self._start()
            if not self.running:
                break
            self.unit.run([self.running[n] for n in sorted(self.running)], self.reserved_rows)
            ended = [n for n, qpu in self.running.items() if self.unit.has_ended(qpu)]
            for number in ended:
                self._end(self.running.pop(number))
            if not ended or not (self.queue or self.running):
                break

    def _end(self, qpu: Qpu) -> None:
        """A program has ended."""
        self.instructions += qpu.instructions
        self._ended += 1
        if self.progress is None:
            self.completed = (self.completed + 1) & 0xFF
        else:
            self.last_end = self.progress.program(qpu.request.at, qpu.counts())
            if self._looked and self.listeners.program_stored.subscriptions:
                event = ProgramStored(qpu.stored(), self.last_end)
                self.listeners.program_stored.emit(event)
        if self.listeners.program_ended.subscriptions:
            code, uniforms = qpu.request.code, qpu.request.uniforms
            self.listeners.program_ended.emit(ProgramEnded(qpu.number, code, uniforms, qpu.counts()))

    @property
    def _seem_queued(self) -> int:
        """Programs that are through, but would still wait for a QPU."""
        return 0 if self.progress is None else max(0, self.progress.programs - QPUS)

    def look(self) -> None:
        """The host polls: reports programs that wait for each other for ever."""
        self.settle()
        if not self.running and not self.queue:
            return
        text = self.waiting
        if text is None or text == self._told:
            return
        if text != self._seen:  # more programs may be on their way; wait for another look
            self._seen = text
            return
        self._told = text
        self.report_waiting(text)

    def report_waiting(self, text: str) -> None:
        """Reports that none of the programs that have QPUs or wait for one can go on. text: what
        they wait for.
        """
        first = next(iter(self.running.values()), None)
        if any(qpu.need is not None for qpu in self.running.values()):
            self.reporter.report(
                "QPU-050",
                f"no program can continue: {text}",
                address=first.address if first else None,
                block="QPU",
            )
        elif first is None:
            self.reporter.report("QPU-058", text, address=self.queue[0].code, block="SRQ")

    @property
    def waiting(self) -> str | None:
        """Say what programs wait for; None if none waits."""
        return "; ".join(self.waiting_each) or None

    @property
    def waiting_each(self) -> list[str]:
        """Say what programs wait for, QPU by QPU."""
        if self.running:
            shared = self.unit.shared
            return [self.running[n].text(shared) for n in sorted(self.running)]
        if self.queue:
            return [f"{len(self.queue)} user programs wait, but all QPUs are reserved (SQRSV)"]
        return []
