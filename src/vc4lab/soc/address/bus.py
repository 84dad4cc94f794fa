"""The bus: finds the register at an address, and lets time go on for programs that poll.

A program that reads the same few registers over and over without writing anything waits for
something: then guest time skips ahead, by how much is said by the register's `Poll`. Counting and
skipping are native (`native_bus.py`), and so are the answers of polled registers; the handlers of
the blocks are called from there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.listeners import Listeners, Subscription
from vc4lab.registers import Poll, Rate
from vc4lab.soc.address.absent import not_modelled
from vc4lab.soc.address.block import Block
from vc4lab.soc.address.block_map import BlockMap
from vc4lab.soc.address.native_bus import (
    AGAIN,
    ALWAYS,
    ANSWERS,
    ASK,
    TIMED,
    WAITING,
    Answer,
    BusState,
    answer_slot,
    functions,
)
from vc4lab.soc.address.polling import NO_REGISTER, OWN_TIME, CoreRegisters
from vc4lab.soc.address.polls import Polls, polled_last
from vc4lab.soc.clock import FAR, Clock
from vc4lab.soc.native import words_of

SOON_STEP = 20_000
"""Nanoseconds per read of a polled status register of which no event is known."""
INPUT_STEP = 100_000
"""Nanoseconds per look whether something was typed."""
STEPS = {Poll.TIME: TIMED, Poll.EVENT: FAR, Poll.SOON: SOON_STEP, Poll.INPUT: INPUT_STEP, Poll.DATA: 0}
ASK_READ = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32)
ASK_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_uint64)
WORD = 0xFFFFFFFF
LARGEST = (1 << 62) - 1
REGISTERS = BusState.registers.offset // 8
STEP, ANSWERS_AT = BusState.step.offset // 8, BusState.answers.offset // 8
ANSWER_WORDS = Answer.size // 8
REGISTER, GENERATION, VALUE, ANSWER_STEP, UNTIL = (
    getattr(Answer, name).offset // 8 for name in ("register", "generation", "value", "step", "until")
)
"""Members of the state and of an answer, as `words_of` numbers them."""


class Polled(NamedTuple):
    """A register that a program reads again and again: its name, its offset, what it waits for."""

    name: str
    offset: int
    kind: Poll


def _shared(name: str, doc: str) -> Any:
    """A member of the `BusState` as an attribute."""
    index = BusState.offset(name) // 8

    def get(bus: Bus) -> int:
        return bus._words[index]

    def put(bus: Bus, value: int) -> None:
        bus._words[index] = max(-LARGEST, min(value, LARGEST))

    return property(get, put, doc=doc)


class RegisterAccess(NamedTuple):
    """A register was read, or is about to be written, by a program, the DMA or a debugger."""

    offset: int
    """In the window of its bus."""
    value: int
    is_write: bool


class Bus:
    """A window of physical address space with register blocks in it.

    Parameters
    ----------
    base
        Physical address of the window.
    name
        For messages.
    beside
        Another bus of the same cores: what is polled on both is polled together.

    Attributes
    ----------
    polls
        What the core polls.
    blocks
        Offset and block, as they were attached.
    """

    def __init__(
        self, base: int, name: str, clock: Clock, reporter: Reporter, beside: Bus | None = None
    ) -> None:
        self.base = base
        self.name = name
        self.clock = clock
        self.reporter = reporter
        self._map = BlockMap()
        self.blocks = self._map.blocks
        self._reads, self._writes = self._map.reads, self._map.writes
        self._timers: set[int] = set()
        """Offsets of the registers that are read to see the time."""
        self._timed: dict[int, Block] = {}
        """Offset → block of the registers that change by themselves at a known moment."""
        self._accessed: Listeners[RegisterAccess] = Listeners()
        self.asks_about_input = True
        """Whether a program that polls for typed bytes hears of them at once, not only at the
        next event; guest time is the same."""
        self._callbacks = ASK_READ(self._answer_read), ASK_WRITE(self._answer_write)
        read, write = (ctypes.cast(call, ctypes.c_void_p).value for call in self._callbacks)
        self.polls: Polls = Polls(clock) if beside is None else beside.polls
        self._state = BusState(
            last=NO_REGISTER,
            base=base,
            polling=self.polls.address,
            slice=clock.counter.address,
            time=clock.address,
            ask_read=read,
            ask_write=write,
        )
        self.address: int = self._state.address
        """Host address of the `BusState`."""
        self._words = words_of(self._state)
        self._forget_answers()
        self._native = functions()
        self._native_read = self._native["read"]
        self._native_write = self._native["write"]

    def look_at(self, registers: CoreRegisters) -> None:
        """Find the integer registers of the cores there, so that a loop that counts is noticed."""
        self._registers = registers
        self._words[REGISTERS] = registers.address

    def attach(self, block: Block, offset: int | None = None) -> None:
        """Put a block at `offset` of the window (its own `OFFSET` if None)."""
        start = block.OFFSET if offset is None else offset
        self._map.attach(start, block)
        for at, rate in block.rates.items():
            self._enter_rate(start + at, rate)
        self._timers.update(start + at for at in block.timers)
        self._timed.update((start + at, block) for at in block.timed)

    def watch(self, call: Callable[[RegisterAccess], object]) -> Subscription[RegisterAccess]:
        """`call` with each access from now on: a read after it, a write before it.

        No read is answered by native code any more; guest time stays the same.
        """
        self._forget_answers()
        return self._accessed.subscribe(call)

    @property
    def is_watched(self) -> bool:
        """Whether each access is to be seen."""
        return bool(self._accessed.subscriptions)

    @property
    def native_window(self) -> tuple[int, int, int]:
        """For the engine: host addresses of the functions for reads and writes, and their state."""
        return self._native_read.address, self._native_write.address, self.address

    # -- the CPU's side ----------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """A read of `size` bytes at `offset` of the window, as the CPU does it."""
        value: int = self._native_read(None, offset, size, self.address)
        self.clock.counter.raise_fault()
        return value & ((1 << 8 * size) - 1)

    def write(self, offset: int, size: int, value: int) -> None:
        """A write of `size` bytes at `offset` of the window; a part of a word zeroes the rest."""
        self._native_write(None, offset, size, value, self.address)
        self.clock.counter.raise_fault()

    def _answer_read(self, offset: int, told: int) -> int:
        """A read that native code cannot answer; `told`: whether the program waits, reads again."""
        try:
            if offset in self._timers:
                self._native["timer"](self.address, offset, told)
                self._words[STEP] = TIMED
            elif told & WAITING:
                self._words[STEP] = STEPS[self._poll_kind(offset)]
            handler = self._reads.get(offset)
            value = handler() if handler is not None else self._read_other(offset)
            until = FAR if offset not in self._timed else self._timed[offset].changes_at
            if told & WAITING and until != FAR:
                self._words[STEP] = min(self._words[STEP], max(until - self.clock.now, 0))
            if self._accessed.subscriptions:
                self._accessed.emit(RegisterAccess(offset, value, is_write=False))
            elif told & AGAIN or until != FAR:
                self._keep_answer(offset, value, until)
            return value
        except BaseException as error:
            self.clock.counter.fail(error)
            return 0

    def _answer_write(self, offset: int, value: int) -> None:
        try:
            self._deliver(offset, value)
        except BaseException as error:
            self.clock.counter.fail(error)

    def _read_other(self, offset: int) -> int:
        if self._map.open(offset) and offset in self._reads:
            return self._reads[offset]()
        owner = self._map.owner(offset)
        if owner is not None:
            return owner[0].read_other(owner[1])
        self._nobody("read of", offset)
        return 0

    def _nobody(self, what: str, offset: int) -> None:
        self.reporter.report(
            "SOC-001",
            f"{what} {not_modelled(offset & ~0xFFF)} ({self.name} + 0x{offset & ~0xFFF:06x})",
            address=self.base + (offset & ~0xFFF),
            block="bus",
        )

    def peek(self, offset: int) -> int:
        """The register's value, without side effects of polling (a read may still take data)."""
        if offset == OWN_TIME:
            return 0
        self.clock.something_happened()
        handler = self._reads.get(offset)
        value = handler() if handler is not None else self._read_other(offset)
        if self._accessed.subscriptions:
            self._accessed.emit(RegisterAccess(offset, value, is_write=False))
        return value

    def poke(self, offset: int, value: int) -> None:
        """A write that is not the CPU's: the DMA's."""
        self.clock.something_happened()
        self._deliver(offset, value)

    def _deliver(self, offset: int, value: int) -> None:
        if self._accessed.subscriptions:
            self._accessed.emit(RegisterAccess(offset, value, is_write=True))
        handler = self._writes.get(offset)
        if handler is not None:
            handler(value)
        else:
            self._write_other(offset, value)

    def _write_other(self, offset: int, value: int) -> None:
        if self._map.open(offset) and offset in self._writes:
            self._writes[offset](value)
            return
        owner = self._map.owner(offset)
        if owner is not None:
            owner[0].write_other(owner[1], value)
        else:
            self._nobody("write to", offset)

    # -- native answers ----------------------------------------------------------------------------

    def _keep_answer(self, offset: int, value: int, until: int) -> None:
        """Let native code answer this register until something happens, if its value stays."""
        if offset not in self._map.steady:
            owner = self._map.owner(offset)
            if offset in self._reads or owner is None or not owner[0].is_steady(owner[1]):
                return
        words, at = self._words, ANSWERS_AT + ANSWER_WORDS * answer_slot(offset)
        if words[at + GENERATION] == ALWAYS:
            return
        kind = self._poll_kind(offset)
        words[at + REGISTER], words[at + VALUE] = offset, value & WORD
        words[at + GENERATION] = self.clock.changes
        words[at + UNTIL] = until
        asks = kind is Poll.INPUT and self.asks_about_input and until == FAR
        words[at + ANSWER_STEP] = ASK if asks else STEPS[kind]

    def _answer(self, offset: int) -> Answer:
        """Give the place of the native answer for a register."""
        return self._state.answers[answer_slot(offset)]

    def _enter_rate(self, offset: int, rate: Rate) -> None:
        answer = self._answer(offset)
        answer.register, answer.generation, answer.step = offset, ALWAYS, TIMED
        answer.until = FAR
        answer.multiply, answer.divide, answer.shift = rate.multiply, rate.divide, rate.shift

    def _forget_answers(self) -> None:
        nothing = Answer(register=NO_REGISTER, divide=1, until=FAR)
        place = self.address + BusState.answers.offset
        ctypes.memmove(place, bytes(nothing) * ANSWERS, Answer.size * ANSWERS)

    # -- waiting -----------------------------------------------------------------------------------

    def time_polled(self) -> None:
        """A core has read a counter of its own: the same as a read of a timer register."""
        self._native["own_time"](self.address)

    accesses = _shared("accesses", "Reads and writes of the CPU.")
    own_reads = _shared("own_reads", "Reads of counters that the cores have themselves.")
    _last = _shared("last", "Offset of the register that was polled last.")

    def _poll_kind(self, offset: int) -> Poll:
        found = self.find(offset)
        return found[1] if found else Poll.SOON

    @property
    def polled(self) -> Polled | None:
        """The register the program is polling, None if it is not."""
        last = self._last
        if not self.polls.waits or not self.polls.polls(self._address(last)):
            return None
        return self._polled(last)

    def polled_in(self, kept: bytes | None) -> Polled | None:
        """`polled` for a core whose turn it is not; `kept` as `Polls.exchange` gave it."""
        address = polled_last(kept)
        if address is None:
            return None
        return self._polled(address if address < 0 else address - self.base)

    def _address(self, offset: int) -> int:
        """The physical address of a register, as `polls` has it."""
        return offset if offset < 0 else self.base + offset

    def _polled(self, offset: int) -> Polled:
        found = self.find(offset)
        name, kind = found if found else (f"0x{self.base + offset:08x}", Poll.SOON)
        return Polled(name, offset, kind)

    def place(self, offset: int) -> tuple[Block, int] | None:
        """The block at `offset`, and where in it; if one declares the register, that."""
        return self._map.place(offset)

    def find(self, offset: int) -> tuple[str, Poll] | None:
        """ "block.REGISTER" and poll kind of the register at `offset`."""
        if offset == OWN_TIME:
            return "its own counter", Poll.TIME
        return self._map.find(offset)
