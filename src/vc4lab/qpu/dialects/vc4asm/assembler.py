"""The assembler of vc4asm's dialect: sources with macros → instruction words.

    assembly = assemble(text, path="shader.qasm")

Passes repeat until the labels stay where they are: the first has no offsets of labels that come
later, the second usually has all. The functions of `vc4.qinc` are always there; a source that
brings a file of that name uses its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from vc4lab.qpu.dialects.vc4asm.directives import DIRECTIVES, Directives
from vc4lab.qpu.dialects.vc4asm.instruction.draft import Draft
from vc4lab.qpu.dialects.vc4asm.library import CONSTANTS
from vc4lab.qpu.dialects.vc4asm.reading import Before, Reading, Stop
from vc4lab.qpu.dialects.vc4asm.sources import (
    MAX_CALLS,
    MAX_LINES,
    OPENERS,
    Files,
    Macro,
    Scope,
    SourceLine,
    block_end,
    lines_of,
)
from vc4lab.qpu.dialects.vc4asm.statements import Statements
from vc4lab.qpu.dialects.vc4asm.tokens import NUMBER, WORD, Cursor, shown
from vc4lab.qpu.dialects.vc4asm.values import Label, Value
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.syntax import MAX_ERRORS, MAX_SOURCE, AssemblyError, Mistake, SourceError, unknown

MAX_PASSES: Final = 8


def assemble(
    text: str,
    *,
    path: str = "",
    folders: Sequence[str | os.PathLike[str]] = (),
    symbols: Mapping[str, Value] | None = None,
) -> Assembly:
    """Assemble a source text of vc4asm's dialect.

    Parameters
    ----------
    text, path
        The source, and the file it is from: included files are looked for beside it.
    folders
        Where included files are looked for too.
    symbols
        Names known beforehand.

    Raises
    ------
    AssemblyError
        With the first 20 mistakes, each with file, line and column, and how many more there are.
    """
    if len(text) > MAX_SOURCE:
        raise AssemblyError([SourceError(1, 1, f"a source has at most {MAX_SOURCE} characters")])
    files = Files([Path(folder) for folder in folders])
    before = Before()
    for _ in range(MAX_PASSES):
        one = Pass(text, path, files, dict(symbols or {}), before)
        one.run()
        if one.errors:
            break
        if one.labels == before.labels or not one.labels:
            one.check_labels()
            break
        before = Before(one.labels, one.code.words)
    else:
        text = f"the labels still move after {MAX_PASSES} passes"
        raise AssemblyError([SourceError(1, 1, text)])
    if one.errors:
        errors = sorted(one.errors, key=lambda e: (e.file, e.line, e.column))
        raise AssemblyError(errors[:MAX_ERRORS], one.more + len(errors[MAX_ERRORS:]))
    return one.assembly()


class Pass(Reading):
    """One reading of the source, line by line."""

    def __init__(self, text: str, path: str, files: Files, symbols: dict[str, Value], before: Before) -> None:
        super().__init__(path, files, symbols, before)
        self.lines = lines_of(text)
        self.including: list[Path] = []
        self.statements = Statements(self.expressions, lambda: list(self.macros))
        self.directives = Directives(self)

    # Running ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read everything."""
        try:
            self.block(self.lines)
        except Stop:
            return
        except RecursionError:
            self.fail(Mistake("this is nested too deeply", 0))

    def block(self, lines: Sequence[SourceLine]) -> None:
        """Execute lines; blocks in them are taken whole."""
        index = 0
        while index < len(lines):
            line = lines[index]
            self.line = line
            self.executed += 1
            if self.executed > MAX_LINES:
                text = f"macros and loops unfold to more than {MAX_LINES} lines"
                self.fail(Mistake(text, 0))
                raise Stop
            try:
                index = self.step(lines, index)
            except Mistake as mistake:
                self.fail(mistake)
                index = self.after_mistake(lines, index)

    def step(self, lines: Sequence[SourceLine], index: int) -> int:
        """Execute a line, or the block that it opens; the index of what comes next."""
        line = lines[index]
        cursor = Cursor(line.text)
        joins = self.read_labels(cursor)
        if cursor.at_end:
            return index + 1
        if cursor.token.text == ".":
            cursor.take()
            name = cursor.name("a directive")
            if name.text in OPENERS:
                end = block_end(lines, index, name.text)
                self.directives.open(name.text, cursor, lines, index, end)
                return end + 1
            action = DIRECTIVES.get(name.text)
            if action is None:
                known = [f".{known}" for known in (*DIRECTIVES, *OPENERS)]
                raise unknown("directive", f".{name.text}", known, name.column - 1)
            action(self.directives, cursor)
            return index + 1
        self.statement(cursor, joins)
        return index + 1

    def after_mistake(self, lines: Sequence[SourceLine], index: int) -> int:
        """Return the index of the line to go on with: after the block whose first line is wrong."""
        opener = lines[index].directive
        if opener in OPENERS:
            try:
                return block_end(lines, index, opener) + 1
            except Mistake:
                return len(lines)
        return index + 1

    def statement(self, cursor: Cursor, joins: bool) -> None:
        token = cursor.token
        macro = self.macros.get(token.text) if token.kind == WORD else None
        if macro is not None:
            cursor.take()
            self.expand(macro, cursor)
            return
        start = cursor.index
        self.code.align_word()
        before = self.code.joinable() if joins else None
        if before is not None:
            try:
                draft = before.copy()
                self.statements.write(cursor, draft, 8 * (self.code.position - 1))
                if not draft.several_peripherals():
                    self.code.replace_last(draft)
                    return
            except Mistake:
                pass
            cursor.index = start
            self.expressions.depth = 0
        draft = Draft()
        try:
            branches = self.statements.write(cursor, draft, 8 * self.code.position)
        except Mistake:
            self.code.add(Draft(), self.line)  # keeps later offsets right
            raise
        self.code.add(draft, self.line)
        if branches:
            self.code.mark(self.code.position + 3)
        for text, column in draft.notes:
            self.note(text, column)

    # Labels -------------------------------------------------------------------------------------

    def read_labels(self, cursor: Cursor) -> bool:
        """Labels at the beginning of a line; whether a semicolon asks to join the line before."""
        while True:
            token = cursor.token
            if token.text == ":":
                cursor.take()
                exported = cursor.token.text == ":" and cursor.column == token.column + 1
                if exported:
                    cursor.take()
                name = cursor.token
                if name.kind in (WORD, NUMBER) and name.column <= token.column + 1 + exported:
                    cursor.take()
                    self.define(name.text, name.column)
                    if exported:
                        self.exported[name.text] = Label(self.code.offset)
                elif exported:
                    raise Mistake(f"expected a label, found {shown(name)}", name.column)
                else:
                    self.code.mark(self.code.position)
            elif token.kind == WORD and cursor.tokens[cursor.index + 1].text == ":":
                if cursor.tokens[cursor.index + 1].column != token.column + len(token.text):
                    return False
                cursor.take()
                cursor.take()
                self.define(token.text, token.column)
                self.code.mark(self.code.position)
            elif token.text == ";":
                cursor.take()
                return True
            else:
                return False

    # What expressions ask -----------------------------------------------------------------------

    def call(self, name: str, arguments: list[Value], column: int) -> Value | None:
        function = self.functions[name]
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.fail(Mistake(f"more than {MAX_CALLS} function calls", column))
            raise Stop
        line = self.line
        depth = len(self.scopes)
        with_names = dict(zip(function.parameters, arguments, strict=True))
        self.enter(Scope(name, with_names, called=self.here()), column)
        try:
            if isinstance(function, Macro):
                return self.value_of_block(function, column)
            self.line = function.line
            cursor = Cursor(function.line.text, function.start)
            value = self.expressions.read(cursor)
            cursor.finish()
            return value
        except Mistake as mistake:
            if mistake.__cause__ is None and self.line is not line:
                raise Mistake(f"in {name}, line {self.line.number}: {mistake}", column) from mistake
            raise
        finally:
            del self.scopes[depth:]
            self.line = line

    def value_of_block(self, function: Macro, column: int) -> Value:
        """The one expression that the lines of `.func` come to."""
        found: list[Value] = []
        self.evaluate_block(function.body, found)
        if len(found) != 1:
            many = "several expressions" if found else "no expression"
            raise Mistake(f"the function {function.name} has {many}", column)
        return found[0]

    def evaluate_block(self, lines: Sequence[SourceLine], found: list[Value]) -> None:
        index = 0
        while index < len(lines):
            line = lines[index]
            self.line = line
            cursor = Cursor(line.text)
            if cursor.at_end:
                index += 1
            elif cursor.token.text == ".":
                cursor.take()
                name = cursor.name("a directive").text
                if name in ("if", "ifset"):
                    end = block_end(lines, index, name)
                    chosen = self.directives.chosen(name, cursor, lines, index, end)
                    self.evaluate_block(chosen, found)
                    index = end + 1
                elif name in DIRECTIVES:
                    DIRECTIVES[name](self.directives, cursor)
                    index += 1
                else:
                    raise Mistake(f".{name} is not possible in a function", 0)
            else:
                found.append(self.expressions.read(cursor))
                cursor.finish()
                index += 1

    # Macros -------------------------------------------------------------------------------------

    def expand(self, macro: Macro, cursor: Cursor) -> None:
        """Execute a macro's lines with its arguments as names."""
        column = cursor.column
        arguments: list[Value] = []
        if not cursor.at_end:
            arguments.append(self.expressions.read(cursor))
            while cursor.accept(","):
                arguments.append(self.expressions.read(cursor))
            cursor.finish()
        if len(arguments) != len(macro.parameters):
            wanted = ", ".join(macro.parameters) or "nothing"
            text = f"{macro.name} takes {len(macro.parameters)} arguments ({wanted})"
            raise Mistake(f"{text}, {len(arguments)} given", column)
        values = dict(zip(macro.parameters, arguments, strict=True))
        self.run_in(Scope(macro.name, values, called=self.here()), macro.body, column)

    def run_in(self, scope: Scope, lines: Sequence[SourceLine], column: int = 0) -> None:
        """Execute lines in a scope of their own."""
        line, depth = self.line, len(self.scopes)
        self.enter(scope, column)
        try:
            self.block(lines)
        finally:
            del self.scopes[depth:]  # also what .local left open
            self.line = line

    def include(self, path: Path, column: int) -> None:
        """Execute a file."""
        same = path.resolve()
        if same in self.including:
            raise Mistake(f"{path} includes itself", column)
        lines = self.files.read(path, column)
        self.including.append(same)
        try:
            self.run_in(Scope("file", called=self.here()), lines, column)
        finally:
            self.including.pop()

    def assembly(self) -> Assembly:
        """Return the words, labels and values of the program that was read."""
        words, raw = self.code.encoded()
        labels = {
            name: offset for name, offset in self.labels if offset is not None and not name[0].isdigit()
        }
        values = {
            name: value
            for name, value in self.scopes[0].values.items()
            if isinstance(value, int | float) and name not in CONSTANTS
        }
        exported = {}
        for name, value in self.exported.items():
            if isinstance(value, Label):
                labels.setdefault(name, value.offset)
                exported[name] = value.offset
            elif isinstance(value, int):
                values[name] = value
        files = tuple(line.file for line in self.code.lines)
        return Assembly(
            words, labels, 0, tuple(exported), values, self.code.map(), raw, files,
            tuple(self.notes),
        )  # fmt: skip
