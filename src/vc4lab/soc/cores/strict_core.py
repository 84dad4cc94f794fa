"""Refuses what the engine lets work and cores do not: unaligned accesses, exclusive ones.

What depends on SCTLR is looked at again when the program has written it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from vc4lab.soc.cores.code import exclusives
from vc4lab.soc.cores.code.trapped_code import TrappedCode
from vc4lab.soc.cores.code.traps import CoreLinks, Trap
from vc4lab.soc.cores.engine import alignment, memory_types
from vc4lab.soc.cores.engine.alignment_words import BY_PAGE, FREE
from vc4lab.soc.cores.engine.engine_calls import FaultStatus
from vc4lab.soc.cores.exceptions.exceptions import SCTLR_A, SCTLR_M, ArmException
from vc4lab.soc.cores.exceptions.outcome import Taken, UnhandledException

ZERO_SYNDROME = 1 << 8 | 1 << 6 | alignment.ALIGNMENT_FAULT
"""The syndrome of cache maintenance, a write."""


VECTORS_32, VECTORS_64 = 32, 2048
"""Bytes to which a table of vectors is aligned."""


class StrictCore(TrappedCode):
    """Reports and aborts such accesses of a core."""

    number: int
    _ram_end: int
    links: CoreLinks
    _fault_status: FaultStatus

    @property
    @abstractmethod
    def system_control(self) -> int:
        """SCTLR, or what stands for it in the core's mode: MMU and caches."""

    @abstractmethod
    def raise_exception(self, exception: ArmException, address: int) -> None:
        """Let a trapped instruction end in an exception."""

    def _make_strict(self) -> None:
        """Before there is an engine."""
        self.alignment = alignment.Alignment(checks=not self.links.forgiving)
        self._devices = memory_types.DevicePages()
        self.alignment.watch_devices(self._devices)
        self._control_written = True
        self._limit_before = 0
        self._exclusive_hooks = 0
        self._failed_stores = exclusives.FailedStores()
        self._watched = False
        self.exclusives_abort = False
        """Whether load-exclusive in memory that is not cached takes a data abort."""

    # -- SCTLR -------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _is_user(self) -> bool:
        """Whether the core executes a program without privileges; in hooks, too."""

    @abstractmethod
    def _alignment_modes(self) -> dict[int, int]:
        """Say what is checked of accesses, by the engine's MMU index, as SCTLR is now."""

    @abstractmethod
    def _device_spans(self) -> Iterator[memory_types.Span]:
        """The Device memory of the present tables."""

    @property
    @abstractmethod
    def may_translate(self) -> bool:
        """Whether the MMU is on, also if only at a level that the core is not in."""

    @property
    @abstractmethod
    def first_tables(self) -> tuple[memory_types.FirstTable, ...]:
        """The tables that the core's walks begin with now; none with the MMU off."""

    @abstractmethod
    def _is_uncached(self, address: int) -> bool:
        """Whether the present tables make a virtual address memory that no data cache holds."""

    def _mode_with_tables(self) -> int:
        """Choose what is checked with the MMU on: by page, where the tables make RAM Device memory."""
        self._devices.mark(list(self._device_spans()))
        return BY_PAGE if self._devices.reach_below(self._ram_end) else FREE

    def control_written(self) -> None:
        """The instruction that is about to be executed writes SCTLR: look at it afterwards."""
        if self._control_written:
            return
        self._control_written = True
        self._limit_before = self.counter.limit
        self.counter.note()
        self.counter.stop()

    def control_restored(self) -> None:
        """SCTLR has been set from outside: look at it before the core runs."""
        self._control_written = True

    def look_at_control(self) -> None:
        """Follow what SCTLR says now: code that was translated otherwise goes."""
        if not self._control_written:
            return
        self._control_written = False
        watched = exclusives.are_watched(self.system_control)
        if self._watched and not watched:
            self._exclusive_hooks = 0
            self._pages.forget()
        self._watched = watched
        if self.alignment.choose(self._alignment_modes()):
            self.engine.ctl_flush_tb()
        self.links.control_followed(self.number)

    def _follows_control(self) -> bool:
        """Whether the engine has come back only because SCTLR was written."""
        if not self._control_written:
            return False
        self.look_at_control()
        self.counter.limit = self._limit_before
        return True

    # -- vectors ----------------------------------------------------------------------------------------

    def report_vectors(self, name: str, value: int, alignment: int, address: int) -> None:
        """Report a base of vectors that is not aligned to so many bytes."""
        if value & alignment - 1:
            self.links.report(
                "SOC-116",
                f"{name} gets 0x{value:08x}, which is not aligned to {alignment} bytes: the low bits are "
                f"ignored, and exceptions go to the table at 0x{value & -alignment:08x}",
                address,
            )

    # -- unaligned accesses ------------------------------------------------------------------------

    def _meets_unaligned(self, pc: int) -> bool:
        """Report an alignment fault, if an abort is one; whether the core need not take it."""
        syndrome, status, address = self._fault_status
        if not alignment.is_alignment_fault(syndrome, status, wide=self.WIDE):
            return False
        if self._treats_as_old(pc):
            self.links.report(
                "SOC-111",
                f"unaligned access to 0x{address:08x}: with SCTLR.U = 0 the core takes the bytes "
                "of the aligned word (ldr rotates them), as an ARMv5 did",
                pc,
            )
            return True
        why = self._why_aligned()
        if why:
            self.links.report("SOC-110", f"unaligned access to 0x{address:08x}: {why}", pc)
        return False

    def _treats_as_old(self, pc: int) -> bool:
        """Whether the accesses of the instruction at an address are those of ARMv5 from now on."""
        return False

    def _why_aligned(self) -> str:
        """Why the present access must be aligned; nothing for programs under a system."""
        if self._is_user:
            return ""
        control = self.system_control
        if control & SCTLR_A:
            return "SCTLR.A is set, so that every access must be aligned"
        if not control & SCTLR_M:
            return "the MMU is off, so that all memory is Device or Strongly-ordered memory"
        return "the instruction needs aligned addresses, or the page is Device memory"

    def _zeroes_device_memory(self, address: int, target: int) -> bool:
        """A dc zva of `target`: an alignment fault while the MMU is off; whether it is that."""
        if self.system_control & SCTLR_M:
            return False
        why = "the MMU is off, so that all memory is Device memory, which dc zva cannot clear"
        self.links.report("SOC-110", f"dc zva of 0x{target:08x}: {why}", address)
        self._fault_status = FaultStatus(ZERO_SYNDROME, 0, target)
        self.raise_exception(ArmException.DATA_ABORT, address)
        return True

    # -- load- and store-exclusive -----------------------------------------------------------------

    @property
    def _exclusive_traps(self) -> tuple[Trap, ...]:
        """Instructions that are searched for in a page that is met."""
        known: tuple[Trap, ...] = exclusives.WIDE_TRAPS if self.WIDE else exclusives.ARM_TRAPS
        if not self.exclusives_abort:
            known = exclusives.ARM_STORES
        watched = exclusives.are_watched(self.system_control)
        most = exclusives.MAX_WATCHED_HOOKS if watched else exclusives.MAX_HOOKS
        return () if self.links.forgiving or self._exclusive_hooks >= most else known

    def _meet_exclusive(self, word: int, address: int, target: int) -> bool:
        """Such an instruction, at `target` in memory: whether it is done."""
        when = "while the MMU or the data cache is off"
        if exclusives.are_watched(self.system_control):
            if not self._is_uncached(target):
                self._pages.release(address)
                return False
            when = "in memory that the tables do not make cacheable"
        kind = {"wide": self.WIDE, "thumb": self.executes_thumb}
        load = exclusives.is_load(word, **kind)
        if load and not self.exclusives_abort:
            return False
        what = "load" if load else "store"
        does = "takes a data abort" if self.exclusives_abort else "never stores"
        self.links.report(
            "SOC-113",
            f"{what}-exclusive at 0x{target:08x} {when}: no "
            f"monitor watches over memory that is not cached, and the core {does}",
            address,
        )
        if load:
            self._abort_exclusive(address, target)
            return False
        self.set_register(exclusives.result_register(word, **kind), 1)
        if self._failed_stores.grow(address):
            text = f"core {self.number} repeats a store-exclusive that never succeeds"
            why = "SOC-113", text
            taken = Taken(ArmException.DATA_ABORT, address, 0, self.cpsr, target)
            loop = UnhandledException(taken, None, storm=True, why=why)
            self.counter.fail(loop)
        return True

    def _abort_exclusive(self, address: int, target: int) -> None:
        """An unsupported exclusive access at `target`, by the instruction at `address`."""
        status = exclusives.SHORT_STATUS
        self._fault_status = FaultStatus(exclusives.SYNDROME, status, target)
        self.counter.add(-max(self.counter.block + self.counter.size - address >> 2, 0))
        self.raise_exception(ArmException.DATA_ABORT, address)
