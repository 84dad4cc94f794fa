"""The firmware's "execute code": calls a function of the program on the VPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vc4lab.memory import GuestMemory
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.videocore.vc_memory import VideoCoreMemory

STACK = 64 << 10
"""Bytes of VideoCore memory that a function has while it runs."""
BUDGET = 2_000_000
"""Instructions of one message's functions, after which the last is taken to be endless."""
NANOSECONDS = 1_000_000_000


@dataclass
class VpuService:
    """Runs one function at a time; guest time passes by its instructions, one a core clock.

    Parameters
    ----------
    core_clock
        Hertz.
    code_changed
        Called when a function has written RAM.
    """

    memory: GuestMemory
    bus: Bus
    core_clock: int
    pool: VideoCoreMemory
    unknowns: Unknowns
    code_changed: Callable[[], None]
    _busy: bool = False
    _stuck_at: int | None = None
    """The endless function that the VPU is executing forever."""
    _message: int = -1
    """The CPU's accesses when the message came whose budget is used."""
    _left: int = BUDGET

    def call(self, function: int, arguments: Sequence[int]) -> int | None:
        """r0 of the function at bus address `function`; None if it could not be run (reported)."""
        if self._busy:
            self._report("SOC-090", "the VPU itself requests execute code", function)
            return None
        if self._stuck_at is not None:
            text = f"the VPU is still executing the function at 0x{self._stuck_at:08x}"
            self._report("SOC-092", text, function)
            return None
        if self.bus.accesses != self._message:
            self._message, self._left = self.bus.accesses, BUDGET
        stack = self.pool.allocate(STACK)
        if stack is None:
            text = f"there are not {STACK >> 10} KiB of VideoCore memory left for its stack"
            self._report("SOC-091", text, function)
            return None
        self._busy = True
        try:
            return self._run(function, arguments, stack.bus_address + STACK)
        finally:
            self._busy = False
            self.pool.release(stack.handle)

    def _run(self, function: int, arguments: Sequence[int], stack: int) -> int | None:
        from vc4lab.soc.videocore.vpu.core import Endless, Refused
        from vc4lab.soc.videocore.vpu.executor import Executor
        from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory

        misaligned = self.unknowns["vpu_misaligned"] == "works"
        memory = VpuMemory(self.memory, self.bus, misaligned)
        executor = Executor(memory, self.unknowns, self._pass_time)
        try:
            return executor.call(function, arguments, stack, self._left)
        except Refused as problem:
            self._report("SOC-090", str(problem), executor.state.pc)
        except Fault as problem:
            at = executor.state.pc
            self._report("SOC-091", f"{problem} (at 0x{at:08x})", at)
        except Endless:
            self._stuck_at = function
            text = f"no return after {BUDGET:,} instructions; it is at 0x{executor.state.pc:08x}"
            self._report("SOC-092", text, function)
        finally:
            self._left -= executor.executed
            if executor.stored:
                self.code_changed()
        return None

    def _pass_time(self, instructions: int) -> None:
        if instructions:
            self.bus.clock.skip(instructions * NANOSECONDS // self.core_clock)

    def _report(self, code: str, text: str, address: int) -> None:
        self.bus.reporter.report(code, text, address=address, block="VPU")
