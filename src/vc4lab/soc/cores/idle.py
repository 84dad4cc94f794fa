"""Notices a CPU that runs in a loop and changes nothing: it waits for memory to change.

Only an interrupt handler can end such a wait, so time may skip to the next event; and if no
interrupt can come, the program hangs. Native rounds look here, too (`native_turns.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from vc4lab.simd import (
    Array,
    Struct,
    Value,
    build,
    call_pointer,
    const,
    i1,
    i32,
    i64,
    kernel,
    load,
    nested,
    ptr,
    staged,
    store,
    unroll,
)
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.engine.engine_calls import RegisterBatch
from vc4lab.soc.cores.exceptions.native_entry import Batch, batch_members
from vc4lab.soc.native import LONG, words_of

PLACES = 8
"""Places of the loop that are remembered."""
WAITS = 3
"""Slices that end with registers seen before make a waiting CPU."""
HANGS = 200
"""After this many in a row the CPU counts as waiting forever."""
MOST_REGISTERS = 40


class IdlePlace(Struct):
    """The registers at a PC."""

    pc = i64
    values = Array(i64, MOST_REGISTERS)


class IdleState(Struct):
    """Compared with each other: `known` places of the loop, `again` times in a row the same there."""

    engine = ptr
    read = ptr
    registers = nested(Batch)
    again = i64
    known = i64
    places = Array(IdlePlace, PLACES)


AGAIN, KNOWN = IdleState.again.offset // 8, IdleState.known.offset // 8
FIRST, PLACE_WORDS = IdleState.offset("places") // 8, IdlePlace.size // 8


@staged
def forget(idle: IdleState) -> None:
    """The CPU is doing something."""
    idle.again, idle.known = 0, 0


@kernel(args=(ptr, i64, i1), returns=i1)
def look(state: Value, pc: Value, holds_back: Value) -> Value:
    """A slice without device accesses has ended at `pc`.

    `holds_back`: nothing is noted, and the result is True, if the CPU would then seem to wait.
    """
    idle = IdleState.at(state)
    batch = idle.registers
    count, read = batch.count, (ptr, ptr, ptr, i32)
    call_pointer(idle.read, i32, read, idle.engine, batch.numbers, batch.places, count.trunc(i32))
    known: Any = idle.known
    at: Any = idle.places
    found = const(i64, 0)
    for slot in unroll(PLACES):
        place = idle.places + slot * IdlePlace.size
        if (known > slot) & (load(i64, place) == pc):
            at = place
            found = const(i64, 1)
    same = found != 0
    index: Any = const(i64, 0)
    while same & (index < count):
        value = load(i64, batch.values + index * RegisterBatch.STEP)
        same = load(i64, at + 8 + index * 8) == value
        index = index + 1
    waits = same & holds_back & (idle.again + 1 >= WAITS)
    if waits == 0:
        if same:
            idle.again = idle.again + 1
        else:
            idle.again = 0
            if (found != 0) | (known >= PLACES):
                known = const(i64, 0)
            at = idle.places + known * IdlePlace.size
            store(at, pc)
            index = const(i64, 0)
            while index < count:
                store(at + 8 + index * 8, load(i64, batch.values + index * RegisterBatch.STEP))
                index = index + 1
            idle.known = known + 1
    return waits


@cache
def _look() -> Any:
    return build("soc_idle", {"look": look}, float_mode="default", key="soc-idle")["look"]


class IdleLoop:
    """Compares the registers at the ends of slices without device accesses."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self._state = IdleState(engine=cpu.calls.handle, read=cpu.calls.address_of("uc_reg_read_batch"))
        for name, value in batch_members(cpu.state_batch).items():
            setattr(self._state.registers, name, value)
        self.address: int = self._state.address
        """Host address of the `IdleState`."""
        self._words = words_of(self._state)

    def look(self, touched: bool) -> None:
        """A slice has ended; `touched`: with device accesses or exceptions in it."""
        if touched:
            self.forget()
        else:
            _look()(self.address, self._cpu.pc, False)

    def look_again(self) -> None:
        """A slice would have ended in the same state as the one before."""
        self._words[AGAIN] += 1

    def forget(self) -> None:
        """The CPU is doing something."""
        self._words[AGAIN] = self._words[KNOWN] = 0

    @property
    def waits(self) -> bool:
        """Whether the CPU seems to wait."""
        return self._words[AGAIN] >= WAITS

    @property
    def hangs(self) -> bool:
        """Whether it would never do anything else by itself."""
        return self._words[AGAIN] >= HANGS

    # -- saved states ------------------------------------------------------------------------------

    @property
    def again(self) -> int:
        """How often in a row the registers were the same."""
        return self._words[AGAIN]

    @property
    def places(self) -> list[tuple[int, list[int]]]:
        """The places of the loop, with the registers there."""
        words, size = self._words, int(self._state.registers.count)
        starts = [FIRST + PLACE_WORDS * index for index in range(words[KNOWN])]
        return [
            (words[at] & LONG, [value & LONG for value in words[at + 1 : at + 1 + size]]) for at in starts
        ]

    def restore(self, again: int, places: list[tuple[int, list[int]]]) -> None:
        """Set both, as they were saved: `PLACES` and `MOST_REGISTERS` at most."""
        words = self._words
        words[AGAIN], words[KNOWN] = again, len(places)
        for index, (pc, registers) in enumerate(places):
            at = FIRST + PLACE_WORDS * index
            padded = registers + [0] * (MOST_REGISTERS - len(registers))
            for offset, value in enumerate((pc, *padded)):
                words[at + offset] = value - (value >> 63 << 64)
