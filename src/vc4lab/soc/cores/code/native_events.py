"""SEV, SEVL and WFE in native code: cores that share work send thousands of events a second.

The event registers of all cores are bits of one word. A core whose event register is set goes on
after its wfe; else the engine comes back, and the core sleeps (`turns.py`). Python does the same
where a debugger looks, and for the instructions of Thumb code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from unicorn import UC_PROT_READ

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd import (
    Array,
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
    min_,
    ptr,
    select,
    staged,
    store,
    unroll,
)
from vc4lab.soc.cores.code.native_places import NativePlace, PlaceState, go_on_after, host_address
from vc4lab.soc.cores.engine.engine_calls import EngineCalls
from vc4lab.soc.cores.exceptions.exceptions import THUMB
from vc4lab.soc.cores.exceptions.outcome import ExceptionCounts
from vc4lab.soc.native import SliceState, words_of

MOST_CORES = 4
SOON = 5_000
"""Instructions after an event until a core that runs alone gives the others a turn."""
CONDITION = 0xF << 28
WFE_ARM, YIELD_ARM, WFE_WIDE = 0x0320F002, 0x0320F001, 0xD503205F
ON_PARKED = ctypes.CFUNCTYPE(None)
ON_INVALID = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class EventState(Struct):
    """State that the cores of a board share.

    `events` has the event registers, `running` the cores that are not parked, bit n for core n;
    `current` is the number of the core whose turn it is. `calm` counts turns of one core while all
    others rested. `naps` are the rounds for which a waiting core is left alone, `nap` what is left
    of them. `stub` has the cores that the firmware's stub starts at an event: Python hears of each
    event while one of them is parked.
    """

    slice = ptr
    running = i64
    current = i64
    events = i64
    calm = i64
    stub = i64
    others = ptr
    naps = Array(i64, MOST_CORES)
    nap = Array(i64, MOST_CORES)


class CoreEvents(Struct):
    """State of one core's hooks.

    `returns`: exceptions that it had taken at its last wfe, as an exception return is an event.
    `waits`: it has come to a wfe, or a yield (`yields`). `enabled`: native code may go on there.
    """

    shared = ptr
    counts = ptr
    bit = i64
    returns = i64
    waits = i64
    yields = i64
    enabled = i64
    place = i64
    ram = ptr
    others = ptr
    stop = ptr
    translate = ptr
    read_register = ptr
    write_register = ptr
    pc_register = i64
    status_register = i64


def _index(struct: type[Struct], name: str) -> int:
    """A member as `words_of` numbers it."""
    return struct.offset(name) // 8


RUNNING, CURRENT, EVENTS, CALM, STUB = (
    _index(EventState, name) for name in ("running", "current", "events", "calm", "stub")
)
NAPS, NAP = _index(EventState, "naps"), _index(EventState, "nap")
RETURNS, WAITS, YIELDS, ENABLED = (
    _index(CoreEvents, name) for name in ("returns", "waits", "yields", "enabled")
)


@kernel(args=(ptr,))
def send_event(state: Value) -> None:
    """SEV: cores in wfe go on, the others' next wfe does not wait."""
    shared = EventState.at(state)
    core = SliceState.at(shared.slice)
    if shared.calm != 0:
        shared.calm = 0
        core.limit = min_(core.limit, core.count + SOON)
    running = shared.running
    shared.events = shared.events | running
    for number in unroll(MOST_CORES):
        for name in ("naps", "nap"):
            place = shared.pointer + EventState.offset(name) + 8 * number
            runs = ((running >> number) & 1) != 0
            store(place, select(runs, const(i64, 0), load(i64, place)))
    if (shared.stub & (running ^ -1)) != 0:
        call_pointer(shared.others, None, ())


@kernel(args=(ptr, i64, i32, ptr))
def _meet_sev(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's hook before SEV."""
    call(send_event, CoreEvents.at(state).shared)


@kernel(args=(ptr, i64, i32, ptr))
def _meet_sevl(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's hook before SEVL: an event for the core itself."""
    core = CoreEvents.at(state)
    shared = EventState.at(core.shared)
    shared.events = shared.events | core.bit


@kernel(args=(ptr, i64, i32, ptr))
def _meet_short_sev(engine: Value, address: Value, size: Value, state: Value) -> None:
    """Do a SEV of Thumb code, whose half word may be part of an ARM instruction."""
    if size == 2:
        call(send_event, CoreEvents.at(state).shared)


@kernel(args=(ptr, i64, i32, ptr))
def _meet_short_sevl(engine: Value, address: Value, size: Value, state: Value) -> None:
    """Do a SEVL of Thumb code, as `_meet_short_sev`."""
    if size == 2:
        call(_meet_sevl, engine, address, size, state)


@staged
def _comes_to_wait(core: CoreEvents) -> Value:
    """Whether a core sleeps in its wfe; if not, it has taken the event that lets it go on.

    Where the slice is to end in any case, or the masks are no longer what they were, Python looks.
    """
    shared = EventState.at(core.shared)
    slice_ = SliceState.at(shared.slice)
    taken = ExceptionCounts.at(core.counts).taken
    event = ((shared.events & core.bit) != 0) | (taken != core.returns)
    in_time = (slice_.count < slice_.limit) & (slice_.count < slice_.end)
    sleeps = const(i1, 1)
    if (core.enabled != 0) & event & in_time & (slice_.unmasked == 0):
        shared.events = shared.events & (core.bit ^ -1)
        core.returns = taken
        sleeps = const(i1, 0)
    return sleeps


@staged
def _stop(engine: Value, core: CoreEvents, yields: Value) -> None:
    """The engine comes back, and Python finds the core waiting."""
    core.waits = 1
    core.yields = yields.zext(i64)
    call_pointer(core.stop, i32, (ptr,), engine)


@kernel(args=(ptr, ptr), returns=i32)
def _meet_invalid(engine: Value, state: Value) -> Value:
    """The engine's hook at what it cannot execute in AArch32, WFE and YIELD among it."""
    core = CoreEvents.at(state)
    place = core.pointer + CoreEvents.place.offset
    read = (ptr, i32, ptr)
    core.place = 0
    status = core.status_register.trunc(i32)
    call_pointer(core.read_register, i32, read, engine, status, place)
    thumb = (core.place & THUMB) != 0
    core.place = 0
    call_pointer(core.read_register, i32, read, engine, core.pc_register.trunc(i32), place)
    before = core.place - 4
    translate = (ptr, i64, i32, ptr)
    right = const(i32, UC_PROT_READ)
    failed = call_pointer(core.translate, i32, translate, engine, before, right, place)
    word = const(i32, 0)
    if (failed == 0) & (thumb == 0):
        word = load(i32, core.ram + (core.place & MEMORY_MASK)) & ~CONDITION
    done = const(i32, 1)
    if word == WFE_ARM:
        if _comes_to_wait(core):
            _stop(engine, core, const(i1, 0))
    elif word == YIELD_ARM:
        _stop(engine, core, const(i1, 1))
    else:
        done = call_pointer(core.others, i32, (ptr, ptr), engine, state)
    return done


@kernel(args=(ptr, i64, i32, ptr))
def _meet_wfe(engine: Value, address: Value, size: Value, state: Value) -> None:
    """The engine's hook before WFE in AArch64, which it takes for a nop."""
    place = PlaceState.at(state)
    core = CoreEvents.at(place.owner)
    if load(i32, place.code) == WFE_WIDE:
        if _comes_to_wait(core):
            slice_ = SliceState.at(EventState.at(core.shared).slice)
            scratch = core.pointer + CoreEvents.place.offset
            register = core.pc_register.trunc(i32)
            go_on_after(engine, slice_, address, core.write_register, register, scratch)
            _stop(engine, core, const(i1, 0))
    else:
        call_pointer(place.other, None, (ptr, i64, i32, ptr), engine, address, size, state)


@cache
def _hooks() -> Any:
    functions = {
        "send_event": send_event,
        "sev": _meet_sev,
        "sevl": _meet_sevl,
        "short sev": _meet_short_sev,
        "short sevl": _meet_short_sevl,
        "invalid": _meet_invalid,
        "wfe": _meet_wfe,
    }
    return build("soc_events", functions, float_mode="default", key="soc-events")


class Events:
    """The event registers of a board's cores.

    Attributes
    ----------
    words
        The members of the `EventState`.
    """

    def __init__(self, slice_state: int, parked: Callable[[], object]) -> None:
        self._python = ON_PARKED(lambda: (parked(), None)[1])
        self._state = EventState(slice=slice_state, others=host_address(self._python))
        self.words = words_of(self._state)
        self.address: int = self._state.address

    def send(self) -> None:
        """SEV"""
        _hooks()["send_event"](self.address)


class NativeEvents:
    """The hooks of one core."""

    def __init__(
        self,
        shared: int,
        number: int,
        counts: ExceptionCounts,
        calls: EngineCalls,
        registers: tuple[int, int],
        ram: int,
        invalid: Callable[[], bool],
    ) -> None:
        self._counts = counts
        self._python = ON_INVALID(lambda *_details: invalid())
        pc, status = registers
        self._state = CoreEvents(
            shared=shared,
            counts=counts.address,
            bit=1 << number,
            ram=ram,
            others=host_address(self._python),
            stop=calls.address_of("uc_emu_stop"),
            translate=calls.address_of("uc_vmem_translate"),
            read_register=calls.address_of("uc_reg_read"),
            write_register=calls.address_of("uc_reg_write"),
            pc_register=pc,
            status_register=status,
        )
        self.words = words_of(self._state)
        self.address: int = self._state.address

    def _hook(self, name: str) -> tuple[int, int]:
        return int(_hooks()[name].address), self._state.address

    def sev(self, *, short: bool) -> tuple[int, int]:
        """For the engine: host addresses of the function for SEV and of its state.

        short: the instruction is Thumb code, of 16 bits.
        """
        return self._hook("short sev" if short else "sev")

    def sevl(self, *, short: bool) -> tuple[int, int]:
        """The hook of SEVL, as `sev`."""
        return self._hook("short sevl" if short else "sevl")

    @property
    def invalid(self) -> tuple[int, int]:
        """The hook of words that cannot be executed."""
        return self._hook("invalid")

    def wfe(self, code: int, python: Callable[[int, int], None]) -> NativePlace:
        """A WFE of AArch64, whose word is at this host address."""
        return NativePlace(*self._hook("wfe"), code, python)
