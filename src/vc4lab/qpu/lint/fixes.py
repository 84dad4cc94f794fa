"""Cures of lint findings that need no thought: `nop` where two instructions stand too close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, Branch, Instruction
from vc4lab.qpu.lint.lint import Pair, pairs
from vc4lab.qpu.lint.parts import parts
from vc4lab.qpu.text.assembly import Assembly

CURABLE = frozenset({"QPU-101", "QPU-102", "QPU-108", "QPU-110", "QPU-115"})
"""Codes of hazards that distance alone cures."""


class Fix(NamedTuple):
    """So many `nop` before a line of the source."""

    line: int
    nops: int
    code: str


def fixes(assembly: Assembly) -> dict[int, Fix]:
    """List what to insert before which lines.

    Left alone are instructions that several ways lead to, delay slots, whose number is fixed, and
    lines of other files or that made several instructions.
    """
    made = Counter((assembly.file(i), line) for i, (line, _) in enumerate(assembly.lines))
    found: dict[int, Fix] = {}
    for pair in _pairs(assembly):
        line, _ = assembly.lines[pair.after]
        alone = made[assembly.file(pair.after), line] == 1 and not assembly.file(pair.after)
        near = pair.after - pair.before == pair.distance
        if not alone or not near or _in_delay_slot(assembly.words, pair.after):
            continue
        count = pair.hazard.distance - pair.distance
        if line not in found or found[line].nops < count:
            found[line] = Fix(line, count, pair.hazard.code)
    return found


def _pairs(assembly: Assembly) -> Iterator[Pair]:
    for part in parts(assembly.words):
        for pair in pairs(part):
            if pair.hazard.code in CURABLE and not {pair.before, pair.after} & assembly.raw:
                yield pair


def _in_delay_slot(words: tuple[int, ...], index: int) -> bool:
    before = words[max(0, index - BRANCH_DELAY_SLOTS) : index]
    decoded = [Instruction.decode(word) for word in before]
    return any(isinstance(i, Branch) for i in decoded) or any(i.ends_program for i in decoded[-2:])


def fixed(text: str, found: dict[int, Fix]) -> str:
    """The source with the `nop`s inserted, each with the code that it is for."""
    rows = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        fix = found.get(number)
        if fix is not None:
            indent = line[: len(line) - len(line.lstrip())]
            rows += [f"{indent}nop  # {fix.code}\n"] * fix.nops
        rows.append(line)
    return "".join(rows)
