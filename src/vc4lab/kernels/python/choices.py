"""Expressions of kernels in which a condition chooses: `a if c else b`, `and`, `or`, `not`, `a < b < c`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from vc4lab.kernels.python.trace import current
from vc4lab.kernels.python.values import Bool, Test, Vector, select_operand, vector_of
from vc4lab.kernels.python.variables import of_one_type


def ternary(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`a if c else b`: lane by lane for a condition on lanes."""
    if isinstance(condition, Test):
        current().fail("`a if any_(…) else b`: write an if statement, or select() lane by lane")
    if not isinstance(condition, Bool):
        return yes() if condition else no()
    return select(condition, yes(), no())


def select(condition: Bool, a: Any, b: Any) -> Any:
    """`a` in the lanes where the condition holds, else `b`. Both are numbers or vectors."""
    if not isinstance(condition, Bool):
        current().fail(f"select() takes a condition on lanes, not {type(condition).__name__}")
    first = vector_of(a)
    if first is not None and not isinstance(a, Vector) and isinstance(b, Vector):
        first = b.like(type(b)._from(a))
    if first is None:
        current().fail(f"select() takes numbers and vectors, not {type(a).__name__}")
    second = of_one_type("the value", first, b)
    return first.like(select_operand(condition, first.operand, second.operand))


def and_(a: Any, b: Callable[[], Any]) -> Any:
    """`a and b`; both sides are evaluated if `a` is a condition on lanes."""
    if isinstance(a, Test):
        current().fail("`and` of any_() and all_(): put the conditions together inside, with &")
    return a & b() if isinstance(a, Bool) else a and b()


def or_(a: Any, b: Callable[[], Any]) -> Any:
    """`a or b` likewise."""
    if isinstance(a, Test):
        current().fail("`or` of any_() and all_(): put the conditions together inside, with |")
    return a | b() if isinstance(a, Bool) else a or b()


def not_(a: Any) -> Any:
    return ~a if isinstance(a, Bool | Test) else not a


_OPERATORS: dict[str, Any] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


def chain(operators: tuple[str, ...], *operands: Any) -> Any:
    """`a < b < c`: all operands are evaluated, the comparisons are joined with and."""
    result: Any = True
    for name, left, right in zip(operators, operands, operands[1:], strict=False):
        outcome = _OPERATORS[name](left, right)
        if isinstance(result, Bool):
            result = result & outcome
        elif not result:
            return result
        else:
            result = outcome
    return result
