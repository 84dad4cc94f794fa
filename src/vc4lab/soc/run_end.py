"""How a run ends: what is said of hangs, crashes and halts, in words and with codes."""

from __future__ import annotations

from abc import abstractmethod

from vc4lab.diagnostics import StrictStop
from vc4lab.soc.cores.outcome import UnhandledException
from vc4lab.soc.cores.storms import LONGEST_FAULTS, LONGEST_INTERRUPTS
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.result import RunResult, Stop
from vc4lab.soc.watchdog import registers_of_another_board


class EndingHardware(Hardware):
    """Hardware with a program that comes to an end; `_end` is its first one in this run."""

    _end: RunResult | None = None

    @abstractmethod
    def _result(self, reason: Stop, message: str) -> RunResult:
        """The state of things now, as the result of a run."""

    @abstractmethod
    def _drain_caches(self) -> None:
        """What modelled caches hold back goes to memory."""

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._end is not None

    def hang(self, text: str) -> None:
        """The program makes no progress any more."""
        self._finish(Stop.HANG, text)
        self.report("SOC-040", text, self.cpu.pc)
        self._look_for_other_board()

    def crash(self, crash: UnhandledException, reported: bool = False) -> None:
        """The program met an exception it has no handler for, or none that mends anything."""
        self._finish(Stop.CRASH, self._crash_text(crash))
        if not reported:
            self.report_crash(crash)

    def report_crash(self, crash: UnhandledException) -> None:
        """Report such an exception; the other cores may go on."""
        code = "SOC-048" if crash.storm else "SOC-042"
        self.report(code, self._crash_text(crash), crash.address)

    def _crash_text(self, crash: UnhandledException) -> str:
        place, vector = self.places(crash.address), f"0x{crash.vector:08x}"
        text = f"{crash.exception.value.title} at {place}"
        if self.cpu.number:
            text = f"core {self.cpu.number}: {text}"
        if not crash.storm:
            text += f", and there is no handler at its vector {vector}"
        elif crash.address == crash.vector:
            text += ", which is its own vector: the core comes back there for ever"
        else:
            text += (
                f" again and again: {LONGEST_FAULTS} in a row with hardly an instruction between "
                f"them; the handler (its vector is {vector}) mends nothing"
            )
        return text + self.cpu.about_vectors

    def hang_in_interrupts(self, pc: int, core: int) -> None:
        """A core takes the same interrupt again and again."""
        names = self.pending_lines(core)
        text = (
            f"core {core} takes an interrupt again and again at {self.places(pc)}: the program "
            f"does not go on between them, and {LONGEST_INTERRUPTS} handlers in a row have not "
            f"cleared what asks for it ({names})"
        )
        self._finish(Stop.HANG, text)
        self.report("SOC-049", text, pc)

    def fail_lost(self, address: int) -> None:
        """The program counter has left the program."""
        text = f"the CPU runs through empty RAM at {self.places(address)}"
        self._fail("SOC-043", text, address)

    def halt(self, text: str) -> None:
        """The program has ended."""
        self._finish(Stop.HALTED, text)
        self._look_for_other_board()

    def _look_for_other_board(self) -> None:
        found = registers_of_another_board(self)
        if found is not None:
            self.report("SOC-087", *found)

    def _fail(self, code: str, text: str, address: int) -> None:
        self._finish(Stop.CRASH, text)
        self.report(code, text, address)

    def report(self, code: str, text: str, address: int) -> None:
        """Report how the run ended; that it has ended is no reason for strict mode to stop."""
        try:
            self.reporter.report(code, text, address=address, block="cpu")
        except StrictStop:
            return

    def end(self, message: str) -> None:
        """End the run at the next opportunity, because it is asked for from outside."""
        self._finish(Stop.STOPPED, message)

    def _finish(self, reason: Stop, message: str) -> None:
        self._drain_caches()
        if self._end is None:
            self._end = self._result(reason, message)
        self.counter.stop()
