"""Instruction words as text that the assembler takes back.

Where a word has bits without any effect (an operand nobody selects, a pack that reaches no packed
register), the text leaves them out; `.quad` shows words of reserved forms.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from vc4lab.qpu.isa import (
    NOP_WORD,
    REGFILE_SIZE,
    Alu,
    Branch,
    Condition,
    Instruction,
    LoadImmediate,
    LoadMode,
    Mux,
    Semaphore,
    Signal,
)
from vc4lab.qpu.mnemonics import (
    ADD_NAMES,
    BRANCH_NAMES,
    CONDITION_NAMES,
    MUL_NAMES,
    PACK_NAMES,
    SIGNAL_NAMES,
    UNPACK_NAMES,
)
from vc4lab.qpu.operations import MUL_PACKS, ONE_OPERAND_ADD_OPS, AddOp, MulOp
from vc4lab.qpu.program import Program
from vc4lab.qpu.registers import Read

_UNUSED = 39
_CONSUMING_READS = frozenset(
    {Read.UNIFORM, Read.VARYING, Read.VPM, Read.VPM_BUSY, Read.VPM_WAIT, Read.MUTEX_ACQUIRE}
)


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
    instruction = Instruction.decode(word)
    if isinstance(instruction, Alu):
        return _AluText(instruction).text()
    assert isinstance(instruction, LoadImmediate | Semaphore)
    return _load(instruction)


def disassemble_program(program: Program) -> Iterator[tuple[int, int, str]]:
    """(address, word, text) of every instruction of a program."""
    for index, word in enumerate(program.words):
        address = program.address_of(index)
        yield address, word, disassemble(word, address)


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


def _suffixes(condition: int, sets_flags: bool) -> str:
    name = CONDITION_NAMES[Condition(condition)]
    return (f".{name}" if name else "") + (".setf" if sets_flags else "")


def _pack_place(instruction: Alu | LoadImmediate | Semaphore) -> str:
    """Which ALU's result is packed: "add", "mul" or "" for none."""
    if not instruction.pack:
        return ""
    if instruction.pm:
        return "mul" if instruction.pack in MUL_PACKS else ""
    add, mul = instruction.write_addresses()
    if add[0] == "a":
        return "add" if add[1] < REGFILE_SIZE else ""
    return "mul" if mul[1] < REGFILE_SIZE else ""


class _AluText:
    """Text of one ALU instruction, piece by piece."""

    def __init__(self, alu: Alu) -> None:
        self.alu = alu
        self.used = alu.muxes()
        self.packed = _pack_place(alu)
        self.pm_is_told = False  # by an unpack suffix
        same = alu.raddr_a == alu.raddr_b and not alu.has_small_immediate
        self.explicit = same and alu.raddr_a >= REGFILE_SIZE and {Mux.A, Mux.B} <= self.used

    def text(self) -> str:
        alu = self.alu
        add = self.add_text()
        mul = self.mul_text()
        signal = "" if alu.has_small_immediate else SIGNAL_NAMES[alu.signal]
        extra = [f"read {name}" for name in self.unselected_reads()]
        pm = self.explicit_pm()
        if pm:
            extra.append(pm)
        slots = [add]
        if signal in ("", "nop"):
            if mul != "nop" or extra:
                slots.append(mul)
        else:
            slots += [mul, signal]
        return "; ".join([*slots, *extra])

    def add_text(self) -> str:
        alu = self.alu
        setf = bool(alu.sf) and (alu.op_add != AddOp.NOP or alu.op_mul == MulOp.NOP)
        if alu.op_add == AddOp.NOP:
            return "nop" + (".setf" if setf else "")
        head = ("mov" if alu.add_is_move else ADD_NAMES[alu.op_add]) + _suffixes(alu.cond_add, setf)
        operands = [self.destination(alu.add_target, "add"), self.source(alu.add_a)]
        if not alu.add_is_move and alu.op_add not in ONE_OPERAND_ADD_OPS:
            operands.append(self.source(alu.add_b))
        return f"{head} {', '.join(operands)}"

    def mul_text(self) -> str:
        alu = self.alu
        if alu.op_mul == MulOp.NOP:
            if alu.waddr_mul == _UNUSED or alu.cond_mul == Condition.NEVER:
                return "nop"
            return f"nop{_suffixes(alu.cond_mul, False)} {self.destination(alu.mul_target, 'mul')}"
        setf = bool(alu.sf) and alu.op_add == AddOp.NOP
        head = ("mov" if alu.mul_is_move else MUL_NAMES[alu.op_mul]) + _suffixes(alu.cond_mul, setf)
        operands = [self.destination(alu.mul_target, "mul")]
        for mux in (alu.mul_a,) if alu.mul_is_move else (alu.mul_a, alu.mul_b):
            rotated = alu.rotation is not None and mux != Mux.B
            operands.append(self.source(mux) + (f" >> {alu.rotation}" if rotated else ""))
        return f"{head} {', '.join(operands)}"

    def destination(self, name: str, alu: str) -> str:
        return f"{name}.{PACK_NAMES[self.alu.pack]}" if alu == self.packed else name

    def source(self, mux: Mux) -> str:
        alu = self.alu
        if mux == Mux.B and (immediate := alu.small_immediate) is not None:
            return number_text(immediate)
        name = alu.operand_name(mux)
        if self.explicit and mux in (Mux.A, Mux.B):
            name = f"r{'a' if mux == Mux.A else 'b'}{alu.raddr_a}"
        if alu.unpack and mux == (Mux.R4 if alu.pm else Mux.A):
            self.pm_is_told = True
            return f"{name}.{UNPACK_NAMES[alu.unpack]}"
        return name

    def unselected_reads(self) -> Iterator[str]:
        """Reads with side effects that no operand selects."""
        alu = self.alu
        reads = dict(alu.read_addresses())
        for file, mux in (("a", Mux.A), ("b", Mux.B)):
            address = reads.get(file, _UNUSED)  # type: ignore[call-overload]
            if mux in self.used or address not in _CONSUMING_READS:
                continue
            yield f"r{file}{address}"

    def explicit_pm(self) -> str:
        """``pm0``/``pm1`` where the assembler would choose the other one."""
        if self.packed != "mul" or self.pm_is_told or self.alu.pack not in MUL_PACKS:
            return ""
        return "" if self.alu.pm else "pm0"


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
    packed = _pack_place(instruction)
    slots = []
    sets_flags = bool(instruction.sf)
    for alu, target, address, condition in (
        ("add", instruction.add_target, instruction.waddr_add, instruction.cond_add),
        ("mul", instruction.mul_target, instruction.waddr_mul, instruction.cond_mul),
    ):
        if address == _UNUSED and condition == Condition.NEVER:
            slots.append("nop")
            continue
        pack = f".{PACK_NAMES[instruction.pack]}" if packed == alu else ""
        slots.append(f"{name}{_suffixes(condition, sets_flags)} {target}{pack}, {value}")
        sets_flags = False
    if slots == ["nop", "nop"]:
        slots[0] = f"{name}{_suffixes(0, sets_flags)} -, {value}"
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
    if branch.waddr_mul != _UNUSED:
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
