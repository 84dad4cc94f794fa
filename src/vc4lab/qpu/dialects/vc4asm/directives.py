"""Directives of vc4asm's dialect: names, blocks, files, data."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

from vc4lab.qpu.dialects.vc4asm.data import half_bits
from vc4lab.qpu.dialects.vc4asm.instruction.draft import Draft
from vc4lab.qpu.dialects.vc4asm.reading import Reading, Stop
from vc4lab.qpu.dialects.vc4asm.sources import (
    LIBRARY,
    MAX_DEPTH,
    MAX_LINES,
    Function,
    Macro,
    Scope,
    SourceLine,
)
from vc4lab.qpu.dialects.vc4asm.tokens import WORD, Cursor, shown
from vc4lab.qpu.dialects.vc4asm.values import Label, Value
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.text.syntax import Mistake

MAX_BACK: Final = 10
MAX_ALIGNMENT: Final = 64


class Directives:
    """Carries out directives in a pass."""

    def __init__(self, one: Reading) -> None:
        self.one = one
        self._conditions = 0
        """Those that are open."""

    # Names --------------------------------------------------------------------------------------

    def set(self, cursor: Cursor, local: bool = False, final: bool = False) -> None:
        """`.set name, value` or `.set name(a, b) expression`."""
        name = cursor.name("a name")
        if cursor.accept("("):
            parameters = self._parameters(cursor)
            cursor.accept(",")
            line = self.one.line
            self.one.functions[name.text] = Function(name.text, parameters, line, cursor.index)
            return
        cursor.expect(",", "or '(' after the name")
        value = self.one.expressions.read(cursor)
        cursor.finish()
        scope = self.one.scopes[-1 if local else 0]
        if name.text in scope.constants:
            raise Mistake(f"{name.text!r} is a constant: .const gave it a value", name.column)
        if final:
            if name.text in scope.values:
                raise Mistake(f"{name.text!r} has a value already", name.column)
            scope.constants.add(name.text)
        scope.values[name.text] = value

    def _parameters(self, cursor: Cursor) -> tuple[str, ...]:
        found: list[str] = []
        if cursor.accept(")"):
            return ()
        while True:
            found.append(cursor.name("a parameter").text)
            if cursor.accept(")"):
                return tuple(found)
            cursor.expect(",", "or ')' after a parameter")

    def unset(self, cursor: Cursor, local: bool = False) -> None:
        name = cursor.name("a name")
        cursor.finish()
        scope = self.one.scopes[-1 if local else 0]
        if scope.values.pop(name.text, None) is None:
            self.one.note(f"{name.text!r} has no value here", name.column)
        scope.constants.discard(name.text)

    def export(self, cursor: Cursor) -> None:
        """`.global :label`, or `.global name, value`."""
        value: Value
        if cursor.token.text == ":":
            while cursor.accept(":"):
                pass
            name = cursor.name("a label")
            value = self.one.label(name.text, name.column)
        else:
            name = cursor.name("a name or ':label'")
            cursor.expect(",", "and a value after the name")
            value = self.one.value(cursor, "a label or an integer is exported", (Label, int))
        cursor.finish()
        self.one.exported[name.text] = value

    def check(self, cursor: Cursor) -> None:
        """`.assert condition`."""
        column = cursor.column
        if not self._condition(cursor):
            raise Mistake("this does not hold", column)

    def _condition(self, cursor: Cursor) -> bool:
        value = self.one.value(cursor, "a condition is a number", (int, float))
        cursor.finish()
        return bool(value)

    # Blocks -------------------------------------------------------------------------------------

    def open(self, name: str, cursor: Cursor, lines: Sequence[SourceLine], start: int, end: int) -> None:
        """A block from its first line to the one that closes it."""
        if name in ("if", "ifset"):
            if end == len(lines):
                self.one.note(f".{name} is never closed: .endif is missing", 0)
            if self._conditions >= MAX_DEPTH:
                self.one.fail(Mistake(f"more than {MAX_DEPTH} conditions nested", cursor.column))
                raise Stop
            self._conditions += 1
            try:
                self.one.block(self.chosen(name, cursor, lines, start, end))
            finally:
                self._conditions -= 1
        elif name in ("macro", "func"):
            self.macro(name, cursor, lines[start], lines[start + 1 : end])
        else:
            self.loop(name, cursor, lines[start + 1 : end])

    def chosen(
        self, name: str, cursor: Cursor, lines: Sequence[SourceLine], start: int, end: int
    ) -> Sequence[SourceLine]:
        """The lines of the branch whose condition holds."""
        holds = self._ifset(cursor) if name == "ifset" else self._condition(cursor)
        begin, depth = start + 1, 0
        for index in range(start + 1, end):
            directive = lines[index].directive
            if directive in ("if", "ifset"):
                depth += 1
            elif directive == "endif":
                depth -= 1
            elif depth == 0 and directive in ("else", "elseif", "elif"):
                if holds:
                    return lines[begin:index]
                begin = index + 1
                if directive == "else":
                    return lines[begin:end]
                self.one.line = lines[index]
                condition = Cursor(lines[index].text)
                while condition.take().text not in ("elseif", "elif"):
                    pass
                holds = self._condition(condition)
        return lines[begin:end] if holds else ()

    def _ifset(self, cursor: Cursor) -> bool:
        name = cursor.name("a name")
        cursor.finish()
        return self.one.constant(name.text) is not None

    def macro(self, kind: str, cursor: Cursor, line: SourceLine, body: Sequence[SourceLine]) -> None:
        name = cursor.name("a name")
        parameters: tuple[str, ...] = ()
        if cursor.accept("("):
            parameters = self._parameters(cursor)
        elif not cursor.at_end:
            found = []
            cursor.accept(",")
            found.append(cursor.name("a parameter").text)
            while cursor.accept(","):
                found.append(cursor.name("a parameter").text)
            parameters = tuple(found)
        cursor.finish()
        made = Macro(name.text, parameters, tuple(body), kind == "func", line)
        if kind == "func":
            self.one.functions[name.text] = made
        else:
            self.one.macros[name.text] = made

    def loop(self, kind: str, cursor: Cursor, body: Sequence[SourceLine]) -> None:
        name = cursor.name("the name of the loop's variable")
        cursor.accept(",")
        values: Sequence[Value]
        if kind == "rep":
            column = cursor.column
            count = self.one.value(cursor, "the number of turns is an integer", int)
            assert isinstance(count, int)
            if not 0 <= count <= MAX_LINES:
                text = f"{count} turns: a source unfolds to at most {MAX_LINES} lines"
                raise Mistake(text, column)
            values = range(count)
        else:
            values = [self.one.expressions.read(cursor)]
            while cursor.accept(","):
                values.append(self.one.expressions.read(cursor))
        cursor.finish()
        scope = Scope("the loop", called=self.one.here())
        line, depth = self.one.line, len(self.one.scopes)
        self.one.enter(scope, 0)
        try:
            for value in values:
                del self.one.scopes[depth + 1 :]
                scope.values[name.text] = value
                self.one.line = line
                self.one.executed += 1
                self.one.block(body)
        finally:
            del self.one.scopes[depth:]

    def local(self, cursor: Cursor) -> None:
        cursor.finish()
        self.one.enter(Scope("block"), 0)

    def end_local(self, cursor: Cursor) -> None:
        cursor.finish()
        if self.one.scopes[-1].kind != "block":
            raise Mistake(".endloc without .local", 0)
        self.one.scopes.pop()

    def stray(self, cursor: Cursor) -> None:
        """The end of a block that was not begun."""
        name = cursor.tokens[cursor.index - 1]
        raise Mistake(f".{name.text} without the directive that begins the block", name.column - 1)

    # Files and places ---------------------------------------------------------------------------

    def include(self, cursor: Cursor) -> None:
        line = cursor.line.rstrip()
        column = cursor.column
        text = line[column:].partition("#")[0].strip() if column < len(line) else ""
        searched = text.startswith("<") and text.endswith(">")
        if len(text) < 3 or not (searched or (text[0] == text[-1] == '"')):
            raise Mistake('write .include "file" or .include <file>', column)
        name = text[1:-1]
        beside = self.one.line.file or self.one.path
        path = self.one.files.find(name, searched, beside)
        if path is not None:
            self.one.include(path, column)
        elif name.rpartition("/")[2] != LIBRARY:
            raise Mistake(f"there is no file {name!r} to include", column)

    def segment(self, cursor: Cursor) -> None:
        """`.text`, `.code`, `.rodata`: what is data shows by itself."""
        cursor.finish()

    def begin_back(self, cursor: Cursor) -> None:
        column = cursor.column
        count = self.one.value(cursor, ".back takes an integer", int)
        assert isinstance(count, int)
        cursor.finish()
        code = self.one.code
        if code.back:
            raise Mistake(".back inside .back", column)
        if not 0 <= count <= min(MAX_BACK, code.position):
            text = f".back goes at most {min(MAX_BACK, code.position)} instructions back here"
            raise Mistake(text, column)
        code.align_word()
        if any(p in code.targets for p in range(code.position - count + 1, code.position)):
            self.one.note("the code moves to before a label", column)
        code.back = count
        code.position -= count

    def end_back(self, cursor: Cursor) -> None:
        cursor.finish()
        code = self.one.code
        code.position += code.back
        code.back = 0

    def clone(self, cursor: Cursor) -> None:
        """`.clone :label, count`: copies of the instructions there."""
        column = cursor.column
        label = self.one.value(cursor, ".clone takes a label", Label)
        cursor.expect(",", "and a number of instructions")
        count = self.one.value(cursor, ".clone takes a number of instructions", int)
        cursor.finish()
        assert isinstance(label, Label)
        assert isinstance(count, int)
        if not 0 <= count <= 3:
            raise Mistake(f"{count} instructions: .clone copies at most 3", column)
        code, before = self.one.code, self.one.before.words
        code.align_word()
        for index in range(label.offset // 8, label.offset // 8 + count):
            here = index < len(code.words) and label.offset < code.offset
            source = code.words[index] if here else before[index] if index < len(before) else None
            if isinstance(source, Draft):
                if source.signal == Signal.BRANCH:
                    self.one.note("a copied branch goes elsewhere", column)
                source = source.copy()
            code.add(Draft() if source is None else source, self.one.line)

    # Data ---------------------------------------------------------------------------------------

    def data(self, cursor: Cursor, bits: int, floating: bool = False) -> None:
        """Numbers of a width, comma between them."""
        while True:
            column = cursor.column
            value = self.one.value(cursor, "data are numbers", (int, float))
            assert isinstance(value, int | float)
            number = _float_bits(value, bits, column) if floating else _integer(value, bits, column)
            self.one.code.put(number, bits, self.one.line)
            if cursor.at_end:
                return
            if not cursor.accept(","):
                raise Mistake(f"expected ',', found {shown(cursor.token)}", cursor.column)
            if cursor.at_end:
                return

    def align(self, cursor: Cursor) -> None:
        column = cursor.column
        size = self.one.value(cursor, ".align takes a number of bytes", int)
        assert isinstance(size, int)
        if not 0 <= size <= MAX_ALIGNMENT or size & (size - 1):
            text = f".align takes a power of two up to {MAX_ALIGNMENT}, not {size}"
            raise Mistake(text, column)
        base = 0
        if cursor.accept(","):
            value = self.one.value(cursor, "the base is a label or a number", (Label, int))
            base = value.offset if isinstance(value, Label) else int(value)  # type: ignore[arg-type]
        cursor.finish()
        self.one.code.align(size, base, self.one.line)


def _float_bits(value: int | float, bits: int, column: int) -> int:
    try:
        if bits == 16:
            return half_bits(float(value))
        code = "<f" if bits == 32 else "<d"
        return int.from_bytes(struct.pack(code, float(value)), "little")
    except OverflowError:
        raise Mistake(f"{value:g} does not fit in {bits} bits", column) from None


def _integer(value: int | float, bits: int, column: int) -> int:
    if isinstance(value, float):  # as the bits of a double, as vc4asm takes it
        value = int.from_bytes(struct.pack("<d", value), "little", signed=True)
        return value
    if bits < 64 and not -(1 << bits - 1) <= value < 1 << bits:
        raise Mistake(f"{value} does not fit in {bits} bits", column)
    return value


Action = Callable[[Directives, Cursor], None]


def _data(bits: int, floating: bool = False) -> Action:
    return lambda directives, cursor: directives.data(cursor, bits, floating)


def _set(local: bool = False, final: bool = False) -> Action:
    return lambda directives, cursor: directives.set(cursor, local, final)


def _unset(local: bool = False) -> Action:
    return lambda directives, cursor: directives.unset(cursor, local)


_STRAY: Final = (
    "endm", "endf", "endfunc", "endr", "endrep", "endfor", "else", "elseif", "elif", "endif",
)  # fmt: skip

DIRECTIVES: Final[dict[str, Action]] = {
    "set": _set(),
    "define": _set(),
    "equ": _set(),
    "lset": _set(local=True),
    "const": _set(final=True),
    "lconst": _set(local=True, final=True),
    "unset": _unset(),
    "undef": _unset(),
    "lunset": _unset(local=True),
    "local": Directives.local,
    "endloc": Directives.end_local,
    "global": Directives.export,
    "assert": Directives.check,
    "include": Directives.include,
    "back": Directives.begin_back,
    "endb": Directives.end_back,
    "endback": Directives.end_back,
    "clone": Directives.clone,
    "align": Directives.align,
    **dict.fromkeys(("code", "text", "rodata", "data"), Directives.segment),
    **dict.fromkeys(("bit", "int1"), _data(1)),
    "int2": _data(2),
    "int4": _data(4),
    **dict.fromkeys(("byte", "int8"), _data(8)),
    **dict.fromkeys(("short", "word", "int16"), _data(16)),
    **dict.fromkeys(("int", "dword", "int32"), _data(32)),
    **dict.fromkeys(("long", "qword", "int64"), _data(64)),
    **dict.fromkeys(("half", "float16"), _data(16, floating=True)),
    **dict.fromkeys(("float", "float32"), _data(32, floating=True)),
    **dict.fromkeys(("double", "float64"), _data(64, floating=True)),
    **dict.fromkeys(_STRAY, Directives.stray),
}
"""Directives of one line. Those that open blocks are `sources.OPENERS`."""

__all__ = ["DIRECTIVES", "WORD", "Directives"]
