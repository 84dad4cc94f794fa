"""Syntax trees: that of a function, pieces to build others, the variables a statement changes."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeVar

from vc4lab.simd.names import bound, children, exposed, item_roots

_DISCARD = "_vc4_discard"
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_LOCATED = (ast.expr, ast.stmt, ast.arg)
Tree = TypeVar("Tree")


def syntax_of(function: FunctionType) -> ast.Module:
    """A module with the function's definition; its nodes have their places in the file.

    Raises TypeError if there is no source.
    """
    code = function.__code__
    start = code.co_firstlineno - 1
    lines = _definition(linecache.getlines(code.co_filename, function.__globals__), start)
    try:
        return _parse(lines, start)
    except SyntaxError:
        pass  # lines of a text that begin further left, say
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise TypeError(
            f"@kernel and @staged need the source of {function.__qualname__}, and there is none"
        ) from error
    return _parse(lines, first - 1)


def _parse(lines: list[str], before: int) -> ast.Module:
    if not lines:
        raise SyntaxError("no lines")
    return ast.parse("\n" * before + textwrap.dedent("".join(lines)))


def _definition(lines: list[str], start: int) -> list[str]:
    """The lines from `start` to the end of the first definition, by their indentation.

    `inspect` finds the end with Python's tokenizer, which takes longer than all else that is done
    with the source.
    """
    margin = -1
    for number in range(start, len(lines)):
        line = lines[number]
        text = line.lstrip()
        if not text or text[0] == "#":
            continue
        if margin < 0:
            if text.startswith("def "):
                margin = len(line) - len(text)
        elif len(line) - len(text) <= margin and text[0] not in ")]}":
            return lines[start:number]
    return lines[start:]


def locate(tree: Tree, at: ast.AST) -> Tree:
    """Gives every generated node the place where `at` begins; what has one is not entered again.

    The beginning only: Python reports parts of a node of several lines at its last one, and a
    debugger would jump there and back.
    """
    line, column = getattr(at, "lineno", None), getattr(at, "col_offset", None)
    place = dict(zip(_PLACE, (line, column, line, column), strict=True))
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        if "lineno" in node.__dict__:
            continue
        if isinstance(node, _LOCATED):
            node.__dict__.update(place)
        todo += children(node)
    return tree


def read_name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def call_of(target: str, *args: ast.expr) -> ast.Call:
    """A call of `a.b` with these arguments."""
    base, _, attribute = target.partition(".")
    function: ast.expr = read_name(base)
    if attribute:
        function = ast.Attribute(function, attribute, ast.Load())
    return ast.Call(function, list(args), [])


def field_of(name: str, attribute: str) -> ast.expr:
    return ast.Attribute(read_name(name), attribute, ast.Load())


def assign_to(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def thunk(body: ast.expr) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(empty, body)


class State:
    """The variables that a compound statement changes, as expressions and as targets."""

    def __init__(self, body: Sequence[ast.AST], local: set[str]) -> None:
        self.names = [n for n in bound(body) if n in local]
        self.extra = [r for r in item_roots(body) if not (isinstance(r, ast.Name) and r.id in self.names)]

    def load(self) -> ast.expr:
        reads: list[ast.expr] = [read_name(n) for n in self.names]
        reads += [ast.parse(ast.unparse(r), mode="eval").body for r in self.extra]
        for read in reads:
            for node in ast.walk(read):
                for attribute in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                    node.__dict__.pop(attribute, None)
        return ast.Tuple(reads, ast.Load())

    def labels(self) -> ast.expr:
        texts = [*self.names, *(ast.unparse(r) for r in self.extra)]
        return ast.Tuple([ast.Constant(t) for t in texts], ast.Load())

    def carried(self, test: ast.expr | None, body: list[ast.stmt], target: list[str]) -> ast.expr:
        """The labels of what a turn of this loop takes over from the turn before."""
        first: list[ast.stmt] = [ast.Expr(test)] if test else []
        read = exposed([*first, *body], set(target))
        texts = [n for n in self.names if n in read] + [ast.unparse(r) for r in self.extra]
        return ast.Tuple([ast.Constant(t) for t in texts], ast.Load())

    def store(self, value: ast.expr) -> ast.stmt:
        targets = [*self.names, *(_DISCARD for _ in self.extra)]
        if not targets:
            return ast.Expr(value)
        return ast.Assign([ast.Tuple([ast.Name(t, ast.Store()) for t in targets], ast.Store())], value)
