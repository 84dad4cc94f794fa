"""The state of one reading of a source: names, labels, code and messages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vc4lab.qpu.dialects.vc4asm.data import Code
from vc4lab.qpu.dialects.vc4asm.expressions import Expressions
from vc4lab.qpu.dialects.vc4asm.instruction.draft import Draft
from vc4lab.qpu.dialects.vc4asm.library import CONSTANTS
from vc4lab.qpu.dialects.vc4asm.sources import MAX_DEPTH, Files, Function, Macro, Scope, SourceLine
from vc4lab.qpu.dialects.vc4asm.tokens import Cursor
from vc4lab.qpu.dialects.vc4asm.values import Label, Value, kind_of
from vc4lab.qpu.text.syntax import MAX_ERRORS, Mistake, SourceError, unknown


class Stop(Exception):  # noqa: N818 - ends a pass
    """Nothing more of this source makes sense; the mistake is noted."""


@dataclass(frozen=True)
class Before:
    """Keeps the results of the reading before: labels in order of their first mention with their
    offsets, and words.
    """

    labels: list[tuple[str, int | None]] = field(default_factory=list)
    words: list[Draft | int] = field(default_factory=list)


class Reading:
    """Holds what lines, directives and expressions of a source have in common."""

    def __init__(self, path: str, files: Files, symbols: dict[str, Value], before: Before) -> None:
        self.path, self.files, self.before = path, files, before
        self.scopes = [Scope("root", {**CONSTANTS, **symbols})]
        self.functions: dict[str, Function | Macro] = {}
        self.macros: dict[str, Macro] = {}
        self.code = Code()
        self.labels: list[tuple[str, int | None]] = []
        self.places: list[tuple[SourceLine, int]] = []  # where each label was first mentioned
        self.by_name: dict[str, int] = {}
        self.defined: dict[str, int] = {}  # the last place of each label so far
        self.exported: dict[str, Value] = {}
        self.errors: list[SourceError] = []
        self.notes: list[SourceError] = []
        self.more = self.executed = self.calls = 0
        self.line = SourceLine("", 1)
        self.expressions = Expressions(self)

    @abstractmethod
    def block(self, lines: Sequence[SourceLine]) -> None:
        """Execute lines."""

    @abstractmethod
    def include(self, path: Path, column: int) -> None:
        """Execute a file."""

    @abstractmethod
    def call(self, name: str, arguments: list[Value], column: int) -> Value | None:
        """The result of a function of the source."""

    # Labels ------------------------------------------------------------------------------------

    def define(self, name: str, column: int) -> None:
        index = self.by_name.get(name)
        if index is None or self.labels[index][1] is not None:
            if index is not None and not name[0].isdigit():
                where = self.places[index][0].number
                raise Mistake(f"label {name!r} exists already, see line {where}", column)
            index = self.new_label(name, column)
        self.labels[index] = (name, self.code.offset)
        self.defined[name] = self.code.offset

    def new_label(self, name: str, column: int) -> int:
        index = len(self.labels)
        self.labels.append((name, None))
        self.places.append((self.line, column))
        self.by_name[name] = index
        return index

    def label(self, name: str, column: int) -> Label:
        """A label's offset, of this pass or the one before."""
        forward = name[0].isdigit() and name[-1] == "f" and name[:-1].isdigit()
        backward = name[0].isdigit() and name[-1] == "b" and name[:-1].isdigit()
        if backward and name[:-1] in self.defined and name not in self.by_name:
            return Label(self.defined[name[:-1]])
        name = name[:-1] if forward else name
        index = self.by_name.get(name)
        if index is None or (forward and self.labels[index][1] is not None):
            index = self.new_label(name, column)
        offset, known = self.labels[index][1], self.before.labels
        if offset is None and index < len(known) and known[index][0] == name:
            offset = known[index][1]
        return Label(offset or 0, offset is not None)

    def check_labels(self) -> None:
        """Labels that are nowhere."""
        known = [name for name, offset in self.labels if offset is not None]
        for (name, offset), (line, column) in zip(self.labels, self.places, strict=True):
            if offset is None:
                self.line = line
                self.fail(unknown("label", name, known, column))

    # Names -------------------------------------------------------------------------------------

    def constant(self, name: str) -> Value | None:
        for scope in reversed(self.scopes):
            value = scope.values.get(name)
            if value is not None:
                return value
        return None

    def parameters(self, name: str) -> int | None:
        function = self.functions.get(name)
        return None if function is None else len(function.parameters)

    def names(self) -> Iterator[str]:
        for scope in self.scopes:
            yield from scope.values
        yield from self.functions

    def enter(self, scope: Scope, column: int) -> None:
        if len(self.scopes) > MAX_DEPTH:
            self.fail(Mistake(f"more than {MAX_DEPTH} macros, functions or files nested", column))
            raise Stop
        self.scopes.append(scope)

    # Messages ----------------------------------------------------------------------------------

    def here(self) -> str:
        """The line that is being read, for messages."""
        file = f"{self.line.file}:" if self.line.file else "line "
        return f"{file}{self.line.number}"

    def _error(self, text: str, column: int) -> SourceError:
        callers = [scope for scope in self.scopes[1:] if scope.called]
        places = [f"in {scope.kind}, used in {scope.called}" for scope in callers]
        source = self.line.text.rstrip("\n")
        return SourceError(
            self.line.number, column + 1, text, source, self.line.file, tuple(reversed(places))
        )

    def fail(self, mistake: Mistake) -> None:
        """Note a mistake in the current line."""
        self.expressions.depth = 0
        if len(self.errors) == MAX_ERRORS:
            self.more += 1
            return
        self.errors.append(self._error(str(mistake), mistake.column))

    def note(self, text: str, column: int) -> None:
        """Note something odd that is no mistake."""
        if len(self.notes) < MAX_ERRORS:
            self.notes.append(self._error(text, column))

    def value(self, cursor: Cursor, purpose: str, kinds: type | tuple[type, ...]) -> Value:
        """An expression that has to have a kind."""
        column = cursor.column
        value = self.expressions.read(cursor)
        if not isinstance(value, kinds):
            raise Mistake(f"{purpose}, not {kind_of(value)}", column)
        return value
