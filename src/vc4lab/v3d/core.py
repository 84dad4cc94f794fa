"""The V3D as its bus sees it: registers with behaviour, the two list threads, the interrupt line.

Its registers are declared, with what they do, in `registers.py` and `counters.py`. Lists run to
their end, their halt or their stall inside the write that starts them. Source: hardware reference 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.interruption import deferred
from vc4lab.listeners import OneListener
from vc4lab.options import GpuOptions, chosen
from vc4lab.simd.team import Team
from vc4lab.v3d.checks.hints import Lint, OrderCheck
from vc4lab.v3d.cle.binning import BinningStage
from vc4lab.v3d.cle.executor import ControlListExecutor
from vc4lab.v3d.cle.rendering import RenderingStage
from vc4lab.v3d.cle.thread import ListThread, report_endless_waits, waiting_reasons
from vc4lab.v3d.counters import PerformanceCounters, coverage_counts
from vc4lab.v3d.draws.frame import FrameRenderer
from vc4lab.v3d.event_listeners import V3DListeners
from vc4lab.v3d.events import BinningDone, FrameDone, FrameStored, InterruptLine, RegisterWritten, Use
from vc4lab.v3d.overlap import Overlap
from vc4lab.v3d.progress import ENDS, FLUSH, FRAME, INTERRUPT, PROGRAM, Progress
from vc4lab.v3d.registers import DebugRegisters, Interrupts, ListRegisters, ProgramRegisters, StatusRegisters
from vc4lab.v3d.services import Services, ShaderInterrupts
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.scheduler import UserPrograms

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.memory import GuestMemory
    from vc4lab.registers import Block, ReadHandler, WriteHandler
    from vc4lab.v3d.job_time import JobCounts

FRDONE, FLDONE = Interrupts.FRDONE.mask, Interrupts.FLDONE.mask
OUTOMEM = Interrupts.OUTOMEM.mask
SPILLUSE = Interrupts.SPILLUSE.mask

_WORD = 0xFFFFFFFF
_LIST = Use.LIST  # members of an enumeration are looked up slowly
LONGEST_LIST = 1 << 26
"""An end address further away is meant as "never": the list ends otherwise."""
LINTED = 64
"""Programs of each stage that the lint looks at: some milliseconds each."""
_SHADERS_QPU = 1 << 0
"""Vertex, coordinate and fragment shaders run on QPU 0, as far as they can see."""


class V3D:
    """One VideoCore IV 3D block on a guest memory.

    Parameters
    ----------
    memory
        Guest RAM, shared with those who submit work.
    reporter
        Receives diagnostics; a fresh one by default.
    unknowns
        Choices for undocumented behaviour.
    engine
        "jit", or "interpreter" to run every QPU instruction in the reference interpreter.
    threads
        Worker threads for tiles; the number of processors by default.
    options
        These three and more as one object, instead of them.

    Attributes
    ----------
    listeners
        Listeners, by kind of event (`events`).
    on_interrupt, on_frame
        One listener each for `interrupt_line` (it gets the level) and `frame_done`.
    """

    on_interrupt = OneListener("listeners.interrupt_line", lambda event: (event.level,))
    on_frame = OneListener("listeners.frame_done", lambda _event: ())

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter | None = None,
        *,
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        engine: str = "jit",
        threads: int | None = None,
        options: GpuOptions | None = None,
    ) -> None:
        options = chosen(options, GpuOptions(engine, threads, unknowns))
        unknowns = options.unknowns
        self.memory = memory
        self.reporter = reporter if reporter is not None else Reporter()
        self.unknowns = unknowns
        self.engine = options.engine
        self.listeners = V3DListeners()
        self.values: dict[str, int] = {}
        """Values of the registers, by name."""
        self.counters = PerformanceCounters(self.reporter, self.events, self.values)
        self.threads = (ListThread(0), ListThread(1))
        self.lint = lint = Lint(self.reporter, memory.ram_bytes, self.listeners.memory_used)
        self._uses = lint.addresses.uses
        self.order = OrderCheck(memory, self.reporter)
        self._interrupts = ShaderInterrupts()
        self._failures = self.listeners.failures
        self._written = self.listeners.register_written
        team = Team(options.threads)
        services = Services(memory, self.reporter, options, team, self._interrupts, self.listeners)
        self.executor = executor = ControlListExecutor(services, self.threads, lint.addresses)
        self.frames = FrameRenderer(services, lint, executor.notes)
        self._pipelines = self.frames.preparer.pipelines
        self.binning = BinningStage(executor, self.threads[0], lint, self._flush_done)
        self.overlap = Overlap(self.reporter, self.binning.binner, self.frames)
        self._forgiving = options.forgiving
        self.rendering = RenderingStage(executor, self.threads[1], lint, self.overlap.draw, self._frame_done)
        self.programs = UserPrograms(memory, self.reporter, options, listeners=self.listeners)
        self._progress: Progress | None = None
        self.list_clocks: Callable[[int], int | None] | None = None
        """Gives the time that a timing model says a list thread took since the last call, where guest time
        follows one; None: it does not know, so the estimate counts."""
        self._unfinished = [False, False]
        self.undrawn = 0
        """Frames that were stored without any of their draws, because all of them were refused."""
        self._line = False
        self._readers: dict[int, ReadHandler] = {}
        self._writers: dict[int, tuple[WriteHandler, bool]] = {}
        """Handlers of writes, and whether each is part of a request for a user program."""
        status = StatusRegisters(self.values, unknowns, self.binning, self.listeners)
        debug = DebugRegisters(self.values, unknowns)
        for block in (status, ListRegisters(self), ProgramRegisters(self), self.counters, debug):
            self._attach(block)

    def _attach(self, block: Block) -> None:
        self._readers.update(block.read_handlers())
        for offset, write in block.write_handlers().items():
            self._writers[offset] = write, offset in ProgramRegisters.REQUESTS

    # -- time --------------------------------------------------------------------------------

    @property
    def progress(self) -> Progress | None:
        """Decides when things become visible; None where there is no guest time."""
        return self._progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        self._progress = self.programs.progress = progress
        progress.show = self._show
        self.executor.waited = progress.wait
        if not self._forgiving:
            self.overlap.watch(progress)
            self.check_programs()

    def check_programs(self) -> None:
        """From now on the lint looks at programs that are met for the first time, and binning lists
        must initialise their tile state or have cleared it.

        That is for a board's programs, which bring both with them; drivers are known for both.
        """
        self.binning.native.context.checks_state = 1
        vertices = self.frames.preparer.vertices
        self._pipelines.lints = vertices.lints = self.binning.coordinates.lints = LINTED
        self.programs.lints = LINTED

    def seems_busy(self, thread: int) -> bool:
        """Whether a list thread is through, but its time is not over."""
        return self._progress is not None and self._progress.is_busy(thread)

    def _spend(self, thread: int, progress: Progress) -> None:
        """Adds the time of what a list thread has done since the last call."""
        counts: JobCounts = (self.frames if thread else self.binning).take_counts()
        clocks = self.list_clocks(thread) if self.list_clocks is not None else None
        if clocks is not None:
            progress.spend_clocks(thread, clocks)
        elif any(counts):
            progress.spend(thread, counts)

    def _show(self, kind: int, detail: int = 0) -> None:
        """Something that is done becomes visible."""
        if kind == FLUSH:
            self._show_flush()
        elif kind == FRAME:
            self._show_frame()
        elif kind == PROGRAM:
            self.programs.completed = (self.programs.completed + 1) & 0xFF
        elif kind == INTERRUPT:
            self.values["DBQITC"] |= detail
        if self._line or self.values["INTENA"] or self.values["DBQITE"]:
            self._update_line()

    def _show_flush(self) -> None:
        values = self.values
        values["BFC"] = (values["BFC"] + 1) & 0xFF
        values["INTCTL"] |= FLDONE
        self.threads[0].flushes += 1
        if self.listeners.binning_done.subscriptions:
            self.listeners.binning_done.emit(BinningDone(values["BFC"]))

    def _show_frame(self) -> None:
        values = self.values
        values["RFC"] = (values["RFC"] + 1) & 0xFF
        values["INTCTL"] |= FRDONE
        if self.listeners.frame_done.subscriptions:
            self.listeners.frame_done.emit(FrameDone(values["RFC"]))

    def __repr__(self) -> str:
        return f"<V3D, {self.engine}>"

    # -- the bus -----------------------------------------------------------------------------

    def read(self, offset: int) -> int:
        """A 32-bit read at a byte offset from the V3D base; undefined offsets read 0."""
        try:
            handler = self._readers[offset & ~3]
        except KeyError:
            return 0
        if self.programs.used:
            self._settle(looked=True)
        value = handler()
        if self._failures:
            self.listeners.raise_failure()
        return value

    def write(self, offset: int, value: int) -> None:
        """A 32-bit write; writes to read-only and undefined registers are ignored."""
        try:
            handler, requests = self._writers[offset & ~3]
        except KeyError:
            return
        if self.programs.used and not requests:
            self._settle()
        if self._written.subscriptions:
            self._written.emit(RegisterWritten(offset & ~3, value & _WORD))
        handler(value & _WORD)
        values = self.values
        if self._line or values["INTENA"] or values["DBQITE"]:  # else it stays low
            self._update_line()
        if self._failures:
            self.listeners.raise_failure()

    def forget_programs(self) -> None:
        """Programs on the CPU are gone, and with them what lay in memory: drop what is remembered
        by address, between two lists.

        Code that was compiled stays; the same shader finds it again, wherever it lies.
        """
        self.frames.preparer.forget()
        self.binning.coordinates.forget()
        self.binning.ranges.forget()
        self.lint.forget()

    def settle(self) -> None:
        """Run the user programs that were queued. Called now and then while the machine runs,
        so that a program which waits for memory to change sees it.
        """
        if self.programs.used:
            self._settle()
        if self._failures:
            self.listeners.raise_failure()

    def _settle(self, looked: bool = False) -> None:
        self.programs.settle(looked)
        interrupts = self.programs.take_interrupts()
        if interrupts:
            self._interrupt_host(interrupts, self.programs.last_end)

    def _interrupt_host(self, qpus: int, moment: int) -> None:
        """Programs have written HOST_INT, on QPUs with a bit each; when, if there is time."""
        if self.unknowns["dbqitc_set"] == "enabled":
            qpus &= self.values["DBQITE"]
        if qpus and self._progress is not None:
            self._progress.interrupt(moment, qpus)
        elif qpus:
            self._show(INTERRUPT, qpus)

    # -- interrupts --------------------------------------------------------------------------

    @property
    def interrupt_pending(self) -> bool:
        """The level of the interrupt line (IRQ 10 of the Pi)."""
        values = self.values
        programs = values["DBQITC"] & values["DBQITE"] & 0xFFFF
        if programs and not values["DBCFG"] & 1 and self.unknowns["dbcfg_interrupts"] == "needed":
            programs = 0
        return bool(values["INTCTL"] & values["INTENA"] or programs)

    def _update_line(self) -> None:
        level = self.interrupt_pending
        if level != self._line:
            self._line = level
            if self.listeners.interrupt_line.subscriptions:
                self.listeners.interrupt_line.emit(InterruptLine(level))

    # -- list threads ------------------------------------------------------------------------

    def finish(self, number: int, what: str) -> None:
        """Lets guest time go on until a thread is through, which is started or reset (`what`)."""
        if self._progress is not None and self._progress.is_busy(number):
            self.overlap.runs_still(self.threads[number], what)
            self._progress.finish(number)

    def start(self, number: int) -> None:
        """Thread `number` runs from now on."""
        if self._progress is not None:
            self.finish(number, "started")
            self._progress.begin(number)
            self._unfinished[number] = True
        if number == 0:
            self.binning.begin()
        else:
            self.frames.begin_list()
            self.rendering.begin()
        thread, listeners = self.threads[number], self.listeners
        if listeners.any_job.present:
            listeners.job(thread)
        current, end = thread.current, thread.end
        size = (end - current) & _WORD
        uses = self._uses
        uses(_LIST, current, size if size < LONGEST_LIST else 1)
        self.order.list(current, end)
        self.run()

    def run(self) -> None:
        """Runs both threads until they stop or stall."""
        with deferred():
            self._run()

    def _run(self) -> None:
        binning, threads = self.binning, self.threads
        first, second = threads
        counters = self.counters
        counts = counters.enable or counters.everything
        self._pipelines.counting = counters.detailed if counts else False
        self.executor.pump()
        self.rendering.stopped()
        binning.stopped()
        if first.stalled is not None or second.stalled is not None:
            report_endless_waits(threads, self.reporter)
        if binning.out_of_memory:
            self.values["INTCTL"] |= OUTOMEM
        if binning.spills_taken:
            binning.spills_taken = 0
            self.values["INTCTL"] |= SPILLUSE
        if self._progress is not None:
            for thread in threads:
                self._end(thread, self._progress)
        if self._interrupts.word.value:
            self._take_shader_interrupts()
        if self.listeners.any_job.present:
            self.listeners.emit_ends(threads)

    def _take_shader_interrupts(self) -> None:
        for number in self._interrupts.take():
            moment = 0 if self._progress is None else self._progress.threads[number]
            self._interrupt_host(_SHADERS_QPU, moment)

    def _end(self, thread: ListThread, progress: Progress) -> None:
        """A list thread that has stopped still runs in the guest's view, until its time is over."""
        number = thread.number
        if self._unfinished[number] and not thread.running:
            self._unfinished[number] = False
            if not thread.closed:  # else all it did was counted then
                self._spend(number, progress)
            progress.ends(number, ENDS[number])

    # -- progress ----------------------------------------------------------------------------

    def _flush_done(self) -> None:
        """A flush is complete."""
        if self._progress is None:
            self._show_flush()
        else:
            self.overlap.flushed(self.threads[0], self._progress)
            self._show_later(0, FLUSH, self._progress)
        self.executor.signal(self.threads[0])

    def _frame_done(self) -> None:
        """The last store of a frame is complete."""
        binning, frames = self.binning, self.frames
        if frames.refused or binning.requests.refused:
            refused = frames.refused or not binning.accepted
            self.undrawn += bool(refused and not frames.drawn)
            binning.requests.refused = frames.refused = 0
        frames.drawn, binning.accepted = 0, False
        if self._progress is None:
            self._show_frame()
        else:
            self._show_later(1, FRAME, self._progress)
            if frames.stored:
                moment = self._progress.threads[1]
                self.listeners.frame_stored.emit(FrameStored(frames.stored, moment))
                frames.stored = []
        self.executor.signal(self.threads[1])

    def _show_later(self, number: int, kind: int, progress: Progress) -> None:
        """Shows an event when the list thread's time is over."""
        self._spend(number, progress)
        progress.ends(number, kind)
        progress.signal(number)

    def events(self) -> dict[str, int]:
        """Count what the blocks did since the start, by the names in `counters.SOURCES`."""
        totals = self.binning.binner.totals | self.frames.events()
        return totals | coverage_counts(totals, self.unknowns["counter_coverage"])

    @property
    def waiting(self) -> str | None:
        """Say what the V3D waits for; None if it does not."""
        reasons = waiting_reasons(self.threads)
        if self.programs.waiting:
            reasons.append(self.programs.waiting)
        return "; ".join(reasons) or None
