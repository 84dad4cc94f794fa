"""Threads that stay in native code: a function is run by several of them until its work is done.

A *part* is a native function `(shared, number)` that takes pieces of work from a counter in
`shared` until none is left; `number` says which thread it is, 0 for the calling one. Helpers
wait on a condition of the C library and never need Python's lock, so that work of 50 µs is worth
sharing: handing it over in Python takes as long. Native code may call a team, too (`together`).

Linux tends to wake a thread on the processor of the one that wakes it; both then share it, and work
of 200 µs is over before they are separated. So helpers are kept off the processor of the calling
thread until that only waits for them.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from vc4lab.optimisations import PLACED_HELPERS
from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import Array, i32, i64, ptr
from vc4lab.simd.memory import atomic_add, load, store
from vc4lab.simd.native import NativeModule, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const, select

PART_ARGUMENTS = (ptr, i32)
"""Arguments of a part: what is shared, and the number of the thread."""

_SPINS = 10_000
"""Looks at the helpers' count before the processor is given to others between two looks."""
_MASK_WORDS = 16
"""Words of a set of processors, of 64 processors each."""
_MAX_THREADS = 256
"""Threads of a team."""
_C_WORDS = 16
"""Room for a mutex or a condition of any C library."""
_FUNCTIONS = ("mutex_lock", "mutex_unlock", "cond_wait", "cond_signal")


class TeamState(Struct):
    """Holds what the threads of a team share."""

    mutex = Array(i64, _C_WORDS)
    condition = Array(i64, _C_WORDS)
    mutex_lock = ptr  # functions of the C library
    mutex_unlock = ptr
    cond_wait = ptr
    cond_signal = ptr
    give_way = ptr
    together = ptr
    part = ptr
    shared = ptr
    open = i32  # not 0: helpers may take part
    working = i32  # helpers that take part
    wanted = i32  # helpers that have not woken up yet
    helpers = i32  # that there are
    ended = i32
    getcpu = ptr  # 0 where processors cannot be chosen
    setaffinity = ptr
    everywhere = Array(i64, _MASK_WORDS)  # processors of the process
    elsewhere = Array(i64, _MASK_WORDS)  # without that of the calling thread
    apart = i32  # 1 + the processor that helpers are kept off, 0: none
    threads = Array(i32, _MAX_THREADS)  # the kernel's numbers of the helpers


@staged
def _place(t: TeamState, mask: str) -> None:
    """Lets the helpers run on a set of processors."""
    kind = (i32, i64, ptr)
    count = t.helpers
    for k in range(count):
        thread = load(i32, t.threads + 4 * k)
        call_pointer(t.setaffinity, i32, kind, thread, 8 * _MASK_WORDS, t.field_ptr(mask))


@staged
def _part_from(t: TeamState, processor: Value) -> None:
    """Keeps the helpers off a processor."""
    left = const(i64, 0)
    for k in range(_MASK_WORDS):
        word = load(i64, t.everywhere + 8 * k)
        bit = const(i64, 1) << (processor & 63).zext(i64)
        word = select(processor >> 6 == k, word & ~bit, word)
        store(t.elsewhere + 8 * k, word)
        left = left | word
    if left != 0:
        _place(t, "elsewhere")
    t.apart = processor + 1


@kernel(args=(ptr, i32), returns=None)
def serve(team: Value, number: Value) -> None:
    """The loop of a helper thread."""
    t = TeamState.at(team)
    while t.ended == 0:
        call_pointer(t.mutex_lock, i32, (ptr,), t.mutex)
        while t.wanted == 0:
            place = (t.condition, t.mutex)
            call_pointer(t.cond_wait, i32, (ptr, ptr), *place)
        t.wanted = t.wanted - 1
        call_pointer(t.mutex_unlock, i32, (ptr,), t.mutex)
        # counted first: the caller changes nothing from the end of the work to a count of 0
        atomic_add(t.pointer + TeamState.working.offset, 1)
        if (atomic_add(t.pointer + TeamState.open.offset, 0) != 0) & (t.ended == 0):
            call_pointer(t.part, None, PART_ARGUMENTS, t.shared, number)
        atomic_add(t.pointer + TeamState.working.offset, -1)


@kernel(args=(ptr, ptr, ptr, i32), returns=None)
def together(team: Value, part: Value, shared: Value, helpers: Value) -> None:
    """Runs a part in this thread and in as many helpers as wake up before the work is done."""
    t = TeamState.at(team)
    if t.getcpu != 0:
        processor = call_pointer(t.getcpu, i32, ())
        if processor + 1 != t.apart:
            _part_from(t, processor)
    t.part = part
    t.shared = shared
    atomic_add(t.pointer + TeamState.open.offset, 1)
    call_pointer(t.mutex_lock, i32, (ptr,), t.mutex)
    t.wanted = helpers
    asked = helpers
    for _ in range(asked):
        call_pointer(t.cond_signal, i32, (ptr,), t.condition)
    call_pointer(t.mutex_unlock, i32, (ptr,), t.mutex)
    call_pointer(part, None, PART_ARGUMENTS, shared, 0)
    atomic_add(t.pointer + TeamState.open.offset, -1)
    looks = const(i32, 0)
    while atomic_add(t.pointer + TeamState.working.offset, 0) != 0:
        looks = looks + 1
        if looks > _SPINS:
            if t.apart != 0:
                _place(t, "everywhere")
                t.apart = 0
            call_pointer(t.give_way, i32, ())


@lru_cache(maxsize=1)
def _native() -> NativeModule:
    return build("team", {"serve": serve, "together": together}, key="team")


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    """The C library, if it has POSIX threads."""
    try:
        library = ctypes.CDLL(None)
        return library if library.pthread_create else None
    except (AttributeError, OSError, TypeError):
        return None


class Team:
    """Helpers for one calling thread at a time; they start when first needed.

    Parameters
    ----------
    threads
        How many work together at most, the calling one included; one per processor by default.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = min(threads or os.cpu_count() or 1, _MAX_THREADS)
        state = TeamState()
        self.state = state
        self.address: int = state.address
        self._threads: list[threading.Thread] = []
        self._begin: list[Callable[[], None]] = []
        library = _library()
        if library is not None:
            for name in _FUNCTIONS:
                setattr(state, name, _address(getattr(library, f"pthread_{name}")))
            state.give_way = _address(library.sched_yield)
            self._choose_processors(library)
            for kind, member in (("mutex", "mutex"), ("cond", "condition")):
                place = ctypes.c_void_p(self.address + TeamState.offset(member))
                getattr(library, f"pthread_{kind}_init")(place, None)
        weakref.finalize(self, _end, state)

    def _choose_processors(self, library: ctypes.CDLL) -> None:
        """Let helpers choose their processors, where the kernel lets a thread do so (Linux)."""
        if not PLACED_HELPERS.serves():
            return
        if not hasattr(library, "sched_getcpu") or not hasattr(os, "sched_getaffinity"):
            return
        for processor in os.sched_getaffinity(0):
            if processor < 64 * _MASK_WORDS:
                self.state.everywhere[processor >> 6] |= _signed(1 << (processor & 63))
        self.state.getcpu = _address(library.sched_getcpu)
        self.state.setaffinity = _address(library.sched_setaffinity)

    @property
    def helpers(self) -> int:
        """Threads besides the calling one."""
        return len(self._threads)

    def on_first_helper(self, begin: Callable[[], None]) -> None:
        """Calls something before the first helper starts. It must not hold the team."""
        self._begin.append(begin)

    def provide(self, helpers: int) -> int:
        """Starts helpers up to a number, none without POSIX threads. Returns how many there are."""
        if _library() is None:
            return 0
        for begin in self._begin:
            begin()
        self._begin.clear()
        while len(self._threads) < helpers:
            number, state, call = 1 + len(self._threads), self.state, _native()["serve"].call
            self.state.together = _native()["together"].address

            def serve(number: int = number, state: TeamState = state, call: Any = call) -> None:
                call(state.address, number)  # holds nothing that holds the team

            thread = threading.Thread(target=serve, name=f"vc4lab-team-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)
            self.state.threads[number - 1] = thread.native_id
            self.state.apart, self.state.helpers = 0, number
        return len(self._threads)

    def run(self, part: int, shared: int, helpers: int) -> None:
        """Runs the part at an address with so many helpers; no thread is in it afterwards."""
        _native()["together"].call(self.address, part, shared, min(helpers, len(self._threads)))

    def close(self) -> None:
        """Ends the threads. Others start when helpers are wanted again."""
        threads, self._threads = self._threads, []
        self.state.helpers = 0
        if threads:
            _end(self.state)
            for thread in threads:
                thread.join()
            self.state.ended = self.state.wanted = 0


def _signed(word: int) -> int:
    return word - (word >> 63 << 64)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _end(state: TeamState) -> None:
    library = _library()
    if library is None or not state.together:
        return
    mutex, condition = (
        ctypes.c_void_p(state.address + TeamState.offset(name)) for name in ("mutex", "condition")
    )
    library.pthread_mutex_lock(mutex)
    state.ended, state.wanted = 1, 1 << 30
    library.pthread_cond_broadcast(condition)
    library.pthread_mutex_unlock(mutex)
