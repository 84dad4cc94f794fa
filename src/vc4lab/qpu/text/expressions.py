"""Constant expressions of the assembler: numbers, symbols, vectors and one-line function macros.

Grammar: C operators ``| ^ & << >> + - * / % ~`` with C precedence, parentheses, decimal, hex (0x),
binary (0b) and float numbers, ``[a, b, …]`` vectors (per-lane load immediates), calls ``name(a)``
of macros defined by ``.set name, function name(a, b) { return expr; } name``. Nothing is ever given
to Python's own evaluator.
"""

from __future__ import annotations

import math
import re
import struct
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple, cast

Number = int | float
Value = int | float | tuple[int, ...]

MAX_NESTING: Final = 40
MAX_CALLS: Final = 10000
"""Macro calls in one expression: macros that call others twice double the work at each level."""

MAX_MAGNITUDE: Final = 1 << 64

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<operator><<|>>|[-+*/%&|^~()\[\],]))"
)
_MACRO: Final = re.compile(
    r"\s*function\s+(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*\{\s*return\s+(?P<body>[^;{}]+);?\s*\}"
    r"\s*(?P<last>\w*)\s*$"
)
_PRECEDENCE: Final = {
    "|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip


class ExpressionError(ValueError):
    """An expression that has no value; ``offset`` is the position in the text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Macro:
    """A function of numbers: parameter names and an expression over them."""

    parameters: tuple[str, ...]
    body: str


Symbols = Mapping[str, Value | Macro]


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse_macro(text: str) -> Macro | None:
    """The macro in the value part of a ``.set`` line, None if it is an ordinary expression."""
    match = _MACRO.match(text)
    if match is None:
        return None
    names = tuple(name.strip() for name in match["parameters"].split(",") if name.strip())
    return Macro(names, match["body"])


def evaluate(text: str, symbols: Symbols, _depth: int = 0, _calls: Iterator[int] | None = None) -> Value:
    """Value of an expression: int, float, or the elements of a vector. Raises ExpressionError."""
    return _Parser(text, symbols, _depth, _calls).parse()


def to_word(value: Value, offset: int = 0) -> int:
    """32-bit pattern of a number: two's complement of an int, single precision of a float."""
    if isinstance(value, tuple):
        raise ExpressionError("a vector is only possible in ldi", offset)
    if isinstance(value, float):
        try:
            (word,) = struct.unpack("<I", struct.pack("<f", value))
        except OverflowError:
            raise ExpressionError(f"{value:g} is too large for a 32-bit float", offset) from None
        return int(word)
    if not -(1 << 31) <= value < 1 << 32:
        raise ExpressionError(f"{value:#x} doesn't fit in 32 bits", offset)
    return value & 0xFFFFFFFF


class _Parser:
    def __init__(self, text: str, symbols: Symbols, depth: int, calls: Iterator[int] | None) -> None:
        self.text = text
        self.symbols = symbols
        self.depth = depth
        self.calls = count(1) if calls is None else calls  # macro calls of the whole expression
        self.tokens: list[_Token] = []
        self.next = 0
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.end() == position:
                while text[position].isspace():
                    position += 1
                raise ExpressionError(f"unexpected {text[position]!r}", position)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            position = match.end()

    def parse(self) -> Value:
        value = self.expression(0)
        if self.next < len(self.tokens):
            token = self.tokens[self.next]
            raise ExpressionError(f"unexpected {token.text!r}", token.offset)
        return value

    def peek(self) -> str:
        return self.tokens[self.next].text if self.next < len(self.tokens) else ""

    def take(self) -> _Token:
        if self.next >= len(self.tokens):
            raise ExpressionError("the expression ends too early", len(self.text.rstrip()))
        self.next += 1
        return self.tokens[self.next - 1]

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            raise ExpressionError(f"expected {text!r}, found {token.text!r}", token.offset)

    def number(self, value: Value, offset: int) -> Number:
        if isinstance(value, tuple):
            raise ExpressionError("a vector cannot be calculated with", offset)
        if (isinstance(value, float) and not math.isfinite(value)) or abs(value) > MAX_MAGNITUDE:
            raise ExpressionError("the value is out of range", offset)
        return value

    def integer(self, value: Value, offset: int) -> int:
        number = self.number(value, offset)
        if isinstance(number, float):
            raise ExpressionError(f"{number:g} is not an integer", offset)
        return number

    def expression(self, lowest: int) -> Value:
        left = self.operand()
        while (precedence := _PRECEDENCE.get(self.peek(), 0)) > lowest:
            operator = self.take()
            right = self.expression(precedence)
            left = self.binary(operator, left, right)
        return left

    def binary(self, operator: _Token, left: Value, right: Value) -> Number:
        text, offset = operator.text, operator.offset
        if text in "+-*/":
            a, b = self.number(left, offset), self.number(right, offset)
            if text == "/":
                if b == 0:
                    raise ExpressionError("division by zero", offset)
                exact = isinstance(a, int) and isinstance(b, int) and a % b == 0
                return self.number(a // b if exact else a / b, offset)
            return self.number(a + b if text == "+" else a - b if text == "-" else a * b, offset)
        i, j = self.integer(left, offset), self.integer(right, offset)
        if text == "%":
            if j == 0:
                raise ExpressionError("division by zero", offset)
            return i % j
        if text in ("<<", ">>"):
            if not 0 <= j < 64:
                raise ExpressionError(f"shift by {j} is not in 0..63", offset)
            return self.number(i << j if text == "<<" else i >> j, offset)
        return i & j if text == "&" else i | j if text == "|" else i ^ j

    def operand(self) -> Value:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise ExpressionError(f"more than {MAX_NESTING} levels of nesting")
        try:
            return self.primary()
        finally:
            self.depth -= 1

    def primary(self) -> Value:
        token = self.take()
        if token.kind == "number":
            return self.literal(token)
        if token.kind == "name":
            return self.symbol(token)
        if token.text == "(":
            value = self.expression(0)
            self.expect(")")
            return value
        if token.text == "[":
            return tuple(self.integer(v, token.offset) for v in self.arguments("]"))
        if token.text in ("-", "+", "~"):
            value = self.operand()
            if token.text == "~":
                return ~self.integer(value, token.offset)
            number = self.number(value, token.offset)
            return -number if token.text == "-" else number
        raise ExpressionError(f"unexpected {token.text!r}", token.offset)

    def literal(self, token: _Token) -> Number:
        text = token.text.lower()
        if text.startswith(("0x", "0b")):
            return self.number(int(text, 0), token.offset)
        try:
            return self.number(int(text), token.offset)
        except ValueError:
            return self.number(float(text), token.offset)

    def arguments(self, end: str) -> list[Value]:
        values: list[Value] = []
        if self.peek() == end:
            self.take()
            return values
        while True:
            values.append(self.expression(0))
            token = self.take()
            if token.text == end:
                return values
            if token.text != ",":
                raise ExpressionError(f"expected ',' or {end!r}", token.offset)

    def symbol(self, token: _Token) -> Value:
        value = self.symbols.get(token.text)
        if value is None:
            raise ExpressionError(f"unknown symbol {token.text!r}", token.offset)
        if not isinstance(value, Macro):
            return value
        self.expect("(")
        given = self.arguments(")")
        if len(given) > len(value.parameters):
            most = len(value.parameters)
            raise ExpressionError(f"{token.text} takes at most {most} arguments", token.offset)
        given += [0] * (len(value.parameters) - len(given))
        if next(self.calls) > MAX_CALLS:
            raise ExpressionError(f"more than {MAX_CALLS} macro calls", token.offset)
        arguments = dict(zip(value.parameters, given, strict=True))
        local = ChainMap(arguments, cast("dict[str, Any]", self.symbols))  # never written to
        try:
            return evaluate(value.body, local, self.depth, self.calls)
        except ExpressionError as error:
            raise ExpressionError(f"in {token.text}: {error}", token.offset) from None
