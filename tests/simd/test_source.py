"""Definitions are cut out of files by indentation, by Python's tokenizer where that fails."""

import ast
import inspect
import textwrap
from typing import Any

import pytest

from vc4lab.simd.syntax import syntax_of


def decorated(*_arguments: Any) -> Any:
    return lambda function: function


def plain(a: int) -> int:
    return a + 1


@decorated(1, 2)
def with_head(a: int, b: int = 0) -> int:
    # fmt: off
    if a:
    # a comment further left
        b = (
    a
)
    # fmt: on
    return b
    # and one after the last statement


def with_text() -> str:
    return """
not indented
"""


def with_comment(a: int) -> int:
    # fmt: off
    a += 1
    # a comment at the margin is no end
    # fmt: on
    return a


def one_line(a: int) -> int: return a  # fmt: skip


class Room:
    def method(self) -> int:
        def inner() -> int:
            return 1

        return inner()

    def next(self) -> int:
        return 2


def outer() -> Any:
    def inner(a: int) -> int:
        return a

    after = inner
    return after


def crowded() -> Any:
    # fmt: off
    def inside(a: int) -> int:
        b = a
        return b
    after = inside
    # fmt: on
    return after


@pytest.mark.parametrize(
    "function",
    [*(plain, with_head, with_text, with_comment, one_line), *(Room.method, Room.next, outer(), crowded())],
    ids=lambda f: f.__name__,
)
def test_the_tree_is_that_of_the_lines_that_inspect_finds(function: Any) -> None:
    lines, first = inspect.getsourcelines(function)
    due = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(due, first - 1)
    found = syntax_of(function)
    assert ast.dump(found, include_attributes=True) == ast.dump(due, include_attributes=True)
    assert [type(node) for node in found.body] == [ast.FunctionDef]


def test_a_function_without_source_is_refused() -> None:
    made: dict[str, Any] = {}
    exec("def made(): return 1", made)
    with pytest.raises(TypeError, match="the source of made is needed"):
        syntax_of(made["made"])
