"""Unaligned loads and stores, as the cores treat them: an alignment fault, or what an ARMv5 did.

The engine lets every unaligned access work. Its translator has accesses that check: the check costs
nothing, because it is part of the comparison that finds the page. So the functions that translate
an access are replaced (`engine_patches.py`), and ask for the check where a core would fault:

* with the MMU off, for memory is then Device or Strongly-ordered, and with SCTLR.A: everywhere;
* ldm, ldrd, vldr and their like always need words in AArch32;
* where tables make RAM Device memory, each unaligned access looks at its page.

An ARM1176 with its MMU off has no such fault. With SCTLR.U = 0, its state after reset, an unaligned
ldr rotates the word that it is in: an access that does so for the first time is translated again.

`Alignment` has what one core checks, by translation regime (the engine's "MMU index").
"""

from __future__ import annotations

import threading
from functools import cache
from threading import get_ident
from typing import Any

from vc4lab.simd import (
    Address,
    Array,
    Function,
    Struct,
    Value,
    build,
    call_pointer,
    const,
    i1,
    i8,
    i32,
    i64,
    imported,
    kernel,
    load,
    ptr,
    select,
    staged,
)
from vc4lab.soc.cores.engine import early_reads, engine_patches
from vc4lab.soc.cores.engine.alignment_words import (
    ALIGN,
    ALIGN_SHIFT,
    BY_PAGE,
    CHECKED,
    FREE,
    LEGACY,
    NOTHING,
    SIZE,
    bits_arm,
    bits_wide,
)
from vc4lab.soc.cores.engine.early_reads import FILL
from vc4lab.soc.cores.engine.memory_types import DevicePages
from vc4lab.soc.native import words_of

REGIMES = 16
"""Of the engine's MMU indices."""
SYSTEM = (0, 2, 3, 7, 8, 9)
"""Those of EL1 and EL0, or of the modes that share an AArch32 SCTLR."""
HYPERVISOR = (1, 4, 5, 6)
MONITOR = (10,)
THREADS = 64
"""So many threads may run cores at the same time."""
PLACES = 64
"""Instructions of an ARM1176 whose unaligned accesses are those of ARMv5, at most."""
ACCESS_SHIFT = 4
"""Where helpers of the engine have the access, above the MMU index."""
LONG_THUMB = 0xE800
TCG_I32 = 0


class CoreAlignment(Struct):
    """What the replaced functions know of a core."""

    regimes = Array(i8, REGIMES)
    word = i64
    fetched = i64
    thumb = i64
    half = i64
    number = i64
    early = ptr
    devices = ptr
    legacy = i64
    places = Array(i64, PLACES)


class Running(Struct):
    """Which core runs in which thread: pairs of the thread's number and the `CoreAlignment`."""

    threads = Array(i64, 2 * THREADS)


@staged
def _core() -> Value:
    """The address of what is known of the core that runs in this thread, or 0."""
    table = imported("alignment_running", None, ())
    own = call_pointer(imported("pthread_self", i64, ()), i64, ())
    found = const(ptr, 0)
    at = const(i64, 0)
    going = const(i64, 1)
    while going != 0:
        thread = load(i64, table + at)
        if thread == own:
            found = load(ptr, table + at + 8)
        at = at + 16
        going = select((thread == own) | (thread == 0) | (at >= 16 * THREADS), const(i64, 0), going)
    return found


@staged
def _fetch_word(arm: bool, environment: Value, address: Value) -> Value:
    """The translator reads an instruction: note it."""
    kind = i32 if arm else i64
    name = "cpu_ldl_code_arm" if arm else "cpu_ldl_code_aarch64"
    function = imported(name, i32, (ptr, kind))
    word = call_pointer(function, i32, (ptr, kind), environment, address)
    place = _core()
    if place != 0:
        core = CoreAlignment.at(place)
        core.word = word.zext(i64)
        core.fetched = address.zext(i64) if arm else address
        core.thumb = 0
        core.number = 0
    return word


@kernel(args=(ptr, i32), returns=i32)
def fetch_arm(environment: Value, address: Value) -> Value:
    """Instead of cpu_ldl_code_arm."""
    return _fetch_word(True, environment, address)


@kernel(args=(ptr, i64), returns=i32)
def fetch_aarch64(environment: Value, address: Value) -> Value:
    """Instead of cpu_ldl_code_aarch64."""
    return _fetch_word(False, environment, address)


@kernel(args=(ptr, i32), returns=i32)
def fetch_thumb(environment: Value, address: Value) -> Value:
    """Instead of cpu_lduw_code_arm: a Thumb instruction, or half of one."""
    function = imported("cpu_lduw_code_arm", i32, (ptr, i32))
    half = call_pointer(function, i32, (ptr, i32), environment, address)
    place = _core()
    if place != 0:
        core = CoreAlignment.at(place)
        value = (half & 0xFFFF).zext(i64)
        at = address.zext(i64)
        if (core.half != 0) & (core.fetched + 2 == at):
            core.word = core.half << 16 | value
            core.half = 0
        else:
            core.word = value
            core.half = select(value >= LONG_THUMB, value, const(i64, 0))
            core.fetched = at
        core.thumb = 1
        core.number = 0
    return half


@staged
def _checked(arm: bool, core: Any, regime: Value, access: Value) -> Value:
    """The access with the alignment that its instruction needs."""
    mode = load(i8, core.pointer + CoreAlignment.regimes.offset + (regime & (REGIMES - 1)))
    strict = (mode == CHECKED) | (mode == BY_PAGE)
    size = access & SIZE
    word = core.word.trunc(i32)
    if arm:
        bits, always = bits_arm(word, core.thumb != 0, size)
        wanted = (strict | always | (mode == LEGACY)) & (mode != NOTHING)
    else:
        bits = bits_wide(word, core.number.trunc(i32), size)
        wanted = strict
    core.number = core.number + 1
    plain = (access & ALIGN) == 0
    return select(plain & wanted, access | bits << ALIGN_SHIFT, access)


@staged
def _access(name: str, arm: bool, way: str, arguments: tuple[Value, ...]) -> None:
    """Translate an access: `name` says which function of the engine's does it."""
    context, value, address, regime, access = arguments
    types = (i64, i64, i64, i64, i32)
    function = imported(name, None, types)
    place = _core()
    old = const(i1, 0)
    if place != 0:
        core = CoreAlignment.at(place)
        access = _checked(arm, core, regime, access)
        if arm:
            old = _is_old(core)
    if arm:
        if old:
            _old_access(CoreAlignment.at(place), function, way, arguments)
        else:
            call_pointer(function, None, types, context, value, address, regime, access)
    else:
        call_pointer(function, None, types, context, value, address, regime, access)


@staged
def _is_old(core: Any) -> Value:
    """Whether the instruction that is translated is one of `Alignment.treat_as_old`."""
    found = const(i1, 0)
    for number in range(core.legacy):
        place = load(i64, core.pointer + CoreAlignment.places.offset + number * 8)
        found = found | (place == core.fetched)
    return found


@staged
def _old_access(core: Any, function: Value, way: str, arguments: tuple[Value, ...]) -> None:
    """Translate an access as ARMv5 has it: of the word or half word that the address is in.

    A word that is loaded alone is rotated, so that the byte at the address comes lowest.
    """
    context, value, address, regime, access = arguments
    new = imported("tcg_temp_new_internal_arm", i64, (i64, i32, i1))
    place = call_pointer(new, i64, (i64, i32, i1), context, const(i32, TCG_I32), const(i1, 0))
    own = place - context
    two = (i64, i64, i64, i32)
    mask = select((access & SIZE) == 1, const(i32, ~1), const(i32, ~3))
    clear = imported("tcg_gen_andi_i32_arm", None, two)
    call_pointer(clear, None, two, context, own, address, mask)
    call_pointer(function, None, (i64, i64, i64, i64, i32), context, value, own, regime, access)
    if way == "ld_i32":
        _bits, words = bits_arm(core.word.trunc(i32), core.thumb != 0, access & SIZE)
        if ((access & SIZE) == 2) & ~words:
            call_pointer(clear, None, two, context, own, address, const(i32, 3))
            shift = imported("tcg_gen_shli_i32_arm", None, two)
            call_pointer(shift, None, two, context, own, own, const(i32, 3))
            three = (i64, i64, i64, i64)
            rotate = imported("tcg_gen_rotr_i32_arm", None, three)
            call_pointer(rotate, None, three, context, value, value, own)
    call_pointer(imported("tcg_temp_free_internal_arm", None, (i64, i64)), None, (i64, i64), context, place)


@kernel(args=(ptr, i64, i32, i32, i64))
def unaligned_arm(processor: Value, address: Value, kind: Value, regime: Value, back: Value) -> None:
    """Instead of arm_cpu_do_unaligned_access_arm."""
    _unaligned("arm_cpu_do_unaligned_access_arm", (processor, address, kind, regime, back))


@kernel(args=(ptr, i64, i32, i32, i64))
def unaligned_aarch64(processor: Value, address: Value, kind: Value, regime: Value, back: Value) -> None:
    """Instead of arm_cpu_do_unaligned_access_aarch64."""
    _unaligned("arm_cpu_do_unaligned_access_aarch64", (processor, address, kind, regime, back))


@staged
def _unaligned(name: str, arguments: tuple[Value, ...]) -> None:
    """An unaligned access that is checked: a fault, unless it is to Normal memory.

    What the memory's type leads to comes after the faults of the tables (ARM ARM, ARMv8-A D5.8.1),
    which the engine looks for when it fills its TLB.
    """
    processor, address, kind, regime, back = arguments
    faults = const(i32, 1)
    place = _core()
    if place != 0:
        core = CoreAlignment.at(place)
        mode = load(i8, core.pointer + CoreAlignment.regimes.offset + (regime & (REGIMES - 1)))
        if mode == BY_PAGE:
            faults = const(i32, 0)
            if address.shr(32) == 0:
                faults = load(i8, core.devices + address.shr(12)).zext(i32)
            if faults != 0:
                fill = imported(name.replace(*FILLS), i8, FILL)
                no, one = const(i32, 0), const(i32, 1)
                call_pointer(fill, i8, FILL, processor, address, one, kind, regime, no, back)
    if faults != 0:
        types = (ptr, i64, i32, i32, i64)
        function = imported(name, None, types)
        call_pointer(function, None, types, processor, address, kind, regime, back)


@staged
def _store(name: str, arguments: tuple[Value, ...]) -> None:
    """A store of 64 bits that does not go the quick way.

    The engine stores byte by byte where pages have code in them, and would check the alignment of
    each byte: so it is checked once, here.
    """
    environment, address, value, access, back = arguments
    align = access.shr(ACCESS_SHIFT + ALIGN_SHIFT) & 7
    mask = (const(i64, 1) << align.zext(i64)) - 1
    plain = access & ~(ALIGN << ACCESS_SHIFT)
    kept = select((address & mask) == 0, plain, access)
    types = (ptr, i64, i64, i32, i64)
    function = imported(name, None, types)
    call_pointer(function, None, types, environment, address, value, kept, back)


STORES = tuple(f"helper_{order}_stq_mmu_{suffix}" for order in ("le", "be") for suffix in ("arm", "aarch64"))
FILLS = "do_unaligned_access", "tlb_fill"
"""The name of the engine's function that fills the TLB."""
ACCESSES = tuple(
    (f"tcg_gen_qemu_{way}_{suffix}", suffix == "arm", way)
    for suffix in ("arm", "aarch64")
    for way in ("ld_i32", "ld_i64", "st_i32", "st_i64")
)
OTHERS = {
    "cpu_ldl_code_arm": fetch_arm,
    "cpu_lduw_code_arm": fetch_thumb,
    "cpu_ldl_code_aarch64": fetch_aarch64,
    "arm_cpu_do_unaligned_access_arm": unaligned_arm,
    "arm_cpu_do_unaligned_access_aarch64": unaligned_aarch64,
}
HELP = (
    "tcg_temp_new_internal_arm",
    "tcg_temp_free_internal_arm",
    "tcg_gen_andi_i32_arm",
    "tcg_gen_shli_i32_arm",
    "tcg_gen_rotr_i32_arm",
)
"""What accesses of ARMv5 are translated with."""


def _replacements() -> dict[str, Function[Any]]:
    """The functions of the engine that are replaced, and by what."""

    def access(name: str, arm: bool, way: str) -> Function[None]:
        types = (i64, i64, i64, i64, i32)
        return Function(types, None, lambda *values: _access(name, arm, way, values), name)

    def store(name: str) -> Function[None]:
        types = (ptr, i64, i64, i32, i64)
        return Function(types, None, lambda *values: _store(name, values), name)

    accesses = {name: access(name, arm, way) for name, arm, way in ACCESSES}
    fills = early_reads.functions(_early)
    return {**accesses, **{name: store(name) for name in STORES}, **OTHERS, **fills}


@staged
def _early() -> Value:
    """The address of what the GPU is writing, for the core that runs in this thread, or 0."""
    place = _core()
    early = const(ptr, 0)
    if place != 0:
        early = CoreAlignment.at(place).early
    return early


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
    functions = _replacements()
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
    """Where `_running` has a thread that it does not have yet."""
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


class Alignment:
    """What one core checks; nothing without `checks`."""

    def __init__(self, *, checks: bool) -> None:
        self._state = CoreAlignment()
        self._nowhere = Running()
        self._address: int = self._state.address
        self.works = checks and _installed()
        """Whether it checks: the engine can be made to, or every access works."""
        if not self.works:
            self._state.regimes = bytes((NOTHING,)) * REGIMES

    def enter(self) -> None:
        """The core is about to run, in this thread."""
        if not self.works and not _kept:
            return
        thread = get_ident()
        slot = _slots.get(thread)
        if slot is None:
            slot = _new_slot(thread)
        _running_words[2 * slot + 1] = self._address

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

    def watch_early_reads(self, address: int) -> None:
        """Where an `EarlyState` is: loads from what the GPU is writing are noted there."""
        if self.works:
            self._state.early = address

    def watch_devices(self, pages: DevicePages) -> None:
        """Where accesses are checked by page: which pages are Device memory."""
        self._devices = pages
        self._state.devices = pages.address

    def mode_of(self, regime: int) -> int:
        """What is checked with an MMU index."""
        return int(self._state.regimes[regime])

    def treat_as_old(self, address: int) -> bool:
        """Let an instruction's accesses be those of ARMv5; False: they are, or it is full."""
        count = self._state.legacy
        if count >= PLACES or address in list(self._state.places)[:count]:
            return False
        self._state.places[count] = address
        self._state.legacy = count + 1
        return True
