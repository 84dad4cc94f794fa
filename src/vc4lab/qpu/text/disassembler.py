"""Instruction words as text that the assembler takes back.

Where a word has bits without any effect (an operand not selected, a pack that reaches no packed
register), the text leaves them out; `.quad` shows words of reserved forms. Where only `ra32` or
`rb32` says through which file a register is read that both have, a comment has its name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from vc4lab.qpu.isa.accesses import CONSUMING_READS
from vc4lab.qpu.isa.encoding import NOP_WORD, Branch, Instruction, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import (
    MUL_PACKS,
    ONE_OPERAND_ADD_OPS,
    ROTATE_BY_R5,
    SMALL_IMMEDIATES,
    AddOp,
    Condition,
    LoadMode,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import READ_NAMES, REGFILE_SIZE, WRITE_NAMES
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.mnemonics import (
    ADD_NAMES,
    BRANCH_NAMES,
    CONDITION_NAMES,
    MUL_NAMES,
    PACK_NAMES,
    SIGNAL_NAMES,
    UNPACK_NAMES,
)

UNUSED: Final = 39
"""The address that a result is written to nowhere."""


def disassemble(word: int, address: int | None = None) -> str:
    """One instruction as a line of assembly.

    With the byte ``address`` of the instruction, a relative branch gets its target as a comment.
    """
    if word >> 60 == Signal.BRANCH:
        return _branch(Branch(word), address)
    return _no_branch(word)


@lru_cache(maxsize=16384)
def _no_branch(word: int) -> str:
    """Text of an instruction that means the same at every address; programs repeat many."""
    if word >> 60 != Signal.LOAD_IMMEDIATE:
        return alu_text(word)
    instruction = Instruction.decode(word)
    assert isinstance(instruction, LoadImmediate | Semaphore)
    return _load(instruction)


def disassemble_program(program: Program) -> Iterator[tuple[int, int, str]]:
    """(address, word, text) of every instruction of a program."""
    for index, word in enumerate(program.words):
        address = program.address_of(index)
        yield address, word, disassemble(word, address)


def _load(instruction: LoadImmediate | Semaphore) -> str:
    if isinstance(instruction, Semaphore):
        name = "sacq" if instruction.acquire else "srel"
        value = str(instruction.number)
        if instruction.unused:
            value = f"0x{instruction.unused << 5 | instruction.number:x}"
    elif instruction.mode == LoadMode.WORD:
        name, value = "ldi", number_text(instruction.immediate)
    elif instruction.mode in (LoadMode.PER_LANE_SIGNED, LoadMode.PER_LANE_UNSIGNED):
        lanes = (lane - (1 << 32) if lane >> 31 else lane for lane in instruction.lanes())
        name, value = "ldi", f"[{', '.join(map(str, lanes))}]"
    else:
        return f".quad 0x{instruction.encode():016x}"
    packed = pack_place(instruction.value)
    slots = []
    sets_flags = bool(instruction.sf)
    for alu, target, address, condition in (
        ("add", instruction.add_target, instruction.waddr_add, instruction.cond_add),
        ("mul", instruction.mul_target, instruction.waddr_mul, instruction.cond_mul),
    ):
        if address == UNUSED and condition == Condition.NEVER:
            slots.append("nop")
            continue
        pack = f".{PACK_NAMES[instruction.pack]}" if packed == alu else ""
        slots.append(f"{name}{suffixes(condition, sets_flags)} {target}{pack}, {value}")
        sets_flags = False
    if slots == ["nop", "nop"]:
        slots[0] = f"{name}{suffixes(0, sets_flags)} -, {value}"
    if slots[1] == "nop":
        slots.pop()
    if packed == "mul" and instruction.pack in MUL_PACKS and not instruction.pm:
        slots.append("pm0")
    return "; ".join(slots)


def _branch(branch: Branch, address: int | None) -> str:
    name = "brr" if branch.relative else "bra"
    condition = BRANCH_NAMES[branch.condition]
    suffix = f".{condition}" if condition else ""
    if branch.sf and not branch.register:
        suffix += ".setf"
    links = [branch.add_target]
    if branch.waddr_mul != UNUSED:
        links.append(branch.mul_target)
    immediate = branch.immediate
    if branch.register:
        base = f"ra{branch.raddr_a}"
        target = f"{base}+0x{immediate:x}" if immediate else base
    elif branch.relative:
        offset = immediate - (1 << 32) if immediate >> 31 else immediate
        target = f"{offset:+d}"
        if address is not None:
            target += f"  # -> 0x{branch.target(address):x}"
    else:
        target = f"0x{immediate:x}"
    return f"{name}{suffix} {', '.join(links)}, {target}"


__all__ = ["NOP_WORD", "disassemble", "disassemble_program", "number_text"]


# -- ALU instructions: whole memories are disassembled, so bits of the word index tables here,
# without an object for each instruction (`isa.Alu` has the fields by name).


def number_text(word: int) -> str:
    """A 32-bit immediate: small integers in decimal, short floats as such, the rest in hex."""
    signed = word - (1 << 32) if word >> 31 else word
    if -16 <= signed <= 255:
        return str(signed)
    (value,) = struct.unpack("<f", struct.pack("<I", word))
    text = repr(value)
    if 1e-5 < abs(value) < 1e6 and len(text) <= 10 and word & 0xFFF == 0:
        return text
    return f"0x{word:08x}"


def suffixes(condition: int, sets_flags: bool) -> str:
    """The text that follows the name of an operation."""
    name = CONDITION_NAMES[Condition(condition)]
    return (f".{name}" if name else "") + (".setf" if sets_flags else "")


def pack_place(word: int) -> str:
    """Which ALU's result is packed: "add", "mul" or "" for none."""
    pack = word >> 52 & 15
    if not pack:
        return ""
    if word >> 56 & 1:
        return "mul" if pack in MUL_PACKS else ""
    if word >> 44 & 1:  # the mul ALU writes file A
        return "mul" if word >> 32 & 63 < REGFILE_SIZE else ""
    return "add" if word >> 38 & 63 < REGFILE_SIZE else ""


_SUFFIXES = tuple(suffixes(n >> 1, bool(n & 1)) for n in range(16))
"""By condition times two, plus the bit that sets flags."""
_ADD = tuple(ADD_NAMES[AddOp(n)] for n in range(32))
_MUL = tuple(MUL_NAMES[MulOp(n)] for n in range(8))
_TARGETS = tuple(tuple(WRITE_NAMES[file][n] for n in range(64)) for file in ("a", "b"))
_READ_A, _READ_B = (tuple(READ_NAMES[file][n] for n in range(64)) for file in ("a", "b"))
_SMALL = tuple(number_text(word) for word in SMALL_IMMEDIATES)
_ROTATIONS = tuple("" if code < ROTATE_BY_R5 else f" >> {code - ROTATE_BY_R5 or 'r5'}" for code in range(64))
_SAME_IN_BOTH = frozenset(n for n in range(REGFILE_SIZE, 64) if _READ_A[n] == _READ_B[n])
"""Addresses with the same name in both files, so that only `ra32` and `rb32` say which one."""
_ACCUMULATORS = [f"r{n}" for n in range(Mux.A)]
_A, _B, _R4 = int(Mux.A), int(Mux.B), int(Mux.R4)
_SIGNALS = {int(signal): name for signal, name in SIGNAL_NAMES.items()}
_SMALL_IMMEDIATE = int(Signal.SMALL_IMMEDIATE)


def alu_text(word: int) -> str:
    """The whole line: the add operation, the mul operation, the signal and what else matters."""
    op_add, op_mul = word >> 24 & 31, word >> 29 & 7
    add_a, add_b, mul_a, mul_b = word >> 9 & 7, word >> 6 & 7, word >> 3 & 7, word & 7
    raddr_a, raddr_b = word >> 18 & 63, word >> 12 & 63
    immediate = word >> 60 == _SMALL_IMMEDIATE
    one_operand = op_add in ONE_OPERAND_ADD_OPS
    used = 0
    if op_add:
        used = 1 << add_a | (0 if one_operand else 1 << add_b)
    if op_mul:
        used |= 1 << mul_a | 1 << mul_b

    sources = [*_ACCUMULATORS, _READ_A[raddr_a], _READ_B[raddr_b]]
    if immediate:
        sources[_B] = _SMALL[raddr_b]
    reads_a = not used >> _A & 1 and raddr_a in CONSUMING_READS
    reads_b = not immediate and not used >> _B & 1 and raddr_b in CONSUMING_READS
    shared = raddr_a == raddr_b in _SAME_IN_BOTH and not immediate
    if shared and (reads_a or used >> _A & 1) and (reads_b or used >> _B & 1):
        sources[_A:] = f"ra{raddr_a}", f"rb{raddr_b}"
    else:
        shared = False
    unpack, pm = word >> 57 & 7, word >> 56 & 1
    if unpack:
        sources[_R4 if pm else _A] += f".{UNPACK_NAMES[unpack]}"  # type: ignore[index]

    packed = pack_place(word)
    swapped, sets_flags = word >> 44 & 1, word >> 45 & 1
    if not op_add:
        add = "nop.setf" if sets_flags and not op_mul else "nop"
    else:
        target = _TARGETS[swapped][word >> 38 & 63]
        if packed == "add":
            target += f".{PACK_NAMES[word >> 52 & 15]}"  # type: ignore[index]
        suffix = _SUFFIXES[(word >> 49 & 7) << 1 | sets_flags]
        if op_add == AddOp.OR and add_a == add_b:
            add = f"mov{suffix} {target}, {sources[add_a]}"
        elif one_operand:
            add = f"{_ADD[op_add]}{suffix} {target}, {sources[add_a]}"
        else:
            add = f"{_ADD[op_add]}{suffix} {target}, {sources[add_a]}, {sources[add_b]}"

    mul, condition = "nop", word >> 46 & 7
    if op_mul or (word >> 32 & 63 != UNUSED and condition):
        target = _TARGETS[1 - swapped][word >> 32 & 63]
        if packed == "mul":
            target += f".{PACK_NAMES[word >> 52 & 15]}"  # type: ignore[index]
        suffix = _SUFFIXES[condition << 1 | (sets_flags and op_mul and not op_add)]
        rotation = _ROTATIONS[raddr_b] if immediate else ""
        first = sources[mul_a] + (rotation if mul_a != _B else "")
        if not op_mul:
            mul = f"nop{_SUFFIXES[condition << 1]} {target}"
        elif op_mul == MulOp.V8MIN and mul_a == mul_b:
            mul = f"mov{suffix} {target}, {first}"
        else:
            second = sources[mul_b] + (rotation if mul_b != _B else "")
            mul = f"{_MUL[op_mul]}{suffix} {target}, {first}, {second}"

    extra = ""
    if reads_a:
        extra = f"; read {f'ra{raddr_a}' if shared else _READ_A[raddr_a]}"
    if reads_b:
        taken = reads_a or (used >> _A & 1 and raddr_a not in _SAME_IN_BOTH)
        named = not shared and (taken or raddr_b not in _SAME_IN_BOTH)
        extra += f"; read {_READ_B[raddr_b] if named else f'rb{raddr_b}'}"
        shared |= not named
    told = unpack and used >> (_R4 if pm else _A) & 1
    if packed == "mul" and not pm and not told and word >> 52 & 15 in MUL_PACKS:
        extra = f"; pm0{extra}"  # the assembler would choose the other one
    comment = f"  # {_READ_B[raddr_b]}" if shared else ""
    if not immediate and word >> 60 != Signal.NONE:
        return f"{add}; {mul}; {_SIGNALS[word >> 60]}{extra}{comment}"
    if mul != "nop" or extra:
        return f"{add}; {mul}{extra}{comment}"
    return f"{add}{comment}"
