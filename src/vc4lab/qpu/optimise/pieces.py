"""An instruction taken apart: its operations and its signal, each as an instruction of its own.

A piece is a word that does one thing. Executed one after the other, the pieces of an instruction do
what it does; where that is not possible, as where two operations exchange registers, the
instruction stays whole. What a piece reads, writes and keeps in order is from `../isa/accesses.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag, auto
from functools import lru_cache
from typing import Final

from vc4lab.qpu.isa.accesses import (
    CONSUMING_READS,
    QUIET_WRITES,
    TLB_LOADS,
    TLB_WRITE,
    VPM_ACCESS,
    Accesses,
    Kind,
    accesses,
)
from vc4lab.qpu.isa.builder import with_signal
from vc4lab.qpu.isa.encoding import NOP_WORD, Alu, Branch, Instruction, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import (
    FLOAT_INPUT_ADD_OPS,
    ONE_OPERAND_ADD_OPS,
    AddOp,
    Condition,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import REGFILE_SIZE, Read, Write


class Order(IntFlag):
    """Names the streams; pieces of one stream keep their order."""

    UNIFORMS = auto()
    VARYINGS = auto()
    VPM = auto()
    TMU = auto()
    MEMORY = auto()
    """A texture request must not overtake the wait for a store, nor the other way round."""
    ALL = auto()
    """No piece goes from one side of it to the other."""


_ORDERS: Final = (
    (Kind.UNIFORM_READ | Kind.UNIFORM_ADDRESS | Kind.TMU_PARAMETER, Order.UNIFORMS),
    (Kind.VARYING_READ, Order.VARYINGS),
    (VPM_ACCESS, Order.VPM),
    (Kind.TMU_WRITE | Kind.TMU_LOAD | Kind.TMU_SWAP, Order.TMU),
    (Kind.TMU_WRITE | Kind.DMA_START | Kind.VPM_WAIT | Kind.UNIFORM_ADDRESS, Order.MEMORY),
    (
        Kind.MUTEX | Kind.SEMAPHORE | TLB_WRITE | TLB_LOADS | Kind.SCOREBOARD_WAIT | Kind.SCOREBOARD_UNLOCK,
        Order.ALL,
    ),
)
READS: Final = Kind.REGISTER_READ | Kind.ACCUMULATOR_READ | Kind.ROTATED | Kind.ROTATION_AMOUNT
WRITES: Final = Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE
FLAGS, R4, R5 = "flags", "r4", "r5"
SPLIT_SIGNALS: Final = frozenset({Signal.LOAD_TMU0, Signal.LOAD_TMU1})
"""Signals that may go with another operation."""
_PLAIN: Final = frozenset({Signal.NONE, Signal.SMALL_IMMEDIATE})


@dataclass(eq=False, slots=True)
class Piece:
    """One thing that an instruction does.

    Attributes
    ----------
    word
        It, as an instruction.
    index, number
        The instruction it is from; its place among all pieces of the block.
    reads, writes
        Names of registers, "flags" among them. SFU, texture unit and varyings write r4 and r5.
    is_partial
        Whether lanes or bytes of what it writes stay as they were.
    takes_parameter
        Whether it is a write to the texture unit that takes a uniform.
    """

    word: int
    index: int
    number: int
    reads: frozenset[str]
    writes: frozenset[str]
    order: Order
    is_partial: bool
    touched: Accesses
    takes_parameter: bool = False
    next: list[tuple[Piece, int]] = field(default_factory=list)
    waiting: int = 0
    height: int = 0
    first: int = 0


def piece_of(word: int, index: int, number: int, takes_parameter: bool = False) -> Piece:
    """A word as a piece. takes_parameter: a texture write in it takes a uniform."""
    touched = accesses(word)
    kinds = touched.kinds
    if takes_parameter:
        kinds |= Kind.TMU_PARAMETER
    order = Order(0)
    for some, member in _ORDERS:
        if kinds & some:
            order |= member
    if _has_unknown_write(word):
        order |= Order.ALL
    reads, writes = set(touched.at(READS)), set(touched.at(WRITES))
    if kinds & Kind.R4_READ:
        reads.add(R4)
    if kinds & Kind.FLAGS_READ:
        reads.add(FLAGS)
    if kinds & (Kind.R4_LOAD | Kind.SFU_WRITE):
        writes.add(R4)
    if kinds & Kind.VARYING_READ:
        writes.add(R5)
    if kinds & Kind.FLAGS_WRITE:
        writes.add(FLAGS)
    return Piece(
        word, index, number, frozenset(reads), frozenset(writes), order, _is_partial(word), touched,
        takes_parameter,
    )  # fmt: skip


def _has_unknown_write(word: int) -> bool:
    instruction = Instruction.decode(word)
    return any(address not in QUIET_WRITES for _, address in instruction.write_addresses())


def _is_partial(word: int) -> bool:
    instruction = Instruction.decode(word)
    if isinstance(instruction, Branch):
        return False
    some = (Condition.NEVER, Condition.ALWAYS)
    conditional = instruction.cond_add not in some or instruction.cond_mul not in some
    return bool(instruction.pack) or conditional


@lru_cache(maxsize=16384)
def is_odd(word: int) -> bool:
    """Whether what an instruction gives depends on what was before in ways that no register shows: the
    mul ALU without an operation has a target, flags are set of nothing, or an operand is of no register.
    """
    alu = Instruction.decode(word)
    if not isinstance(alu, Alu):
        return False
    if not alu.op_mul and alu.waddr_mul != Write.NOP and alu.cond_mul != Condition.NEVER:
        return True
    if alu.sf and not alu.op_add and not alu.op_mul:
        return True
    add_b = alu.add_a if alu.op_add in ONE_OPERAND_ADD_OPS else alu.add_b
    operations = (
        (alu.op_add, alu.add_a, add_b, alu.waddr_add, alu.op_add in _NOUGHT_ADD),
        (alu.op_mul, alu.mul_a, alu.mul_b, alu.waddr_mul, alu.op_mul == MulOp.V8SUBS),
    )
    return any(
        op
        and not (is_nought and a == b)
        and not (address in _IGNORED and not alu.sf)
        and _of_nothing(alu, a, b)
        for op, a, b, address, is_nought in operations
    )


_NOUGHT_ADD: Final = frozenset({AddOp.XOR, AddOp.SUB, AddOp.V8SUBS})
"""Operations that give 0 for any word and itself."""
_IGNORED: Final = frozenset({Write.NOP, Write.HOST_INT, Write.MUTEX_RELEASE})
"""Addresses to which it does not matter what is written."""


def _of_nothing(alu: Alu, *muxes: int) -> bool:
    """Whether one of some operands is of no register."""
    no_b = alu.raddr_b == Read.NOP and not alu.has_small_immediate
    return (Mux.A in muxes and alu.raddr_a == Read.NOP) or (Mux.B in muxes and no_b)


@lru_cache(maxsize=16384)
def has_odd_flags(word: int) -> bool:
    """Whether all that is odd of an instruction are the flags that it sets."""
    alu = Instruction.decode(word)
    return isinstance(alu, Alu) and bool(alu.sf) and is_odd(word) and not is_odd(alu.replace(sf=0).encode())


@lru_cache(maxsize=16384)
def split(word: int) -> tuple[int, ...]:
    """The words of an instruction's pieces, in an order in which they do the same; none of an empty
    instruction.
    """
    instruction = Instruction.decode(word)
    if isinstance(instruction, LoadImmediate):
        return _split_load(instruction)
    whole = isinstance(instruction, Branch | Semaphore) or accesses(word).kinds & Kind.UNIFORM_ADDRESS
    if whole or is_odd(word):
        return (word,)
    assert isinstance(instruction, Alu)
    alu = _without_unused_ports(instruction)
    signals: tuple[int, ...] = ()
    if alu.signal in SPLIT_SIGNALS:
        signals = (with_signal(NOP_WORD, alu.signal),)
        alu = alu.replace(signal=Signal.NONE)
    elif alu.signal not in _PLAIN:
        return (alu.encode(),)
    halves = _halves(alu)
    return (*halves, *signals)


def _without_unused_ports(alu: Alu) -> Alu:
    """The instruction without registers that no operation uses."""
    if alu.op_add in ONE_OPERAND_ADD_OPS:
        alu = alu.replace(add_b=alu.add_a)
    muxes = alu.muxes()
    if Mux.A not in muxes and alu.raddr_a not in CONSUMING_READS:
        alu = alu.replace(raddr_a=Read.NOP)
    rotates = alu.rotation is not None and alu.op_mul != MulOp.NOP
    if Mux.B not in muxes and not rotates and (alu.has_small_immediate or alu.raddr_b not in CONSUMING_READS):
        alu = alu.replace(raddr_b=Read.NOP)
        if alu.has_small_immediate:
            alu = alu.replace(signal=Signal.NONE)
    unpacked = Mux.R4 if alu.pm else Mux.A
    if alu.unpack and unpacked not in muxes:
        alu = alu.replace(unpack=0)
    if alu.pm and not alu.op_mul:
        alu = alu.replace(pack=0)
    if not alu.op_add:
        alu = alu.replace(waddr_add=Write.NOP, cond_add=Condition.NEVER, add_a=0, add_b=0)
    if not alu.op_mul:
        alu = alu.replace(waddr_mul=Write.NOP, cond_mul=Condition.NEVER, mul_a=0, mul_b=0)
    return alu


def _halves(alu: Alu) -> tuple[int, ...]:
    """The words of both operations, each alone; the instruction if they cannot be parted."""
    has_streams = alu.raddr_a in CONSUMING_READS or (
        not alu.has_small_immediate and alu.raddr_b in CONSUMING_READS
    )
    if not alu.op_add and not alu.op_mul and not has_streams and not alu.sf:
        return ()
    if not alu.op_add or not alu.op_mul or not _may_part(alu):
        return (alu.encode(),)
    add = _without_unused_ports(
        alu.replace(
            op_mul=0, waddr_mul=Write.NOP, cond_mul=Condition.NEVER, mul_a=0, mul_b=0,
            pack=0 if _packs_mul(alu) else alu.pack,
        )
    )  # fmt: skip
    mul = _without_unused_ports(
        alu.replace(
            op_add=0, waddr_add=Write.NOP, cond_add=Condition.NEVER, add_a=0, add_b=0, sf=0,
            pack=alu.pack if _packs_mul(alu) else 0,
        )
    )  # fmt: skip
    first, second = (one.replace(pm=0) if not one.pack and not one.unpack else one for one in (add, mul))
    words = first.encode(), second.encode()
    one, other = piece_of(words[0], 0, 0), piece_of(words[1], 0, 1)
    if one.order & other.order or one.writes & other.writes:
        return (alu.encode(),)
    if one.writes & other.reads:
        if other.writes & one.reads:
            return (alu.encode(),)
        return words[1], words[0]
    return words


def _may_part(alu: Alu) -> bool:
    """Whether each operation alone gives what both together give."""
    add, mul = {alu.add_a, alu.add_b}, {alu.mul_a, alu.mul_b}
    both = add & mul
    used = alu.muxes()
    if alu.pm == 0 and alu.unpack and Mux.A in both:
        if (alu.op_add in FLOAT_INPUT_ADD_OPS) != (alu.op_mul == MulOp.FMUL):
            return False  # one of them decides how the other reads the register
    if alu.pack and not _packs_mul(alu) and not _packs_add(alu):
        return False
    if alu.rotation is not None and Mux.B in add:
        return False
    if alu.sf and alu.cond_add == Condition.NEVER:
        return False
    streams = [(Mux.A, alu.raddr_a)] + ([] if alu.has_small_immediate else [(Mux.B, alu.raddr_b)])
    found = [mux for mux, address in streams if address in CONSUMING_READS]
    if len({address for _, address in streams if address in CONSUMING_READS}) < len(found):
        return False
    return all(mux in used and mux not in both for mux in found)


def _packs_mul(alu: Alu) -> bool:
    """Whether the pack is the mul operation's."""
    return bool(alu.pm) or bool(alu.ws and alu.waddr_mul < REGFILE_SIZE)


def _packs_add(alu: Alu) -> bool:
    return not alu.pm and not alu.ws and bool(alu.waddr_add < REGFILE_SIZE)


def _split_load(load: LoadImmediate) -> tuple[int, ...]:
    """A load immediate into two places as two of them."""
    word = load.encode()
    goes = [
        address != Write.NOP and condition != Condition.NEVER
        for address, condition in ((load.waddr_add, load.cond_add), (load.waddr_mul, load.cond_mul))
    ]
    if not any(goes) and not load.sf:
        return ()
    if not all(goes) or load.sf or load.pack or load.pm or accesses(word).kinds & Kind.SAME_TARGET:
        return (word,)
    add = load.replace(waddr_mul=Write.NOP, cond_mul=Condition.NEVER)
    mul = load.replace(
        waddr_add=load.waddr_mul, cond_add=load.cond_mul, ws=1 - int(load.ws),
        waddr_mul=Write.NOP, cond_mul=Condition.NEVER,
    )  # fmt: skip
    words = add.encode(), mul.encode()
    one, other = piece_of(words[0], 0, 0), piece_of(words[1], 0, 1)
    return (word,) if one.order & other.order or one.writes & other.writes else words
