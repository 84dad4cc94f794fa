"""Programs as text, as Mesa prints them: reading the text again gives an equal program."""

from __future__ import annotations

from vc4lab.driver.compiler.tgsi.program import Immediate, Program


def print_tgsi(program: Program) -> str:
    """The text, ending in a newline."""
    lines = [program.stage]
    immediates = 0
    for item in program.items:
        if isinstance(item, Immediate):
            lines.append(f"IMM[{immediates}] {item}")
            immediates += 1
        else:
            lines.append(str(item))
    depth = 0
    for number, instruction in enumerate(program.instructions):
        operation = instruction.operation
        depth -= operation.closes
        lines.append(f"{number:3d}: {'  ' * depth}{instruction}")
        depth += operation.opens
    return "\n".join(lines) + "\n"
