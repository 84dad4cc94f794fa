"""How a line of QPU assembly falls into labels, directive or slots; positions kept for messages.

[/* … */] [label:] [add op [; mul op [; signal]] | .directive …] [# comment or // comment]
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_ERRORS: Final = 20

_LABEL: Final = re.compile(r"\s*(?:([A-Za-z_.$][\w.$]*)\s*:|:([A-Za-z_$][\w.$]*))")
_MNEMONIC: Final = re.compile(r"[^\s,]+")


@dataclass(frozen=True)
class SourceError(Exception):
    """One mistake: line and column count from 1."""

    line: int
    column: int
    message: str
    source: str = ""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"

    def shown(self, name: str = "") -> str:
        """Message with the source line and a mark under the place."""
        where = f"{name}:{self.line}:{self.column}: " if name else f"{self}".split(self.message)[0]
        line = self.source.expandtabs(1)
        return f"{where}{self.message}\n    {line}\n    {' ' * (self.column - 1)}^"


class AssemblyError(ValueError):
    """Everything wrong with a source text, in line order."""

    def __init__(self, errors: Iterable[SourceError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True)
class Text:
    """A piece of a line: ``column`` counts from 0."""

    text: str
    column: int

    def part(self, start: int, end: int | None = None) -> Text:
        """A slice without surrounding blanks."""
        piece = self.text[start:end]
        blanks = len(piece) - len(piece.lstrip())
        return Text(piece.strip(), self.column + start + blanks)


class Mistake(Exception):  # noqa: N818
    """A mistake at a column (from 0) of the line being read."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


def unknown(kind: str, name: str, allowed: Iterable[str], column: int) -> Mistake:
    """A mistake that says what could have stood there."""
    choices = sorted(set(allowed) - {""})
    close = difflib.get_close_matches(name, choices, 3)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif len(choices) <= 60:
        hint = "possible: " + ", ".join(choices)
    else:
        hint = "see the register map"
    return Mistake(f"unknown {kind} {name!r}; {hint}", column)


@dataclass(frozen=True)
class Slot:
    """One operation of an instruction: ``name.suffix.suffix operand, operand``."""

    name: str
    suffixes: tuple[str, ...]
    operands: tuple[Text, ...]
    column: int


@dataclass(frozen=True)
class Line:
    """What a source line holds, its comments removed."""

    number: int
    labels: tuple[Text, ...]
    directive: tuple[Text, Text] | None
    body: Text | None
    source: str


def split_outside(text: Text, separator: str) -> list[Text]:
    """Pieces between separators that are not inside parentheses, brackets or braces."""
    pieces = []
    depth = start = 0
    for position, character in enumerate(text.text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == separator and depth <= 0:
            pieces.append(text.part(start, position))
            start = position + 1
    pieces.append(text.part(start))
    return pieces


def parse_slot(text: Text) -> Slot:
    """Split mnemonic, dotted suffixes and operands."""
    match = _MNEMONIC.match(text.text)
    if match is None:
        raise Mistake("expected an operation", text.column)
    name, *suffixes = match[0].split(".")
    rest = text.part(match.end())
    operands = tuple(split_outside(rest, ",")) if rest.text else ()
    for operand in operands:
        if not operand.text:
            raise Mistake("an operand is missing", operand.column)
    return Slot(name.lower(), tuple(s.lower() for s in suffixes), operands, text.column)


def read_lines(source: str) -> list[Line]:
    """All lines of a text; labels keep their spelling, everything after a comment mark is gone."""
    lines = []
    in_comment = False
    for number, original in enumerate(source.splitlines(), 1):
        text, in_comment = _without_comments(original, in_comment)
        labels = []
        position = 0
        while match := _LABEL.match(text, position):
            group = 1 if match[1] is not None else 2
            labels.append(Text(match[group], match.start(group)))
            position = match.end()
        rest = Text(text, 0).part(position)
        directive = None
        if rest.text.startswith("."):
            name = rest.text.split(None, 1)[0]
            directive = (Text(name, rest.column), rest.part(len(name)))
        body = rest if rest.text and directive is None else None
        lines.append(Line(number, tuple(labels), directive, body, original))
    return lines


def _without_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    """The line with comments blanked out, so that columns stay."""
    text = list(line)
    position = 0
    while position < len(text):
        pair = line[position : position + 2]
        if in_comment:
            if pair == "*/":
                in_comment = False
                text[position : position + 2] = "  "
                position += 2
                continue
            text[position] = " "
        elif pair == "/*":
            in_comment = True
            text[position : position + 2] = "  "
            position += 2
            continue
        elif pair == "//" or line[position] == "#":
            return "".join(text[:position]), False
        position += 1
    return "".join(text), in_comment
