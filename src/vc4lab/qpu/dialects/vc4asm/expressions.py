"""Expressions of vc4asm's dialect: numbers, registers, labels, functions, in one grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from vc4lab.qpu.dialects.vc4asm.library import HELPERS
from vc4lab.qpu.dialects.vc4asm.names import REGISTERS, packing_of
from vc4lab.qpu.dialects.vc4asm.tokens import END, NUMBER, OPERATOR, WORD, Cursor, Token, shown
from vc4lab.qpu.dialects.vc4asm.values import (
    BINARY,
    FUNCTIONS,
    NOTHING,
    PREFIXES,
    Access,
    Label,
    Lanes,
    Packing,
    Register,
    Trouble,
    Value,
    kind_of,
    wrapped,
)
from vc4lab.qpu.text.syntax import Mistake, unknown

MAX_NESTING: Final = 60
_LONGEST_NUMBER: Final = 100
_BASES: Final = {"x": 16, "b": 2, "o": 8}
_PACK_NUMBERS: Final = {"pack": 0x80, "unpack": 0x40, "": 0}

Suffix = Callable[[Token], bool]
"""Takes the name after a dot that is no pack; whether it belongs there."""


class Context(Protocol):
    """Gives an expression the names and functions of the source around it."""

    def constant(self, name: str) -> Value | None:
        """The value of a name, if it has one here."""

    def call(self, name: str, arguments: list[Value], column: int) -> Value | None:
        """The result of a function of the source; None if there is none."""

    def parameters(self, name: str) -> int | None:
        """How many arguments a function of the source takes; None if there is none."""

    def label(self, name: str, column: int) -> Label:
        """A label's offset."""

    def names(self) -> Iterable[str]:
        """Names that have values here, for messages."""


def number_of(token: Token) -> int | float:
    """The value of a number's token."""
    text = token.text.replace("_", "")
    if len(text) > _LONGEST_NUMBER:
        raise Mistake(f"{text[:20]}… does not fit in 64 bits", token.column)
    base = _BASES.get(text[1:2].lower(), 10) if text[0] == "0" else 10
    try:
        if base != 10:
            return wrapped(_in_range(int(text[2:], base), token))
        if "." in text or "e" in text.lower():
            return float(text)
        return wrapped(_in_range(int(text.removeprefix("0d") or "0"), token))
    except ValueError:
        raise Mistake(f"{token.text!r} is no number", token.column) from None


def _in_range(number: int, token: Token) -> int:
    if number >> 64:
        raise Mistake(f"{token.text[:20]}… does not fit in 64 bits", token.column)
    return number


class Expressions:
    """Reads expressions from a cursor."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.depth = 0

    def read(self, cursor: Cursor, suffix: Suffix | None = None) -> Value:
        """The next expression. suffix: takes conditions after a destination's register."""
        if self._is_nothing(cursor):
            cursor.take()
            return self._suffixed(cursor, NOTHING, suffix)
        return self._binary(cursor, 0, suffix)

    @staticmethod
    def _is_nothing(cursor: Cursor) -> bool:
        """A minus sign with no operand after it."""
        if cursor.token.kind != OPERATOR or cursor.token.text != "-":
            return False
        after = cursor.tokens[cursor.index + 1]
        return (
            after.kind == END
            or after.text in (",", ";", ")", ".")
            or (after.kind == OPERATOR and after.text not in PREFIXES)
        )

    def _binary(self, cursor: Cursor, lowest: int, suffix: Suffix | None = None) -> Value:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise Mistake(f"more than {MAX_NESTING} levels of nesting", cursor.column)
        try:
            left = self._unary(cursor, suffix)
            while cursor.token.kind == OPERATOR and cursor.token.text in BINARY:
                precedence, operation = BINARY[cursor.token.text]
                if precedence <= lowest:
                    break
                token = cursor.take()
                right = self.read(cursor) if self._is_nothing(cursor) else self._binary(cursor, precedence)
                try:
                    left = operation(left, right)
                except Trouble as trouble:
                    raise Mistake(f"{token.text!r} {trouble}", token.column) from None
                left = self._suffixed(cursor, left, suffix)
            return left
        finally:
            self.depth -= 1

    def _unary(self, cursor: Cursor, suffix: Suffix | None) -> Value:
        token = cursor.token
        operation = PREFIXES.get(token.text) if token.kind == OPERATOR else None
        if operation is None and token.kind == WORD and self._is_operator(token.text):
            operation = FUNCTIONS[token.text]
        if operation is None:
            return self._suffixed(cursor, self._primary(cursor), suffix)
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise Mistake(f"more than {MAX_NESTING} levels of nesting", token.column)
        cursor.take()
        value = self._unary(cursor, suffix)
        self.depth -= 1
        try:
            return operation(value)
        except Trouble as trouble:
            raise Mistake(f"{token.text!r} {trouble}", token.column) from None

    def _is_operator(self, name: str) -> bool:
        return name in FUNCTIONS and name not in REGISTERS and self.context.constant(name) is None

    def _suffixed(self, cursor: Cursor, value: Value, suffix: Suffix | None) -> Value:
        while cursor.token.text == ".":
            cursor.take()
            token = cursor.token
            if token.kind not in (WORD, NUMBER):
                raise Mistake(f"expected a suffix, found {shown(token)}", token.column)
            cursor.take()
            packing = packing_of(token.text)
            if packing is None:
                if suffix is None or not suffix(token):
                    raise Mistake(f"unknown suffix {token.text!r} of an operand", token.column)
                continue
            if not isinstance(value, Register) or value.is_semaphore:
                raise Mistake(f"{kind_of(value)} cannot be packed or unpacked", token.column)
            if value.packing.pack_code:
                raise Mistake("an operand has only one pack or unpack", token.column)
            value = replace(value, packing=packing)
        return value

    def _primary(self, cursor: Cursor) -> Value:
        token = cursor.take()
        if token.kind == NUMBER:
            return number_of(token)
        if token.kind == WORD:
            return self._name(cursor, token)
        if token.text == "(":
            value = self._binary(cursor, 0) if not self._is_nothing(cursor) else self.read(cursor)
            cursor.expect(")", "after an expression in parentheses")
            return value
        if token.text == "[":
            return self._lanes(cursor, token)
        if token.text == ":":
            return self._label(cursor)
        raise Mistake(f"expected a value, found {shown(token)}", token.column)

    def _name(self, cursor: Cursor, token: Token) -> Value:
        name = token.text
        value = self.context.constant(name)
        if value is not None:
            return value
        count = self.context.parameters(name)
        if count is not None:
            arguments = self._arguments(cursor, name, count)
            result = self.context.call(name, arguments, token.column)
            if result is not None:
                return result
        if name in HELPERS and cursor.token.text == "(":
            helper = HELPERS[name]
            arguments = self._arguments(cursor, name, helper.count)
            try:
                return helper(arguments)
            except Trouble as trouble:
                raise Mistake(f"{name}: {trouble}", token.column) from None
        if name in REGISTERS:
            return REGISTERS[name]
        if cursor.token.text == ":" and cursor.token.column == token.column + len(name):
            if name != "r":
                raise Mistake(f"labels have the prefix 'r:' or ':', not {name + ':'!r}", token.column)
            cursor.take()
            return self._label(cursor)
        known = [*REGISTERS, *HELPERS, *FUNCTIONS, *self.context.names()]
        raise unknown("name", name, known, token.column)

    def _arguments(self, cursor: Cursor, name: str, count: int) -> list[Value]:
        cursor.expect("(", f"after the function {name}")
        arguments: list[Value] = []
        column = cursor.column
        if count == 0 or cursor.token.text == ")":
            cursor.expect(")", f"after {name}(")
        else:
            arguments.append(self.read(cursor))
            while cursor.accept(","):
                arguments.append(self.read(cursor))
            cursor.expect(")", f"after the arguments of {name}")
        if len(arguments) != count:
            text = f"{name} takes {count} arguments, {len(arguments)} given"
            raise Mistake(text, column)
        return arguments

    def _lanes(self, cursor: Cursor, start: Token) -> Lanes:
        values = []
        while True:
            column = cursor.column
            value = self._binary(cursor, 0)
            if not isinstance(value, int) or not -2 <= value <= 3:
                raise Mistake("an element is an integer from -2 to 3", column)
            values.append(value)
            if cursor.accept("]"):
                break
            cursor.expect(",", "or ']' after an element")
        if len(values) != 16:
            raise Mistake(f"a vector has 16 elements, not {len(values)}", start.column)
        if min(values) < 0 and max(values) > 1:
            text = "the elements of a vector are all in 0..3 or all in -2..1"
            raise Mistake(text, start.column)
        bits = sum((v & 1) << n | (v >> 1 & 1) << 16 + n for n, v in enumerate(values))
        return Lanes(bits, -1 if min(values) < 0 else int(max(values) > 1))

    def _label(self, cursor: Cursor) -> Value:
        if cursor.accept("["):
            return self._raw_register(cursor)
        token = cursor.token
        if token.kind not in (WORD, NUMBER):
            raise Mistake(f"expected the name of a label, found {shown(token)}", token.column)
        cursor.take()
        return self.context.label(token.text, token.column)

    def _raw_register(self, cursor: Cursor) -> Register:
        """`:[number, kind, rotation, pack]`, as vc4.qinc compares registers with."""
        fields = [self._field(cursor)]
        while cursor.accept(","):
            fields.append(self._field(cursor))
        cursor.expect("]", "after a raw register")
        if not 2 <= len(fields) <= 4:
            raise Mistake("a raw register has 2 to 4 fields", cursor.column)
        number, access, rotate, pack = (*fields, 0, 0)[:4]
        request = "unpack" if pack & 0x40 else "pack" if pack & 0x80 else ""
        kind = "f" if pack & 0x20 else "i" if pack & 0x10 else ""
        packing = Packing(pack & 7, bool(pack & 8), kind, request)
        signed = ((rotate + 128) & 255) - 128
        return Register(number & 255, Access(access & 63), signed, packing)

    def _field(self, cursor: Cursor) -> int:
        column = cursor.column
        value = self._binary(cursor, 0)
        if not isinstance(value, int):
            raise Mistake("the fields of a raw register are integers", column)
        return value
