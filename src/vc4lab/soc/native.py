"""The CPU's slice counter: a native hook at each basic block that counts instructions and stops.

The hook is a few instructions of machine code inside the CPU engine's own loop; in Python it would
cost a hundred times the guest's code. It also leaves the address of the running block for messages.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from vc4lab.memory import MEMORY_MASK, lazy_zeros
from vc4lab.simd import (
    Struct,
    Value,
    build,
    call,
    call_pointer,
    const,
    i1,
    i8,
    i16,
    i32,
    i64,
    kernel,
    load,
    ptr,
    select,
    staged,
)

SPINS = 100
"""So many turns of a one-instruction loop are enough to know that it is a branch to itself."""
FOREVER = (1 << 63) - 1
LONG = (1 << 64) - 1
PAGE_MASK = 0xFFFFF
"""Pages of 4 GiB; higher addresses share their entries, but not a system's with its programs'."""
PAGES = 2 * (PAGE_MASK + 1)
HALF_BITS, TOP_BIT = 20, 63
UNSEEN, SEEN, THUMB = 0, 1, 2
"""State of a page: nothing is known; its code counts by words; it is Thumb code at its own address."""


def page_table() -> ctypes.Array[ctypes.c_uint8]:
    """An entry for each of `PAGES`, all `UNSEEN`; only the parts that are written take memory."""
    return (ctypes.c_uint8 * PAGES).from_buffer(lazy_zeros(PAGES))


_NOTHING_SEEN = page_table()
NOWHERE_SEEN = ctypes.addressof(_NOTHING_SEEN)
"""Host address of a table of pages in which all are `UNSEEN`."""


def page_index(address: int) -> int:
    """The index of an address in a table of pages."""
    return address >> 12 & PAGE_MASK | (address >> TOP_BIT & 1) << HALF_BITS


class SliceState(Struct):
    """Shared by the hook and Python."""

    count = i64
    limit = i64
    block = i64
    spins = i64
    stop = ptr
    block_size = i64
    seen = ptr
    new_page = i64
    ram = ptr
    masks = i64
    masked = i64
    unmasked = i64
    status_register = i64
    status = i64
    read_register = ptr
    pages = ptr
    code_changed = i64
    company = i64
    maintained = i64
    limit_before = i64
    end = i64
    noted = i64


COUNT = SliceState.count.offset // 8
LIMIT = SliceState.limit.offset // 8
BLOCK = SliceState.block.offset // 8
SPUN = SliceState.spins.offset // 8
BLOCK_SIZE = SliceState.block_size.offset // 8
NEW_PAGE = SliceState.new_page.offset // 8
MASKS = SliceState.masks.offset // 8
MASKED = SliceState.masked.offset // 8
UNMASKED = SliceState.unmasked.offset // 8
STATUS_REGISTER = SliceState.status_register.offset // 8
STATUS = SliceState.status.offset // 8
CODE_CHANGED = SliceState.code_changed.offset // 8
COMPANY = SliceState.company.offset // 8
MAINTAINED = SliceState.maintained.offset // 8
END = SliceState.end.offset // 8
RAM, PAGES_AT, SEEN_AT = (SliceState.offset(name) // 8 for name in ("ram", "pages", "seen"))
NOTED = SliceState.noted.offset // 8
"""Members of the state, as `words_of` numbers them."""
NOWHERE = -1
"""No address of a block."""


def words_of(block: Struct) -> memoryview:
    """A Struct of 64-bit members as Python reads it fastest."""
    return memoryview(block).cast("B").cast("q")


@staged
def thumb_instructions(ram: Value, address: Value, size: Value) -> Value:
    """Instructions in `size` bytes of Thumb code: 16-bit words that do not begin a longer one."""
    at = ram + (address & MEMORY_MASK)
    end = at + size
    found = const(i32, 0)
    while at < end:
        long = load(i16, at).zext(i32).uge(0xE800)
        at = at + select(long, const(i64, 4), const(i64, 2))
        found = found + 1
    return found


@staged
def look_at_masks(engine: Value, state_at: Value) -> None:
    """End the slice if the core's interrupt masks are no longer what they were."""
    state = SliceState.at(state_at)
    status = state.pointer + SliceState.status.offset
    register = state.status_register.trunc(i32)
    call_pointer(state.read_register, i32, (ptr, i32, ptr), engine, register, status)
    if (state.status & state.masks) != state.masked:
        state.unmasked = 1
        state.limit = 0


@staged
def page_of(address: Value) -> Value:
    """`page_index` of an address."""
    return ((address >> 12) & PAGE_MASK) | (address.shr(TOP_BIT) << HALF_BITS)


@kernel(args=(ptr, i64, i32, ptr))
def count_block(engine: Value, address: Value, size: Value, state_at: Value) -> None:
    """The engine's block hook: count the block, or stop the engine before it."""
    state = SliceState.at(state_at)
    again = (address == state.block) & (size <= 4)
    state.block = address
    state.block_size = size.sext(i64)
    executed = state.count
    plain = load(i8, state.seen + page_of(address)) == SEEN
    if plain & (executed < state.limit) & ~again:
        state.spins = 0
        state.count = executed + size.shr(2).sext(i64)
    else:
        call(look_closer, engine, address, size, state_at, again)


@kernel(args=(ptr, i64, i32, ptr, i1))
def look_closer(engine: Value, address: Value, size: Value, state_at: Value, again: Value) -> None:
    """Look at blocks that are not the usual ones, apart from those to keep them quick.

    `again`: the block is one instruction, and was the last block as well.
    """
    state = SliceState.at(state_at)
    if again:
        state.spins = state.spins + 1
    else:
        state.spins = 0
    kind = load(i8, state.seen + page_of(address))
    if kind == UNSEEN:
        call(look_at_page, engine, address, size, state_at)
    else:
        count_known(engine, address, size, state_at, kind)


@kernel(args=(ptr, i64, i32, ptr))
def look_at_page(engine: Value, address: Value, size: Value, state_at: Value) -> None:
    """Look at blocks of a new page, and at all blocks while masks are watched."""
    state = SliceState.at(state_at)
    if state.masks != 0:
        look_at_masks(engine, state_at)
    kind = load(i8, state.pages + page_of(address))
    if kind == UNSEEN:
        state.new_page = 1
        call_pointer(state.stop, i32, (ptr,), engine)
    else:
        count_known(engine, address, size, state_at, kind)


@staged
def count_known(engine: Value, address: Value, size: Value, state_at: Value, kind: Value) -> None:
    """Count a block of a page that is known, if the slice has not ended."""
    state = SliceState.at(state_at)
    maintains = (address + size.sext(i64) == state.maintained) & (state.count < state.limit_before)
    if ((state.count < state.limit) | maintains) & (state.spins < SPINS):
        instructions = size.shr(2)
        if kind == THUMB:
            instructions = thumb_instructions(state.ram, address, size)
        state.count = state.count + instructions.sext(i64)
    else:
        call_pointer(state.stop, i32, (ptr,), engine)


@staged
def end_slice_for_code(state_at: Value) -> None:
    """End the slice before instruction cache maintenance, for both kinds of hooks.

    Where other cores run, one of them may have written what this one executes next, so that the
    slice ends with the block. A system maintains each line of what it changes, 64 of them in a
    page: as long as the next block ends where this one does, the slice goes on.
    """
    state = SliceState.at(state_at)
    if state.company != 0:
        if state.code_changed == 0:
            state.limit_before = state.limit
        state.maintained = state.block + state.block_size
        state.limit = 0
    state.code_changed = 1


@kernel(args=(ptr, i64, i32, ptr))
def note_code_change(engine: Value, address: Value, size: Value, state_at: Value) -> None:
    """The engine's hook at an address (AArch32)."""
    end_slice_for_code(state_at)


@kernel(args=(ptr, i32, ptr, ptr), returns=i32)
def note_maintenance(engine: Value, register: Value, system: Value, state_at: Value) -> Value:
    """The engine's hook of a system instruction (AArch64), which it does itself."""
    end_slice_for_code(state_at)
    return const(i32, 0)


@cache
def _module() -> Any:
    kernels = {
        "count_block": count_block,
        "note_code_change": note_code_change,
        "note_maintenance": note_maintenance,
    }
    return build("soc_slice", kernels, float_mode="default", key="soc-slice")


class SliceCounter:
    """Instructions executed (`count`) and where to stop (`limit`), shared with native code."""

    def __init__(self) -> None:
        self._state = SliceState(maintained=NOWHERE)
        self.address: int = self._state.address
        """Host address of the shared state."""
        self.words = self._words = words_of(self._state)
        """The members of the `SliceState`, for frequent reads."""
        self.watch_pages(_NOTHING_SEEN)
        self.fault: BaseException | None = None

    @property
    def count(self) -> int:
        """Instructions executed since power-on, exact at the ends of basic blocks."""
        return self._words[COUNT]

    @property
    def limit(self) -> int:
        """The CPU stops at the first basic block at which `count` has reached this."""
        return self._words[LIMIT]

    @limit.setter
    def limit(self, value: int) -> None:
        self._words[LIMIT] = min(value, FOREVER)

    def add(self, instructions: int) -> None:
        """Count work that is not an instruction."""
        self._words[COUNT] += instructions

    @property
    def block(self) -> int:
        """Guest address of the basic block begun last."""
        return self._words[BLOCK] & LONG

    @property
    def size(self) -> int:
        """Bytes of the basic block begun last."""
        return self._words[BLOCK_SIZE]

    def watch_pages(self, seen: ctypes.Array[ctypes.c_uint8], ram: int = 0) -> None:
        """Stop before a block whose page is `UNSEEN` in `seen`, an entry for each of `PAGES`.

        `ram` is the host's address of the guest's RAM.
        """
        words = self.words
        self._seen = seen
        words[RAM] = ram
        words[PAGES_AT] = ctypes.addressof(seen)
        # With all pages unseen the hook looks closer at every block.
        words[SEEN_AT] = NOWHERE_SEEN if words[MASKS] else words[PAGES_AT]

    def met_new_page(self) -> bool:
        """Whether that has happened since the last call."""
        met = self._words[NEW_PAGE] != 0
        self._words[NEW_PAGE] = 0
        return met

    @property
    def has_new_page(self) -> bool:
        """Whether that has happened, as the next `met_new_page` will say."""
        return self._words[NEW_PAGE] != 0

    @property
    def spinning(self) -> bool:
        """Whether the CPU was stopped in a loop of one instruction."""
        return self._words[SPUN] >= SPINS

    def forget_spins(self) -> None:
        """Let the next slice begin as if the CPU came from elsewhere."""
        self._words[SPUN] = 0

    def stop(self) -> None:
        """Stop the CPU at the end of the basic block that is running."""
        self._words[LIMIT] = 0

    def watch_masks(self, masks: int, masked: int, status_register: int) -> None:
        """Stop when the bits `masks` of a register (by the engine's number) are not `masked`."""
        words = self._words
        words[MASKS], words[MASKED], words[UNMASKED] = masks, masked, 0
        words[STATUS_REGISTER], words[STATUS] = status_register, 0

    @property
    def unmasked(self) -> bool:
        """Whether that has happened."""
        return self._words[UNMASKED] != 0

    def note(self) -> None:
        """Python has had to do with an instruction: it looks when the engine comes back."""
        self._words[NOTED] = 1

    def fail(self, error: BaseException) -> None:
        """Keep an error of a device until the slice has ended; it cannot cross native code."""
        self.note()
        if self.fault is None:
            self.fault = error
        self.stop()

    def raise_fault(self) -> None:
        """Raise what `fail` kept, if anything."""
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault

    def keeps_company(self, company: bool) -> None:
        """Whether other cores run as well."""
        self._words[COMPANY] = company

    def code_has_changed(self) -> bool:
        """Whether the program has maintained an instruction cache since the last call."""
        words = self._words
        changed = words[CODE_CHANGED] != 0
        if changed:
            words[CODE_CHANGED], words[MAINTAINED] = 0, NOWHERE
        return changed

    @property
    def code_hook(self) -> int:
        """Host address of what notes that, called at an address."""
        return int(_module()["note_code_change"].address)

    @property
    def maintenance_hook(self) -> int:
        """The function called as `code_hook` for a system instruction of AArch64."""
        return int(_module()["note_maintenance"].address)

    def hook(self, stop_function: int, read_function: int) -> int:
        """Host address of the hook; given the engine's own calls to stop and to read a register."""
        self._state.stop = stop_function
        self._state.read_register = read_function
        return int(_module()["count_block"].address)
