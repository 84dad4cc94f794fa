"""Encoders of the forms without ALU operation: branches, load immediates, semaphores."""

from __future__ import annotations

from vc4lab.qpu.isa.encoding import LINK_OFFSET, Branch, Instruction, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import MUL_PACKS, BranchCondition, Condition, LoadMode, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE
from vc4lab.qpu.text.expressions import ExpressionError, Symbols, Value, to_word
from vc4lab.qpu.text.mnemonics import (
    ACCUMULATORS,
    BRANCH_CONDITION_NAMES,
    BRANCH_CONDITIONS,
    BRANCHES,
    LOADS,
    READ_REGISTERS,
    SEMAPHORES,
)
from vc4lab.qpu.text.operands import (
    NOP_ADDRESS,
    Destination,
    parse_destination,
    parse_suffixes,
    place_destinations,
    value_of,
    word_of,
)
from vc4lab.qpu.text.syntax import Mistake, Slot, Text, unknown


def is_only_move(slots: list[Slot]) -> bool:
    """Whether the instruction only moves, so that a load immediate could do it."""
    return all(slot.name == "mov" for slot in slots if slot.name != "nop")


def with_fields(word: int, slot: Slot, symbols: Symbols) -> int:
    """A word with fields set by their names, as disassembly gives those without any effect."""
    instruction = Instruction.decode(word)
    for operand in slot.operands:
        name, equals, _ = operand.text.partition("=")
        name = name.strip()
        if not equals:
            raise Mistake("write with field=value", operand.column)
        fields = type(instruction).layout_fields
        if name not in fields:
            raise unknown("field", name, fields, operand.column)
        number = value_of(operand.part(operand.text.index("=") + 1), symbols)
        if not isinstance(number, int) or not 0 <= number < 1 << fields[name].width:
            raise Mistake(f"{name} has {fields[name].width} bits", operand.column)
        instruction = Instruction.decode(instruction.replace(**{name: number}).encode())
    return instruction.encode()


def encode_branch(slots: list[Slot], symbols: Symbols, address: int) -> int:
    """Word of a branch instruction that stands at a byte address."""
    slot = slots[0]
    if len(slots) > 1:
        raise Mistake("a branch fills the whole instruction", slots[1].column)
    condition = BranchCondition.ALWAYS
    sets_flags = False
    for suffix in slot.suffixes:
        if suffix == "setf":
            sets_flags = True
        elif suffix in BRANCH_CONDITIONS:
            condition = BRANCH_CONDITIONS[suffix]
        else:
            raise unknown("branch condition", suffix, BRANCH_CONDITION_NAMES, slot.column)
    if not 1 <= len(slot.operands) <= 3:
        raise Mistake(f"write {slot.name} [link register,] target", slot.column)
    *links, target = slot.operands
    destinations = [parse_destination(link) for link in links]
    for destination in destinations:
        if destination.pack:
            raise Mistake("a link register cannot be packed", destination.column)
    ws, waddr_add, waddr_mul = place_destinations(
        destinations[0] if destinations else None, destinations[1] if len(destinations) > 1 else None
    )
    relative = BRANCHES[slot.name]
    register, immediate = _target(target, relative, symbols, address + LINK_OFFSET)
    if register is not None and sets_flags and not register & 1:
        raise Mistake("with .setf the target register must be odd", target.column)
    return Branch.make(
        signal=Signal.BRANCH,
        condition=condition,
        relative=relative,
        register=int(register is not None),
        raddr_a=int(sets_flags) if register is None else register,
        ws=ws,
        waddr_add=waddr_add,
        waddr_mul=waddr_mul,
        immediate=immediate,
    ).encode()


def _target(text: Text, relative: int, symbols: Symbols, here: int) -> tuple[int | None, int]:
    """(register or None, immediate): ``ra3``, ``ra3+8``, an address, or ``+8``/``-8``.

    Signed numbers count from the instruction after the delay slots; so does the sum with a
    register in a relative branch.
    """
    name, sign, _ = text.text.partition("+")
    files = READ_REGISTERS.get(name.strip().lower(), {})
    if name.strip() and "a" in files and (register := files["a"]) < REGFILE_SIZE:
        offset = word_of(text.part(len(name) + 1), symbols) if sign else 0
        return register, offset
    if name.strip() and (files or name.strip().lower() in ACCUMULATORS):
        raise Mistake("a branch register is one of ra0..ra31", text.column)
    value = word_of(text, symbols)
    if text.text[0] in "+-":
        value += here
    if relative:
        value -= here
    return None, value & 0xFFFFFFFF


def encode_load(slots: list[Slot], kind: Slot, symbols: Symbols) -> int:
    """Load immediate and semaphore instructions: one value for one or both ALUs."""
    add: Destination | None = None
    mul: Destination | None = None
    conditions = [Condition.NEVER, Condition.NEVER]
    sets_flags = False
    value: Value | None = None
    pm: int | None = None
    index = 0
    for slot in slots:
        if slot.name in ("pm0", "pm1"):
            pm = int(slot.name[2])
            continue
        if index == 2:
            raise Mistake(f"{kind.name} leaves no room for more", slot.column)
        condition, setf = parse_suffixes(slot)
        sets_flags |= setf
        if slot.name == "nop":
            index += 1
            continue
        same = slot.name == kind.name or (slot.name in LOADS and kind.name in LOADS)
        if not same:
            raise Mistake(f"{kind.name} can only be paired with {kind.name}", slot.column)
        if len(slot.operands) != 2:
            raise Mistake(f"write {slot.name} register, value", slot.column)
        destination = parse_destination(slot.operands[0])
        conditions[index] = Condition.ALWAYS if condition is None else condition
        if index == 0:
            add = destination
        else:
            mul = destination
        here = value_of(slot.operands[1], symbols)
        if value is not None and here != value:
            raise Mistake("both sides load the same value", slot.operands[1].column)
        value = here
        index += 1
    pack, pm = _load_pack(add, mul, pm)
    ws, waddr_add, waddr_mul = place_destinations(add, mul, bool(pack) and pm == 0)
    mode, immediate = _load_value(kind, value)
    form = Semaphore if kind.name in SEMAPHORES else LoadImmediate
    word = form.make(
        signal=Signal.LOAD_IMMEDIATE,
        mode=mode,
        pm=pm,
        pack=pack,
        cond_add=conditions[0],
        cond_mul=conditions[1],
        sf=int(sets_flags),
        ws=ws,
        waddr_add=waddr_add,
        waddr_mul=waddr_mul,
    )
    return word.encode() | immediate


def _load_pack(add: Destination | None, mul: Destination | None, pm: int | None) -> tuple[int, int]:
    packed = [d for d in (add, mul) if d is not None and d.pack]
    if len(packed) == 2:
        raise Mistake("an instruction has only one pack", packed[1].column)
    if not packed:
        return 0, pm or 0
    destination = packed[0]
    in_regfile_a = destination.files.get("a", NOP_ADDRESS) < REGFILE_SIZE
    if pm is None:
        pm = int(destination is mul and destination.pack in MUL_PACKS)
    if (pm == 0 and not in_regfile_a) or (pm == 1 and destination is add):
        raise Mistake("the pack works only into ra0..ra31 here", destination.column)
    return destination.pack, pm


def _load_value(kind: Slot, value: Value | None) -> tuple[LoadMode, int]:
    column = kind.operands[1].column if len(kind.operands) > 1 else kind.column
    if kind.name in SEMAPHORES:
        if not isinstance(value, int) or not 0 <= value <= 0xFFFFFFFF:
            raise Mistake("a semaphore is a number from 0 to 15", column)
        if value > 0xF and not value >> 5:
            raise Mistake(f"semaphore {value} is not in 0..15", column)
        return LoadMode.SEMAPHORE, value & ~0x10 | SEMAPHORES[kind.name] << 4
    if isinstance(value, tuple):
        return _lane_value(value, column)
    try:
        return LoadMode.WORD, to_word(0 if value is None else value)
    except ExpressionError as error:
        raise Mistake(str(error), column) from None


def _lane_value(lanes: tuple[int, ...], column: int) -> tuple[LoadMode, int]:
    if len(lanes) != 16:
        raise Mistake(f"a vector has 16 elements, not {len(lanes)}", column)
    low, high = min(lanes), max(lanes)
    if not (low >= 0 and high <= 3) and not (low >= -2 and high <= 1):
        raise Mistake("the elements of a vector are all in 0..3 or all in -2..1", column)
    bits = sum((v & 1) << i | (v >> 1 & 1) << 16 + i for i, v in enumerate(lanes))
    return LoadMode.PER_LANE_UNSIGNED if high > 1 else LoadMode.PER_LANE_SIGNED, bits
