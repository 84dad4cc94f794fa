"""Loads of a core from memory that the GPU is still writing: on a board they find old bytes.

The V3D's work is done when it is started, its time passes afterwards (`v3d/progress.py`). While
that lasts, the engine does not keep the pages written in its TLB, so that it asks for their
addresses at each access: there the address is compared with what is written. The functions that
fill the TLB are replaced for that (`engine_patches.py`); it costs nothing while nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.simd import (
    Array,
    Function,
    Struct,
    Value,
    call,
    call_pointer,
    const,
    i8,
    i32,
    i64,
    imported,
    kernel,
    load,
    ptr,
    staged,
    store,
)
from vc4lab.soc.address.polling import guest_time
from vc4lab.soc.clock import TimeState
from vc4lab.soc.native import SliceState

MOST = 16
"""Ranges that are written at the same time; more are not looked at."""
EVENTS = 32
"""Loads that are kept until the writer's time is over."""
LOAD, FETCH, NONE = 0, 2, -1
"""Why the TLB is filled, as the engine has it; not by an access."""
PAGE = 4096
PART_OF_PAGE = 1
"""Size of a mapping that the engine looks up at each access, because it is less than a page."""


class EarlyState(Struct):
    """Ranges of guest memory that are written (`count`), the access at hand, and loads so far."""

    count = i64
    kind = i64
    virtual = i64
    bytes = i64
    slice = ptr
    time = ptr
    events = i64
    starts = Array(i64, MOST)
    ends = Array(i64, MOST)
    loads = Array(i64, EVENTS)
    blocks = Array(i64, EVENTS)
    moments = Array(i64, EVENTS)


@kernel(args=(ptr, i64), returns=i64)
def look(state: Value, physical: Value) -> Value:
    """An address is entered in the TLB: whether its page is to be looked up at each access."""
    early = EarlyState.at(state)
    kind = early.kind
    page = physical & (MEMORY_MASK & -PAGE)
    at = page | (early.virtual & (PAGE - 1))
    size = early.bytes
    near = const(i64, 0)
    found = const(i64, 0)
    for number in range(early.count):
        start = load(i64, early.pointer + EarlyState.starts.offset + number * 8)
        end = load(i64, early.pointer + EarlyState.ends.offset + number * 8)
        if (start < page + PAGE) & (end > page):
            near = const(i64, 1)
            if (start < at + size) & (end > at):
                found = const(i64, 1)
    if (found != 0) & (kind == LOAD) & (early.events < EVENTS):
        place = early.events * 8
        core, time = SliceState.at(early.slice), TimeState.at(early.time)
        store(early.pointer + EarlyState.loads.offset + place, at)
        store(early.pointer + EarlyState.blocks.offset + place, core.block)
        store(early.pointer + EarlyState.moments.offset + place, guest_time(time, core.count))
        early.events = early.events + 1
    early.kind = NONE
    if kind == FETCH:
        near = const(i64, 0)
    return near


FILL = (ptr, i64, i32, i32, i32, i32, i64)
"""Processor, address, size, why, MMU index, whether it must not fault, where it comes from."""


@staged
def fill(name: str, core_state: Callable[[Value], Value], arguments: tuple[Value, ...]) -> Value:
    """Instead of arm_cpu_tlb_fill: note the access."""
    state = core_state(arguments[0])
    if state != 0:
        early = EarlyState.at(state)
        early.kind = arguments[3].sext(i64)
        early.virtual = arguments[1]
        early.bytes = arguments[2].sext(i64)
    return call_pointer(imported(name, i8, FILL), i8, FILL, *arguments)


@staged
def enter(name: str, word: Any, core_state: Callable[[Value], Value], arguments: tuple[Value, ...]) -> None:
    """Instead of tlb_set_page_with_attrs; `word`: the type of a virtual address."""
    *others, size = arguments
    state = core_state(arguments[0])
    if state != 0:
        if EarlyState.at(state).count != 0:
            if call(look, state, arguments[2]) != 0:
                size = const(word, PART_OF_PAGE)
    types = enter_types(word)
    call_pointer(imported(name, None, types), None, types, *others, size)


def enter_types(word: Any) -> tuple[Any, ...]:
    """Processor, virtual and physical address, attributes, rights, MMU index, size."""
    return (ptr, word, i64, i32, i32, i32, word)


def functions(core_state: Callable[[Value], Value]) -> dict[str, Function[Any]]:
    """The engine's functions that are replaced; `core_state`: finds a processor's `EarlyState`, or 0."""

    def fill_of(name: str) -> Function[Any]:
        return Function(FILL, i8, lambda *values: fill(name, core_state, values), name)

    def enter_of(name: str, word: Any) -> Function[None]:
        return Function(enter_types(word), None, lambda *values: enter(name, word, core_state, values), name)

    found: dict[str, Function[Any]] = {}
    for suffix, word in (("arm", i32), ("aarch64", i64)):
        name = f"arm_cpu_tlb_fill_{suffix}"
        found[name] = fill_of(name)
        name = f"tlb_set_page_with_attrs_{suffix}"
        found[name] = enter_of(name, word)
    return found


class Written(NamedTuple):
    """A range that is written until a moment (ns) by `who`."""

    start: int
    end: int
    until: int
    who: str


class EarlyReads:
    """Watches memory that the GPU of one machine still writes.

    Parameters
    ----------
    counter, clock
        Host addresses of the `SliceState` and the `TimeState`.
    empty
        Empties the TLBs of the cores.
    end
        Where the cores see something else than RAM.
    """

    def __init__(
        self, counter: int, clock: int, empty: Callable[[], None], reporter: Reporter, end: int = MEMORY_SIZE
    ) -> None:
        self._end = end
        self._state = EarlyState(kind=NONE, slice=counter, time=clock)
        self.address: int = self._state.address
        """Host address of the `EarlyState`."""
        self._empty = empty
        self._reporter = reporter
        self._written: list[Written] = []
        self._told: set[str] = set()

    def begin(self, who: str, spans: Iterable[tuple[int, int]], now: int, until: int) -> None:
        """`who` writes these ranges (start and end) from now on, until a moment."""
        self.look(now)
        if until <= now or who in self._told:
            return
        self._written += [Written(start, end, until, who) for start, end in spans if end <= self._end]
        self._enter()
        self._empty()

    def look(self, now: int) -> None:
        """Report what was loaded too early, and forget what is written by now."""
        if not self._written:
            return
        state = self._state
        for number in range(state.events):
            self._meet(state.loads[number], state.blocks[number], state.moments[number])
        state.events = 0
        left = [one for one in self._written if one.until > now and one.who not in self._told]
        if len(left) != len(self._written):
            self._written = left
            self._enter()

    def _enter(self) -> None:
        state, written = self._state, self._written[-MOST:]
        for number, one in enumerate(written):
            state.starts[number], state.ends[number] = one.start, one.end
        state.count = len(written)

    def _meet(self, address: int, block: int, moment: int) -> None:
        for one in self._written:
            early = one.until - moment
            if one.start - 8 < address < one.end and early > 0 and one.who not in self._told:
                self._told.add(one.who)
                self._reporter.report(
                    "SOC-114",
                    f"0x{address:08x} is read, where {one.who} writes for {-(-early // 1000)} us more; "
                    "the program did not wait",
                    address=block & (1 << 64) - 1,
                    block="cpu",
                )


def spans_of(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Start and end in RAM of ranges given by bus address and size."""
    return [(start & MEMORY_MASK, (start & MEMORY_MASK) + size) for start, size in ranges if size > 0]
