"""Small pieces of Python syntax trees, and the variables a statement changes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from vc4lab.simd.names import bound, children, exposed, item_roots

_DISCARD = "_vc4_discard"
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_LOCATED = (ast.expr, ast.stmt, ast.arg)


def locate(tree: Any, at: ast.AST) -> Any:
    """Gives every generated node the position of `at`; what has one is not entered again."""
    place = {name: getattr(at, name, None) for name in _PLACE}
    todo = [tree]
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
        self.extra = [
            r for r in item_roots(body) if not (isinstance(r, ast.Name) and r.id in self.names)
        ]

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
        return ast.Assign(
            [ast.Tuple([ast.Name(t, ast.Store()) for t in targets], ast.Store())], value
        )
