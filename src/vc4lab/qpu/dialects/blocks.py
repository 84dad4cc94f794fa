"""A program as text with labels, basic blocks, registers in use, uniforms and textures.

Everything that is added is a comment, so that the text assembles to the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from vc4lab.qpu.dialects.vc4asm.disassembler import disassemble as vc4asm_text
from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Branch,
    Instruction,
)
from vc4lab.qpu.isa.operations import BranchCondition
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.exact import disassemble_exactly

_READS: Final = Kind.REGISTER_READ | Kind.ACCUMULATOR_READ
_WRITES: Final = Kind.REGISTER_WRITE | Kind.ACCUMULATOR_WRITE
_SHOWN_REGISTERS: Final = 12


def _target(word: int, index: int, count: int) -> int | None:
    """The instruction a branch leads to, if that shows in it and is in the program."""
    instruction = Instruction.decode(word)
    if not isinstance(instruction, Branch) or instruction.register or not instruction.relative:
        return None
    target, rest = divmod(instruction.target(INSTRUCTION_BYTES * index), INSTRUCTION_BYTES)
    return target if not rest and target < count else None


@dataclass(eq=False)
class Block:
    """Instructions that are executed one after the other: `start` up to `stop`."""

    start: int
    stop: int
    label: str
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    outside: bool = False
    """Whether it may leave the program by a branch."""


NO_LABELS: Final[Mapping[int, str]] = {}


def blocks_of(words: tuple[int, ...], labels: Mapping[int, str] = NO_LABELS) -> list[Block]:
    """The basic blocks of a program, in order. A branch takes effect after its delay slots.

    labels: names of blocks that begin with an instruction; it begins one in any case.
    """
    count = len(words)
    if not words:
        return []
    leaders = {0, *labels}
    for index, word in enumerate(words):
        instruction = Instruction.decode(word)
        if isinstance(instruction, Branch):
            leaders.add(index + 1 + BRANCH_DELAY_SLOTS)
            target = _target(word, index, count)
            if target is not None:
                leaders.add(target)
        elif instruction.ends_program:
            leaders.add(index + 1 + END_DELAY_SLOTS)
    starts = sorted(leader for leader in leaders if leader < count)
    blocks = [
        Block(start, stop, labels.get(start, f"L{number}"))
        for number, (start, stop) in enumerate(zip(starts, [*starts[1:], count], strict=True))
    ]
    by_start = {block.start: block for block in blocks}
    for block in blocks:
        for following in dict.fromkeys(_following(words, block, by_start)):
            block.after.append(following.start)
            following.before.append(block.start)
    return blocks


def _following(words: tuple[int, ...], block: Block, by_start: dict[int, Block]) -> Iterator[Block]:
    branch_at = block.stop - 1 - BRANCH_DELAY_SLOTS
    end_at = block.stop - 1 - END_DELAY_SLOTS
    if end_at >= 0 and Instruction.decode(words[end_at]).ends_program:
        return
    branch = Instruction.decode(words[branch_at]) if branch_at >= 0 else None
    falls = True
    if isinstance(branch, Branch):
        falls = branch.condition != BranchCondition.ALWAYS
        target = _target(words[branch_at], branch_at, len(words))
        if target is None:
            block.outside = True
        else:
            yield by_start[target]
    if falls and block.stop in by_start:
        yield by_start[block.stop]


def _registers(words: tuple[int, ...], block: Block) -> tuple[list[str], list[str]]:
    """Return the registers that a block reads before it writes them, and those that it writes."""
    taken: dict[str, None] = {}
    written: dict[str, None] = {}
    for word in words[block.start : block.stop]:
        touched = accesses(word)
        for name in sorted(touched.at(_READS)):
            if name not in written:
                taken.setdefault(name)
        written |= dict.fromkeys(sorted(touched.at(_WRITES)))
    return list(taken), list(written)


def _short(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN_REGISTERS} more" if len(names) > _SHOWN_REGISTERS else ""
    return " ".join(names[:_SHOWN_REGISTERS]) + more if names else "nothing"


def _notes(program: Program, known: Mapping[int, str]) -> dict[int, list[str]]:
    """Describe what instructions take from the uniform stream, by their index; known: words on uniforms."""
    found: dict[int, list[str]] = {}
    for site in program.uniform_sites:
        if site.kind == "uniform":
            text = f"uniform {site.index}"
        else:
            text = (
                f"uniform {site.index}: parameter {site.parameter} of texture request "
                f"{site.request} of TMU {site.unit}"
            )
        if site.index in known:
            text = f"{text} ({known[site.index]})"
        found.setdefault(site.instruction_index, []).append(text)
    for request in program.texture_requests:
        kind = "memory lookup" if request.is_direct else "texture request"
        text = f"{kind} {request.request} of TMU {request.unit} starts"
        found.setdefault(request.instruction_index, []).append(text)
    return found


def _qpuasm_line(word: int, label: str) -> str:
    text, mark, comment = disassemble_exactly(word).partition("  # ")
    if label:
        branch, with_, fields = text.partition("; with")
        text = f"{branch.rpartition(', ')[0]}, {label}{with_}{fields}"
    return text + mark + comment


def _vc4asm_line(word: int, label: str) -> str:
    plain = vc4asm_text(word)
    return plain if plain.startswith(".") else vc4asm_text(word, label)


LINES: Final[dict[str, Callable[[int, str], str]]] = {"qpuasm": _qpuasm_line, "vc4asm": _vc4asm_line}
"""Dialect -> an instruction's line, given the name of its branch target."""


def program_text(
    words: tuple[int, ...],
    dialect: str = "qpuasm",
    address: int = 0,
    labels: Mapping[int, str] = NO_LABELS,
    made: str = "made by vc4lab disasm",
    known: Mapping[int, str] | None = None,
) -> str:
    """A program in a dialect, with labels at branch targets and comments about each block.

    labels: names for instructions that blocks begin with; made: its first comment; known: what uniforms
    are, by their number in the order of the text.
    """
    line = LINES[dialect]
    program = Program(words, address)
    blocks = blocks_of(words, labels)
    names = {block.start: block.label for block in blocks}
    notes = _notes(program, known or {})
    loops = program.has_branches
    rows: list[str] = []
    for block in blocks:
        taken, written = _registers(words, block)
        came = ", ".join(names[start] for start in block.before) or "the start"
        goes = [names[start] for start in block.after] + ["outside"] * block.outside
        rows += [
            "" if rows else f"# {made}",
            f"# {block.label}: from {came}; to {', '.join(goes) or 'the end'}; "
            f"takes {_short(taken)}; writes {_short(written)}",
            f":{block.label}" if dialect == "vc4asm" else f"{block.label}:",
        ]
        for index in range(block.start, block.stop):
            target = _target(words[index], index, len(words))
            text = line(words[index], names[target] if target is not None else "")
            told = notes.get(index, [])
            if loops and told:
                told = [f"{note} (in the order of the text)" for note in told[:1]] + told[1:]
            mark = "  # " if "  # " not in text else "; "
            rows.append(f"    {text}{mark + '; '.join(told) if told else ''}")
    return "\n".join(rows) + "\n"
