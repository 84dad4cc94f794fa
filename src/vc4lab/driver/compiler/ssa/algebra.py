"""Values that are simpler than they look: constants, and rules of arithmetic that hold to the bit.

A rule that would change the sign of a zero or the payload of a NaN is no rule here; what later
steps may round otherwise is for them to say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vc4lab.driver.compiler.ssa.ops import OPS, compute
from vc4lab.driver.compiler.ssa.values import Value

ONE, MINUS_ZERO, ALL = 0x3F800000, 0x80000000, 0xFFFFFFFF
APPROXIMATE = frozenset(
    ("fdiv", "frcp", "frsq", "fsqrt", "fexp2", "flog2", "fpow", "fsin", "fcos", "ddx", "ddy")
)
"""What the hardware approximates: of these, no constants are made here."""
MOST_REGISTERS = 1 << 12
"""Of a constant buffer that is read by known places."""
Constant = Callable[[int], Value]
"""Makes the value of a word."""


def simplify(value: Value, constant: Constant) -> Value:
    """The value itself, or an older or simpler one that is always the same."""
    op, args = OPS[value.op], value.args
    known = [arg.attributes[0] if arg.op == "constant" else None for arg in args]
    if value.op == "uniform_at":
        _find_uniform(value, known[0])
        return value
    if op.compute is not None and args and None not in known and value.op not in APPROXIMATE:
        words = [np.array([word], np.uint32) for word in known]
        return constant(int(compute(op, words)[0]))
    rule = _RULES.get(value.op)
    found = None if rule is None else rule(args, known, constant)
    return value if found is None else found


def _find_uniform(value: Value, index: int | None) -> None:
    """A uniform at an index becomes a plain one if the index is known.

    Of the same buffer and component: streams have it, where the other is looked up in memory.
    """
    if index is None:
        return
    buffer, first, component = value.attributes
    register = first + index - ((index >> 31) << 32)
    if 0 <= register < MOST_REGISTERS:
        value.op, value.args, value.attributes = "uniform", (), (buffer, register, component)


Rule = Callable[[tuple[Value, ...], list[int | None], Constant], Value | None]


def _neutral(word: int) -> Rule:
    """Of two operands that may change places, one that leaves the other as it is."""

    def rule(args: tuple[Value, ...], known: list[int | None], _new: Constant) -> Value | None:
        if known[1] == word:
            return args[0]
        return args[1] if known[0] == word else None

    return rule


def _logic(neutral: int, absorbing: int) -> Rule:
    """And, or: also of one value with itself."""
    plain = _neutral(neutral)

    def rule(args: tuple[Value, ...], known: list[int | None], new: Constant) -> Value | None:
        if args[0] is args[1]:
            return args[0]
        return new(absorbing) if absorbing in known else plain(args, known, new)

    return rule


def _select(args: tuple[Value, ...], known: list[int | None], _new: Constant) -> Value | None:
    if args[1] is args[2]:
        return args[1]
    return None if known[0] is None else args[1 if known[0] else 2]


def _negate(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0].args[0] if args[0].op == "fneg" else None


def _absolute(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0] if args[0].op == "fabs" else None


def _by(word: int) -> Rule:
    """The second operand leaves the first as it is."""
    return lambda args, known, _new: args[0] if known[1] == word else None


def _same(word: int) -> Rule:
    """What two equal operands give."""
    return lambda args, _known, new: new(word) if args[0] is args[1] else None


def _not(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0].args[0] if args[0].op == "not" else None


_RULES: dict[str, Rule] = {
    "fmul": _neutral(ONE),
    "fadd": _neutral(MINUS_ZERO),
    "iadd": _neutral(0),
    "imul": _neutral(1),
    "and": _logic(ALL, 0),
    "or": _logic(0, ALL),
    "xor": _neutral(0),
    "shl": _by(0),
    "shr": _by(0),
    "asr": _by(0),
    "select": _select,
    "fneg": _negate,
    "fabs": _absolute,
    "not": _not,
    "ieq": _same(ALL),
    "ine": _same(0),
    "ult": _same(0),
    "ilt": _same(0),
    "uge": _same(ALL),
    "ige": _same(ALL),
}
