"""A core: the Unicorn engine, run in slices of basic blocks, with exceptions taken in software.

`arm32.py` and `arm64.py` hold what differs between AArch32 and AArch64. Where the engine differs
from the real core and what is done about it:

* Interrupts have no interface: `interrupt()` writes the banked registers between two slices.
* SVC, aborts, BKPT and undefined instructions are only reported: `_take` goes to the vector.
* Aborts leave no status: it is dug out of the engine's saved context.
* WFI returns as if the slice had ended early; SEV, WFE, the generic timer and the cycle counter are
  trapped where they stand in the code (`trapped_code.py`, `code_pages.py`, `traps.py`).
* Writes of others to a page that was executed go unnoticed: see `code_pages.py`.
* Stopping inside a device access repeats the access, so stops wait for the end of the block.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from vc4lab.listeners import Listeners
from vc4lab.memory import GuestMemory
from vc4lab.soc.cores.code.code_pages import CodePages, forget_addresses
from vc4lab.soc.cores.code.native_events import NativeEvents
from vc4lab.soc.cores.code.traps import A64_TRAPS, ARM_TRAPS, HYP_REGISTERS, Action, CoreLinks, means
from vc4lab.soc.cores.engine.engine_calls import (
    MONITOR_AT_32,
    MONITOR_AT_64,
    NO_FAULT,
    EngineCalls,
    RegisterBatch,
)
from vc4lab.soc.cores.exceptions.exceptions import (
    INSTRUCTIONS_PER_EXCEPTION,
    SCTLR_C,
    SCTLR_M,
    ArmException,
    ExceptionTaken,
)
from vc4lab.soc.cores.exceptions.native_entry import ON_EXCEPTION, batch_members
from vc4lab.soc.cores.exceptions.open_exceptions import OpenExceptions
from vc4lab.soc.cores.exceptions.outcome import (
    ABORTED,
    FAULTS,
    TAKEN,
    ExceptionCounts,
    FaultStorm,
    Outcome,
    Taken,
    UnhandledException,
)
from vc4lab.soc.cores.strict_core import StrictCore
from vc4lab.soc.native import SliceCounter, words_of

TRANSLATIONS = 32 << 20
"""Bytes of translated code that a core's engine keeps (1 GiB by default); when they are
full it begins again."""
MAX_PLACES = 1 << 17
"""Pieces of code that the engine may remember of the block hook (10 MB)."""
ZERO_REGISTER = 31
EMPTY = 256
"""So many bytes of zeros at the PC are no program."""


class Cpu(StrictCore):
    """One core.

    Parameters
    ----------
    model
        Name of the core's model in the engine.
    memory
        Guest RAM; the engine works on it in place.
    ram_end
        First physical address after the RAM that the ARM sees.
    counter
        Counts instructions, for all cores together.
    links
        What the core's own registers outside of the engine are.
    number
        0 for the boot core.
    """

    def __init__(
        self,
        model: str,
        memory: GuestMemory,
        ram_end: int,
        counter: SliceCounter,
        links: CoreLinks,
        number: int = 0,
    ) -> None:
        import unicorn

        self.model = model
        self.memory = memory
        self.counter = counter
        self.links = links
        self.number = number
        self._counts = ExceptionCounts()
        self._count_words = words_of(self._counts)
        self.exception_taken: Listeners[ExceptionTaken] = Listeners()
        self._storm = FaultStorm(self._counts)
        self.open_exceptions = OpenExceptions(self._counts, counter)
        self.stale = False
        """Whether the code this core has executed may have been changed."""
        self._unicorn = unicorn
        self._make_strict()
        self.engine: Any = self._make_engine(unicorn)
        self.engine.ctl_set_tcg_buffer_size(TRANSLATIONS)
        self._ram_end = ram_end
        self.repeat_memory(0)
        self._pages = CodePages(self.engine, memory, counter, wide=self.WIDE)
        self.calls = EngineCalls(self.engine)
        self._state = self.calls.batch(self.SYSTEM, self.STATE)
        self._watchers = {Action.EVENT_STREAM: self._set_event_stream}
        self._places = {}
        self._pending: tuple[ArmException, int] | None = None
        self._error = 0
        self._fault_status = NO_FAULT
        self.on_stop: Callable[[], bool] | None = None
        """For debuggers: called when the engine has come back; True: go on where it stands."""
        self._install_hooks()
        self.pc = 0
        self.cpsr = 0

    # -- what differs ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__} core {self.number} at 0x{self.engine_pc:08x}>"

    @abstractmethod
    def _make_engine(self, unicorn: Any) -> Any:
        """The engine with its model chosen."""

    @abstractmethod
    def start(self, pc: int, registers: tuple[int, ...]) -> None:
        """Set the entry point, the first registers and the state the firmware leaves."""

    @abstractmethod
    def _enter(self, exception: ArmException, address: int) -> tuple[int, bool]:
        """Write the registers an exception changes; its vector, and whether it is a low one."""

    @abstractmethod
    def accepts(self, exception: ArmException) -> bool:
        """Whether an interrupt (IRQ or FIQ) would be taken now."""

    @property
    @abstractmethod
    def mask_register(self) -> tuple[int, int]:
        """The bits of `cpsr` that `accepts` looks at, and the engine's number of that register."""

    @abstractmethod
    def _on_interrupt_hook(self, engine: Any, number: int, _data: Any) -> None:
        """The engine met an exception: `_pending` is set and the engine stopped."""

    @property
    def about_vectors(self) -> str:
        """Say what is good to know where an exception met no handler."""
        return ""

    @property
    def sets_vectors_by(self) -> str:
        """How a program tells this core where its vectors are."""
        return "copy the program's vectors to address 0, or set VBAR to their address"

    @property
    def interrupted_thumb(self) -> bool:
        """Whether the last exception was taken in Thumb code."""
        return False

    def goes_where(self, exception: ArmException) -> str:
        """Which mode an exception would go to, for a sentence, if that is to be said."""
        return ""

    @property
    @abstractmethod
    def system_control(self) -> int:
        """SCTLR, or what stands for it in the core's mode: MMU and caches."""

    @property
    def sets_data_cache(self) -> bool:
        """Whether the program has set SCTLR.C and the MMU is on: without it no data is cached."""
        return bool(self.system_control & SCTLR_C) and self._translates()

    def _translates(self) -> bool:
        """Whether the MMU is on."""
        return bool(self.system_control & SCTLR_M)

    @abstractmethod
    def refresh(self) -> None:
        """Read `pc` and `cpsr` from the engine."""

    @abstractmethod
    def _entry(self) -> int:
        """The address at which the engine is to go on, in its own form."""

    # -- registers ---------------------------------------------------------------------------------

    @property
    def exceptions_taken(self) -> int:
        """Exceptions since power-on."""
        return self._count_words[TAKEN]

    @exceptions_taken.setter
    def exceptions_taken(self, count: int) -> None:
        self._count_words[TAKEN] = count

    # -- set-up -----------------------------------------------------------------------------------

    @property
    def monitors_memory(self) -> bool:
        """Whether it waits for a write where it has looked by a load-exclusive."""
        return self.calls.monitors(self.monitor_place)

    def _set_event_stream(self, address: int) -> None:
        """A write of CNTKCTL or CNTHCTL; the engine does it, too."""
        word, timer = self.fetch(address), self.links.timer
        if timer is None or not means(A64_TRAPS if self.WIDE else ARM_TRAPS, Action.EVENT_STREAM, word):
            return
        number, level = (word & 31, word >> 16) if self.WIDE else (word >> 12 & 15, word >> 21)
        value = 0 if self.WIDE and number == ZERO_REGISTER else self.register(number)
        timer.streams[bool(level & HYP_REGISTERS)] = value

    def _install_hooks(self) -> None:
        self._block_hook = self._hook_blocks()
        self._hook_exceptions()
        self._events = NativeEvents(
            self.links.events,
            self.number,
            self._counts,
            self.calls,
            (self.PC, self.STATUS),
            self.memory.base,
            self._meets_invalid,
        )
        self._hook_invalid()

    def _hook_invalid(self) -> None:
        self.engine.hook_add(self._unicorn.UC_HOOK_INSN_INVALID, self._on_invalid)

    def _hook_blocks(self) -> int:
        counter = self.counter
        stop, read = (self.calls.address_of(name) for name in ("uc_emu_stop", "uc_reg_read"))
        function = counter.hook(stop, read)
        return self.calls.add_hook(self._unicorn.UC_HOOK_BLOCK, function, counter.address)

    def _bound_hook(self) -> None:
        """Make the block hook anew when the engine remembers much code that it has seen.

        A system that puts each program elsewhere would grow without end: 80 bytes for each block.
        """
        if self.calls.places_of(self._block_hook) > MAX_PLACES:
            self.calls.remove_hook(self._block_hook)
            self._block_hook = self._hook_blocks()

    def _hook_exceptions(self) -> None:
        self._exception_hook = ON_EXCEPTION(lambda _engine, number, _state: self._take_notice(number))
        function = ctypes.cast(self._exception_hook, ctypes.c_void_p).value or 0
        self.calls.add_hook(self._unicorn.UC_HOOK_INTR, function, 0)

    def _take_notice(self, number: int) -> None:
        """Take notice of an exception that native code does not take."""
        self.counter.note()
        try:
            self._on_interrupt_hook(self.engine, number, None)
        except BaseException as error:
            self.counter.fail(error)
            self.calls.stop()

    def repeat_memory(self, start: int) -> None:
        """RAM is found at this physical address (too)."""
        self.engine.mem_map_ptr(start, self._ram_end, self._unicorn.UC_PROT_ALL, self.memory.base)

    # -- running -----------------------------------------------------------------------------------

    def run(self, limit: int) -> Outcome:
        """Run until `counter.count` reaches `limit` or the core waits. Errors of devices come out.

        Raises
        ------
        UnhandledException
            The guest met an exception without a handler.
        """
        self._begin(limit)
        return self._go_on(started=False)

    def finish(self, error: int) -> Outcome:
        """Go on after native code has let the engine run; `error`: the number of what ended it."""
        self._error = error
        return self._go_on(started=True)

    @property
    def needs_python(self) -> bool:
        """Whether something is to be looked at before it runs."""
        return self.stale or self._control_written or self.on_stop is not None

    def _begin(self, limit: int) -> None:
        """Before the engine runs, with what is this core's."""
        counter = self.counter
        counter.limit = limit
        self.allow_events()
        self.alignment.enter()
        self.look_at_control()
        self._storm.resume(counter.count)
        self.open_exceptions.resume(counter.count)
        counter.watch_pages(self._pages.seen, self.memory.base)
        if self.stale:
            self.stale = False
            self._pages.drop_changed()
            self._bound_hook()

    def _go_on(self, started: bool) -> Outcome:
        """Let the engine run until the slice ends; `started`: it has run already."""
        counter = self.counter
        while True:
            try:
                if started:
                    started = False
                    self.calls.look_at_end(self._error)
                else:
                    self._waits_for_event = False
                    counter.forget_spins()
                    self.calls.start(self._entry(), self.LAST_ADDRESS)
            except self._unicorn.UcError as error:
                self._on_engine_error(error)
            self.refresh()
            counter.raise_fault()
            if counter.code_has_changed():
                self.links.code_changed()
            if self._pages.remove_released() and self._pending is None:
                continue
            if self._follows_control() and self._pending is None and not counter.has_new_page:
                continue
            if counter.met_new_page():
                self._meet_page(counter.block)
                self._bound_hook()
                continue
            if self._catch_up():
                continue
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

    def _catch_up(self) -> bool:
        """Do what an instruction has put off until the engine stands still; whether to go on."""
        return False

    def _on_engine_error(self, error: Any) -> None:
        self.refresh()
        unicorn = self._unicorn
        if error.errno == unicorn.UC_ERR_INSN_INVALID:
            self._pending = (ArmException.UNDEFINED, self.pc)
        elif error.errno in (unicorn.UC_ERR_FETCH_PROT, unicorn.UC_ERR_FETCH_UNMAPPED):
            self._fault_status = NO_FAULT._replace(address=self.pc)
            self._pending = (ArmException.PREFETCH_ABORT, self.pc)
        else:
            self._fault_status = NO_FAULT
            self._pending = (ArmException.DATA_ABORT, self.pc)

    # -- exceptions --------------------------------------------------------------------------------

    def raise_exception(self, exception: ArmException, address: int) -> None:
        """Let a trapped instruction end in an exception."""
        self._pending = (exception, address)
        self.engine.emu_stop()

    def interrupt(self, exception: ArmException = ArmException.IRQ) -> None:
        """Take an interrupt; the core must not have it masked."""
        self._take(exception, self.pc)

    def _take(self, exception: ArmException, address: int) -> None:
        if self.exception_taken.subscriptions:
            self.exception_taken.emit(ExceptionTaken(exception, address))
        status, abort = self.cpsr, self._fault_status
        fault = abort.address if abort is not NO_FAULT and exception in ABORTED else None
        vector, low = self._enter(exception, address)
        self.refresh()
        number = self._count_words[TAKEN] + 1
        taken = Taken(exception, address, vector, status, fault)
        first = self.open_exceptions.note(taken, self.cpsr, number)
        self._count_words[TAKEN] = number
        self.counter.add(INSTRUCTIONS_PER_EXCEPTION)
        unreadable = exception is ArmException.PREFETCH_ABORT and address == vector
        if unreadable or (low and self._is_empty(vector)):
            raise UnhandledException(taken, first)
        if exception in FAULTS and self._storm.grows(self.counter.count, address == vector):
            raise UnhandledException(taken, first, storm=True)

    def _is_empty(self, vector: int) -> bool:
        """Whether no handler can be at a vector at 0: there is nothing, or it leads to nothing."""
        return self.memory.u32(vector) == 0 or self.memory.is_untouched(vector, 4)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Whether the next instructions are zeros, or what was there at power-on (MMU off)."""
        memory, pc = self.memory, self.pc
        empty = not any(memory.view(pc, EMPTY))
        untouched = empty if memory.noise is None else empty or memory.is_untouched(pc, EMPTY)
        return untouched and not self._translates()

    @property
    def place(self) -> dict[str, int]:
        """Its PC, its status and its routing as native code reads them, a `Batch`."""
        return batch_members(self._place)

    @property
    @abstractmethod
    def entry_batches(self) -> tuple[RegisterBatch, list[RegisterBatch]]:
        """Registers that native code reads and writes where it delivers an interrupt (`InterruptState`)."""

    def handler_at(self, vector: int) -> int:
        """The first word of a handler that was found at a vector at 0, 0 if none was."""
        return 0

    @property
    def page_table(self) -> int:
        """Host address of the table of pages that it has executed."""
        return ctypes.addressof(self._pages.seen)

    @property
    def monitor_place(self) -> int:
        """The offset of the monitor of load-exclusive in the engine's copy of its state."""
        return MONITOR_AT_64 if self.WIDE else MONITOR_AT_32

    def forget_translations(self) -> None:
        """Empty the engine's TLB, which the program has not asked for."""
        alignment = self.alignment
        before, flushes = alignment.enter(), alignment.flushes
        try:
            forget_addresses(self.engine)
        finally:
            alignment.flushes = flushes
            alignment.leave(before)

    def translate(self, address: int) -> int | None:
        """The physical address of a virtual one as the core sees it now, None if none is."""
        before = self.alignment.enter()  # the engine fills its TLB by functions that look at it
        try:
            return self.calls.translate(address, self._unicorn.UC_PROT_READ)
        finally:
            self.alignment.leave(before)
