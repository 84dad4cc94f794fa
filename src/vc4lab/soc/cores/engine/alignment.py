"""Unaligned loads and stores, as the cores treat them: an alignment fault, or what an ARMv5 did.

The engine lets every unaligned access work. Functions of its translator are replaced
(`checked_accesses.py`), and ask for a check where a core would fault:

* with the MMU off, for memory is then Device or Strongly-ordered, and with SCTLR.A: everywhere;
* ldm, ldrd, vldr and their like always need words in AArch32;
* where tables make RAM Device memory, each unaligned access looks at its page.

An ARM1176 with its MMU off has no such fault. With SCTLR.U = 0, its state after reset, an unaligned
ldr rotates the word that it is in.

`Alignment` has what one core checks, by translation regime (the engine's "MMU index").
"""

from __future__ import annotations

import threading
import weakref
from functools import cache
from threading import get_ident
from typing import Any

from vc4lab.simd import Address, build
from vc4lab.soc.cores.engine import engine_patches
from vc4lab.soc.cores.engine.alignment_words import FREE, NOTHING
from vc4lab.soc.cores.engine.checked_accesses import (
    HELP,
    PLACES,
    REGIMES,
    THREADS,
    CoreAlignment,
    Running,
    replacements,
)
from vc4lab.soc.cores.engine.memory_types import DevicePages
from vc4lab.soc.native import words_of

SYSTEM = (0, 2, 3, 7, 8, 9)
"""Those of EL1 and EL0, or of the modes that share an AArch32 SCTLR."""
HYPERVISOR = (1, 4, 5, 6)
MONITOR = (10,)
ALIGNMENT_FAULT, LONG_STATUS, LONG_FORMAT = 0x21, 0x3F, 1 << 9
SHORT_FAULT, SHORT_STATUS = 0x01, 0x40F


def is_alignment_fault(syndrome: int, status: int, *, wide: bool) -> bool:
    """Whether an abort is one: by its syndrome (AArch64), or its status (DFSR; AArch32)."""
    if wide:
        return syndrome & LONG_STATUS == ALIGNMENT_FAULT
    if status & LONG_FORMAT:
        return status & LONG_STATUS == ALIGNMENT_FAULT
    return status & SHORT_STATUS == SHORT_FAULT


_running = Running()
_running_words = words_of(_running)
_slots: dict[int, int] = {}
_lock = threading.Lock()


@cache
def _installed() -> bool:
    """Replace the engine's functions, once in a process; whether that worked."""
    functions = replacements()
    there = {name: engine_patches.address_of(name) for name in (*functions, *HELP)}
    if not all(there.values()):
        return False
    imports = {name: Address(address) for name, address in there.items()}
    imports["alignment_running"] = Address(_running.address)
    module = build("soc_alignment", functions, float_mode="default", key="soc-alignment", imports=imports)
    _kept.append(module)
    return engine_patches.replace({there[name]: module[name].address for name in functions})


_kept: list[Any] = []
"""The replacements, for as long as the process lives."""


def _new_slot(thread: int) -> int:
    """Choose a place in `_running` for a thread that does not have one yet."""
    with _lock:
        slot = _free_slot()
        _slots[thread] = slot
    _running_words[2 * slot] = thread
    return slot


def _free_slot() -> int:
    """One that no thread has; that of a thread that has ended, if there is none."""
    taken = set(_slots.values())
    for slot in range(THREADS):
        if slot not in taken:
            return slot
    alive = {thread.ident for thread in threading.enumerate()}
    gone = next((thread for thread in _slots if thread not in alive), next(iter(_slots)))
    return _slots.pop(gone)


def _forget(address: int) -> None:
    """No thread finds a `CoreAlignment` that is no more."""
    for slot in range(THREADS):
        if _running_words[2 * slot + 1] == address:
            _running_words[2 * slot + 1] = 0


class Alignment:
    """Checks the accesses of one core; nothing without `checks`."""

    def __init__(self, *, checks: bool) -> None:
        self._state = CoreAlignment()
        self._nowhere = Running()
        self._address: int = self._state.address
        weakref.finalize(self, _forget, self._address).atexit = False
        self.works = checks and _installed()
        """Whether it checks: the engine can be made to, or every access works."""
        if not self.works:
            self._state.regimes = bytes((NOTHING,)) * REGIMES

    def enter(self) -> int:
        """The core is about to run, in this thread; what to `leave` it with."""
        if not self.works and not _kept:
            return 0
        thread = get_ident()
        slot = _slots.get(thread)
        if slot is None:
            slot = _new_slot(thread)
        before = _running_words[2 * slot + 1]
        _running_words[2 * slot + 1] = self._address
        return before

    def leave(self, before: int) -> None:
        """The core that ran before `enter` goes on, in the same thread."""
        if self.works or _kept:
            _running_words[2 * _slots[get_ident()] + 1] = before

    @property
    def address(self) -> int:
        """Host address of its `CoreAlignment`."""
        return self._address

    def running_place(self) -> int:
        """Host address of the word that says which core runs in this thread."""
        if not (self.works or _kept):
            return self._nowhere.address
        return _running.address + 8 * (2 * _slots[threading.get_ident()] + 1)

    def choose(self, modes: dict[int, int]) -> bool:
        """Set what is checked by MMU index, FREE where nothing is said; whether that is new."""
        if not self.works:
            return False
        wanted = bytes(modes.get(regime, FREE) for regime in range(REGIMES))
        if bytes(self._state.regimes) == wanted:
            return False
        self._state.regimes = wanted
        return True

    @property
    def flushes(self) -> int:
        """How often the core's program has had the TLB emptied, or a page's entries."""
        return int(self._state.flushes)

    @flushes.setter
    def flushes(self, count: int) -> None:
        self._state.flushes = count

    def join(self, other: Alignment) -> None:
        """Take `other` as the next core of the same board: a ring, in which TLB invalidation goes round."""
        if self.works:
            self._state.next = other.address

    def watch_early_reads(self, address: int) -> None:
        """Note loads from what the GPU is writing in an `EarlyState` at this address."""
        if self.works:
            self._state.early = address

    def watch_devices(self, pages: DevicePages) -> None:
        """Take the pages that are Device memory from there, where accesses are checked by page."""
        self._devices = pages
        self._state.devices = pages.address

    def mode_of(self, regime: int) -> int:
        """The check of accesses with an MMU index."""
        return int(self._state.regimes[regime])

    def treat_as_old(self, address: int) -> bool:
        """Let an instruction's accesses be those of ARMv5; False: they are, or it is full."""
        count = self._state.legacy
        if count >= PLACES or address in list(self._state.places)[:count]:
            return False
        self._state.places[count] = address
        self._state.legacy = count + 1
        return True
