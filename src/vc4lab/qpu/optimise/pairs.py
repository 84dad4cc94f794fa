"""Two instructions that one could be: the word that does what both do.

`vc4lab opt` builds instructions with it, and `vc4lab run --timing --hints` names pairs that it
finds. A word counts only if it touches what both touch, no more and no less. Source: hardware
reference 4.2 to 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from vc4lab.qpu.isa.accesses import CONSUMING_READS, Accesses, Kind, accesses
from vc4lab.qpu.isa.builder import SMALL_IMMEDIATE_CODES, Half, alu
from vc4lab.qpu.isa.encoding import NOP_WORD, Alu, Instruction, LoadImmediate
from vc4lab.qpu.isa.hazards import FORMS, PAIRINGS
from vc4lab.qpu.isa.operations import (
    FLOAT_INPUT_ADD_OPS,
    ROTATE_BY_R5,
    AddOp,
    Condition,
    LoadMode,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import READ_NAMES, REGFILE_SIZE, WRITE_NAMES, Read, Write
from vc4lab.qpu.optimise.pieces import is_odd, piece_of

_ON_BOTH: Final = {AddOp.V8ADDS: MulOp.V8ADDS, AddOp.V8SUBS: MulOp.V8SUBS}
"""Operations that both ALUs have, besides moves."""
_NO_PAIR: Final = (
    Kind.BRANCH | Kind.THREAD_SWITCH | Kind.PROGRAM_END | Kind.SEMAPHORE | Kind.MUTEX | Kind.SCOREBOARD_WAIT
    | Kind.SCOREBOARD_UNLOCK
)  # fmt: skip
"""Kinds of instructions that are not paired."""


@lru_cache(maxsize=65536)
def together(first: int, second: int) -> int | None:
    """The word that does what two do at once, each with the registers as they were before; None:
    none is known to.
    """
    if first == NOP_WORD or second == NOP_WORD:
        return second if first == NOP_WORD else first
    if (accesses(first).kinds | accesses(second).kinds) & Kind.UNIFORM_ADDRESS:
        return None  # it could, but the kernel wants it alone
    for one in _forms(first):
        for other in _forms(second):
            word = _joined(one, other)
            if word is not None and _is_allowed(word, first, second):
                return word
    return None


def merged(first: int, second: int) -> int | None:
    """The word that does what two neighbours do, the second after the first; None: none is known to."""
    one, other = (piece_of(word, 0, 0) for word in (first, second))
    if one.writes & (other.reads | other.writes) or one.order & other.order:
        return None
    if (one.touched.kinds | other.touched.kinds) & _NO_PAIR:
        return None
    return together(first, second)


def _is_allowed(word: int, first: int, second: int) -> bool:
    """Whether a word touches what both touch, and breaks no rule that these keep."""
    one, a, b = accesses(word), accesses(first), accesses(second)
    places = {
        kind: a.places.get(kind, frozenset()) | b.places.get(kind, frozenset())
        for kind in {*a.places, *b.places}
    }
    if dict(one.places) != places or _units(one) != _units(a, b):
        return False
    if any(one.kinds & ~(a.kinds | b.kinds) & form.kind for form in FORMS):
        return False
    return not any(rule.broken(one) and not rule.broken(a) and not rule.broken(b) for rule in PAIRINGS)


def _units(*some: Accesses) -> list[Kind]:
    """List the units that several accesses use; r4 is one thing, however often it is read."""
    found = [unit for one in some for unit in one.units if unit != Kind.R4_READ]
    return sorted([*found, *([Kind.R4_READ] if any(one.kinds & Kind.R4_READ for one in some) else [])])


@lru_cache(maxsize=16384)
def _forms(word: int) -> tuple[Alu | LoadImmediate, ...]:
    """An instruction, and others that do the same: on the other ALU, with the other read port."""
    instruction = Instruction.decode(word)
    if isinstance(instruction, LoadImmediate):
        small = _as_move(instruction)
        return (instruction, *(_forms(small) if small is not None else ()))
    if not isinstance(instruction, Alu) or is_odd(word) or instruction.signal == Signal.BREAKPOINT:
        return ()
    found = [instruction]
    for form in (_on_mul(instruction), _on_add(instruction)):
        if form is not None:
            found.append(form)
    for form in tuple(found):
        found += _other_port(form)
    return tuple(dict.fromkeys(found))


def _as_move(load: LoadImmediate) -> int | None:
    """A load of a small number into one place, as a move of a small immediate."""
    code = SMALL_IMMEDIATE_CODES.get(load.immediate)
    odd = load.sf or load.pack or load.pm or load.mode != LoadMode.WORD
    if code is None or odd or (load.cond_mul != Condition.NEVER and load.waddr_mul != Write.NOP):
        return None
    half = Half(AddOp.OR, Mux.B, Mux.B, load.waddr_add, load.cond_add)
    return alu(half, signal=Signal.SMALL_IMMEDIATE, raddr_b=code, swap=bool(load.ws))


def _on_mul(one: Alu) -> Alu | None:
    """An add operation on the mul ALU; None: it cannot be there."""
    if one.op_mul or not one.op_add or one.sf or one.pack or _rotation_code(one):
        return None
    op = MulOp.V8MIN if one.add_is_move else _ON_BOTH.get(one.op_add)
    if op is None:
        return None
    return one.replace(
        op_add=AddOp.NOP, op_mul=op, mul_a=one.add_a, mul_b=one.add_b, add_a=0, add_b=0,
        waddr_mul=one.waddr_add, waddr_add=Write.NOP, cond_mul=one.cond_add, cond_add=Condition.NEVER,
        ws=1 - int(one.ws),
    )  # fmt: skip


def _on_add(one: Alu) -> Alu | None:
    """A mul operation on the add ALU; None: it cannot be there."""
    if one.op_add or not one.op_mul or one.sf or one.pack or _rotation_code(one):
        return None
    other = {mul: add for add, mul in _ON_BOTH.items()}
    op = AddOp.OR if one.mul_is_move else other.get(one.op_mul)
    if op is None:
        return None
    return one.replace(
        op_mul=MulOp.NOP, op_add=op, add_a=one.mul_a, add_b=one.mul_b, mul_a=0, mul_b=0,
        waddr_add=one.waddr_mul, waddr_mul=Write.NOP, cond_add=one.cond_mul, cond_mul=Condition.NEVER,
        ws=1 - int(one.ws),
    )  # fmt: skip


def _rotation_code(one: Alu) -> bool:
    return one.has_small_immediate and bool(one.raddr_b >= ROTATE_BY_R5)


def _other_port(one: Alu) -> Iterator[Alu]:
    """A stream that is read through one file, through the other."""
    if one.has_small_immediate or one.unpack:
        return
    a, b = int(one.raddr_a), int(one.raddr_b)
    for address, free, old, new in ((a, b, Mux.A, Mux.B), (b, a, Mux.B, Mux.A)):
        same = address >= REGFILE_SIZE and READ_NAMES["a"][address] == READ_NAMES["b"][address]
        if address == Read.NOP or free != Read.NOP or not same:
            continue
        muxes = {
            name: new if getattr(one, name) == old else getattr(one, name)
            for name in ("add_a", "add_b", "mul_a", "mul_b")
        }
        ports = {"raddr_a": Read.NOP, "raddr_b": address} if new == Mux.B else {
            "raddr_a": address, "raddr_b": Read.NOP
        }  # fmt: skip
        yield one.replace(**muxes, **ports)


def _joined(first: Alu | LoadImmediate, second: Alu | LoadImmediate) -> int | None:
    """Both instructions' fields in one, if they leave each other alone."""
    if isinstance(first, LoadImmediate) or isinstance(second, LoadImmediate):
        if isinstance(first, LoadImmediate) and isinstance(second, LoadImmediate):
            return _joined_loads(first, second)
        return None
    for add, mul in ((first, second), (second, first)):
        if not add.op_mul and not mul.op_add:
            return _joined_halves(add, mul)
        if not mul.op_add and not mul.op_mul:  # only a signal, or a read
            return _joined_halves(add, mul, add)
    return None


def _joined_loads(first: LoadImmediate, second: LoadImmediate) -> int | None:
    if first.immediate != second.immediate or first.mode != second.mode:
        return None
    if any(one.sf or one.pack or one.pm or one.waddr_mul != Write.NOP for one in (first, second)):
        return None
    for swap in (0, 1):
        if _fits(first.add_file, first.waddr_add, swap) and _fits(
            second.add_file, second.waddr_add, 1 - swap
        ):
            return first.replace(waddr_mul=second.waddr_add, cond_mul=second.cond_add, ws=swap).encode()
    return None


def _fits(file: str, address: int, space_b: int) -> bool:
    """Whether a result can go through an address space: the names there are the same."""
    wanted = "b" if space_b else "a"
    return file == wanted or (
        address >= REGFILE_SIZE and WRITE_NAMES["a"][address] == WRITE_NAMES["b"][address]
    )


def _joined_halves(add: Alu, mul: Alu, whole: Alu | None = None) -> int | None:
    """One instruction's add operation and the other's mul operation. whole: both are this one's."""
    ports = _ports(add, mul)
    signals = [int(one.signal) for one in (add, mul) if one.signal not in _NO_SIGNAL]
    small = add.has_small_immediate or mul.has_small_immediate
    if ports is None or len(signals) > 1 or (signals and small):
        return None
    if small and add.has_small_immediate and not mul.has_small_immediate and ports[1] >= ROTATE_BY_R5:
        return None  # the other's result would be rotated
    if (add.sf and mul.sf) or (mul.sf and add.op_add):
        return None  # flags are the add operation's where there is one
    packing = _packing(add, mul)
    if packing is None:
        return None
    source = whole or mul
    other = add if whole is None else whole
    swap = _swap(other, source)
    if swap is None:
        return None
    if packing[1] and not packing[0] and not _packs_same(other, source, swap):
        return None
    signal = signals[0] if signals else int(Signal.SMALL_IMMEDIATE if small else Signal.NONE)
    return other.replace(
        signal=signal, raddr_a=ports[0], raddr_b=ports[1], sf=int(add.sf) | int(mul.sf),
        op_mul=source.op_mul, mul_a=source.mul_a, mul_b=source.mul_b, waddr_mul=source.waddr_mul,
        cond_mul=source.cond_mul, ws=swap, pm=packing[0], pack=packing[1], unpack=packing[2],
    ).encode()  # fmt: skip


_NO_SIGNAL: Final = frozenset({Signal.NONE, Signal.SMALL_IMMEDIATE})


def _ports(add: Alu, mul: Alu) -> tuple[int, int] | None:
    found = []
    for name in ("raddr_a", "raddr_b"):
        wanted = {
            (int(getattr(one, name)), name == "raddr_b" and one.has_small_immediate)
            for one in (add, mul)
            if getattr(one, name) != Read.NOP or (name == "raddr_b" and one.has_small_immediate)
        }
        if len(wanted) > 1:
            return None
        found.append(wanted.pop()[0] if wanted else int(Read.NOP))
    shared = {int(one.raddr_a) for one in (add, mul)} | {
        int(one.raddr_b) for one in (add, mul) if not one.has_small_immediate
    }
    if shared & CONSUMING_READS and add.raddr_a == mul.raddr_a in CONSUMING_READS:
        return None
    if shared & CONSUMING_READS and add.raddr_b == mul.raddr_b in CONSUMING_READS:
        if not add.has_small_immediate:
            return None
    return found[0], found[1]


def _swap(add: Alu, mul: Alu) -> int | None:
    """Which address space the add result goes to."""
    for swap in (int(add.ws), 1 - int(add.ws)):
        if _fits(add.add_file, add.waddr_add, swap) and _fits(mul.mul_file, mul.waddr_mul, 1 - swap):
            return swap
    return None


def _packing(add: Alu, mul: Alu) -> tuple[int, int, int] | None:
    """(pm, pack, unpack) with which both operations do what each did."""
    needs = [one for one in (add, mul) if one.pack or one.unpack]
    if not needs:
        return 0, 0, 0
    if len({int(one.pm) for one in needs}) > 1 or (add.pack and mul.pack):
        return None
    if any(one.pack and one.pm and not one.op_mul for one in needs):
        return None  # without effect there, but not here
    unpacks = {int(one.unpack) for one in needs if one.unpack}
    if len(unpacks) > 1:
        return None
    pm = int(needs[0].pm)
    if unpacks:
        source = Mux.R4 if pm else Mux.A
        plain = [one for one in (add, mul) if not one.unpack and source in one.muxes()]
        if plain:
            return None
        if not pm and len({_is_float(one) for one in (add, mul) if one.unpack}) > 1:
            return None  # one of them would decide how the other reads the register
    return pm, int(add.pack) | int(mul.pack), unpacks.pop() if unpacks else 0


def _is_float(one: Alu) -> bool:
    return (one.op_add in FLOAT_INPUT_ADD_OPS) or one.op_mul == MulOp.FMUL


def _packs_same(add: Alu, mul: Alu, swap: int) -> bool:
    """Whether a pack of file A meets the operation that it was for."""
    packed = add if add.pack else mul
    if packed is add:
        return not swap and bool(add.waddr_add < REGFILE_SIZE)
    return bool(swap) and bool(mul.waddr_mul < REGFILE_SIZE)
