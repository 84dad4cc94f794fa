"""The interface of a kernel: what it takes and gives, as comments in its source say.

    # kernel saxpy(x: float[], inout y: float[], a: float)
    # uniforms x + 64*qpu, y + 64*qpu, a, len(x) // 16 // qpus

The first line names arguments: arrays (`[]`) that go `in` (the default), `out` or `inout`, and
numbers, with a default where one is given (`n: int = len(x)`). An array that only comes `out` says
its size (`float[len(x)]`, `int[16, 4]`) or whose shape it has (`float[x]`). The second line is the
stream of uniforms of each QPU; without it the stream is the arguments in their order. Expressions
have numbers, arguments (an array's is its address), `len(array)`, `qpu`, `qpus`, + - * // % and
parentheses. Both lines may go on in further comments while a parenthesis is open or after a comma.
"""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TYPES = {"float": "f4", "int": "i4", "uint": "u4", "half": "f2", "short": "i2", "ushort": "u2", "byte": "u1"}
"""A type's name → numpy's name of it. Numbers are `float`, `int` or `uint`."""
NUMBERS = ("float", "int", "uint")
MOST_ARGUMENTS = 64
MOST_TEXT = 4096
_START = re.compile(r"^\s*(?:#|//|;|--)\s*kernel\s+([A-Za-z_]\w*)\s*\(", re.M)
_UNIFORMS = re.compile(r"^\s*(?:#|//|;|--)\s*uniforms\s+(?=\S)", re.M)
_COMMENT = re.compile(r"^\s*(?:#|//|;|--)\s?")
_ARGUMENT = re.compile(
    r"(?:(in|out|inout)\s+)?([A-Za-z_]\w*)\s*:\s*([A-Za-z]+)\s*(\[(.*)\])?\s*(?:=\s*(.+))?$", re.S
)
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
    ast.Mod: lambda a, b: a % b,
}
LARGEST = 1 << 63


class InterfaceError(ValueError):
    """An interface line that cannot be understood, or an argument that does not fit it."""


@dataclass(frozen=True)
class Argument:
    """One argument. sizes: expressions of an array's dimensions; default: of a number."""

    name: str
    kind: str
    is_array: bool
    direction: str = "in"
    sizes: tuple[str, ...] = ()
    default: str | None = None

    def __str__(self) -> str:
        way = f"{self.direction} " if self.direction != "in" else ""
        size = f"[{', '.join(self.sizes)}]" if self.is_array else ""
        default = f" = {self.default}" if self.default is not None else ""
        return f"{way}{self.name}: {self.kind}{size}{default}"


@dataclass(frozen=True)
class Interface:
    """Describes what a kernel takes: `arguments`, and the expressions of its `uniforms`."""

    name: str
    arguments: tuple[Argument, ...]
    uniforms: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"

    @property
    def comments(self) -> str:
        """Comment lines that declare it, for a source in assembly."""
        return f"# kernel {self}\n# uniforms {', '.join(self.uniforms)}\n"


def parse(source: str) -> Interface | None:
    """The interface that a source's comments declare; None if they declare none.

    Raises InterfaceError.
    """
    found = _START.search(source)
    if found is None:
        return None
    text = _rest(source, found.end() - 1)
    if not text.startswith("(") or ")" not in text or _open(text) != 0:
        raise InterfaceError(f"kernel {found[1]}: the parenthesis is not closed")
    arguments = tuple(_argument(one) for one in _split(text[1 : text.rindex(")")]))
    names = [argument.name for argument in arguments]
    for name in names:
        if names.count(name) > 1 or name in ("qpu", "qpus", "len"):
            raise InterfaceError(f"kernel {found[1]}: {name} cannot be the name of an argument")
    if len(names) > MOST_ARGUMENTS:
        raise InterfaceError(f"kernel {found[1]}: more than {MOST_ARGUMENTS} arguments")
    given = _UNIFORMS.search(source)
    uniforms = tuple(_split(_rest(source, given.end()))) if given else tuple(names)
    interface = Interface(found[1], arguments, uniforms)
    known = {*names, "qpu", "qpus"}
    for text in (*uniforms, *(s for a in arguments for s in (*a.sizes, a.default or "0"))):
        unknown = names_in(text) - known
        if unknown:
            raise InterfaceError(f"kernel {found[1]}: {text!r} names {min(unknown)}, which is none")
    return interface


def _rest(source: str, at: int) -> str:
    """The text from a place to the end of its line, and of those that go on with it."""
    lines = source[at : at + MOST_TEXT].split("\n")
    text = lines[0].strip()
    for line in lines[1:]:
        if not _COMMENT.match(line) or (_open(text) == 0 and not text.endswith(",")):
            break
        text += " " + _COMMENT.sub("", line).strip()
    return text


def _open(text: str) -> int:
    return sum(text.count(one) for one in "([") - sum(text.count(one) for one in ")]")


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _argument(text: str) -> Argument:
    found = _ARGUMENT.match(text)
    if found is None:
        raise InterfaceError(f"argument {text[:60]!r}: expected [in|out|inout] NAME: TYPE[]")
    direction, name, kind, array, sizes, default = found.groups()
    if kind not in TYPES:
        raise InterfaceError(f"argument {name}: there is no type {kind} ({', '.join(TYPES)})")
    if not array and (kind not in NUMBERS or direction in ("out", "inout")):
        raise InterfaceError(
            f"argument {name}: a number is {', '.join(NUMBERS)} and only comes in; {kind}[] is an array"
        )
    if array and default is not None:
        raise InterfaceError(f"argument {name}: an array has no default")
    if direction == "out" and not sizes.strip():
        raise InterfaceError(f"argument {name}: only comes out, so its size is needed: {kind}[16]")
    return Argument(name, kind, bool(array), direction or "in", tuple(_split(sizes or "")), default)


def names_in(text: str) -> set[str]:
    """The names that an expression asks for; raises InterfaceError."""
    called = "len"
    return {node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name)} - {called}


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InterfaceError(f"{text[:60]!r} is no expression") from None


def value_of(text: str, names: Mapping[str, int | float], lengths: Mapping[str, int]) -> int | float:
    """Return the value of an expression: `names` have values, `lengths` what `len` gives.

    Raises InterfaceError.
    """
    try:
        return _value(_tree(text), names, lengths)
    except (ZeroDivisionError, OverflowError):
        raise InterfaceError(f"{text[:60]!r} divides by zero or is too large") from None


def _value(node: ast.expr, names: Mapping[str, int | float], lengths: Mapping[str, int]) -> int | float:
    found: int | float | None = None
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        found = node.value
    elif isinstance(node, ast.Name):
        found = names.get(node.id)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = (_value(one, names, lengths) for one in (node.left, node.right))
        found = _OPERATORS[type(node.op)](left, right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = -_value(node.operand, names, lengths)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
        found = lengths.get(ast.unparse(node.args[0]))
    if found is None:
        raise InterfaceError(f"{ast.unparse(node)[:60]!r} has no value here")
    if abs(found) >= LARGEST:
        raise OverflowError
    return found


def word_of(value: int | float, what: str) -> int:
    """The 32 bits of a uniform: a float's, or those of an integer of either sign."""
    if isinstance(value, float):
        try:
            return int(struct.unpack("<I", struct.pack("<f", value))[0])
        except OverflowError:
            raise InterfaceError(f"{what}: {value} is too large for a float") from None
    if not -(1 << 31) <= value < 1 << 32:
        raise InterfaceError(f"{what}: {value} has more than 32 bits")
    return value & 0xFFFFFFFF
