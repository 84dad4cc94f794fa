"""Functions of the engine's translator and memory that are replaced, so that accesses are checked.

Its translator has accesses that check their alignment: the check costs nothing, because it is part
of the comparison that finds the page. So the functions that translate an access are replaced
(`engine_patches.py`), and ask for the check where a core would fault. An access that does as an
ARMv5 did for the first time is translated again.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Array,
    Function,
    Struct,
    Value,
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
from vc4lab.soc.cores.engine import early_reads, tlb_flushes
from vc4lab.soc.cores.engine.alignment_words import (
    ALIGN,
    ALIGN_SHIFT,
    BY_PAGE,
    CHECKED,
    LEGACY,
    NOTHING,
    SIZE,
    bits_arm,
    bits_wide,
)
from vc4lab.soc.cores.engine.early_reads import FILL

REGIMES = 16
"""The number of the engine's MMU indices."""
THREADS = 64
"""So many threads may run cores at the same time."""
PLACES = 64
"""Instructions of an ARM1176 whose unaligned accesses are those of ARMv5, at most."""
ACCESS_SHIFT = 4
"""Helpers of the engine have the access above the MMU index."""
LONG_THUMB = 0xE800
TCG_I32 = 0


class CoreAlignment(Struct):
    """A core as the replaced functions know it; the cores of a board are a ring by `next`."""

    regimes = Array(i8, REGIMES)
    word = i64
    fetched = i64
    thumb = i64
    half = i64
    number = i64
    early = ptr
    devices = ptr
    flushes = i64
    processor = ptr
    next = ptr
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
"""Functions with which accesses of ARMv5 are translated."""


def replacements() -> dict[str, Function[Any]]:
    """The functions of the engine that are replaced, and by what."""

    def access(name: str, arm: bool, way: str) -> Function[None]:
        types = (i64, i64, i64, i64, i32)
        return Function(types, None, lambda *values: _access(name, arm, way, values), name)

    def store(name: str) -> Function[None]:
        types = (ptr, i64, i64, i32, i64)
        return Function(types, None, lambda *values: _store(name, values), name)

    accesses = {name: access(name, arm, way) for name, arm, way in ACCESSES}
    others = OTHERS | early_reads.functions(_early) | tlb_flushes.functions(_count_flush)
    return accesses | {name: store(name) for name in STORES} | others


@staged
def _count_flush(suffix: str, for_all: bool) -> None:
    """A core empties its TLB; `for_all`: those of the other cores, too, whose turn it is not."""
    own = _core()
    if own != 0:
        core = CoreAlignment.at(own)
        core.flushes = core.flushes + 1
        if for_all:
            other = core.next
            while (other != 0) & (other != own):
                core = CoreAlignment.at(other)
                core.flushes = core.flushes + 1
                if core.processor != 0:
                    call_pointer(imported(f"tlb_flush_{suffix}", None, (ptr,)), None, (ptr,), core.processor)
                other = core.next


@staged
def _early(processor: Value) -> Value:
    """The address of what the GPU is writing, for the core that runs in this thread, or 0."""
    place = _core()
    early = const(ptr, 0)
    if place != 0:
        core = CoreAlignment.at(place)
        core.processor = processor
        early = core.early
    return early
