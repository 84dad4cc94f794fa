"""Shaders as a page of HTML: the source on the left, its instructions on the right, in the same colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from vc4lab.viewer.page import heading, page, paragraph

ANGLE = 137.5
"""Between the hues of lines that follow one another, in degrees."""
BESIDE = "display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start"
CODE = "font:13px/1.5 ui-monospace,monospace;margin:0;overflow-x:auto"


@dataclass(frozen=True)
class InstructionRow:
    """An instruction: its text, the lines of the source that it comes from, its clocks if it was timed."""

    text: str
    lines: tuple[int, ...]
    clocks: float | None = None


@dataclass(frozen=True)
class ShaderPart:
    """A program of the page: what it is called, what is said of it, its source, its instructions."""

    title: str
    notes: tuple[str, ...]
    source: Sequence[str]
    rows: Sequence[InstructionRow]


def shader_page(title: str, parts: Sequence[ShaderPart]) -> str:
    """The whole file."""
    found: list[str] = []
    for part in parts:
        found.append(heading(part.title))
        found += (paragraph(note, "faint") for note in part.notes)
        shown = {line: number for number, line in enumerate(_lines(part))}
        found.append(f'<div style="{BESIDE}">{_source(part, shown)}{_instructions(part, shown)}</div>')
    return page(title, found)


def _lines(part: ShaderPart) -> list[int]:
    """The lines that instructions come from."""
    return sorted({line for row in part.rows for line in row.lines})


def _colour(line: int, shown: dict[int, int]) -> str:
    if line not in shown:
        return ""
    return f"background:hsl({shown[line] * ANGLE % 360:.0f} 75% 50% / .2);"


def _row(colour: str, text: str, name: str = "") -> str:
    marked = f' id="{name}"' if name else ""
    return f'<div{marked} style="{colour}white-space:pre;padding:0 .4rem">{text or " "}</div>'


def _clocks(part: ShaderPart) -> dict[int, float]:
    """The clocks of each line; an instruction of several counts for each with an equal part."""
    found: dict[int, float] = {}
    for row in part.rows:
        for line in row.lines if row.clocks is not None else ():
            found[line] = found.get(line, 0.0) + (row.clocks or 0.0) / len(row.lines)
    return found


def _source(part: ShaderPart, shown: dict[int, int]) -> str:
    clocks = _clocks(part)
    rows = []
    for number, text in enumerate(part.source, 1):
        taken = f"{clocks[number]:8.1f} " if number in clocks else " " * 9 * bool(clocks)
        rows.append(_row(_colour(number, shown), f"{number:4} {taken} {escape(text)}"))
    return f'<div style="{CODE}">{"".join(rows)}</div>'


def _instructions(part: ShaderPart, shown: dict[int, int]) -> str:
    return f'<div style="{CODE}">{"".join(_instruction_rows(part, shown))}</div>'


def _instruction_rows(part: ShaderPart, shown: dict[int, int]) -> Iterator[str]:
    for number, row in enumerate(part.rows):
        taken = f"{row.clocks:8.1f} " if row.clocks is not None else ""
        lines = ",".join(map(str, row.lines))
        last = row.lines[-1] if row.lines else 0
        yield _row(_colour(last, shown), f"{number:4} {taken} {escape(row.text):<46} {lines}".rstrip())
