"""HYP and monitor mode of one core: its state, and the instructions that are emulated.

The firmware's stub leaves a Pi 2 or 3 in HYP mode, non-secure, and stays as the handler of
smc: up to 2020 it goes (back) to HYP mode, later smc is undefined (`monitor_call` in the table of
unknowns). A program may put a handler of its own in its place, as the stub lies in RAM that
every program can write. Without the stub (`kernel_old=1`) a program begins in the secure state and
sets MVBAR itself. The engine is non-secure all the time: both states are one here, with the same
copy of each system register. Source: ARM Architecture Reference Manual ARMv7-A, B1.5 (security),
B1.8, B9.3; the stub's source.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from unicorn.arm_const import UC_ARM_REG_SPSR

from vc4lab.listeners import Listeners
from vc4lab.soc.cores.code.traps import HYP_MISTAKE_TRAPS, HYP_TRAPS, Action
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.exceptions import hyp
from vc4lab.soc.cores.exceptions.exceptions import HYP, MODE_MASK, MONITOR_VECTORS, THUMB, VBAR, ArmException
from vc4lab.soc.cores.strict_core import VECTORS_32

MODE_NAMES = {
    0x10: "user", 0x11: "FIQ", 0x12: "IRQ", 0x13: "supervisor", 0x16: "monitor", 0x17: "abort",
    0x1A: "HYP", 0x1B: "undefined", 0x1F: "system",
}  # fmt: skip
NSACR_FIRMWARE = 0xC00
"""As the stub leaves it: a non-secure program may use floating point."""
SCR_NUMBER, NSACR_NUMBER, MVBAR_NUMBER = 0, 2, -1
VECTORS_CRN = 12
READS = 1 << 20
"""Set in MRC, clear in MCR."""
BELIEVED = 8
"""So often an instruction that may change the mode is looked at."""
LOW_VECTORS = 0x20
STUB_MONITOR = MONITOR_VECTORS + ArmException.MONITOR_CALL.value.vector
ONLY_IN_HYP = frozenset({Action.MODE_CHANGE, Action.OTHER_RETURN})
"""Actions that matter in HYP mode alone; elsewhere their hooks go away."""


class HypLeft(NamedTuple):
    """The instruction at `pc` leaves HYP mode; where the core goes on."""

    pc: int
    target: int


class HypCore:
    """HYP and monitor mode of one core.

    Parameters
    ----------
    has_stub
        Whether the firmware's stub has run: the core begins in HYP mode.
    calls_monitor
        Whether smc reaches the stub's monitor; else it is undefined.
    illegal_state
        Whether a mode that cannot be changed makes the next instruction undefined (ARMv8).
    """

    def __init__(self, cpu: Cpu, has_stub: bool, calls_monitor: bool, illegal_state: bool) -> None:
        self._cpu = cpu
        self.has_stub = has_stub
        self._calls_monitor = calls_monitor
        self._illegal_state = illegal_state
        self.elr = 0
        """ELR_hyp: where eret goes on."""
        self.scr = hyp.SCR_FIRMWARE if has_stub else 0
        self.mvbar = MONITOR_VECTORS
        self.vectors_set = False
        """Whether the program has written HVBAR."""
        self.illegal = False
        """Whether the next undefined instruction is one because of an illegal change of mode."""
        self.left: Listeners[HypLeft] = Listeners()
        self._told: set[str] = set()
        self._believed: dict[int, int] = {}
        """How often the instructions at these addresses could have changed the mode and did not."""

    # -- what is said ------------------------------------------------------------------------------

    def note_vector(self, exception: ArmException, address: int) -> None:
        """HYP mode takes an exception at one of the vectors at 0."""
        if not self.vectors_set:
            self.report("SOC-046", f"{exception.value.title}{self.about_vectors}", address)

    @property
    def about_vectors(self) -> str:
        """Say where HYP mode has its vectors, for the end of a sentence."""
        left = ", in which the firmware left it" if self.has_stub else ""
        hvbar, vbar = (self._cpu.system_register(key) for key in (hyp.HVBAR, VBAR))
        how = "" if self.vectors_set else ", never set by the program"
        return (
            f"; the core is in HYP mode{left}: its vectors are at HVBAR "
            f"(0x{hvbar:08x}{how}), not at VBAR (0x{vbar:08x})"
        )

    def report(self, code: str, text: str, address: int) -> None:
        """Report a mistake once."""
        if code not in self._told:
            self._told.add(code)
            self._cpu.links.report(code, text, address)

    @property
    def mode_name(self) -> str:
        """The core's mode in words, in hooks, too."""
        mode = hyp.mode_of(self._cpu.engine)
        return MODE_NAMES.get(mode, f"mode 0x{mode:02x}")

    def leave(self) -> int:
        """Eret: to the mode that SPSR_hyp says; where to go on."""
        pc = self._cpu.engine_pc if self.left.subscriptions else 0
        target = self._leaving.leave(self.elr)
        if self.left.subscriptions:
            self.left.emit(HypLeft(pc, target))
        return target

    @cached_property
    def _leaving(self) -> hyp.Leaving:
        return hyp.Leaving(self._cpu.calls)

    # -- what is trapped ---------------------------------------------------------------------------

    def emulate(self, action: Action, word: int, address: int, cpsr: int) -> bool | None:
        """Do an instruction: whether to go on after it; None: its hook is no longer needed."""
        thumb = bool(cpsr & THUMB)
        if not any(trap.is_meant(action, word, thumb) for trap in HYP_TRAPS + HYP_MISTAKE_TRAPS):
            return None
        cpu = self._cpu
        mode = cpsr & MODE_MASK
        if action is Action.SECURITY:
            return self._security(word, mode, address)
        if mode != HYP:
            return None if action in ONLY_IN_HYP else False
        if action is Action.HYP_VECTORS:
            self.vectors_set = True
            cpu.report_vectors("HVBAR", cpu.register(word >> 12 & 15), VECTORS_32, address)
            return False
        if action is Action.MODE_CHANGE:
            return self._change_mode(word, address, thumb)
        if action is Action.OTHER_RETURN:
            self.report("SOC-047", "an exception return of another mode", address)
            cpu.raise_exception(ArmException.UNDEFINED, address)
            return False
        if action is Action.HYP_RETURN:
            cpu.go_on_at(self.leave())
            return True
        reads = bool(word & 1 << 21) == thumb
        target = (word >> (8 if thumb else 12) if reads else word >> 16 if thumb else word) & 15
        if action is Action.HYP_RETURN_ADDRESS:
            if reads:
                cpu.set_register(target, self.elr)
            else:
                self.elr = cpu.register(target)
            return True
        cpu.links.report("SOC-044", "SPSR_hyp is accessed by name in HYP mode", address)
        if reads:
            cpu.set_register(target, cpu.engine.reg_read(UC_ARM_REG_SPSR))
        else:
            cpu.engine.reg_write(UC_ARM_REG_SPSR, cpu.register(target))
        return True

    def _change_mode(self, word: int, address: int, thumb: bool) -> bool | None:
        """CPS and MSR CPSR in HYP mode: without effect on the mode, an illegal state in ARMv8.

        Programs mask interrupts by them, too, and often: such a place is believed after a while.
        """
        cpu = self._cpu
        mode = _mode_asked(word, thumb, cpu)
        if mode in (None, HYP):
            times = self._believed[address] = self._believed.get(address, 0) + 1
            return None if times >= BELIEVED else False
        name = MODE_NAMES.get(mode or 0, f"mode 0x{mode:02x}")
        what = "the next instruction is undefined" if self._illegal_state else "nothing happens"
        self.report(
            "SOC-045", f"the program tries to change from HYP to {name} mode with cps or msr: {what}", address
        )
        if self._illegal_state:
            self.illegal = True
            cpu.raise_exception(ArmException.UNDEFINED, address + 4)
            return False
        return None

    # -- security ----------------------------------------------------------------------------------

    def _security(self, word: int, mode: int, address: int) -> bool:
        """SCR, SDER, NSACR and MVBAR, which the engine lets only the monitor have.

        Non-secure programs that run on boards write NSACR to allow what the stub has allowed; that
        is ignored. The others do not exist for them.
        """
        number = MVBAR_NUMBER if word >> 16 & 15 == VECTORS_CRN else word >> 5 & 7
        reads, target = bool(word & READS), word >> 12 & 15
        secure = mode == hyp.MONITOR or not self.scr & hyp.NON_SECURE
        if not secure and number != NSACR_NUMBER:
            self._cpu.raise_exception(ArmException.UNDEFINED, address)
            return False
        if number == SCR_NUMBER and not reads:
            self.scr = self._cpu.register(target)
        elif number == MVBAR_NUMBER and not reads:
            self.mvbar = self._cpu.register(target) & ~31
        elif reads:
            values = {SCR_NUMBER: self.scr, NSACR_NUMBER: NSACR_FIRMWARE, MVBAR_NUMBER: self.mvbar}
            self._cpu.set_register(target, values.get(number, 0))
        return True

    def call_monitor(self, address: int) -> tuple[int, bool] | None:
        """SMC: where it goes, and whether that is a vector at 0; None: it is undefined."""
        if self.has_stub and not self._calls_monitor:
            return None
        cpu = self._cpu
        engine = cpu.engine
        back = address + 4 & 0xFFFFFFFF
        handler = self.mvbar + ArmException.MONITOR_CALL.value.vector
        if self.has_stub and handler == STUB_MONITOR and cpu.memory.u32(handler) == 0:
            cpu.set_register(0, hyp.START)
            cpu.set_register(1, hyp.SCR_FIRMWARE)
            self.scr = hyp.SCR_FIRMWARE
            hyp.enter_mode(engine, hyp.START)
            cpu.set_pc(back)
            return back, False
        status = cpu.cpsr
        hyp.enter_monitor(engine, status)
        cpu.set_register(14, back)
        engine.reg_write(UC_ARM_REG_SPSR, status)
        cpu.set_pc(handler)
        return handler, handler < LOW_VECTORS


def _mode_asked(word: int, thumb: bool, cpu: Cpu) -> int | None:
    """The mode that CPS or MSR CPSR selects, None if it keeps the mode."""
    if thumb:
        if word >> 16 == 0xF3AF:
            return word & MODE_MASK if word & 1 << 8 else None
        return cpu.register(word >> 16 & 15) & MODE_MASK if word & 1 << 8 else None
    if word >> 20 == 0xF10:
        return word & MODE_MASK if word & 1 << 17 else None
    if not word & 1 << 16:
        return None
    if word & 1 << 25:
        turn = word >> 7 & 30
        value = word & 0xFF
        return (value >> turn | value << 32 - turn) & MODE_MASK
    return cpu.register(word & 15) & MODE_MASK


assert THUMB == 1 << 5
