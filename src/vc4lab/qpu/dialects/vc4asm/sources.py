"""Files, lines and blocks of vc4asm's dialect, and the bounds of what a source may unfold to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vc4lab.files import read_file, why
from vc4lab.qpu.dialects.vc4asm.values import Value
from vc4lab.qpu.text.syntax import MAX_SOURCE, Mistake

MAX_LINES: Final = 300_000
"""Lines that macros, loops and files may unfold to."""
MAX_DEPTH: Final = 40
"""Macros, functions, loops and files inside each other."""
MAX_CALLS: Final = 200_000
"""Function calls of a source."""

LIBRARY: Final = "vc4.qinc"

_HEAD: Final = re.compile(r"\s*(?:(?:::?\s*\w*|\w+:)(?=\s)\s*)*\.(\w+)")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, and where it stands. file: "" for the text that was given."""

    text: str
    number: int
    file: str = ""

    @property
    def directive(self) -> str:
        """The name of the directive at its beginning, or after its labels."""
        match = _HEAD.match(self.text)
        return match[1] if match else ""


@dataclass(frozen=True)
class Macro:
    """A block with parameters. is_function: it gives a value instead of code."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[SourceLine, ...]
    is_function: bool
    line: SourceLine


@dataclass(frozen=True)
class Function:
    """`.set name(a, b) expression`: evaluated where it is called."""

    name: str
    parameters: tuple[str, ...]
    line: SourceLine
    start: int
    """Token of the line at which the expression begins."""


@dataclass
class Scope:
    """Names that have values inside a file, macro, loop or block. called: the line it was entered
    from, in words for messages.
    """

    kind: str
    values: dict[str, Value] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    called: str = ""


OPENERS: Final = {
    "macro": ("endm",),
    "func": ("endf", "endfunc"),
    "rep": ("endr", "endrep", "endfor"),
    "foreach": ("endfor", "endr", "endrep"),
    "if": ("endif",),
    "ifset": ("endif",),
}
"""Directive that opens a block -> those that may close it."""

_SAME: Final = {"rep": ("rep", "foreach"), "foreach": ("rep", "foreach"), "if": ("if", "ifset"),
                "ifset": ("if", "ifset")}  # fmt: skip


def block_end(lines: Sequence[SourceLine], start: int, opener: str) -> int:
    """Index of the line that closes the block which a line opens; raises Mistake.

    A condition that is never closed ends with the file, as in vc4asm.
    """
    depth = 0
    same, closers = _SAME.get(opener, (opener,)), OPENERS[opener]
    for index in range(start, len(lines)):
        name = lines[index].directive
        if name in same:
            depth += 1
        elif name in closers:
            depth -= 1
            if not depth:
                return index
    if "endif" in closers:
        return len(lines)
    column = max(lines[start].text.find("."), 0)
    raise Mistake(f".{opener} is never closed: .{closers[0]} is missing", column)


def lines_of(text: str, file: str = "") -> list[SourceLine]:
    """The lines of a file."""
    return [SourceLine(line, number, file) for number, line in enumerate(text.splitlines(), 1)]


class Files:
    """Finds and reads the files that a source includes."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = tuple(folders)
        self.size = 0
        self._known: dict[Path, list[SourceLine]] = {}

    def find(self, name: str, searched: bool, beside: str) -> Path | None:
        """The file, or None if only the built-in library has that name.

        searched: in the folders first, as `<name>` asks for. beside: the file that includes it.
        """
        here = [Path(beside).parent if beside else Path()]
        places = [*self.folders, *here] if searched else [*here, *self.folders]
        for place in places:
            path = place / name
            if path.is_file():
                return path
        return None

    def read(self, path: Path, column: int) -> list[SourceLine]:
        """The lines of a file; raises Mistake."""
        if path not in self._known:
            try:
                data = read_file(path, MAX_SOURCE, plain=True)
            except OSError as error:
                raise Mistake(f"{path}: {why(error)}", column) from None
            self.size += len(data)
            if self.size > MAX_SOURCE:
                raise Mistake(f"the included files have more than {MAX_SOURCE} bytes", column)
            try:
                text = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = data.decode("cp1252", "replace")  # comments of older sources
            if "\0" in text:
                raise Mistake(f"{path}: not a text file", column)
            self._known[path] = lines_of(text, str(path))
        return self._known[path]
