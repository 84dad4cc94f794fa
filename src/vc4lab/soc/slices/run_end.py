"""How a run ends: hangs, crashes and halts, with their messages."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.cores.cores import IDLE_LOOP
from vc4lab.soc.cores.exceptions.exceptions import THUMB, ArmException
from vc4lab.soc.cores.exceptions.outcome import (
    FAULTS,
    LONGEST_FAULTS,
    LONGEST_INTERRUPTS,
    Outcome,
    Taken,
    UnhandledException,
)
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.inspect.instructions import (
    FLOAT_SWITCHES,
    float_is_off,
    instruction_text,
    is_missing,
    loops_without_load,
)
from vc4lab.soc.inspect.watchdog import NOTHING_PENDING, pending_lines, registers_of_another_board
from vc4lab.soc.result import Inspectable, RunResult, Stop

VECTOR = 0x80
"""Bytes for a handler at a vector of AArch64."""


class RunEnd:
    """The end of a machine's run, checked after each slice.

    Attributes
    ----------
    result
        The first end in this run, None while the program runs.
    before
        Called first, so that buffered writes reach memory.
    """

    def __init__(self, hardware: Hardware, machine: Inspectable) -> None:
        self._hardware = hardware
        self._machine = machine
        self.result: RunResult | None = None
        self.before: list[Callable[[], None]] = []

    @property
    def is_reached(self) -> bool:
        """Whether the run is over."""
        return self.result is not None

    def state(self, reason: Stop, message: str) -> RunResult:
        """The current state as the result of a run."""
        hardware, machine = self._hardware, self._machine
        return RunResult(reason, hardware.frames.count, hardware.seconds, message, machine)

    def finish(self, reason: Stop, message: str) -> None:
        """End the run at the next opportunity; the first reason counts."""
        for act in self.before:
            act()
        if self.result is None:
            self.result = self.state(reason, message)
        self._hardware.counter.stop()

    # -- why ---------------------------------------------------------------------------------------

    def hang(self, text: str) -> None:
        """The program no longer makes progress."""
        text += self._about_loops() + self._about_masks() + self._about_exceptions()
        text += self._hardware.linked_for_zero.about()
        self.finish(Stop.HANG, text)
        self._hardware.report("SOC-040", text, self._hardware.cpu.pc)
        self._look_for_other_board()

    def crash(self, crash: UnhandledException, reported: bool = False) -> None:
        """The program took an exception that has no handler, or none that helps."""
        self.finish(Stop.CRASH, self._crash_text(crash))
        if not reported:
            self.report_crash(crash)

    def report_crash(self, crash: UnhandledException) -> None:
        """Report such an exception; the other cores may go on."""
        code = "SOC-042" if crash.has_no_handler else "SOC-048"
        if crash.why:
            code = crash.why[0]
        self._hardware.report(code, self._crash_text(crash), (crash.first or crash.taken).address)

    def _crash_text(self, crash: UnhandledException) -> str:
        cpu, taken, first = self._hardware.cpu, crash.taken, crash.first
        if crash.why:
            return f"{crash.why[1]}, at {self._hardware.places(taken.address)}"
        vector = f"0x{taken.vector:08x}"
        text = self._exception_text(taken)
        if not crash.storm:
            text += f", without a handler at its vector {vector}{self._stands_at(taken.vector)}"
        elif taken.address == taken.vector:
            text += ", which is its own vector: the core returns there forever"
        else:
            text += (
                f", repeatedly: {LONGEST_FAULTS} in a row with hardly an instruction between "
                f"them; the handler (at vector {vector}) does not remove the cause"
            )
        if first is not None:
            text = (
                f"{self._exception_text(first)}, is the first exception; the code at its vector "
                f"0x{first.vector:08x}{self._stands_at(first.vector)} leads to the next one: {text}"
            )
        if cpu.number:
            text = f"core {cpu.number}: {text}"
        if taken.exception is ArmException.UNDEFINED and is_missing(cpu, taken.address):
            text += (
                f"; this is an instruction of ARMv7, which a {self._hardware.board.title} does not "
                "have: the program was built for a Pi 2 or 3"
            )
        if taken.exception is ArmException.UNDEFINED and "_el3" in text:
            text += (
                "; registers of EL3 are there for a kernel that is entered in EL3, as with "
                "kernel_old=1 in config.txt: the firmware's stub leaves EL3 before the kernel"
            )
        if taken.exception is ArmException.UNDEFINED and float_is_off(cpu, taken.address):
            text += "; the floating-point unit is off: " + FLOAT_SWITCHES
        if crash.has_no_handler and (first or taken).exception not in FAULTS:
            text += f"; {cpu.sets_vectors_by}"
        return text + cpu.about_vectors + self._hardware.linked_for_zero.about()

    def _exception_text(self, taken: Taken) -> str:
        """Kind, place and instruction of an exception, and which access was aborted."""
        text = f"{taken.exception.value.title} at {self._hardware.places(taken.address)}"
        code = instruction_text(self._hardware.cpu, taken.address, bool(taken.status & THUMB))
        if taken.exception is not ArmException.PREFETCH_ABORT and code:
            text += f" ({code})"
        if taken.fault not in (None, taken.address):
            text += f", which accesses 0x{taken.fault:08x}"
        return text

    def _stands_at(self, vector: int) -> str:
        """The word at a vector, if there is one."""
        word = self._hardware.cpu.fetch(vector)
        return f" (where 0x{word:08x} is)" if word else ""

    def _about_loops(self) -> str:
        """A loop that waits for nothing, for the end of a sentence."""
        for core in self._hardware.processors.running:
            waits = core.asleep in (IDLE_LOOP, Outcome.BRANCH_TO_SELF.value)
            if waits and loops_without_load(core.cpu, core.cpu.pc):
                return (
                    f"; the loop at {self._hardware.places(core.cpu.pc)} has no load: a variable "
                    "that an interrupt handler or another core changes must be volatile, or the "
                    "compiler reads it only once"
                )
        return ""

    def _about_masks(self) -> str:
        """Which interrupts would come if the waiting core did not mask them."""
        for core in self._hardware.processors.running:
            if core.asleep == IDLE_LOOP and not core.cpu.accepts(ArmException.IRQ):
                lines = pending_lines(self._hardware, core.number)
                if lines != NOTHING_PENDING:
                    unmask = "msr daifclr, #2" if core.cpu.WIDE else "cpsie i"
                    return (
                        f"; an interrupt is pending ({lines}), but the core masks interrupts: "
                        f"{unmask} lets them in"
                    )
        return ""

    def _about_exceptions(self) -> str:
        """Which exception the program has not come back from, for the end of a sentence."""
        cpu = self._hardware.cpu
        count = self._hardware.counter.count
        first = cpu.open_exceptions.first_at(cpu.pc, cpu.cpsr, count)
        if first is None:
            return ""
        if first.exception not in FAULTS and abs(cpu.pc - first.vector) >= VECTOR:
            return ""
        return (
            f"; before that: {self._exception_text(first)}, from which the core has not come back "
            f"(vector 0x{first.vector:08x})"
        )

    def hang_in_interrupts(self, pc: int, core: int) -> None:
        """A core takes the same interrupt again and again."""
        names = pending_lines(self._hardware, core)
        text = (
            f"core {core} takes an interrupt repeatedly at {self._hardware.places(pc)}: the "
            f"program makes no progress in between, and {LONGEST_INTERRUPTS} handlers in a row "
            f"have not cleared its cause ({names})"
        )
        self.finish(Stop.HANG, text)
        self._hardware.report("SOC-049", text, pc)

    def fail_lost(self, address: int) -> None:
        """The program counter has left the program."""
        text = f"the CPU executes empty RAM at {self._hardware.places(address)}"
        text += self._about_exceptions() + self._hardware.linked_for_zero.about()
        self.finish(Stop.CRASH, text)
        self._hardware.report("SOC-043", text, address)

    def halt(self, text: str) -> None:
        """The program has ended."""
        self.finish(Stop.HALTED, text + self._about_exceptions())
        self._look_for_other_board()

    def reset(self) -> None:
        """The watchdog has reset the board."""
        if self._hardware.power.halts:
            text = "the program switched the board off (reset partition 63)"
            self.finish(Stop.HALTED, text)
        else:
            self.finish(Stop.RESET, "the program asked for a restart through the watchdog")

    def _look_for_other_board(self) -> None:
        found = registers_of_another_board(self._hardware)
        if found is not None:
            self._hardware.report("SOC-087", *found)
