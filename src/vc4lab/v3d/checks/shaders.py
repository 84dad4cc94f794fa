"""Checks that a shader and its shader record agree, and the lint's rules: once a draw state.

Everything here is looked at when a pipeline is made, never for a draw that has one. Source:
hardware reference 4.15, 4.19, 7.4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.qpu.isa.registers import Read

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.qpu.lint.lint import Finding
    from vc4lab.qpu.program.program import Program

IMPLICIT_VARYINGS = {"points": 2, "lines": 1}
"""Varyings of a primitive, before those of its vertices."""


def varyings_read(program: Program) -> int:
    """How many varyings a program reads on its longest way; loops count once."""
    sites = [
        any(address == Read.VARYING for _, address in instruction.read_addresses())
        for instruction in program.instructions
    ]
    if not program.has_branches:
        return sum(sites)
    from vc4lab.qpu.lint.parts import parts

    part = next(parts(program.words))
    seen: dict[int, int] = {}
    todo = [(0, 0)]
    while todo:
        index, count = todo.pop()
        if index < part.stop and index not in seen:
            seen[index] = count = count + sites[index]
            todo += [(after, count) for after in part.successors(index)]
    return max(seen.values(), default=0)


def check_varyings(program: Program, declared: int, primitive: str, reporter: Reporter, hints: bool) -> bool:
    """Compares what a fragment program reads with its record; whether there is enough to read.

    hints: values that are left unread are reported, too.
    """
    there = declared + IMPLICIT_VARYINGS.get(primitive, 0)
    wanted = varyings_read(program)
    if wanted == there or not (wanted or declared) or _is_missing(program):  # a single colour, say
        return True
    enough = wanted < there
    if enough and not hints:
        return True
    code, but = ("FRG-009", "") if enough else ("FRG-008", "only ")
    text = f"the program reads {wanted} varyings, there are {but}{there}"
    if there != declared:
        text += f", of which {declared} are the record's and come last"
    reporter.report(code, text, address=program.address)
    return enough


def lint_program(program: Program, kind: str, reporter: Reporter) -> None:
    """Reports what the lint finds in a program. kind: "fragment shader", for example.

    Words that no way through the program leads to need not be instructions.
    """
    if program.pieces or _is_missing(program):  # distances between pieces are not those of the text
        return
    for finding in _findings(program.words):
        text = f"in a {kind}: {finding.message}"
        reporter.report(finding.code, text, address=program.address_of(finding.index))


def _is_missing(program: Program) -> bool:
    """Whether there are zeros instead of a program, which is reported when it is compiled."""
    return not program.words or not program.words[0]


@lru_cache(maxsize=256)
def _findings(words: tuple[int, ...]) -> list[Finding]:
    """A program is drawn with in several states."""
    from vc4lab.qpu.lint.lint import lint
    from vc4lab.qpu.lint.parts import reached

    findings = lint(words)
    inside = reached(words) if findings else frozenset()
    return [finding for finding in findings if finding.index in inside]
