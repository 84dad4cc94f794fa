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
"""Mistakes shown; the rest is counted."""

MAX_SOURCE: Final = 4 << 20
"""Bytes of a source text: a hundred thousand instructions."""

MAX_INSTRUCTIONS: Final = 1 << 17
"""Instructions of a program: a megabyte of code."""

_SHOWN_COLUMNS: Final = 120
_SHOWN_CALLERS: Final = 4
_HINT_CHOICES: Final = 2000
"""Names among which similar ones are looked for; more would take seconds."""

_LABEL: Final = re.compile(r"\s*(?:([A-Za-z_.$][\w.$]*)\s*:|:([A-Za-z_$][\w.$]*))")
_MNEMONIC: Final = re.compile(r"[^\s,]+")
_STRUCTURE: Final = re.compile(r"[][(){},;]")
_COMMENT: Final = re.compile(r"/\*|//|#")


@dataclass(frozen=True)
class SourceError(Exception):
    """One mistake: line and column count from 1.

    file: where the line is, if not in the source itself; within: what led there, macros and files.
    """

    line: int
    column: int
    message: str
    source: str = ""
    file: str = ""
    within: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"

    def shown(self, name: str = "") -> str:
        """Message with the source line (of a long one the part around) and a mark under the
        place.
        """
        name = self.file or name
        where = f"{name}:{self.line}:{self.column}: " if name else f"{self}".split(self.message)[0]
        if not self.source:
            return f"{where}{self.message}"
        start = max(0, self.column - _SHOWN_COLUMNS // 2)
        start = 0 if len(self.source) <= _SHOWN_COLUMNS else start
        line = self.source[start : start + _SHOWN_COLUMNS].expandtabs(1)
        mark = f"    {line}\n    {' ' * (self.column - 1 - start)}^"
        around = self.within[:_SHOWN_CALLERS]
        return "\n".join([f"{where}{self.message}", mark, *(f"    {place}" for place in around)])


class AssemblyError(ValueError):
    """Mistakes of a source text, in line order: the first MAX_ERRORS ones, and how many
    more there are.
    """

    def __init__(self, errors: Iterable[SourceError], more: int = 0) -> None:
        self.errors = tuple(errors)
        self.more = more
        super().__init__("\n".join([*(str(error) for error in self.errors), *self._rest()]))

    def _rest(self) -> list[str]:
        return [f"and {self.more} more mistakes"] if self.more else []

    def shown(self, name: str = "") -> str:
        """All mistakes with their source lines, and the number of the others."""
        place = f"{name}: " if name else ""
        lines = [error.shown(name) for error in self.errors]
        return "\n".join([*lines, *(f"{place}{text}" for text in self._rest())])


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


class _Unknown(Mistake):
    """A name that does not exist. Similar names are looked for only if the mistake is shown."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str], column: int) -> None:
        super().__init__("", column)
        self.kind, self.name = kind, name
        self.allowed: Iterable[str] = allowed

    def __str__(self) -> str:
        self.allowed = tuple(self.allowed)
        choices = sorted(set(self.allowed) - {""})
        name = self.name if len(self.name) <= _SHOWN_COLUMNS else self.name[:_SHOWN_COLUMNS] + "…"
        close = []
        if len(choices) <= _HINT_CHOICES and len(self.name) <= _SHOWN_COLUMNS:
            close = difflib.get_close_matches(name, choices, 3)
        if close:
            hint = f"; did you mean {' or '.join(close)}?"
        elif len(choices) <= 60:
            hint = "; possible: " + ", ".join(choices)
        else:
            hint = ""
        return f"unknown {self.kind} {name!r}{hint}"


def unknown(kind: str, name: str, allowed: Iterable[str], column: int) -> Mistake:
    """A mistake that says what could have stood there."""
    return _Unknown(kind, name, allowed, column)


@dataclass(frozen=True)
class Slot:
    """One operation of an instruction: ``name.suffix.suffix operand, operand``."""

    name: str
    suffixes: tuple[str, ...]
    operands: tuple[Text, ...]
    column: int


@dataclass(frozen=True)
class Line:
    """The contents of a source line, its comments removed."""

    number: int
    labels: tuple[Text, ...]
    directive: tuple[Text, Text] | None
    body: Text | None
    source: str


def split_outside(text: Text, separator: str) -> list[Text]:
    """Pieces between separators that are not inside parentheses, brackets or braces."""
    if separator not in text.text:
        return [text.part(0)]
    pieces = []
    depth = start = 0
    for match in _STRUCTURE.finditer(text.text):
        character = match[0]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == separator and depth <= 0:
            pieces.append(text.part(start, match.start()))
            start = match.end()
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


def read_lines(source: str) -> tuple[list[Line], SourceError | None]:
    """All lines of a text, and the comment that is never closed, if there is one.

    Labels keep their spelling, everything after a comment mark is gone.
    """
    lines = []
    opened: SourceError | None = None
    for number, original in enumerate(source.splitlines(), 1):
        text, begin = _without_comments(original, opened is not None)
        if begin is None:
            opened = None
        elif begin >= 0:
            opened = SourceError(number, begin + 1, "this comment is never closed", original)
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
    return lines, opened


def _without_comments(line: str, in_comment: bool) -> tuple[str, int | None]:
    """The line with comments blanked out, so that columns stay; and where the comment begins that
    goes on in the next line (-1: in an earlier line; None: there is none).
    """
    pieces: list[str] = []
    position = 0
    begin = -1 if in_comment else None
    while True:
        if begin is not None:
            start = position if begin < 0 else begin
            end = line.find("*/", position)
            if end < 0:
                return "".join(pieces), begin
            pieces.append(" " * (end + 2 - start))
            position, begin = end + 2, None
        match = _COMMENT.search(line, position)
        if match is None:
            return "".join([*pieces, line[position:]]), None
        pieces.append(line[position : match.start()])
        if match[0] != "/*":
            return "".join(pieces), None
        begin, position = match.start(), match.end()
