"""A core in AArch64 state: exception levels, registers, exceptions, emulated instructions.

There is no EL3 firmware for SMC. Writes of PSTATE do not exchange stack pointers in the engine;
that is done in `arm64_entry.py`, followed by a write of a system register, after which the engine
looks at the new level.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from unicorn import arm64_const as a64

from vc4lab.soc.cores.a53_registers import A53Registers
from vc4lab.soc.cores.code import exclusives, float_trap, mmu_switch
from vc4lab.soc.cores.code.native_counter import ON_SYSTEM_INSTRUCTION, NativeCounter
from vc4lab.soc.cores.code.native_places import NativePlace
from vc4lab.soc.cores.code.traps import (
    A64_READS,
    A64_TRAPS,
    HYP_REGISTERS,
    ZERO_TRAPS,
    Action,
    Trap,
    means,
    timer_read,
    timer_write,
)
from vc4lab.soc.cores.engine.engine_calls import NO_FAULT, RegisterBatch
from vc4lab.soc.cores.exceptions.arm64_entry import (
    FIQ_VECTOR,
    HCR,
    IRQ_VECTOR,
    MASKED,
    SCR,
    SCTLR,
    VBAR,
    Arm64Entry,
    Syndrome,
    SystemRegister,
)
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORTS,
    ENGINE_BKPT,
    ENGINE_DATA,
    ENGINE_HVC,
    ENGINE_SMC,
    ENGINE_SVC,
    FIQ_MASKED,
    IRQ_MASKED,
    ArmException,
)
from vc4lab.soc.cores.exceptions.native_entry import EC_DATA, EC_PREFETCH, EC_SVC, IL, NativeEntry
from vc4lab.soc.cores.exceptions.outcome import Outcome
from vc4lab.soc.cores.generic_timer import FREQUENCY
from vc4lab.soc.cores.strict_core import VECTORS_64
from vc4lab.soc.cores.translation import Tables64
from vc4lab.soc.native import FOREVER

CNTFRQ, CNTHCTL, CPACR = (14, 0, 3, 3, 0), (14, 1, 3, 4, 0), (1, 0, 3, 0, 2)
VMPIDR = (0, 0, 3, 4, 5)
SCR_FIRMWARE = 0x5B1
HCR_FIRMWARE = 1 << 31
"""EL1 is AArch64."""
START_EL2, START_EL3 = MASKED | 0x9, MASKED | 0xD
LEVEL = 3 << 2
"""The exception level in PSTATE."""
EC_UNKNOWN, EC_HVC, EC_BRK, EC_MISALIGNED_PC = 0x00, 0x16, 0x3C, 0x22
INTERRUPTS = (ArmException.IRQ, ArmException.FIQ)
_EMULATED = A64_TRAPS + A64_READS + float_trap.FLOAT_TRAPS + exclusives.WIDE_TRAPS + ZERO_TRAPS
SYSTEM_MASK, MSR, SYS = 0xFFF00000, 0xD5100000, 0xD5080000
"""Bits of system instructions, those of msr from a register, and (with bit 19) those of SYS."""
UPPER_HALF = 1 << 63, (1 << 64) - 1
ON_NOTHING = ctypes.CFUNCTYPE(ctypes.c_bool)


def _kind_of(word: int) -> int | None:
    """The engine's number of a system instruction that writes; None: it is none."""
    if word & SYSTEM_MASK == MSR:
        return int(a64.UC_ARM64_INS_MSR)
    return int(a64.UC_ARM64_INS_SYS) if word & 0xFFF80000 == SYS else None


def _is_unit(word: int) -> bool:
    """Whether it is msr of CNTP_*_EL0 or CNTV_*_EL0."""
    return word & 0xFFFFFE00 == MSR | 0xBE200


class Arm64(Tables64):
    """Cortex-A53 in AArch64 state."""

    WIDE = True
    LAST_ADDRESS = (1 << 64) - 1
    PC, STATUS, SYSTEM = a64.UC_ARM64_REG_PC, a64.UC_ARM64_REG_PSTATE, a64.UC_ARM64_REG_CP_REG
    NAMES = (
        *range(a64.UC_ARM64_REG_X0, a64.UC_ARM64_REG_X0 + 29),
        *(a64.UC_ARM64_REG_X29, a64.UC_ARM64_REG_X30, a64.UC_ARM64_REG_SP),
    )
    STATE = (*NAMES, a64.UC_ARM64_REG_PSTATE)
    affinity = 0x80000000
    start_level = 2
    _counter: NativeCounter | None = None
    _float_hooks = 0
    _float_forbidden = False
    _is_breakpoint = False

    def _make_engine(self, unicorn: Any) -> Any:
        self._hypervisor_call = False
        self._callbacks: list[Any] = []
        """Functions that the engine calls; they live as long as it does."""
        self._own_registers = A53Registers(self)
        self._put_off: tuple[SystemRegister, int, int] | None = None
        """A write that `eret` is to do: register and value, and how many instructions away it is."""
        engine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        engine.ctl_set_cpu_model(getattr(a64, f"UC_CPU_ARM64_{self.model}"))
        return engine

    def _install_hooks(self) -> None:
        self._entries = Arm64Entry(self.calls)
        self._place = self.calls.batch(self.SYSTEM, (self.PC, self.STATUS, HCR, SCR))
        super()._install_hooks()
        self._trust_system_code()
        timer = self.links.timer
        if timer is None or not self.links.bus:
            self._pages.more_traps += A64_READS
            return
        self._counter = NativeCounter(
            self.links.bus,
            timer,
            self.calls,
            other=self._read_other,
            changed=self._timer_written,
            status=self.STATUS,
            core_number=self.affinity + self.number,
        )
        hook = self._counter.hook
        self.calls.add_hook(self._unicorn.UC_HOOK_INSN, *hook, a64.UC_ARM64_INS_MRS)

    def _trust_system_code(self) -> None:
        """Let the engine not look through its TLB after each translation of upper addresses.

        For an access at the same address in another mode that it could miss: five thousand entries
        for each block of the kernel, a tenth of a boot. A system does not write its code so, and
        what it maintains is looked for (`code_pages.py`). The engine leaves it out where a memory
        hook could see the code; the one here is never called, since it counts physical addresses.
        """
        never = ON_NOTHING(lambda *_details: False)
        self._callbacks.append(never)
        function = ctypes.cast(never, ctypes.c_void_p).value or 0
        kind = self._unicorn.UC_HOOK_MEM_FETCH_PROT
        self.calls.add_hook(kind, function, 0, span=UPPER_HALF)

    def _hook_exceptions(self) -> None:
        self._native = NativeEntry(
            self.calls, self.counter.address, self.memory.base, self._counts, self._take_notice
        )
        self.calls.add_hook(self._unicorn.UC_HOOK_INTR, *self._native.hook)

    def run(self, limit: int) -> Outcome:
        self._native.allow(self.on_stop is None and not self.exception_taken.subscriptions)
        return super().run(limit)

    def start(self, pc: int, registers: tuple[int, ...]) -> None:
        self._write(VMPIDR, self.affinity + self.number)
        self._write(CNTHCTL, 3)
        self._write(CNTFRQ, FREQUENCY)
        self._write(SCR, SCR_FIRMWARE)
        self._write(HCR, HCR_FIRMWARE)
        self.engine.reg_write(self.STATUS, START_EL2 if self.start_level == 2 else START_EL3)
        self._write(VBAR[1], 0)
        for number, value in enumerate(registers):
            self.engine.reg_write(self.NAMES[number], value)
        self.engine.reg_write(self.PC, pc)
        self.refresh()

    # -- registers ---------------------------------------------------------------------------------

    @property
    def sets_vectors_by(self) -> str:
        return f"set VBAR_EL{self.level} to the address of the program's vectors"

    @property
    def _current_level(self) -> int:
        """The exception level, in hooks, too."""
        return int(self.engine.reg_read(self.STATUS)) >> 2 & 3

    def refresh(self) -> None:
        self.pc, self.cpsr, *_routing = self._place.read()

    def _entry(self) -> int:
        return self.pc

    def set_pc(self, address: int) -> None:
        self.engine.reg_write(self.PC, address)

    @property
    def system_control(self) -> int:
        return self.system_register(SCTLR[max(self.level, 1)])

    @property
    def _is_user(self) -> bool:
        return self._current_level == 0

    # -- exceptions --------------------------------------------------------------------------------

    def accepts(self, exception: ArmException) -> bool:
        fast = exception is ArmException.FIQ
        target = self._entries.registers().interrupt_level(fast)
        if self.level != target:
            return self.level < target
        return not self.cpsr & (FIQ_MASKED if fast else IRQ_MASKED)

    @property
    def mask_register(self) -> tuple[int, int]:
        return IRQ_MASKED | FIQ_MASKED | LEVEL, int(self.STATUS)

    @property
    def entry_batches(self) -> tuple[RegisterBatch, list[RegisterBatch]]:
        return self._entries.batches

    def _enter(self, exception: ArmException, address: int) -> tuple[int, bool]:
        registers = self._entries.registers()
        before = self.level
        if exception in INTERRUPTS:
            fast = exception is ArmException.FIQ
            kind = FIQ_VECTOR if fast else IRQ_VECTOR
            target = registers.interrupt_level(fast)
            return self._entries.enter(registers, self.cpsr, target, kind, address, None)
        target = max(before, 2) if self._hypervisor_call else registers.trap_level(before)
        syndrome = self._syndrome(exception, address, before == target)
        self._hypervisor_call = False
        back = address + 4 if exception is ArmException.SUPERVISOR_CALL else address
        return self._entries.enter(registers, self.cpsr, target, 0, back, syndrome)

    def _syndrome(self, exception: ArmException, address: int, same: bool) -> Syndrome:
        """ESR and FAR; `same`: the exception stays in its level."""
        if exception is ArmException.SUPERVISOR_CALL:
            kind = EC_HVC if self._hypervisor_call else EC_SVC
            return Syndrome(kind << 26 | IL | self._immediate(address))
        if exception is ArmException.UNDEFINED:
            if address & 3:
                return Syndrome(EC_MISALIGNED_PC << 26 | IL, address)
            forbidden, self._float_forbidden = self._float_forbidden, False
            return Syndrome(float_trap.SYNDROME if forbidden else EC_UNKNOWN << 26 | IL)
        if self._is_breakpoint:
            self._is_breakpoint = False
            return Syndrome(EC_BRK << 26 | IL | self._immediate(address))
        cause, _status, fault = self._fault_status
        kind = EC_DATA if exception is ArmException.DATA_ABORT else EC_PREFETCH
        return Syndrome((kind | same) << 26 | IL | cause & (IL - 1), fault)

    def _immediate(self, address: int) -> int:
        """The number in an instruction that causes an exception."""
        return self.fetch(address) >> 5 & 0xFFFF

    def _on_interrupt_hook(self, engine: Any, number: int, _data: Any) -> None:
        pc = engine.reg_read(self.PC)
        if number in (ENGINE_SVC, ENGINE_HVC):
            self._hypervisor_call = number == ENGINE_HVC
            self._pending = (ArmException.SUPERVISOR_CALL, pc - 4)
        elif number in ABORTS:
            self._is_breakpoint = number == ENGINE_BKPT
            self._fault_status = NO_FAULT if self._is_breakpoint else self.calls.fault_status()
            if number == ENGINE_DATA:
                self._meets_unaligned(pc)
            self._pending = (ABORTS[number], pc)
        elif number == ENGINE_SMC:
            self.set_pc(pc)
            return
        elif self._own_registers.executes(self.fetch(pc), self._current_level):
            self.set_pc(pc + 4)
            return
        else:
            self._pending = (ArmException.UNDEFINED, pc)
        engine.emu_stop()

    def _on_invalid(self, engine: Any, _data: Any) -> bool:
        self.counter.note()
        self._pending = (ArmException.UNDEFINED, self.engine_pc)
        engine.emu_stop()
        return True

    # -- code that is looked at, and hooks in it ---------------------------------------------------

    @property
    def _native_places(self) -> Mapping[Action, Callable[..., NativePlace]]:
        return {Action.WAIT_FOR_EVENT: self._events.wfe}

    @property
    def _traps_now(self) -> tuple[Trap, ...]:
        room = self._float_hooks < float_trap.MAX_HOOKS
        searched = room and not float_trap.allowed(self.system_register(CPACR), 0)
        zeros = () if self.links.forgiving or self._translates() else ZERO_TRAPS
        return self._exclusive_traps + zeros + (float_trap.FLOAT_TRAPS if searched else ())

    def _meet_page(self, address: int) -> None:
        """Programs of a system whose own code is in the upper half are left alone.

        Another program has other code at the same address, and what needs help is privileged, or
        does not matter much (wfe).
        """
        if self._is_left_alone(address):
            self._pages.pass_over(address)
        else:
            super()._meet_page(address)

    def _is_left_alone(self, address: int) -> bool:
        """Whether it is code of a program under a system."""
        return not address >> 63 and bool(self.system_register(VBAR[1]) >> 63)

    def _hook_place(self, place: int, action: Action) -> None:
        """A system instruction gets a hook of its kind.

        The engine compares those only with instructions of the kind, the others with each one that
        it translates.
        """
        self._float_hooks += action is Action.FLOAT
        self._exclusive_hooks += action is Action.EXCLUSIVE
        kind = _kind_of(self.fetch(place))
        if kind is None:
            super()._hook_place(place, action)
            return
        function, state = self.counter.maintenance_hook, self.counter.address
        if self._counter is not None and _is_unit(self.fetch(place)):
            function, state = self._counter.write_hook
        elif action is not Action.CODE_CHANGED or action in self._watchers:
            callback = ON_SYSTEM_INSTRUCTION(lambda *_details: self._does(action, place))
            self._callbacks.append(callback)
            function, state = ctypes.cast(callback, ctypes.c_void_p).value or 0, 0
        self.calls.add_hook(self._unicorn.UC_HOOK_INSN, function, state, kind, span=(place, place))

    def _does(self, action: Action, address: int) -> bool:
        """Do a system instruction; whether the engine is to leave it out."""
        self.counter.note()
        try:
            watcher = self._watchers.get(action)
            if watcher is None:
                return self._emulate(action, address)
            watcher(address)
        except BaseException as error:
            self.counter.fail(error)
        return False

    def _read_other(self) -> bool:
        """An mrs of `A64_READS`, or one like it: whether it is done."""
        address = self.engine_pc
        if self._is_left_alone(address):
            return False
        word = self.fetch(address)
        for trap in A64_READS:
            if word & trap.mask == trap.match:
                return self._does(trap.action, address)
        return False

    # -- what boards do and the engine does not ----------------------------------------------------

    def _meet_float(self, address: int) -> None:
        """An instruction of floating point or NEON: trap it, or never look at it again."""
        if not float_trap.allowed(self.system_register(CPACR), self._current_level):
            self.links.report(
                "SOC-059",
                f"floating point or NEON at 0x{address:08x}, which CPACR_EL1 does not allow",
                address,
            )
            self._float_forbidden = True
            self._pending = (ArmException.UNDEFINED, address)
        self._pages.release(address)

    def _control_floats(self, value: int) -> None:
        """CPACR_EL1 is about to be written: if it forbids again, all code is searched again."""
        if float_trap.allowed(self.system_register(CPACR), 0) and not float_trap.allowed(value, 0):
            self._float_hooks = 0
            self._pages.forget()

    def _puts_off_translation(self, word: int, address: int) -> bool:
        """Whether an `msr SCTLR_ELn` takes effect at an `eret` after it (`mmu_switch.py`)."""
        level, target = 2 if word & 1 << 18 else 1, word & 31
        value = 0 if target == 31 else self.register(target)
        status = self.engine.reg_read(self.STATUS)
        if status >> 2 & 3 != level or not value & 1 or self.system_register(SCTLR[level]) & 1:
            return False
        count = mmu_switch.instructions_to_eret(self.fetch, address)
        if count is None:
            return False
        self._put_off = SCTLR[level], value, count
        self.engine.emu_stop()
        return True

    def _catch_up(self) -> bool:
        if self._put_off is None:
            return False
        register, value, count = self._put_off
        self._put_off = None
        counter = self.counter
        limit, counter.limit = counter.limit, FOREVER
        self.engine.emu_start(self._entry(), self.LAST_ADDRESS, count=count)
        counter.limit = limit
        self._write(register, value)
        self._control_written = True
        self.look_at_control()
        self.refresh()
        return True

    def _writes_vectors(self, word: int, value: int, address: int) -> bool:
        """An `msr VBAR_ELn`: whether it is done; the engine would keep bits that boards ignore."""
        level = {0: 1, 4: 2, 6: 3}[word >> 16 & 7]
        if self.links.forgiving or self._current_level < level or not value & VECTORS_64 - 1:
            return False
        self.report_vectors(f"VBAR_EL{level}", value, VECTORS_64, address)
        self._write(VBAR[level], value & -VECTORS_64)
        return True

    # -- trapped instructions ----------------------------------------------------------------------

    def _emulate(self, action: Action, address: int) -> bool:
        links = self.links
        word = self.fetch(address)
        target = word & 31
        if not means(_EMULATED, action, word):
            return False
        if action is Action.ZERO_LINE:
            return self._zeroes_device_memory(address, self.register(target))
        if action is Action.EXCLUSIVE:
            base = word >> 5 & 31
            return self._meet_exclusive(word, address, self.register(base))
        if action is Action.WAIT_FOR_EVENT:
            self._waits_for_event = True
            return True
        if action is Action.FLOAT:
            self._meet_float(address)
            return False
        if action is Action.FLOAT_CONTROL:
            self._control_floats(0 if target == 31 else self.register(target))
            return False
        if action is Action.VECTORS:
            return self._writes_vectors(word, 0 if target == 31 else self.register(target), address)
        if action is Action.MMU_SWITCH and self._puts_off_translation(word, address):
            return True
        if action in (Action.MMU_SWITCH, Action.CONTROL):
            self.control_written()
            return False
        if action is Action.CORE_NUMBER:
            self.set_register(target, self.affinity + self.number)
            return True
        if action is Action.CYCLES:
            self.set_register(target, links.cycles())
            return True
        if links.timer is None:
            return False
        crm, op2 = word >> 8 & 15, word >> 5 & 7
        level = HYP_REGISTERS if word >> 16 & 7 == HYP_REGISTERS else 0
        if level and self._current_level < 2:
            return False
        if word & 1 << 21:
            self.set_register(target, timer_read(links, crm, op2, level) or 0)
        else:
            timer_write(links, crm, op2, 0 if target == 31 else self.register(target), level)
        return True
