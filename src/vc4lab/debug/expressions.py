"""Expressions over the state of a QPU: what is printed, compared, and given a new value.

r0                      16 lanes, as integers           r0.f      the same as floats
ra3[5]                  one lane                        r1.h0     a half: h0, h1; a byte: b0 … b3
z, n, c                 flags                           lane      0 … 15
mem[y + 16], memf[y]    a word of memory, as a float    vpm[3]    a row of the VPM
unif, pc, qpu           the next uniform's address, the next instruction's, the QPU's number
colour, depth, x, y …   of shaders: the tile buffer at the lane's pixel, the pixel; the lane's vertex
any(r0 > 5), all(z)     of the lanes; a condition over lanes holds if it does in any lane
"""

from __future__ import annotations

import ast
import operator
import re
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from vc4lab.debug.formats import LANES
from vc4lab.qpu.run.environment import RegisterKey

MOST_TEXT = 500
"""Characters of an expression."""
LARGEST = 1 << 63
_WORD = 1 << 32
_REGISTER = re.compile(r"(?:r([ab])(\d{1,2})|r([0-5]))\Z")
FLAGS: Final = ("z", "n", "c")
OF_QPU: Final = frozenset(("unif", "pc", "qpu", "qpu_num", "instructions", *FLAGS))
"""Names whose value depends on the QPU, as registers do."""


class ExpressionError(ValueError):
    """An expression that cannot be understood, or has no value here; the message says why."""


class State(Protocol):
    """Expressions read the state of a QPU, and of what it shares with others, through this."""

    def register(self, key: RegisterKey) -> Any:
        """Its 16 words (uint32)."""

    def flag(self, name: str) -> Any:
        """Its 16 truth values."""

    def number(self, name: str) -> int | None:
        """Return the value of a name (`unif`, `pc`, a label, a named memory); None: it has none."""

    def lanes(self, name: str) -> Any:
        """The 16 words of a name that only this kind of program has; None: there is no such name."""

    def word(self, address: int) -> int:
        """A word of guest memory."""

    def vpm_row(self, row: int) -> Any:
        """Its 16 words (uint32)."""

    def semaphore(self, number: int) -> int:
        """Its value."""


def register_key(name: str) -> RegisterKey | None:
    """`ra3`, `rb31` or `r5` as a key; None for what is no register."""
    found = _REGISTER.match(name)
    if found is None:
        return None
    if found[3]:
        return "r", int(found[3])
    return (found[1], int(found[2])) if int(found[2]) < 32 else None


class Expression:
    """An expression, read once and computed often. Raises ExpressionError.

    Attributes
    ----------
    text
        As it was written.
    of_qpu
        Whether the value depends on which QPU is looked at.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if len(self.text) > MOST_TEXT:
            raise ExpressionError(f"an expression has at most {MOST_TEXT} characters")
        try:
            # as gdb writes registers: $ra0
            self._tree = ast.parse(self.text.replace("$", ""), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ExpressionError(f"{_short(self.text)} is no expression") from None
        names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        self.of_qpu = any(name in OF_QPU or register_key(name) for name in names)

    def value(self, state: State) -> Any:
        """A number, or an array with a value for each lane."""
        try:
            with np.errstate(all="ignore"):
                return _Reader(state).value(self._tree)
        except ExpressionError:
            raise
        except (ZeroDivisionError, OverflowError, FloatingPointError):
            raise ExpressionError(f"{_short(self.text)} divides by zero or is too large") from None
        except (TypeError, ValueError, IndexError, RecursionError):
            raise ExpressionError(f"{_short(self.text)} has operands that do not go together") from None

    def holds(self, state: State) -> bool:
        """Whether a condition holds, over lanes: in any of them."""
        return bool(np.any(self.value(state)))

    def form(self, state: State) -> str:
        """The view that suits its value: "float" or "int"."""
        return "float" if np.asarray(self.value(state)).dtype.kind == "f" else "int"

    def words(self, state: State) -> list[int]:
        """The value as words: of one lane or of all. A view such as `.f` gives the word it is of."""
        value = self.value(state)
        return [word_of(one) for one in (value.tolist() if isinstance(value, np.ndarray) else [value])]

    @property
    def target(self) -> tuple[str, ast.expr | None]:
        """Return the name that an assignment changes, and the index in its brackets (None: none)."""
        tree = self._tree
        index: ast.expr | None = None
        if isinstance(tree, ast.Subscript):
            index, tree = tree.slice, tree.value
        if not isinstance(tree, ast.Name):
            raise ExpressionError(f"{_short(self.text)} cannot be given a value")
        return tree.id, index

    def index(self, state: State, tree: ast.expr) -> int:
        """The value of a part of it as a whole number."""
        return _whole(_Reader(state).value(tree))


def word_of(value: Any) -> int:
    """The 32 bits of a number: a float's, or those of an integer."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating):
        try:
            return int(struct.unpack("<I", struct.pack("<f", float(value)))[0])
        except OverflowError:
            return 0x7F800000 if value > 0 else 0xFF800000
    return int(value) & (_WORD - 1)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_DIVIDING: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SHIFTS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "any": lambda x: bool(np.any(x)),
    "all": lambda x: bool(np.all(x)),
    "abs": abs,
    "min": lambda x: np.min(x).item(),
    "max": lambda x: np.max(x).item(),
    "sum": lambda x: np.sum(x).item(),
}


class _Reader:
    def __init__(self, state: State) -> None:
        self.state = state

    def value(self, node: ast.expr) -> Any:
        reader = _READERS.get(type(node))
        if reader is None:
            raise ExpressionError(f"{_short(ast.unparse(node))} is not possible in an expression")
        found = reader(self, node)
        if isinstance(found, int) and abs(found) >= LARGEST:
            raise OverflowError
        return found

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float):
            raise ExpressionError(f"{_short(ast.unparse(node))} is no number")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        key = register_key(node.id)
        if key is not None:
            return np.asarray(self.state.register(key), np.uint32).view(np.int32).astype(np.int64)
        if node.id in FLAGS:
            return np.asarray(self.state.flag(node.id), bool)
        if node.id in ("lane", "elem_num"):
            return np.arange(LANES)
        found = self.state.number(node.id)
        words = self.state.lanes(node.id) if found is None else None
        if words is not None:
            return np.asarray(words, np.uint32).astype(np.int64)
        if found is None:
            raise ExpressionError(f"there is no {_short(node.id)} here")
        return found

    def _attribute(self, node: ast.Attribute) -> Any:
        view = _VIEWS.get(node.attr)
        if view is None:
            raise ExpressionError(f"there is no view .{node.attr[:20]} ({', '.join(_VIEWS)})")
        inner = self.value(node.value)
        words = np.array([word_of(one) for one in np.atleast_1d(inner).tolist()], np.uint32)
        result = view(words)
        return result if isinstance(inner, np.ndarray) else result[0].item()

    def _subscript(self, node: ast.Subscript) -> Any:
        index = _whole(self.value(node.slice))
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name in ("mem", "memf"):
                word = self.state.word(index)
                as_float = struct.unpack("<f", struct.pack("<I", word))[0]
                return as_float if name == "memf" else word - _WORD if word >> 31 else word
            if name == "vpm":
                return np.asarray(self.state.vpm_row(index), np.uint32).view(np.int32).astype(np.int64)
            if name == "sem":
                return self.state.semaphore(index)
        lanes = self.value(node.value)
        if not isinstance(lanes, np.ndarray) or not 0 <= index < len(lanes):
            raise ExpressionError(f"{_short(ast.unparse(node))}: lanes are 0 to 15 of a register")
        return lanes[index].item()

    def _binary(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        kind = type(node.op)
        if kind in _SHIFTS:
            if not np.all((np.asarray(b) >= 0) & (np.asarray(b) < 63)):
                raise OverflowError
            return _SHIFTS[kind](a, b)
        if kind in _DIVIDING:
            if not np.all(b):
                raise ZeroDivisionError
            return _DIVIDING[kind](a, b)
        if kind not in _BINARY:
            raise ExpressionError(f"{_short(ast.unparse(node))} has an operator that is not possible")
        return _BINARY[kind](a, b)

    def _unary(self, node: ast.UnaryOp) -> Any:
        x = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return ~np.asarray(x, bool) if isinstance(x, np.ndarray) else not x
        if isinstance(node.op, ast.Invert):
            return ~x if not isinstance(x, bool) else not x
        return -x if isinstance(node.op, ast.USub) else x

    def _logic(self, node: ast.BoolOp) -> Any:
        values = [np.asarray(self.value(one)) != 0 for one in node.values]
        combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        found = values[0]
        for other in values[1:]:
            found = combine(found, other)
        return found if found.ndim else bool(found)

    def _compare(self, node: ast.Compare) -> Any:
        result: Any = True
        left = self.value(node.left)
        for kind, part in zip(node.ops, node.comparators, strict=True):
            test = _COMPARISONS.get(type(kind))
            if test is None:
                raise ExpressionError(f"{_short(ast.unparse(node))} has an operator that is not possible")
            right = self.value(part)
            result = np.logical_and(result, test(*_alike(left, right)))
            left = right
        return result if np.ndim(result) else bool(result)

    def _call(self, node: ast.Call) -> Any:
        function = _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or len(node.args) != 1 or node.keywords:
            raise ExpressionError(
                f"{_short(ast.unparse(node))}: functions are {', '.join(_FUNCTIONS)}, of one value"
            )
        return function(self.value(node.args[0]))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Integers beside a number of 2^31 or more are read without a sign, so 0xffffffff is -1."""
    whole = all(np.asarray(one).dtype.kind in "iub" for one in (a, b))
    if whole and any(np.any((np.asarray(one) >= 1 << 31) & (np.asarray(one) < _WORD)) for one in (a, b)):
        return np.asarray(a) & (_WORD - 1), np.asarray(b) & (_WORD - 1)
    return a, b


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExpressionError("an index is a whole number")
    return value


def _byte(number: int, words: Any) -> Any:
    return ((words >> np.uint32(8 * number)) & 0xFF).astype(np.int64)


_VIEWS: Mapping[str, Callable[[Any], Any]] = {
    "f": lambda words: words.view(np.float32).astype(np.float64),
    "i": lambda words: words.view(np.int32).astype(np.int64),
    "u": lambda words: words.astype(np.int64),
    "h0": lambda words: words.view(np.float16)[0::2].astype(np.float64),
    "h1": lambda words: words.view(np.float16)[1::2].astype(np.float64),
    **{f"b{n}": partial(_byte, n) for n in range(4)},
}

_READERS: dict[type[ast.expr], Callable[[_Reader, Any], Any]] = {
    ast.Constant: _Reader._constant,
    ast.Name: _Reader._name,
    ast.Attribute: _Reader._attribute,
    ast.Subscript: _Reader._subscript,
    ast.BinOp: _Reader._binary,
    ast.UnaryOp: _Reader._unary,
    ast.BoolOp: _Reader._logic,
    ast.Compare: _Reader._compare,
    ast.Call: _Reader._call,
}
