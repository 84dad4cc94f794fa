"""Prints for `compile`: a program beside its source, what each line takes, two programs side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.cli.compile_programs import Listed
    from vc4lab.driver.compiler.tgsi.program import Program
    from vc4lab.timing.graphics.result import ShaderUse
    from vc4lab.viewer.shader_page import ShaderPart

LANES = 16
TEXT = 46
"""Columns of an instruction."""


def listing(program: Listed, explain: bool) -> Iterator[str]:
    """The words with their meaning and source, then the uniform stream."""
    from vc4lab.driver.shader_clocks import shares
    from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
    from vc4lab.qpu.text.disassembler import disassemble

    shader = program.shader
    assert shader is not None
    threads = ", two threads" if shader.is_threaded else ""
    yield f"# {program.stage} program: {len(program.words)} instructions{threads}"
    taken: Mapping[int, tuple[float, int]] = {}
    if program.use is not None:
        yield f"# {taken_text(program.use)}"
        taken = shares(program.use)
    for index, word in enumerate(program.words):
        text = f"{index:4}  {word:016x}  {disassemble(word, INSTRUCTION_BYTES * index):<{TEXT}}"
        if taken:
            text += f" {taken[index][0]:8.1f}"
        source = program.text_of(program.lines[index] if index < len(program.lines) else ())
        if explain and index < len(program.tgsi) and program.tgsi[index]:
            source += f"  (TGSI line {', '.join(map(str, program.tgsi[index]))})"
        yield f"{text} # {source}" if source else text.rstrip()
    if shader.varyings:
        yield "\n# varyings: " + ", ".join(
            f"{one.name}[{one.index}].{'xyzw'[one.component]}" for one in shader.varyings
        )
    yield f"\n# {len(shader.uniforms)} uniforms"
    for number, uniform in enumerate(shader.uniforms):
        yield f"{number:4}  {uniform}"


def page_part(program: Listed) -> ShaderPart:
    """A program as a part of a page."""
    from vc4lab.driver.shader_clocks import shares
    from vc4lab.qpu.text.disassembler import disassemble
    from vc4lab.viewer.shader_page import InstructionRow, ShaderPart

    taken = shares(program.use) if program.use is not None else {}
    rows = [
        InstructionRow(
            disassemble(word, 8 * index).split("  #")[0],
            program.lines[index],
            taken[index][0] if taken else None,
        )
        for index, word in enumerate(program.words)
    ]
    notes = (taken_text(program.use),) if program.use is not None else ()
    title = f"{program.name}: {program.stage} program, {len(rows)} instructions"
    return ShaderPart(title, notes, program.source, rows)


def taken_text(use: ShaderUse) -> str:
    """A program's clocks in words."""
    waits = sorted(use.stalls.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{cause} {clocks / max(use.threads, 1):.1f}" for cause, clocks in waits[:4])
    return f"{use.clocks / max(use.threads, 1):.1f} clocks for {LANES} lanes (mean of {use.threads} runs)" + (
        f"; waits: {shown}" if shown else ""
    )


def line_table(program: Listed) -> Iterator[str]:
    """Each line of the source with its clocks and instructions. Those of several lines count for each
    with an equal part.
    """
    from vc4lab.driver.shader_clocks import shares

    assert program.use is not None
    taken = shares(program.use)
    clocks: dict[int, float] = {}
    counts: dict[int, float] = {}
    for index in range(len(program.words)):
        lines = program.lines[index] or (0,)
        for line in lines:
            clocks[line] = clocks.get(line, 0.0) + taken[index][0] / len(lines)
            counts[line] = counts.get(line, 0.0) + 1 / len(lines)
    total = max(sum(clocks.values()), 1e-9)
    yield f"\n# {program.stage} program, line by line"
    yield "  clocks  share  instructions  line"
    for line in sorted(clocks, key=lambda one: (one == 0, one)):
        text = program.source[line - 1].strip() if 0 < line <= len(program.source) else "(no line)"
        number = f"{line:<5}" if line else " " * 5
        yield f"{clocks[line]:8.1f} {100 * clocks[line] / total:5.1f} % {counts[line]:12.1f}  {number} {text}"


def steps(program: Program) -> Iterator[str]:
    """The text, the SSA form, and what it is without control flow."""
    from vc4lab.driver.compiler.ssa.flatten import flatten
    from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
    from vc4lab.driver.compiler.ssa.inspection import print_ssa
    from vc4lab.driver.compiler.ssa.optimise import optimise
    from vc4lab.driver.compiler.tgsi.program import print_tgsi

    function = optimise(to_ssa(program))
    yield "# text"
    yield print_tgsi(program).rstrip()
    yield "\n# SSA: one word per value"
    yield print_ssa(function).rstrip()
    yield "\n# without conditions and arrays"
    yield print_ssa(optimise(flatten(function))).rstrip()
    yield ""


def comparison(first: Listed, second: Listed) -> Iterator[str]:
    """Both in numbers, and how the second's instructions differ."""
    from vc4lab.driver.glsl.figures import figures_of
    from vc4lab.qpu.text.disassembler import disassemble

    figures = figures_of(first.words), figures_of(second.words)
    yield f"# {first.stage} program: {first.name} (first), {second.name} (second)"
    yield f"  {'':<28} {'first':>9} {'second':>9} {'change':>8}"
    for name, before in figures[0].items():
        yield _row(name, before, figures[1][name], "d")
    if first.shader is not None and second.shader is not None:
        yield _row("words of uniforms", len(first.shader.uniforms), len(second.shader.uniforms), "d")
    if first.use is not None and second.use is not None:
        clocks = [one.clocks / max(one.threads, 1) for one in (first.use, second.use)]
        yield _row(f"clocks for {LANES} lanes", clocks[0], clocks[1], ".1f")
        for cause in sorted({*first.use.stalls, *second.use.stalls}):
            waits = [one.stalls.get(cause, 0) / max(one.threads, 1) for one in (first.use, second.use)]
            yield _row(f"  waits: {cause}"[:28], waits[0], waits[1], ".1f")
    texts = [
        [disassemble(word, 8 * index).split("  #")[0] for index, word in enumerate(one.words)]
        for one in (first, second)
    ]
    if texts[0] == texts[1]:
        yield "the instructions are the same"
        return
    for line in difflib.unified_diff(texts[0], texts[1], first.name, second.name, "", "", n=2, lineterm=""):
        yield line.rstrip()


def _row(name: str, before: float, after: float, form: str) -> str:
    change = f"{100 * (after - before) / before:+.1f} %" if before >= 0.1 else "new"
    change = "" if f"{before:{form}}" == f"{after:{form}}" else change
    return f"  {name:<28} {before:>9{form}} {after:>9{form}} {change:>8}".rstrip()
