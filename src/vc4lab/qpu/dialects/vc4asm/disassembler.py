"""Instruction words as text of vc4asm's dialect that assembles to the same bits.

A word for which no spelling comes to the same bits is data, `.long`, with what it does as a
comment; reserved forms and bits without effect are such words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from vc4lab.qpu.dialects.vc4asm.assembler import assemble
from vc4lab.qpu.isa.encoding import Alu, Branch, Instruction, LoadImmediate, Semaphore
from vc4lab.qpu.isa.operations import (
    ONE_OPERAND_ADD_OPS,
    SMALL_IMMEDIATES,
    BranchCondition,
    Condition,
    LoadMode,
    Mux,
    Pack,
    Signal,
)
from vc4lab.qpu.isa.registers import READ_NAMES, WRITE_NAMES
from vc4lab.qpu.text.disassembler import UNUSED, number_text, pack_place
from vc4lab.qpu.text.disassembler import disassemble as plain_text
from vc4lab.qpu.text.mnemonics import (
    ADD_NAMES,
    BRANCH_NAMES,
    CONDITION_NAMES,
    MUL_NAMES,
    PACK_NAMES,
    SIGNAL_NAMES,
    UNPACK_NAMES,
)
from vc4lab.qpu.text.syntax import AssemblyError


def disassemble(word: int, label: str = "") -> str:
    """One instruction as a line of vc4asm's dialect. label: the target of a branch, if it has a
    name.
    """
    if word >> 60 == Signal.BRANCH and label:
        return _branch(Branch(word), f"r:{label}")
    return _line(word)


@lru_cache(maxsize=16384)
def _line(word: int) -> str:
    for text in _spellings(word):
        try:
            words = assemble(text).words
        except AssemblyError:
            continue
        if words == (word,):
            return text
    return f".long 0x{word:016x}  # {plain_text(word)}"


def _spellings(word: int) -> Iterator[str]:
    """Texts that may come to a word, the plainest first."""
    instruction = Instruction.decode(word)
    if isinstance(instruction, Branch):
        offset = instruction.immediate
        if instruction.relative and offset >> 31:
            offset -= 1 << 32
        yield _branch(instruction, str(offset) if instruction.relative else f"0x{offset:x}")
    elif isinstance(instruction, LoadImmediate | Semaphore):
        yield from _loads(instruction)
    else:
        kinds = ("", "i", "f") if instruction.pack or instruction.unpack else ("",)
        for pinned in ((), ("w",), ("r",), ("r", "w")):
            for moves in (True, False):
                for kind in kinds:
                    yield _alu(instruction, moves, pinned, kind)


# Forms -------------------------------------------------------------------------------------------


def _condition(condition: int) -> str:
    name = CONDITION_NAMES[Condition(condition)]
    return f".{name}" if name == "never" else f".if{name}" if name else ""


def _branch(branch: Branch, target: str) -> str:
    condition = BRANCH_NAMES[BranchCondition(branch.condition)]
    name = ("brr" if branch.relative else "bra") + (f".{condition}" if condition else "")
    if branch.sf and not branch.register:
        name += ".setf"
    links = [branch.add_target]
    if branch.waddr_mul != UNUSED:
        links.append(branch.mul_target)
    targets = []
    if branch.register:
        targets.append(f"ra{branch.raddr_a}")
    if not branch.register or branch.immediate:
        targets.append(target)
    if len(links) == 2 and len(targets) == 1:
        targets.append("-")
    return f"{name} {', '.join(links + targets)}"


def _loads(word: LoadImmediate | Semaphore) -> Iterator[str]:
    if isinstance(word, Semaphore):
        name = "sacq" if word.acquire else "srel"
        value = str(word.number | word.unused << 5)
    elif word.mode == LoadMode.WORD:
        name, value = "ldi", number_text(word.immediate)
    elif word.mode in (LoadMode.PER_LANE_SIGNED, LoadMode.PER_LANE_UNSIGNED):
        signed = word.mode == LoadMode.PER_LANE_SIGNED
        name = "ldipes" if signed else "ldipeu"
        lanes = (lane - (1 << 32) if lane >> 31 else lane for lane in word.lanes())
        value = f"[{','.join(map(str, lanes))}]"
    else:
        return
    packed = pack_place(word.value)
    for suffix in ("", "s", "i", "sf"):
        pack = f".{_pack_name(word.pack, bool(word.pm))}{suffix}" if packed else ""
        parts = []
        flags = ".setf" if word.sf else ""
        for alu, target, address, condition in (
            ("add", word.add_target, word.waddr_add, word.cond_add),
            ("mul", word.mul_target, word.waddr_mul, word.cond_mul),
        ):
            if address == UNUSED and condition == Condition.NEVER and (alu == "mul" or not flags):
                parts.append("" if alu == "mul" else f"{name} -, {value}")
                continue
            to = target + (pack if packed == alu else "")
            parts.append(f"{name}{_condition(condition)}{flags} {to}, {value}")
            flags = ""
        yield ";  ".join(part for part in parts if part)


def _pack_name(code: int, pm: bool) -> str:
    return PACK_NAMES[Pack(code ^ 8 if pm and code & 4 else code)]


def _target(word: Alu, alu: str, pinned: tuple[str, ...]) -> str:
    file = word.add_file if alu == "add" else word.mul_file
    address = word.waddr_add if alu == "add" else word.waddr_mul
    return f"r{file}{address}" if "w" in pinned else WRITE_NAMES[file][address]


def _alu(word: Alu, moves: bool, pinned: tuple[str, ...], kind: str) -> str:
    """An ALU instruction. moves: `mov` where it is one. pinned: "r", "w": registers that both
    files have, read or written, by number and file. kind: of the pack or unpack, "i" or "f".
    """
    immediate = word.has_small_immediate
    reads = [READ_NAMES["a"][word.raddr_a], READ_NAMES["b"][word.raddr_b]]
    if "r" in pinned:
        reads = [f"ra{word.raddr_a}", f"rb{word.raddr_b}"]
    if immediate:
        reads[1] = number_text(SMALL_IMMEDIATES[word.raddr_b])
    sources = [*(f"r{n}" for n in range(6)), *reads]
    if word.unpack:
        name = UNPACK_NAMES[word.unpack] + (kind if word.unpack != 3 else "")
        sources[Mux.R4 if word.pm else Mux.A] += f".{name}"
    rotation = ""
    if word.rotation is not None:
        rotation = " << r5" if word.rotation == "r5" else f" >> {word.rotation}"
    packed = pack_place(word.value)
    pack = f".{_pack_name(word.pack, bool(word.pm))}{kind}" if packed else ""
    used: set[int] = set()
    to_add = _target(word, "add", pinned) + (pack if packed == "add" else "")
    to_mul = _target(word, "mul", pinned) + (pack if packed == "mul" else "")
    add, flags = _add(word, sources, to_add, moves, used)
    mul = _mul(word, sources, to_mul, moves, used, rotation, flags)
    parts = [add or ("anop" if mul and word.op_mul else ""), mul]
    for mux, number, read in ((Mux.A, word.raddr_a, reads[0]), (Mux.B, word.raddr_b, reads[1])):
        if int(mux) not in used and (number != UNUSED or (immediate and mux == Mux.B)):
            parts.append(f"read {read}")
    if not immediate and word.signal != Signal.NONE:
        parts.append(SIGNAL_NAMES[Signal(word.signal)])
    return ";  ".join(part for part in parts if part) or "nop"


def _add(word: Alu, sources: list[str], target: str, moves: bool, used: set[int]) -> tuple[str, str]:
    """The add operation, and `.setf` if it is left for the mul operation."""
    flags = ".setf" if word.sf else ""
    if not word.op_add:
        if word.waddr_add == UNUSED and not (word.sf and not word.op_mul):
            return "", flags
        return f"anop{_condition(word.cond_add)}{flags} {target}", ""
    suffix = _condition(word.cond_add) + flags
    if word.waddr_add == UNUSED and not word.sf:
        suffix = ""  # without a destination there is no condition
    used.add(int(word.add_a))
    first = sources[word.add_a]
    if word.add_is_move and moves:
        return f"mov{suffix} {target}, {first}", ""
    name = ADD_NAMES[word.op_add]
    name = f"a{name}" if name.startswith("v8") else name
    if word.op_add in ONE_OPERAND_ADD_OPS:
        return f"{name}{suffix} {target}, {first}", ""
    used.add(int(word.add_b))
    return f"{name}{suffix} {target}, {first}, {sources[word.add_b]}", ""


def _mul(
    word: Alu, sources: list[str], target: str, moves: bool, used: set[int], rotation: str, flags: str
) -> str:
    suffix = _condition(word.cond_mul) + flags
    if not word.op_mul:
        if word.waddr_mul == UNUSED:
            return ""
        return f"mnop{suffix} {target}"
    if word.waddr_mul == UNUSED and not flags:
        suffix = ""
    used |= {int(word.mul_a), int(word.mul_b)}
    first, second = (sources[mux] + (rotation if mux != Mux.B else "") for mux in (word.mul_a, word.mul_b))
    if word.mul_is_move and moves:
        return f"mov{suffix} {target}, {first}"
    name = MUL_NAMES[word.op_mul]
    name = f"m{name}" if name in ("v8adds", "v8subs") else name
    return f"{name}{suffix} {target}, {first}, {second}"
