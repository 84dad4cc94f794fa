"""The listeners of a V3D: any number for each kind of event (`events.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from vc4lab.listeners import AnyListener, Listeners
from vc4lab.v3d.events import JobEnded, JobStarted, ProgramCompiled

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.events import (
        BinningDone,
        CachesCleared,
        DrawPrepared,
        FrameDone,
        FrameDrawn,
        FrameStored,
        FrameTiles,
        FrameWork,
        InterruptLine,
        ListBinned,
        MemoryUse,
        PoweredOn,
        ProgramEnded,
        ProgramKind,
        ProgramRecorded,
        ProgramsRun,
        ProgramStarted,
        ProgramStored,
        RecordExecuted,
        RecordsNoted,
        RegisterWritten,
    )


class ThreadState(Protocol):
    """A list thread, as far as its events say: see `cle/thread.py`."""

    number: int
    end: int
    current: int
    running: bool
    error: bool


class V3DListeners:
    """The listeners of one V3D, by kind of event."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        """An error of a listener since a bus access has raised one; only the first is kept."""
        self._end_pending = [False, False]
        self.keep: Callable[[Exception], object] = self._keep
        """Takes what they raise, if it is not to be raised by a bus access."""
        self.register_written: Listeners[RegisterWritten] = Listeners(self._failed)
        self.powered_on: Listeners[PoweredOn] = Listeners(self._failed)
        self.job_started: Listeners[JobStarted] = Listeners(self._failed)
        self.job_ended: Listeners[JobEnded] = Listeners(self._failed)
        self.any_job = AnyListener(self.job_started, self.job_ended)
        self.record_executed: Listeners[RecordExecuted] = Listeners(self._failed)
        self.binning_done: Listeners[BinningDone] = Listeners(self._failed)
        self.frame_done: Listeners[FrameDone] = Listeners(self._failed)
        self.frame_stored: Listeners[FrameStored] = Listeners(self._failed)
        self.draw_prepared: Listeners[DrawPrepared] = Listeners(self._failed)
        self.frame_tiles: Listeners[FrameTiles] = Listeners(self._failed)
        self.frame_drawn: Listeners[FrameDrawn] = Listeners(self._failed)
        self.records_noted: Listeners[RecordsNoted] = Listeners(self._failed)
        self.list_binned: Listeners[ListBinned] = Listeners(self._failed)
        self.frame_work: Listeners[FrameWork] = Listeners(self._failed)
        self.interrupt_line: Listeners[InterruptLine] = Listeners(self._failed)
        self.program_compiled: Listeners[ProgramCompiled] = Listeners(self._failed)
        self.program_started: Listeners[ProgramStarted] = Listeners(self._failed)
        self.programs_run: Listeners[ProgramsRun] = Listeners(self._failed)
        self.program_ended: Listeners[ProgramEnded] = Listeners(self._failed)
        self.program_stored: Listeners[ProgramStored] = Listeners(self._failed)
        self.program_recorded: Listeners[ProgramRecorded] = Listeners(self._failed)
        self.memory_used: Listeners[MemoryUse] = Listeners(self._failed)
        self.caches_cleared: Listeners[CachesCleared] = Listeners(self._failed)

    def _failed(self, failure: Exception) -> None:
        self.keep(failure)

    def _keep(self, failure: Exception) -> None:
        if not self.failures:  # a frame may have millions of events
            self.failures.append(failure)

    def compiled(self, kind: ProgramKind, program: Program, start: float) -> None:
        """A program was compiled from a moment (of `perf_counter`) on."""
        if self.program_compiled.subscriptions:
            took = 1000 * (perf_counter() - start)
            event = ProgramCompiled(kind, program.address, program.words, took)
            self.program_compiled.emit(event)

    def job(self, thread: ThreadState) -> None:
        """A list thread runs from now on."""
        if self.job_started.subscriptions:
            self.job_started.emit(JobStarted(thread.number, thread.current, thread.end))
        if self.job_ended.subscriptions:
            self._end_pending[thread.number] = True

    def emit_ends(self, threads: Sequence[ThreadState]) -> None:
        """Which of the list threads have stopped since `job`."""
        for thread in threads:
            if self._end_pending[thread.number] and not thread.running:
                self._end_pending[thread.number] = False
                self.job_ended.emit(JobEnded(thread.number, thread.current, thread.error))

    def raise_failure(self) -> None:
        """The V3D is at rest: raises what is in `failures`, if there is anything."""
        if self.failures:
            failure = self.failures[0]
            self.failures.clear()
            raise failure
