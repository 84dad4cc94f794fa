"""System calls and page faults of AArch64 programs: taken by native code, within the engine.

Linux lives on these two exceptions from EL0 to EL1, and Python needs fifteen microseconds for each.
All others, and these where something has to be said about them, are left to Python, which does the
same with the same registers (`arm64.py`, `arm64_entry.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from unicorn import UC_PROT_READ
from unicorn import arm64_const as a64

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Struct,
    Value,
    build,
    call,
    call_pointer,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    nested,
    ptr,
    select,
    staged,
    store,
)
from vc4lab.soc.cores.engine.engine_calls import (
    FAULT_ADDRESS_AT,
    SYNDROME_AT,
    EngineCalls,
    Name,
    RegisterBatch,
)
from vc4lab.soc.cores.exceptions.arm64_entry import (
    ELR,
    ESR,
    FAR,
    FLAGS,
    HCR,
    LOWER,
    MASKED,
    SCTLR,
    SPSR,
    STACK,
    VBAR,
)
from vc4lab.soc.cores.exceptions.exceptions import (
    ENGINE_DATA,
    ENGINE_PREFETCH,
    ENGINE_SVC,
    HCR_TGE,
    INSTRUCTIONS_PER_EXCEPTION,
    SCTLR_M,
)
from vc4lab.soc.cores.exceptions.outcome import FAULT_DISTANCE, ExceptionCounts
from vc4lab.soc.native import SliceState

EC_SVC, EC_PREFETCH, EC_DATA = 0x15, 0x20, 0x24
"""Classes in ESR."""
IL = 1 << 25
PROGRAM, SYSTEM = 0, 1 << 2 | 1
"""Mode bits of PSTATE: EL0, and EL1 with its own stack pointer."""
MODE = 0x1F
INSTRUCTION = 4
ON_EXCEPTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
BEFORE: tuple[Name, ...] = (
    *(a64.UC_ARM64_REG_PC, a64.UC_ARM64_REG_PSTATE, a64.UC_ARM64_REG_SP),
    *(HCR, VBAR[1], SCTLR[1], STACK[1]),
)
AFTER: tuple[Name, ...] = (
    *(ELR[1], SPSR[1], ESR[1], STACK[0], a64.UC_ARM64_REG_SP, a64.UC_ARM64_REG_PSTATE),
    *(VBAR[1], a64.UC_ARM64_REG_PC),  # a system register after PSTATE: the engine looks at it then
)
AFTER_FAULT = (FAR[1], *AFTER)


class Batch(Struct):
    """A `RegisterBatch` as native code uses it."""

    numbers = ptr
    places = ptr
    values = ptr
    count = i64


class EntryState(Struct):
    """State of one core's hook."""

    slice = ptr
    counts = ptr
    enabled = i64
    others = ptr
    read = ptr
    write = ptr
    translate = ptr
    save = ptr
    ram = ptr
    context = ptr
    place = i64
    before = nested(Batch)
    svc = nested(Batch)
    fault = nested(Batch)


@staged
def _values(batch: Batch, first: Any) -> Any:
    """The address of the value of a register in a batch."""
    return batch.values + first * RegisterBatch.STEP


@staged
def _change(entry: EntryState, engine: Value, batch: Batch, values: list[Value]) -> None:
    """Write all registers of a batch."""
    for slot, value in enumerate(values):
        store(_values(batch, slot), value)
    count = batch.count.trunc(i32)
    write = (ptr, ptr, ptr, i32)
    call_pointer(entry.write, i32, write, engine, batch.numbers, batch.places, count)


@staged
def _immediate(entry: EntryState, engine: Value, address: Value) -> Value:
    """The number in the svc at an address, as `Arm64` reads it."""
    place = entry.pointer + EntryState.place.offset
    translate = (ptr, i64, i32, ptr)
    right = const(i32, UC_PROT_READ)
    failed = call_pointer(entry.translate, i32, translate, engine, address, right, place)
    found = const(i32, 0)
    if failed == 0:
        found = load(i32, entry.ram + (entry.place & MEMORY_MASK))
    return (found.shr(5) & 0xFFFF).zext(i64)


@kernel(args=(ptr, i32, ptr), returns=i1)
def enter_system(engine: Value, number: Value, state: Value) -> Value:
    """Go from a program to EL1's vector; False if Python has to, with nothing changed."""
    entry = EntryState.at(state)
    core = SliceState.at(entry.slice)
    counts = ExceptionCounts.at(entry.counts)
    before = entry.before
    wanted = before.count.trunc(i32)
    read = (ptr, ptr, ptr, i32)
    call_pointer(entry.read, i32, read, engine, before.numbers, before.places, wanted)
    pc, status, stack, routing, base, control, system_stack = (
        load(i64, _values(before, slot)) for slot in range(len(BEFORE))
    )
    vector = base + LOWER
    is_call = number == ENGINE_SVC
    executed = core.count + INSTRUCTIONS_PER_EXCEPTION
    rare = is_call | (executed - counts.last >= FAULT_DISTANCE)
    plain = ((status & MODE) == PROGRAM) & ((routing & HCR_TGE) == 0)
    plain = plain & ((control & SCTLR_M) != 0) & (pc != vector) & rare
    if plain:
        new = status & FLAGS | MASKED | SYSTEM
        if is_call:
            cause = _immediate(entry, engine, pc - INSTRUCTION) | EC_SVC << 26 | IL
            stacks = [stack, system_stack, new, base, vector]
            _change(entry, engine, entry.svc, [pc, status, cause, *stacks])
        else:
            call_pointer(entry.save, i32, (ptr, ptr), engine, entry.context)
            kind = select(number == ENGINE_DATA, const(i64, EC_DATA << 26), const(i64, EC_PREFETCH << 26))
            known = load(i32, entry.context + SYNDROME_AT).zext(i64)
            cause = kind | IL | known & (IL - 1)
            address = load(i64, entry.context + FAULT_ADDRESS_AT)
            stacks = [stack, system_stack, new, base, vector]
            _change(entry, engine, entry.fault, [address, pc, status, cause, *stacks])
            counts.last = executed
            counts.row = 0
        core.count = executed
        core.spins = 0
        counts.taken = counts.taken + 1
    return plain


@kernel(args=(ptr, i32, ptr))
def take_exception(engine: Value, number: Value, state: Value) -> None:
    """The engine's hook at an exception."""
    entry = EntryState.at(state)
    is_fault = (number == ENGINE_PREFETCH) | (number == ENGINE_DATA)
    known = (number == ENGINE_SVC) | (is_fault & (entry.context != 0))
    done = const(i1, 0)
    if known & (entry.enabled != 0):
        done = call(enter_system, engine, number, state)
    if done == 0:
        call_pointer(entry.others, None, (ptr, i32, ptr), engine, number, state)


@cache
def _module() -> Any:
    kernels = {"take_exception": take_exception}
    return build("soc_entry", kernels, float_mode="default", key="soc-entry")


def batch_members(batch: RegisterBatch) -> dict[str, int]:
    """The members of a `Batch` for a `RegisterBatch`."""
    numbers, places, values, count = batch.addresses
    return {"numbers": numbers, "places": places, "values": values, "count": count}


class NativeEntry:
    """The exceptions of one core.

    Parameters
    ----------
    slice_state, ram
        Host addresses of the `SliceState` and of the guest's RAM.
    python
        Called with the engine's number of an exception that native code does not take.
    """

    def __init__(
        self,
        calls: EngineCalls,
        slice_state: int,
        ram: int,
        counts: ExceptionCounts,
        python: Callable[[int], None],
    ) -> None:
        self._counts = counts
        self._python = ON_EXCEPTION(lambda _engine, number, _state: python(number))
        self._batches = [
            calls.batch(a64.UC_ARM64_REG_CP_REG, names) for names in (BEFORE, AFTER, AFTER_FAULT)
        ]
        self._state = EntryState(
            slice=slice_state,
            counts=counts.address,
            others=ctypes.cast(self._python, ctypes.c_void_p).value,
            read=calls.address_of("uc_reg_read_batch"),
            write=calls.address_of("uc_reg_write_batch"),
            translate=calls.address_of("uc_vmem_translate"),
            save=calls.address_of("uc_context_save"),
            ram=ram,
            context=calls.context,
        )
        parts = self._state.before, self._state.svc, self._state.fault
        for part, batch in zip(parts, self._batches, strict=True):
            for name, value in batch_members(batch).items():
                setattr(part, name, value)

    def allow(self, allowed: bool) -> None:
        """Whether native code may take exceptions: no one wants to know of each."""
        self._state.enabled = allowed

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function and of its state."""
        return int(_module()["take_exception"].address), self._state.address
