"""The ARM core: the Unicorn engine, run in slices of basic blocks, with exceptions taken by hand.

Where the engine differs from the real core and what is done about it:

* Interrupts have no interface: `interrupt()` writes the banked registers between two slices.
* SVC, aborts, BKPT and undefined instructions are only reported: `_take` goes to the vector.
* WFI returns as if the slice had ended early; WFE arrives as an invalid instruction.
* Stopping inside a device access repeats the access, so stops wait for the end of the block.
* NSACR and SCR do not exist on the model: reads give 0, writes are ignored.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from vc4lab.soc.exceptions import (
    FIQ_MASKED,
    IRQ_MASKED,
    SCTLR,
    SCTLR_M,
    THUMB,
    ArmException,
    enter,
)
from vc4lab.soc.native import SliceCounter

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

READ = ctypes.CFUNCTYPE(
    ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_void_p
)
WRITE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p
)

RESET_CPSR = 0x1D3
"""Supervisor mode, interrupts masked, ARM state: as the firmware's stub leaves it."""
INSTRUCTIONS_PER_EXCEPTION = 10
"""Time an exception takes, so that a storm of them ends with its slice."""
ENGINE_SVC, ENGINE_PREFETCH, ENGINE_DATA, ENGINE_BKPT, ENGINE_SMC = 2, 3, 4, 7, 13
EMPTY = 256
"""So many bytes of zeros at the PC are no program."""
WFE_ARM, WFE_THUMB = 0xE320F002, 0xBF20


class Outcome(Enum):
    """Why a slice ended."""

    LIMIT = "its time was over"
    WAIT_FOR_INTERRUPT = "wfi"
    WAIT_FOR_EVENT = "wfe"
    BRANCH_TO_SELF = "a branch to itself"


class UnhandledException(Exception):  # noqa: N818 - an ARM exception, not one of ours
    """The guest ran into an exception and has no handler at its vector."""

    def __init__(self, exception: ArmException, address: int, vector: int) -> None:
        super().__init__(exception, address, vector)
        self.exception = exception
        self.address = address
        self.vector = vector


class Cpu:
    """One running core.

    Parameters
    ----------
    model
        Name of the core, a key of `MODELS`.
    memory
        Guest RAM; the engine works on it in place.
    ram_end
        First physical address behind the RAM that the ARM sees.
    """

    def __init__(
        self, model: str, memory: GuestMemory, ram_end: int, counter: SliceCounter
    ) -> None:
        import unicorn
        from unicorn import arm_const as arm

        self.model = model
        self.memory = memory
        self.counter = counter
        self.exceptions_taken = 0
        self.last_exception: tuple[ArmException, int] | None = None
        self._arm = arm
        self._unicorn = unicorn
        engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
        engine.ctl_set_cpu_model(getattr(arm, f"UC_CPU_ARM_{model}"))
        engine.mem_map_ptr(0, ram_end, unicorn.UC_PROT_ALL, memory.base)
        self.engine: Any = engine
        self._library = _library()
        self._keep: list[Any] = []
        self._fault: BaseException | None = None
        self._pending: tuple[ArmException, int] | None = None
        self._waits_for_event = False
        self.on_stop: Callable[[], bool] | None = None
        """For debuggers: called when the engine has come back; True: go on where it stands."""
        self._install_hooks()
        self.pc = 0
        self.cpsr = RESET_CPSR

    # -- set-up ------------------------------------------------------------------------------------

    def _install_hooks(self) -> None:
        unicorn = self._unicorn
        handle = ctypes.c_size_t()
        stop = ctypes.cast(self._library.uc_emu_stop, ctypes.c_void_p).value or 0
        error = self._library.uc_hook_add(
            ctypes.c_void_p(_handle(self.engine)),
            ctypes.byref(handle),
            ctypes.c_int(unicorn.UC_HOOK_BLOCK),
            ctypes.c_void_p(self.counter.hook(stop)),
            ctypes.c_void_p(self.counter.address),
            ctypes.c_uint64(1),
            ctypes.c_uint64(0),
        )
        if error:
            raise RuntimeError(f"the CPU engine refuses a block hook (error {error})")
        self.engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt_hook)
        self.engine.hook_add(unicorn.UC_HOOK_INSN_INVALID, self._on_invalid)

    def map_window(
        self,
        base: int,
        size: int,
        read: Callable[[int, int], int],
        write: Callable[[int, int, int], None],
    ) -> None:
        """Send accesses to a window to `read(offset, size)`, `write(offset, size, value)`."""

        def on_read(_engine: int, offset: int, width: int, _data: int) -> int:
            try:
                return read(offset, width)
            except BaseException as error:
                self._remember(error)
                return 0

        def on_write(_engine: int, offset: int, width: int, value: int, _data: int) -> None:
            try:
                write(offset, width, value)
            except BaseException as error:
                self._remember(error)

        callbacks = READ(on_read), WRITE(on_write)
        self._keep.append(callbacks)
        error = self._library.uc_mmio_map(
            ctypes.c_void_p(_handle(self.engine)),
            ctypes.c_uint64(base),
            ctypes.c_size_t(size),
            callbacks[0],
            None,
            callbacks[1],
            None,
        )
        if error:
            raise RuntimeError(f"the CPU engine refuses a device window (error {error})")

    def _remember(self, error: BaseException) -> None:
        """Keep an error of a device until the slice has ended; it cannot cross the engine."""
        if self._fault is None:
            self._fault = error
        self.counter.stop()

    def start(self, pc: int, registers: tuple[int, ...]) -> None:
        """Set the entry point, r0.. and the state the firmware leaves."""
        for number, value in enumerate(registers):
            self.engine.reg_write(self._arm.UC_ARM_REG_R0 + number, value)
        self.engine.reg_write(self._arm.UC_ARM_REG_CPSR, RESET_CPSR)
        self.engine.reg_write(self._arm.UC_ARM_REG_PC, pc)
        self.pc = pc
        self.cpsr = RESET_CPSR

    # -- running -----------------------------------------------------------------------------------

    def run(self, limit: int) -> Outcome:
        """Run until `counter.count` reaches `limit` or the core waits. Errors of devices come out.

        Raises
        ------
        UnhandledException
            The guest met an exception without a handler.
        """
        counter = self.counter
        counter.limit = limit
        while True:
            self._waits_for_event = False
            counter.forget_spins()
            try:
                self.engine.emu_start(self.pc | (1 if self.cpsr & THUMB else 0), 0xFFFFFFFF)
            except self._unicorn.UcError as error:
                self._on_engine_error(error)
            self._refresh()
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault
            if self._pending is None and self.on_stop is not None and self.on_stop():
                continue
            if self._pending is not None:
                exception, address = self._pending
                self._pending = None
                self._take(exception, address)
                if counter.count < counter.limit:
                    continue
                return Outcome.LIMIT
            if self._waits_for_event:
                return Outcome.WAIT_FOR_EVENT
            if counter.spinning:
                return Outcome.BRANCH_TO_SELF
            if counter.count >= counter.limit:
                return Outcome.LIMIT
            return Outcome.WAIT_FOR_INTERRUPT

    @property
    def engine_pc(self) -> int:
        """The PC while the engine runs: exact in hooks on code and memory, else the block's."""
        value: int = self.engine.reg_read(self._arm.UC_ARM_REG_PC)
        return value

    def refresh(self) -> None:
        """Read PC and CPSR again after a debugger wrote registers."""
        self._refresh()

    def _refresh(self) -> None:
        arm = self._arm
        self.pc = self.engine.reg_read(arm.UC_ARM_REG_PC)
        self.cpsr = self.engine.reg_read(arm.UC_ARM_REG_CPSR)

    def _on_engine_error(self, error: Any) -> None:
        self._refresh()
        unicorn = self._unicorn
        if error.errno == unicorn.UC_ERR_INSN_INVALID:
            self._pending = (ArmException.UNDEFINED, self.pc)
        elif error.errno in (unicorn.UC_ERR_FETCH_PROT, unicorn.UC_ERR_FETCH_UNMAPPED):
            self._pending = (ArmException.PREFETCH_ABORT, self.pc)
        else:
            self._pending = (ArmException.DATA_ABORT, self.pc)

    def _on_interrupt_hook(self, engine: Any, number: int, _data: Any) -> None:
        pc = engine.reg_read(self._arm.UC_ARM_REG_PC)
        if number == ENGINE_SVC:
            thumb = engine.reg_read(self._arm.UC_ARM_REG_CPSR) & THUMB
            self._pending = (ArmException.SUPERVISOR_CALL, pc - (2 if thumb else 4))
        elif number in (ENGINE_PREFETCH, ENGINE_BKPT):
            self._pending = (ArmException.PREFETCH_ABORT, pc)
        elif number == ENGINE_DATA:
            self._pending = (ArmException.DATA_ABORT, pc)
        else:
            self._pending = (ArmException.UNDEFINED, pc)
        engine.emu_stop()

    def _on_invalid(self, engine: Any, _data: Any) -> bool:
        arm = self._arm
        pc = engine.reg_read(arm.UC_ARM_REG_PC)
        thumb = engine.reg_read(arm.UC_ARM_REG_CPSR) & THUMB
        if thumb:
            waits = self.memory.u16(pc - 2) == WFE_THUMB
        else:
            waits = self.memory.u32(pc - 4) == WFE_ARM
        if waits:
            self._waits_for_event = True
            engine.emu_stop()
            return True
        if not thumb and self._is_security_register(pc):
            return True
        self._pending = (ArmException.UNDEFINED, pc)
        engine.emu_stop()
        return True

    def _is_security_register(self, pc: int) -> bool:
        """MRC/MCR p15, 0, rt, c1, c1, n (SCR, SDER, NSACR): step over it, a read gives 0."""
        word = self.memory.u32(pc)
        if word & 0x0FEF0F1F != 0x0E010F11:
            return False
        if word & 1 << 20 and word >> 12 & 15 != 15:
            self.engine.reg_write(self._arm.UC_ARM_REG_R0 + (word >> 12 & 15), 0)
        self.engine.reg_write(self._arm.UC_ARM_REG_PC, pc + 4)
        return True

    # -- exceptions --------------------------------------------------------------------------------

    @property
    def interrupts_masked(self) -> bool:
        """CPSR.I"""
        return bool(self.cpsr & IRQ_MASKED)

    @property
    def fast_interrupts_masked(self) -> bool:
        """CPSR.F"""
        return bool(self.cpsr & FIQ_MASKED)

    def interrupt(self, exception: ArmException = ArmException.IRQ) -> None:
        """Take an interrupt; the core must not have it masked."""
        self._take(exception, self.pc)

    def _take(self, exception: ArmException, address: int) -> None:
        vector = enter(self.engine, exception, address)
        self.exceptions_taken += 1
        self.last_exception = (exception, address)
        self.counter.add(INSTRUCTIONS_PER_EXCEPTION)
        self._refresh()
        if vector < 0x20 and self.memory.u32(vector) == 0:
            raise UnhandledException(exception, address, vector)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Whether the next instructions are nothing but zeros (with the MMU off)."""
        if any(self.memory.view(self.pc, EMPTY)):
            return False
        control: int = self.engine.reg_read(self._arm.UC_ARM_REG_CP_REG, SCTLR)
        return not control & SCTLR_M

    def translate(self, address: int) -> int | None:
        """The physical address behind a virtual one as the core sees it now, None if none is."""
        place = ctypes.c_uint64()
        error = self._library.uc_vmem_translate(
            ctypes.c_void_p(_handle(self.engine)),
            ctypes.c_uint64(address),
            ctypes.c_int(self._unicorn.UC_PROT_READ),
            ctypes.byref(place),
        )
        return None if error else place.value

    def state(self) -> tuple[int, ...]:
        """r0..r14 and CPSR, to be compared."""
        arm = self._arm
        names = [arm.UC_ARM_REG_R0 + n for n in range(13)]
        names += [arm.UC_ARM_REG_SP, arm.UC_ARM_REG_LR, arm.UC_ARM_REG_CPSR]
        return tuple(self.engine.reg_read_batch(names))

    def register(self, number: int) -> int:
        """Value of r0..r15."""
        value: int = self.engine.reg_read(
            self._arm.UC_ARM_REG_PC
            if number == 15
            else self._arm.UC_ARM_REG_R0 + number
            if number < 13
            else (self._arm.UC_ARM_REG_SP, self._arm.UC_ARM_REG_LR)[number - 13]
        )
        return value


def _handle(engine: Any) -> int | None:
    handle: int | None = engine._uch.value
    return handle


def _library() -> Any:
    """The engine's C functions under our own prototypes: native pointers go in unwrapped."""
    from unicorn.unicorn_py3 import unicorn as binding

    return ctypes.CDLL(binding.uclib._name)
