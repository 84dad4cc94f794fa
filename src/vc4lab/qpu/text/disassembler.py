"""Instruction words as text that the assembler takes back.

Where a word has bits without any effect (an operand not selected, a pack that reaches no packed
register), the text leaves them out; `.quad` shows words of reserved forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from vc4lab.qpu.isa.encoding import (
    NOP_WORD,
    Branch,
    Condition,
    Instruction,
    LoadImmediate,
    LoadMode,
    Semaphore,
    Signal,
)
from vc4lab.qpu.isa.operations import MUL_PACKS
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.alu_text import UNUSED, alu_text, number_text, pack_place, suffixes
from vc4lab.qpu.text.mnemonics import BRANCH_NAMES, PACK_NAMES


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
