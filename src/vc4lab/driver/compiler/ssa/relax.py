"""Rules of arithmetic that OpenGL allows and IEEE 754 does not: rounding, signs of zeros, NaN.

They stand apart from those of `optimise.py`, which hold to the bit. Divisions by constants become
products, signs move to where adding takes them for nothing, comparisons of what a comparison chose
become that comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vc4lab.driver.compiler.ssa.flatten import is_boolean
from vc4lab.driver.compiler.ssa.ops import OPS, compute
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Loop, Node, Value

ONE, MINUS_ONE, SIGN, ALL = 0x3F800000, 0xBF800000, 0x80000000, 0xFFFFFFFF
FOLDED = frozenset(("frcp", "frsq", "fsqrt", "fexp2", "flog2", "fpow", "fdiv", "fsin", "fcos"))
"""Approximated operations whose constants are computed here, more exactly than the QPU does."""
COMPARES = frozenset(("feq", "fne", "flt", "fge", "ieq", "ine", "ilt", "ige", "ult", "uge"))
LARGEST = 0x7F7FFFFF


def relax(function: Function) -> Function:
    """Apply the rules once to each value; the function is changed in place."""
    return _Relaxing(function).run()


def word_of(value: Value) -> int | None:
    """The word of a constant."""
    word: int | None = value.attributes[0] if value.op == "constant" else None
    return word


class _Relaxing:
    """One walk; what rules make stands before the value that they replace."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._new: dict[Value, Value] = {}
        self._constants: dict[int, Value] = {}
        self._made: list[Value] = []
        self._line = 0

    def run(self) -> Function:
        self._nodes(self._function.body)
        first = self._function.body[0]
        assert isinstance(first, Block)
        first.values[:0] = self._constants.values()
        return self._function

    def _nodes(self, nodes: list[Node]) -> None:
        for node in nodes:
            if isinstance(node, Block):
                self._block(node)
            elif isinstance(node, If):
                node.condition = self._now(node.condition)
                self._nodes(node.then)
                self._nodes(node.otherwise)
                if node.then_values is not None:
                    node.then_values = tuple(map(self._now, node.then_values))
                if node.else_values is not None:
                    node.else_values = tuple(map(self._now, node.else_values))
            elif isinstance(node, Loop):
                node.initial = tuple(map(self._now, node.initial))
                self._nodes(node.body)
            else:
                node.values = tuple(map(self._now, node.values))

    def _now(self, value: Value) -> Value:
        while value in self._new:
            value = self._new[value]
        return value

    def _block(self, node: Block) -> None:
        kept: list[Value] = []
        for value in node.values:
            value.args = tuple(map(self._now, value.args))
            self._line = value.line
            self._made = []
            new = self._relaxed(value)
            kept += self._made
            if new is value:
                kept.append(value)
            else:
                self._new[value] = new
        node.values = kept

    # ---------------------------------------------------------------- what rules are made of

    def constant(self, word: int) -> Value:
        """A constant."""
        if word not in self._constants:
            self._constants[word] = Value("constant", (), (word,))
        return self._constants[word]

    def make(self, op: str, *args: Value) -> Value:
        """A new value, itself relaxed."""
        value = Value(op, args, (), self._line)
        new = self._relaxed(value)
        if new is value:
            self._made.append(value)
        return new

    def _relaxed(self, value: Value) -> Value:
        words = [word_of(arg) for arg in value.args]
        if value.op in FOLDED and None not in words:
            found = compute(OPS[value.op], [np.array([word], np.uint32) for word in words])
            return self.constant(int(found[0]))
        rule = _RULES.get(value.op)
        found_value = None if rule is None else rule(self, value.args, words)
        return value if found_value is None else found_value


Rule = Callable[[_Relaxing, tuple[Value, ...], list[int | None]], Value | None]


def _divide(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    if words[1] is not None:
        by = on.make("frcp", args[1])
        word = word_of(by)
        if word is not None and word & 0x7F800000 not in (0, 0x7F800000):
            return on.make("fmul", args[0], by)
    return None


def _add(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    for number in (0, 1):
        if words[number] is not None and words[number] & 0x7FFFFFFF == 0:  # type: ignore[operator]
            return args[1 - number]
    if args[0].op == "fneg" and args[1].op == "fneg":
        return on.make("fneg", on.make("fadd", args[0].args[0], args[1].args[0]))
    for number in (0, 1):
        if args[1 - number].op == "fneg" and args[1 - number].args[0] is args[number]:
            return on.constant(0)
    return None


def _multiply(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    for number in (0, 1):
        word, other = words[number], args[1 - number]
        if word is None:
            continue
        if word & 0x7FFFFFFF == 0:
            return on.constant(0)
        if word == MINUS_ONE:
            return on.make("fneg", other)
        if other.op == "fneg":
            return on.make("fmul", on.constant(word ^ SIGN), other.args[0])
        if other.op == "fmul":  # two constants become one
            for inner in (0, 1):
                known = word_of(other.args[inner])
                if known is not None:
                    factors = [np.array([one], np.uint32) for one in (word, known)]
                    product = int(compute(OPS["fmul"], factors)[0])
                    if product & 0x7F800000 not in (0, 0x7F800000):
                        return on.make("fmul", on.constant(product), other.args[1 - inner])
    for number in (0, 1):
        if args[number].op == "fneg":
            return on.make("fneg", on.make("fmul", args[number].args[0], args[1 - number]))
    return None


def _negate(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    (arg,) = args
    if arg.op == "fneg":
        return arg.args[0]
    if words[0] is not None:
        return on.constant(words[0] ^ SIGN)
    if arg.op == "select":
        known = [word_of(one) for one in arg.args[1:]]
        if None not in known:
            ways = [on.constant(word ^ SIGN) for word in known if word is not None]
            return on.make("select", arg.args[0], *ways)
    return None


def _absolute(on: _Relaxing, args: tuple[Value, ...], _words: list[int | None]) -> Value | None:
    """|-x| is |x|."""
    return on.make("fabs", args[0].args[0]) if args[0].op == "fneg" else None


def _maximum(on: _Relaxing, args: tuple[Value, ...], _words: list[int | None]) -> Value | None:
    """max(x, -x) is |x|."""
    for number in (0, 1):
        if args[number].op == "fneg" and args[number].args[0] is args[1 - number]:
            return on.make("fabs", args[1 - number])
    return None


def _and(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    """A comparison and a word: the word or 0. Two of them, one negated: the other or 0."""
    for number in (0, 1):
        if words[number] is not None and is_boolean(args[1 - number]):
            return on.make("select", args[1 - number], args[number], on.constant(0))
    for number in (0, 1):
        condition, other = args[number], args[1 - number]
        if condition.op == "not" and is_boolean(condition.args[0]):
            return on.make("select", condition.args[0], on.constant(0), other)
    return None


def _truth(on: _Relaxing, args: tuple[Value, ...], _words: list[int | None]) -> Value | None:
    return on.make("select", args[0], on.constant(ONE), on.constant(0))


def _compare(op: str) -> Rule:
    """A comparison of what a condition chose among constants is the condition, or its opposite."""

    def rule(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
        for number in (0, 1):
            chosen, other = args[number], words[1 - number]
            if chosen.op != "select" or other is None or not is_boolean(chosen.args[0]):
                continue
            ways = [word_of(one) for one in chosen.args[1:]]
            if None in ways:
                continue
            results = []
            for way in ways:
                pair = (way, other) if number == 0 else (other, way)
                operands = [np.array([word], np.uint32) for word in pair]
                results.append(bool(compute(OPS[op], operands)[0]))
            if results[0] == results[1]:
                return on.constant(ALL if results[0] else 0)
            return chosen.args[0] if results[0] else on.make("not", chosen.args[0])
        return None

    return rule


OPPOSITES = {
    **{"flt": "fge", "fge": "flt", "feq": "fne", "fne": "feq", "ilt": "ige", "ige": "ilt"},
    **{"ult": "uge", "uge": "ult", "ieq": "ine", "ine": "ieq"},
}


def _not(on: _Relaxing, args: tuple[Value, ...], _words: list[int | None]) -> Value | None:
    """The opposite comparison; without NaN it is one."""
    (arg,) = args
    return on.make(OPPOSITES[arg.op], *arg.args) if arg.op in OPPOSITES else None


def _select(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    """A comparison as a word; a negated condition."""
    condition, first, second = args
    if condition.op == "not":
        return on.make("select", condition.args[0], second, first)
    if is_boolean(condition) and words[1] == ALL and words[2] == 0:
        return condition
    return None


def _power(on: _Relaxing, args: tuple[Value, ...], words: list[int | None]) -> Value | None:
    """Small powers as products."""
    if words[1] == ONE:
        return args[0]
    if words[1] == 0x40000000:
        return on.make("fmul", args[0], args[0])
    if words[1] == 0x40800000:
        square = on.make("fmul", args[0], args[0])
        return on.make("fmul", square, square)
    return None


_RULES: dict[str, Rule] = {
    "fdiv": _divide,
    "fadd": _add,
    "fmul": _multiply,
    "fneg": _negate,
    "fabs": _absolute,
    "fmax": _maximum,
    "and": _and,
    "b2f": _truth,
    "not": _not,
    "select": _select,
    "fpow": _power,
    **{name: _compare(name) for name in COMPARES},
}
