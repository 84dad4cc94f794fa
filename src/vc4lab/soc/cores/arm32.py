"""A core in AArch32 state: registers, exceptions, emulated instructions.

HYP mode: `hyp.py` and `hyp_core.py`. NSACR and SCR of an ARM1176, which are undefined on the model,
read as 0, and writes are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unicorn import arm_const as arm

from vc4lab.soc.cores.arm32_words import (
    THUMB_WAITS,
    YIELD_THUMB,
    condition_met,
    do_timer,
    is_monitor_call,
    is_monitor_vectors,
    is_security_register,
    leads_to_nothing,
)
from vc4lab.soc.cores.code import exclusives
from vc4lab.soc.cores.code.code_pages import PAGE
from vc4lab.soc.cores.code.native_counter import NativeCounter
from vc4lab.soc.cores.code.native_places import NativePlace
from vc4lab.soc.cores.code.traps import (
    ARM_TRAPS,
    HYP_MISTAKE_TRAPS,
    HYP_TRAPS,
    IDENTITY_TRAPS,
    Action,
    Trap,
    means,
)
from vc4lab.soc.cores.engine import alignment
from vc4lab.soc.cores.engine.alignment_words import LEGACY
from vc4lab.soc.cores.engine.engine_calls import RegisterBatch
from vc4lab.soc.cores.exceptions import hyp
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORTS,
    ENGINE_DATA,
    ENGINE_HVC,
    ENGINE_SMC,
    ENGINE_SVC,
    FIQ_MASKED,
    HCR_FMO,
    HCR_IMO,
    HCR_TGE,
    HYP,
    IRQ_MASKED,
    MODE_MASK,
    MONITOR_VECTORS,
    SCTLR,
    SCTLR_C,
    SCTLR_M,
    SCTLR_U,
    THUMB,
    USER,
    ArmException,
    ExceptionEntry,
)
from vc4lab.soc.cores.strict_core import VECTORS_32
from vc4lab.soc.cores.translation import Tables32

HYP_ACTIONS = frozenset(trap.action for trap in HYP_TRAPS + HYP_MISTAKE_TRAPS)
PLAIN_TRAPS = ARM_TRAPS + IDENTITY_TRAPS
PLAIN_ACTIONS = frozenset(trap.action for trap in PLAIN_TRAPS)
RESET_CPSR = 0x1D3
"""Supervisor mode, interrupts masked, ARM state: as the firmware's stub leaves it."""
MIDR, MPIDR = (15, 0, 0, 0, 0, 4, 0), (15, 0, 0, 0, 0, 4, 5)
"""VPIDR and VMPIDR: what MIDR and MPIDR read as outside of HYP mode."""
CPACR = (15, 0, 0, 1, 0, 0, 2)
DFSR, IFSR = (15, 0, 0, 5, 0, 0, 0), (15, 0, 0, 5, 0, 0, 1)
DFAR, IFAR = (15, 0, 0, 6, 0, 0, 0), (15, 0, 0, 6, 0, 0, 2)
LONGEST_LEAD = 0x200
"""Bytes after a vector that are looked through for its handler."""
SYNDROME_WRITE, DFSR_WRITE = 1 << 6, 1 << 11
SCR_FW, SCR_AW = 1 << 4, 1 << 5
"""In SCR: whether a program that is not secure may unmask FIQs and aborts."""


class Arm32(Tables32):
    """ARM1176, Cortex-A7, or a Cortex-A53 in AArch32 state (as an A7 with another name)."""

    PC, STATUS, SYSTEM = arm.UC_ARM_REG_PC, arm.UC_ARM_REG_CPSR, arm.UC_ARM_REG_CP_REG
    NAMES = (
        *range(arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R0 + 13),
        *(arm.UC_ARM_REG_SP, arm.UC_ARM_REG_LR, arm.UC_ARM_REG_PC),
    )
    STATE = (*NAMES[:15], arm.UC_ARM_REG_CPSR)
    identity: int | None = None
    """MIDR, if it is another one than the model's."""
    affinity = 0x80000000
    """MPIDR of core 0."""
    _routing = 0
    """HCR, as the core last came back."""
    _counter: NativeCounter | None = None
    starts_armv6 = False
    """Whether an ARM1176 starts with SCTLR.U set."""
    _old_place: int | None = None
    """An instruction to be translated again, with the accesses of ARMv5."""
    monitor_vectors = MONITOR_VECTORS
    """MVBAR of a core without HYP mode."""

    def _make_engine(self, unicorn: Any) -> Any:
        self._handlers: dict[int, int] = {}
        """Vectors at 0 with the first word of a handler that was found there."""
        engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
        engine.ctl_set_cpu_model(getattr(arm, f"UC_CPU_ARM_{self.model}"))
        return engine

    def start(self, pc: int, registers: tuple[int, ...]) -> None:
        engine = self.engine
        if self.model != "1176":
            self._write(MPIDR, self.affinity + self.number)
            if self.identity is not None:
                self._write(MIDR, self.identity)
        else:  # the model runs non-secure; a Pi 1's program is secure, and its masks are its own
            self._write(hyp.SCR, self.system_register(hyp.SCR) | SCR_FW | SCR_AW)
            if self.starts_armv6:
                self._write(SCTLR, self.system_register(SCTLR) | SCTLR_U)
        if self.hyp_core is not None:
            hyp.allow(engine)
        if self.hyp_core is not None and self.hyp_core.has_stub:
            hyp.enter_mode(engine, hyp.START)
        else:
            engine.reg_write(self.STATUS, RESET_CPSR)
        for number, value in enumerate(registers):
            engine.reg_write(arm.UC_ARM_REG_R0 + number, value & 0xFFFFFFFF)
        engine.reg_write(self.PC, pc)
        self.refresh()

    @property
    def about_vectors(self) -> str:
        if self.hyp_core is None or not self.in_hyp:
            return ""
        return self.hyp_core.about_vectors

    @property
    def sets_vectors_by(self) -> str:
        if self.hyp_core is not None and self.in_hyp:
            return "set HVBAR to the program's vectors, or leave HYP mode and set VBAR"
        return super().sets_vectors_by

    def goes_where(self, exception: ArmException) -> str:
        return " to HYP mode" if self._goes_to_hyp(exception) else ""

    @property
    def _traps_now(self) -> tuple[Trap, ...]:
        if self.hyp_core is None:
            return self._exclusive_traps
        mistakes = HYP_MISTAKE_TRAPS if self.in_hyp else ()
        return self._exclusive_traps + HYP_TRAPS + IDENTITY_TRAPS + mistakes

    def _hook_place(self, place: int, action: Action) -> None:
        if action is Action.SEND_LOCAL_EVENT and self.identity is None:
            return  # a hint that ARMv6 and ARMv7 do not know is a nop
        self._exclusive_hooks += action is Action.EXCLUSIVE
        super()._hook_place(place, action)

    @property
    def _native_places(self) -> Mapping[Action, Callable[..., NativePlace]]:
        counter = self._counter
        if counter is None:
            return {}
        return {Action.TIMER_PAIR: counter.pair, Action.TIMER: counter.single}

    def _hook_invalid(self) -> None:
        self.calls.add_hook(self._unicorn.UC_HOOK_INSN_INVALID, *self._events.invalid)

    def _install_hooks(self) -> None:
        super()._install_hooks()
        timer, bus = self.links.timer, self.links.bus
        self._entry_of_exceptions = ExceptionEntry(self.calls)
        routing = () if self.model == "1176" else (hyp.HCR,)
        self._place = self.calls.batch(self.SYSTEM, (self.PC, self.STATUS, *routing))
        if timer is not None and bus:
            numbers = arm.UC_ARM_REG_R0, arm.UC_ARM_REG_PC
            self._counter = NativeCounter(bus, timer, self.calls, *numbers, changed=self._timer_written)

    # -- registers ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        self.pc, self.cpsr, *routing = self._place.read()
        self._routing = routing[0] if routing else 0

    def _entry(self) -> int:
        return self.pc | (1 if self.cpsr & THUMB else 0)

    def set_pc(self, address: int) -> None:
        thumb = self.engine.reg_read(self.STATUS) & THUMB
        self.engine.reg_write(self.PC, address | (1 if thumb else 0))

    @property
    def executes_thumb(self) -> bool:
        return bool(self.engine.reg_read(self.STATUS) & THUMB)

    @property
    def interrupted_thumb(self) -> bool:
        return bool(self.engine.reg_read(arm.UC_ARM_REG_SPSR) & THUMB)

    @property
    def _mode(self) -> int:
        """The mode, in hooks, too."""
        return hyp.mode_of(self.engine)

    @property
    def system_control(self) -> int:
        return self.system_register(hyp.HSCTLR if self.in_hyp else SCTLR)

    @property
    def sets_data_cache(self) -> bool:
        # in HYP mode SCTLR has no effect, but a program that sets it expects a cache
        if super().sets_data_cache:
            return True
        both = SCTLR_C | SCTLR_M
        return self.in_hyp and self.system_register(SCTLR) & both == both

    @property
    def _is_user(self) -> bool:
        return self._mode == USER

    def _treats_as_old(self, pc: int) -> bool:
        old = self.alignment.mode_of(alignment.SYSTEM[0]) == LEGACY
        if old and self.alignment.treat_as_old(pc):
            self._old_place = pc
            return True
        return False

    def _catch_up(self) -> bool:
        if self._old_place is None:
            return False
        self._pages.forget_translations(self._old_place & ~(PAGE - 1))
        self._old_place = None
        return True

    # -- exceptions --------------------------------------------------------------------------------

    def _goes_to_hyp(self, exception: ArmException) -> bool:
        """Whether HYP mode takes an exception."""
        if self.hyp_core is None:
            return False
        if self.in_hyp or exception is ArmException.HYPERVISOR_CALL:
            return True
        routing = self._routing
        if not routing:
            return False
        bits = HCR_TGE if self.cpsr & MODE_MASK == USER else 0
        if exception is ArmException.IRQ:
            bits |= HCR_IMO
        elif exception is ArmException.FIQ:
            bits |= HCR_FMO
        return bool(routing & bits)

    def accepts(self, exception: ArmException) -> bool:
        if not self.in_hyp and self._goes_to_hyp(exception):
            return True
        return not self.cpsr & (FIQ_MASKED if exception is ArmException.FIQ else IRQ_MASKED)

    @property
    def mask_register(self) -> tuple[int, int]:
        return IRQ_MASKED | FIQ_MASKED, int(self.STATUS)

    def _enter(self, exception: ArmException, address: int) -> tuple[int, bool]:
        if exception in (ArmException.DATA_ABORT, ArmException.PREFETCH_ABORT):
            self._write_fault_status(exception)
        core = self.hyp_core
        if core is not None and exception is ArmException.MONITOR_CALL:
            where = core.call_monitor(address)
            if where is not None:
                return where
            exception = ArmException.UNDEFINED
        if core is not None and self._goes_to_hyp(exception):
            vector, core.elr = hyp.enter(
                self.engine, exception, address, self._instruction(address), self._fault_status, core.illegal
            )
            core.illegal = False
            if self.memory.u32(vector) and vector < 0x20:
                core.note_vector(exception, address)
            return vector, vector < 0x20
        vector = self._entry_of_exceptions.enter(exception, address, self.monitor_vectors)
        return vector, vector < 0x20

    def _is_empty(self, vector: int) -> bool:
        if self.cpsr & THUMB:
            return super()._is_empty(vector)
        word = self.memory.u32(vector)
        if word == self._handlers.get(vector):
            return False
        words = (self.memory.u32(at) for at in range(vector, vector + LONGEST_LEAD, 4))
        if word == 0 or leads_to_nothing(words, self.cpsr):
            return True
        self._handlers[vector] = word
        return False

    @property
    def entry_batches(self) -> tuple[RegisterBatch, list[RegisterBatch]]:
        return self._entry_of_exceptions.batches

    def handler_at(self, vector: int) -> int:
        return self._handlers.get(vector, 0)

    def _instruction(self, address: int) -> int:
        """The one at an address; of 32 bits in Thumb code the first half is the upper one."""
        if not self.cpsr & THUMB:
            return self.fetch(address)
        first = self.fetch(address, 2)
        return first if first >> 11 < 0x1D else first << 16 | self.fetch(address + 2, 2)

    def _write_fault_status(self, exception: ArmException) -> None:
        syndrome, status, address = self._fault_status
        data = exception is ArmException.DATA_ABORT
        if data and syndrome & SYNDROME_WRITE:
            status |= DFSR_WRITE
        for register, value in (
            (DFSR if data else IFSR, status),
            (DFAR if data else IFAR, address & 0xFFFFFFFF),
        ):
            self._write(register, value)

    def _on_interrupt_hook(self, engine: Any, number: int, _data: Any) -> None:
        self.counter.note()
        pc, cpsr, *_routing = self._place.read()
        if number == ENGINE_SVC:
            thumb = cpsr & THUMB
            self._pending = (ArmException.SUPERVISOR_CALL, pc - (2 if thumb else 4))
        elif number in ABORTS:
            self._fault_status = self.calls.fault_status()
            if number != ENGINE_DATA or not self._meets_unaligned(pc):
                self._pending = (ABORTS[number], pc)
        elif number == ENGINE_HVC:
            self._pending = (ArmException.HYPERVISOR_CALL, pc - 4)
        elif number == ENGINE_SMC or is_monitor_call(self.fetch(pc - 4), bool(cpsr & THUMB)):
            self._pending = (ArmException.MONITOR_CALL, pc - 4)
        else:
            self._pending = (ArmException.UNDEFINED, pc)
        self.calls.stop()

    def _on_invalid(self, engine: Any, _data: Any) -> bool:
        pc, cpsr, *_routing = self._place.read()
        thumb = bool(cpsr & THUMB)
        word = self.fetch(pc - 2, 2) if thumb else 0
        if word in THUMB_WAITS:
            self._waits_for_event = True
            self.yields = word == YIELD_THUMB
            engine.emu_stop()
            return True
        if not thumb and self._steps_over(pc):
            return True
        self._pending = (ArmException.UNDEFINED, pc)
        engine.emu_stop()
        return True

    def _steps_over(self, pc: int) -> bool:
        """SCR, SDER and NSACR of an ARM1176 read as 0; MVBAR keeps what is written."""
        word = self.fetch(pc)
        monitor = is_monitor_vectors(word)
        if self.hyp_core is not None or not (monitor or is_security_register(word)):
            return False
        target = word >> 12 & 15
        if word & 1 << 20:
            self.set_register(target, self.monitor_vectors if monitor else 0)
        elif monitor:
            self.monitor_vectors = self.register(target) & ~31
        self.engine.reg_write(self.PC, pc + 4)
        return True

    # -- trapped instructions ----------------------------------------------------------------------

    def _emulate(self, action: Action, address: int) -> bool:
        links = self.links
        cpsr = self.engine.reg_read(self.STATUS)
        thumb = cpsr & THUMB
        if thumb:
            word = self.fetch(address, 2) << 16 | self.fetch(address + 2, 2)
        else:
            word = self.fetch(address)
        target = word >> 12 & 15
        if not thumb and not condition_met(word >> 28, cpsr):
            return False
        if action in PLAIN_ACTIONS and not means(PLAIN_TRAPS, action, word, bool(thumb)):
            return False
        if action is Action.EXCLUSIVE:
            if not means(exclusives.ARM_TRAPS, action, word, bool(thumb)):
                return False
            return self._meet_exclusive(word, address, self.register(word >> 16 & 15))
        if action is Action.CONTROL:
            self.control_written()
            return False
        if action is Action.VECTORS:
            self.report_vectors("VBAR", self.register(target), VECTORS_32, address)
            return False
        if action is Action.CYCLES:
            self.set_register(target, links.cycles())
            return True
        if action in (Action.CORE_NUMBER, Action.CORE_NAME):
            if self._mode not in (HYP, hyp.MONITOR):
                self._pages.release(address)
                return False
            identity = self.system_register(MIDR) if self.identity is None else self.identity
            number = self.affinity + self.number
            self.set_register(target, number if action is Action.CORE_NUMBER else identity)
            return True
        if action in HYP_ACTIONS and self.hyp_core is not None:
            done = self.hyp_core.emulate(action, word, address, cpsr)
            if done is None:
                self._pages.release(address)
            return bool(done)
        if links.timer is None:
            return False
        return do_timer(self, action, word, self._reaches_hyp)

    def _reaches_hyp(self) -> bool:
        """Whether the registers of HYP mode are there; elsewhere they are undefined."""
        return self.hyp_core is not None and self._mode in (HYP, hyp.MONITOR)
