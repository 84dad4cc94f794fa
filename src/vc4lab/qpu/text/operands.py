"""Operands of QPU assembly: sources, destinations, suffixes, and the address spaces they take."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from vc4lab.qpu.isa.operations import ROTATE_BY_R5, Condition, Mux
from vc4lab.qpu.text.expressions import ExpressionError, Symbols, Value, evaluate, to_word
from vc4lab.qpu.text.mnemonics import (
    ACCUMULATORS,
    CONDITIONS,
    PACKS,
    READ_REGISTERS,
    UNPACKS,
    WRITE_REGISTERS,
)
from vc4lab.qpu.text.syntax import Mistake, Slot, Text, unknown

NOP_ADDRESS: Final = 39
_ROTATION: Final = re.compile(r"^((?:-|[A-Za-z_]\w*)(?:\.\w+)?)\s*(<<|>>)\s*(\S.*)$")


def value_of(text: Text, symbols: Symbols) -> Value:
    """Value of an expression operand."""
    try:
        return evaluate(text.text, symbols)
    except ExpressionError as error:
        raise Mistake(str(error), text.column + error.offset) from None


def word_of(text: Text, symbols: Symbols) -> int:
    """32-bit pattern of an expression operand."""
    try:
        return to_word(value_of(text, symbols))
    except ExpressionError as error:
        raise Mistake(str(error), text.column + error.offset) from None


class NotSmall(Mistake):
    """An immediate that only a load immediate instruction can hold."""


@dataclass
class Source:
    """An operand: accumulator, register of one or both files, or an immediate word."""

    column: int
    name: str
    accumulator: int | None = None
    files: dict[str, int] = field(default_factory=dict)
    immediate: int | None = None
    unpack: int = 0
    rotation: int | None = None  # small immediate code
    mux: Mux | None = None


@dataclass
class Destination:
    """The destination of a result; ``pack`` 0 means the whole register."""

    column: int
    name: str
    files: dict[str, int]
    pack: int = 0


def parse_source(text: Text, symbols: Symbols) -> Source:
    """One operand; a register may carry an unpack suffix, and ``>> n`` or ``<< n`` a rotation."""
    match = _ROTATION.match(text.text)
    if match and _register_name(match[1]):
        inner = parse_source(Text(match[1], text.column), symbols)
        inner.rotation = _rotation_code(match[2], Text(match[3], text.column + match.start(3)), symbols)
        return inner
    name, dot, suffix = text.text.partition(".")
    if _register_name(text.text):
        source = Source(text.column, text.text)
        if name.lower() in ACCUMULATORS:
            source.accumulator = ACCUMULATORS[name.lower()]
        else:
            source.files = READ_REGISTERS[name.lower()]
        if dot:
            if suffix.lower() not in UNPACKS:
                raise unknown("unpack", suffix, UNPACKS, text.column + len(name) + 1)
            source.unpack = UNPACKS[suffix.lower()]
        return source
    if name.lower() in WRITE_REGISTERS:
        raise Mistake(f"{name} can only be written", text.column)
    try:
        return Source(text.column, text.text, immediate=word_of(text, symbols))
    except Mistake as mistake:
        if text.text.isidentifier():
            allowed = chain(READ_REGISTERS, ACCUMULATORS, symbols)  # not looked at unless shown
            raise unknown("source", text.text, allowed, text.column) from None
        raise mistake from None


def is_rotation(text: Text) -> bool:
    """Whether an operand is a register with a rotation."""
    match = _ROTATION.match(text.text)
    return match is not None and _register_name(match[1])


def _register_name(text: str) -> bool:
    name, _, suffix = text.lower().partition(".")
    if name == "-":  # a minus sign otherwise
        return not suffix or suffix in UNPACKS
    return name in ACCUMULATORS or name in READ_REGISTERS


def _rotation_code(direction: str, text: Text, symbols: Symbols) -> int:
    if text.text.lower() == "r5":
        if direction == "<<":
            raise Mistake("r5 rotates upward only: write '>> r5'", text.column)
        return ROTATE_BY_R5
    amount = value_of(text, symbols)
    if not isinstance(amount, int) or not 0 < amount < 16:
        raise Mistake("a rotation is r5 or a number from 1 to 15", text.column)
    return ROTATE_BY_R5 + (amount if direction == ">>" else 16 - amount)


def parse_destination(text: Text) -> Destination:
    """A write register with an optional pack suffix."""
    name, dot, suffix = text.text.partition(".")
    name = name.lower()
    if name not in WRITE_REGISTERS:
        if name == "r4":
            raise Mistake("r4 cannot be written; SFU, TMU and TLB loads fill it", text.column)
        if name == "r5":
            hint = "r5quad (one value per quad) or r5rep (lane 0 everywhere)"
            raise Mistake(f"r5 is written as {hint}", text.column)
        if name in READ_REGISTERS:
            raise Mistake(f"{name} can only be read", text.column)
        raise unknown("destination", name, WRITE_REGISTERS, text.column)
    pack = 0
    if dot:
        if suffix.lower() not in PACKS:
            raise unknown("pack", suffix, PACKS, text.column + len(name) + 1)
        pack = PACKS[suffix.lower()]
    return Destination(text.column, name, WRITE_REGISTERS[name], pack)


def parse_suffixes(slot: Slot) -> tuple[Condition | None, bool]:
    """Condition (None: not given) and ``.setf`` of an operation."""
    condition: Condition | None = None
    sets_flags = False
    for suffix in slot.suffixes:
        if suffix in ("setf", "sf"):
            sets_flags = True
        elif suffix in CONDITIONS and condition is None:
            condition = CONDITIONS[suffix]
        elif suffix == "always" and condition is None:
            condition = Condition.ALWAYS
        else:
            raise unknown("suffix", suffix, [*CONDITIONS, "setf"], slot.column)
    return condition, sets_flags


def place_destinations(
    add: Destination | None, mul: Destination | None, pack_to_a: bool = False
) -> tuple[int, int, int]:
    """(ws, waddr_add, waddr_mul) for two optional destinations."""
    free = {"a": NOP_ADDRESS, "b": NOP_ADDRESS}
    for ws, add_file, mul_file in ((0, "a", "b"), (1, "b", "a")):
        add_files = add.files if add else free
        mul_files = mul.files if mul else free
        if add_file not in add_files or mul_file not in mul_files:
            continue
        if pack_to_a and ((add and add.pack and add_file != "a") or (mul and mul.pack and mul_file != "a")):
            continue
        return ws, add_files[add_file], mul_files[mul_file]
    place = mul or add
    assert place is not None
    names = " and ".join(d.name for d in (add, mul) if d)
    raise Mistake(f"{names} are in the same address space: one must be in A, one in B", place.column)
