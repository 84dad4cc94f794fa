"""Proves that a core that waits changes nothing, so that its wait need not be executed again.

A loop around wfe, or one that watches memory, is executed again at every event, for what it waits
for may have come. If nothing noticeable has happened since, the same instructions read the same
memory: once it is known that they leave all registers as they were and store nothing, counting
them is enough. The proof is one turn of the loop, executed block by block, whose instructions are
all of a kind that only computes and loads. Native rounds take part (`native_turns.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from unicorn import UC_PROT_READ

from vc4lab.memory import MEMORY_MASK
from vc4lab.optimisations import STEADY_WAITS
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
    ptr,
    select,
    staged,
    store,
)
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.engine.engine_calls import RegisterBatch
from vc4lab.soc.cores.idle import MOST_REGISTERS, IdleLoop, IdleState
from vc4lab.soc.native import words_of

MAX_BLOCKS = 16
"""A loop with more blocks in a turn is executed again each time."""
A32_PLAIN = (
    (0x0C000000, 0x00000000),  # data processing, but see A32_OTHERS
    (0x0C100000, 0x04100000),  # loads of words and bytes
    (0x0E500000, 0x08100000),  # ldm
    (0x0E000000, 0x0A000000),  # b, bl
)
"""(mask, match) of instructions that store nothing."""
A32_OTHERS = (
    (0x0F900000, 0x01000000),  # moves to and from status registers, bx, swp
    (0x0FB00000, 0x03200000),  # moves to status registers, hints
    (0x0E000090, 0x00000090),  # multiplications, loads and stores of halves, exclusive ones
    (0x0E000010, 0x06000010),  # media
)
"""Among them those that are something else."""
A32_ALLOWED = (
    (0x0FFFFF00, 0x0320F000),  # nop, yield, wfe, wfi, sev
    (0x0FFFFFF0, 0x012FFF10),  # bx
    (0x0E1000F0, 0x001000B0),  # ldrh
    (0x0FF00FFF, 0x01900F9F),  # ldrex
    (0x0FFF0FFF, 0x010F0000),  # mrs of cpsr
    (0x0FFF0FFF, 0x0E070F9A),  # dsb, dmb, isb of the ARM1176
    (0x0FFF0FFF, 0x0E070FBA),
    (0x0FFF0FFF, 0x0E070F95),
)
A32_BARRIER = (0xFFFFFF00, 0xF57FF000)
ALWAYS = 0xF0000000
"""The condition of instructions of another kind."""
A64_PLAIN = (
    (0x1C000000, 0x10000000),  # data processing with an immediate
    (0x0E000000, 0x0A000000),  # data processing with registers
    (0x7C000000, 0x14000000),  # b, bl
    (0x7C000000, 0x34000000),  # cbz, cbnz, tbz, tbnz
    (0xFF000010, 0x54000000),  # b.cond
    (0xFFFFFC1F, 0xD65F0000),  # ret
    (0xFFFFF01F, 0xD503201F),  # hints
    (0xFFFFF01F, 0xD503301F),  # barriers, clrex
    (0x3F400000, 0x39400000),  # loads with an unsigned offset
    (0x3FE00C00, 0x38600800),  # loads with a register offset
    (0x3FE00000, 0x38400000),  # loads with a signed offset
    (0x3FE08000, 0x08C08000),  # load-acquire
    (0x3FE00000, 0x08400000),  # load-exclusive
)


def stores_nothing(word: Any, wide: bool) -> Any:
    """Whether an instruction is known to change nothing but general registers and flags.

    `word` is a number, or a staged value of 64 bits.
    """
    if wide:
        return _is_any(word, A64_PLAIN)
    always = (word & ALWAYS) == ALWAYS
    barrier = (word & A32_BARRIER[0]) == A32_BARRIER[1]
    plain = _is_any(word, A32_ALLOWED) | (_is_any(word, A32_PLAIN) & (_is_any(word, A32_OTHERS) == 0))
    return (always & barrier) | ((always == 0) & plain)


def _is_any(word: Any, kinds: tuple[tuple[int, int], ...]) -> Any:
    found: Any = False
    for mask, match in kinds:
        is_one = (word & mask) == match
        found = is_one if found is False else found | is_one
    return found


class SteadyState(Struct):
    """Holds what is known of a core's wait.

    A look of it takes `turn` instructions, 0 if that is not proved; its last slice took `count`, and left the
    PC and the `values` of the registers (`known`: there was one). While it `proves`, it has come to `blocks`;
    `hopeless`: that has failed. `looks`: proofs are wanted at all; `wide`: the core is in AArch64 state.
    """

    translate = ptr
    ram = ptr
    place = i64
    wide = i64
    looks = i64
    turn = i64
    count = i64
    hopeless = i64
    proves = i64
    blocks = i64
    known = i64
    pc = i64
    values = Array(i64, MOST_REGISTERS)
    starts = Array(i64, MAX_BLOCKS)
    sizes = Array(i64, MAX_BLOCKS)


LOOKS, TURN, COUNT, HOPELESS, PROVES, BLOCKS, KNOWN = (
    SteadyState.offset(name) // 8
    for name in ("looks", "turn", "count", "hopeless", "proves", "blocks", "known")
)


@staged
def wants_proof(steady: SteadyState) -> Value:
    """As `SteadyWait.wants_proof`."""
    return (steady.looks != 0) & (steady.count > 0) & (steady.turn == 0) & (steady.hopeless == 0)


@staged
def forget_wait(steady: SteadyState) -> None:
    """As `SteadyWait.forget`."""
    steady.turn, steady.count, steady.hopeless, steady.proves, steady.known = 0, 0, 0, 0, 0


@kernel(args=(ptr, ptr, i64), returns=i1)
def is_as_before(state: Value, idle_at: Value, pc: Value) -> Value:
    """Whether the core is where it was at the end of its last slice; its registers are read."""
    steady, idle = SteadyState.at(state), IdleState.at(idle_at)
    batch = idle.registers
    count, read = batch.count, (ptr, ptr, ptr, i32)
    call_pointer(idle.read, i32, read, idle.engine, batch.numbers, batch.places, count.trunc(i32))
    same: Value = (steady.known != 0) & (steady.pc == pc)
    index: Any = const(i64, 0)
    while same & (index < count):
        same = load(i64, steady.values + index * 8) == load(i64, batch.values + index * RegisterBatch.STEP)
        index = index + 1
    return same


@kernel(args=(ptr, ptr, i64, i64, i64), returns=i1)
def goes_on_proving(state: Value, idle: Value, pc: Value, start: Value, size: Value) -> Value:
    """The core has come to a block; whether it shall stop after it."""
    steady = SteadyState.at(state)
    number = steady.blocks
    store(steady.starts + number * 8, start)
    store(steady.sizes + number * 8, size)
    steady.blocks = number + 1
    goes_on = const(i1, 0)
    if number + 1 >= MAX_BLOCKS:
        steady.hopeless = 1
    elif number == 0:
        goes_on = const(i1, 1)
    else:
        goes_on = call(is_as_before, state, idle, pc) == 0
    return goes_on


@kernel(args=(ptr, ptr), returns=i1)
def is_harmless(state: Value, engine: Value) -> Value:
    """Whether the blocks that the core has come to store nothing."""
    steady = SteadyState.at(state)
    harmless = const(i1, 1)
    for number in range(steady.blocks):
        address: Any = load(i64, steady.starts + number * 8)
        end = address + load(i64, steady.sizes + number * 8)
        while harmless & (address < end):
            place = steady.pointer + SteadyState.place.offset
            types, right = (ptr, i64, i32, ptr), const(i32, UC_PROT_READ)
            failed = call_pointer(steady.translate, i32, types, engine, address, right, place)
            word = load(i32, steady.ram + (steady.place & MEMORY_MASK)).zext(i64)
            known = select(steady.wide != 0, stores_nothing(word, True), stores_nothing(word, False))
            harmless = (failed == 0) & known
            address = address + 4
    return harmless


@kernel(args=(ptr, ptr, i64, i64, i1))
def note_rest(state: Value, idle_at: Value, pc: Value, executed: Value, thumb: Value) -> None:
    """A slice has ended in a wait, without devices; `thumb`: in Thumb code."""
    steady, idle = SteadyState.at(state), IdleState.at(idle_at)
    if call(is_as_before, state, idle_at, pc) & (steady.count == executed):
        if (steady.proves != 0) & (steady.hopeless == 0):
            steady.hopeless, steady.turn = 1, 0
            if thumb == 0:
                if call(is_harmless, state, idle.engine):
                    steady.hopeless, steady.turn = 0, executed
    else:
        steady.pc, steady.known, steady.count, steady.turn, steady.hopeless = pc, 1, executed, 0, 0
        index: Any = const(i64, 0)
        while index < idle.registers.count:
            store(steady.values + index * 8, load(i64, idle.registers.values + index * RegisterBatch.STEP))
            index = index + 1
    steady.proves = 0


@cache
def _module() -> Any:
    kernels = {"goes_on_proving": goes_on_proving, "note_rest": note_rest}
    return build("soc_steady", kernels, float_mode="default", key="soc-steady")


class SteadyWait:
    """Knows whether a core's wait must be executed again.

    Attributes
    ----------
    address
        Host address of its `SteadyState`.
    """

    def __init__(self, cpu: Cpu, idle: IdleLoop) -> None:
        self._cpu = cpu
        self._idle = idle.address
        self._state = SteadyState(
            translate=cpu.calls.address_of("uc_vmem_translate"),
            ram=cpu.memory.base,
            wide=cpu.WIDE,
            looks=STEADY_WAITS.serves(),
        )
        self.address: int = self._state.address
        self._words = words_of(self._state)

    @property
    def turn(self) -> int:
        """Instructions that a look of the waiting core takes; 0: nothing is proved."""
        return self._words[TURN]

    def forget(self) -> None:
        """The core does something."""
        words = self._words
        words[TURN] = words[COUNT] = words[HOPELESS] = words[PROVES] = words[KNOWN] = 0

    @property
    def wants_proof(self) -> bool:
        """Whether the next slice shall be executed block by block, see `note_block`."""
        words = self._words
        return bool(words[LOOKS] and words[COUNT] and not words[TURN] and not words[HOPELESS])

    def begin(self) -> None:
        """A slice that `wants_proof` begins."""
        self._words[PROVES], self._words[BLOCKS] = 1, 0

    @property
    def blocks(self) -> int:
        """How many blocks the core has come to in this slice."""
        return self._words[BLOCKS]

    def note_block(self, address: int, size: int) -> bool:
        """The core has come to a block; whether it shall stop after it."""
        return bool(_module()["goes_on_proving"](self.address, self._idle, self._cpu.pc, address, size))

    def rested(self, count: int, *, touched: bool) -> None:
        """A slice of `count` instructions has ended in a wait; `touched`: not without devices."""
        if touched:
            self.forget()
            return
        cpu = self._cpu
        before = cpu.alignment.enter()  # the engine fills its TLB by functions that look at it
        try:
            _module()["note_rest"](self.address, self._idle, cpu.pc, count, cpu.executes_thumb)
        finally:
            cpu.alignment.leave(before)
